"""Start the command line, so that an interrupt of its imports is a message, too."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Run the command line; also turn an interrupt during its imports into a message."""
    try:
        from uqeval.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("uqeval: interrupted before the end.\n")
        sys.exit(130)


def __getattr__(name: str) -> Any:
    """Return `COMMANDS` or `app` for `uqeval.cli`, which takes this function over.

    They are imported at their first use: an import before `main` could not catch an interrupt.
    """
    if name in ("COMMANDS", "app"):
        from uqeval.cli import entry

        return getattr(entry, name)
    raise AttributeError(f"module 'uqeval.cli' has no attribute {name!r}")
