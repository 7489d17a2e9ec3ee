"""Messages to the user: lines on stderr."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def tell(text: str) -> None:
    """Print one line on stderr; names in it cannot act on the terminal."""
    from uqeval.report.safe import printable

    typer.echo(printable(text), err=True)


def warn(texts: Iterable[str], quiet: bool) -> None:
    """Print what one should know of what was done, unless all is to be quiet."""
    if not quiet:
        for text in texts:
            tell(f"warning: {text}")
