"""How RotBench is run: images, the compose file, and the local stack."""
