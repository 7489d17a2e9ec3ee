"""The command line: one file per command. entry.py turns errors into messages and exit statuses."""

from uqeval.cli.start import __getattr__, main

__all__ = ["COMMANDS", "__getattr__", "app", "main"]
