"""The door: the REST service that accepts runs and answers questions about them."""
