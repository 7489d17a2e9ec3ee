"""Messages to the user: lines on stderr."""

from __future__ import annotations

import typer


def tell(text: str) -> None:
    """Print one line on stderr; names in it cannot act on the terminal."""
    from uqeval.report.safe import printable

    typer.echo(printable(text), err=True)
