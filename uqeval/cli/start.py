"""Start the command line, so that an interrupt of its imports is a message, too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; also turn an interrupt during its imports into a message."""
    try:
        from uqeval.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("uqeval: interrupted before the end.\n")
        sys.exit(130)
