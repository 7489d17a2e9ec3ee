"""The command line: one file per command. entry.py turns errors into messages and exit statuses."""

from uqeval.cli.entry import COMMANDS, app, main

__all__ = ["COMMANDS", "app", "main"]
