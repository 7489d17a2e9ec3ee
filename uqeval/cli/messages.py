"""Messages to the user on stderr."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from uqeval.errors import printable


def tell(text: str) -> None:
    """Print one line on stderr, without control characters."""
    typer.echo(printable(text), err=True)


def silence() -> None:
    """Keep Python, NumPy, Zarr and OpenCV from writing to stderr.

    `python -W …` and PYTHONWARNINGS still show warnings.
    """
    import logging
    import os
    import sys
    import warnings

    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    # Without a handler Python prints what libraries log as warnings.
    logging.getLogger().addHandler(logging.NullHandler())
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")


def warn(texts: Iterable[str], quiet: bool) -> None:
    """Print warnings, unless `quiet`."""
    if not quiet:
        for text in texts:
            tell(f"warning: {text}")
