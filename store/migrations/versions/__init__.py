"""Which steps are there? One file each, in order."""
