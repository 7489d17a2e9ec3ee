"""Start the command line, so that an interrupt of its imports is a message, too, and no error ends
with status 1, which says that a rule failed."""

from __future__ import annotations

import sys
import traceback


def main() -> None:
    """Run the command line; also give errors during its imports their message and status."""
    try:
        from uqeval.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("uqeval: interrupted before the end.\n")
        sys.exit(130)
    except SystemExit:
        raise
    except BaseException:  # such as an import in a broken installation
        traceback.print_exc()
        sys.exit(3)
