"""The `rotbench` command: what a person types."""

from client.cli.app import main

__all__ = ["main"]
