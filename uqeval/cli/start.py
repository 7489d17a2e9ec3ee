"""Start the command line, so that an interrupt of its imports is a message, too, and no error ends
with status 1, which says that a rule failed."""

from __future__ import annotations

import os
import sys
import traceback
from types import FrameType

_INTERRUPTED = "uqeval: interrupted before the end.\n"


def main() -> None:
    """Run the command line; also give errors during its imports their message and status."""
    try:
        import signal  # it takes a while: its interrupt is a message, too

        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _end_imports)
        from uqeval.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write(_INTERRUPTED)
        sys.exit(130)
    except SystemExit:
        raise
    except BaseException:  # such as an import in a broken installation
        traceback.print_exc()
        sys.exit(3)


def _end_imports(number: int, frame: FrameType | None) -> None:
    """End the process. Python ignores an exception in a destructor, such as that of an import's
    lock, and there is nothing to remove yet."""
    try:
        os.write(2, _INTERRUPTED.encode())
    finally:
        os._exit(128 + number)
