"""How a command reads its arguments: as Typer does, but mistakes say the value that was given."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose messages of wrong values are those of the rest of uqeval."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments. Raises `typer.BadParameter`."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _plain(error)
            raise


def _plain(error: typer.BadParameter) -> str:
    """Its message without the words of pydantic, which is its cause where a value is wrong."""
    text = error.message.removeprefix("Value error, ")
    expected = text.removeprefix("Input should be ")
    details = getattr(error.__cause__, "errors", None)
    if expected == text or details is None:
        return text
    return f"{details()[0]['input']!r}; expected {expected.partition(', unable to parse')[0]}."
