"""What does the service remember? Tables and the functions that read and write them; no function here commits."""
