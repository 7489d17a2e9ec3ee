"""Checks that the settings of all families share; what is wrong is told by its option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from uqeval.errors import UsageError

Settings = TypeVar("Settings")


def option(name: str) -> str:
    """The option of a command that sets `name`."""
    return f"--{name.replace('_', '-')}"


def check_choices(settings: Any, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `UsageError` for a setting that is neither one of its choices nor its default."""
    for name, known in choices.items():
        value = getattr(settings, name)
        # A default that is no choice leaves it to the data.
        if value not in known and value != type(settings).__dataclass_fields__[name].default:
            raise UsageError(f"{option(name)} {value!r}; expected one of {', '.join(known)}.")


def check_whole(settings: Any, name: str, least: int, most: int | None = None) -> None:
    """Raise `UsageError` for a setting that is no whole number from `least` to `most` (or on)."""
    value = getattr(settings, name)
    if type(value) is not int or value < least or (most is not None and value > most):
        ends = f"from {least} on" if most is None else f"from {least} to {most}"
        raise UsageError(f"{option(name)} {value!r}; expected a whole number {ends}.")


def of_definition(
    kind: type[Settings], definitions: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> Settings:
    """Settings of a definition with what is `given` in place of its choices."""
    definition = given.get("definition", "paper")
    if definition not in definitions:
        raise UsageError(f"--definition {definition!r}; expected one of {', '.join(definitions)}.")
    return kind(**{**definitions[definition], **given})
