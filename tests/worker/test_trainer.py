"""Does the trainer's process speak and end as its supervisor expects? Real processes, without a store."""
