"""What does `python -m client.cli` do? The same as `rotbench`."""

from client.cli.app import main

main()
