"""The command line: one file per command. entry.py turns errors into messages and exit statuses."""

from __future__ import annotations

import sys
from typing import Any

_EXPORTS = ("COMMANDS", "app")
__all__ = ["COMMANDS", "app", "main"]


def main() -> None:
    """Run the command line; also turn an interrupt during its imports into a message."""
    try:
        from uqeval.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("uqeval: interrupted before the end.\n")
        sys.exit(130)


def __getattr__(name: str) -> Any:
    """Import `COMMANDS` and `app` at their first use: importing them here could not catch an
    interrupt.
    """
    if name in _EXPORTS:
        from uqeval.cli import entry

        return getattr(entry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
