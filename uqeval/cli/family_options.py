"""The options of a family's command, read off the family's settings."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Annotated, Any

import typer

from uqeval.cli.taking import KEYWORD
from uqeval.metrics._family import Family
from uqeval.settings import Option, option_name, options_of, types_of


def options_of_command(family: Family) -> list[inspect.Parameter]:
    """The parameters of the command, one for each setting that can be chosen."""
    settings = family.settings_type
    types = types_of(settings)
    fields = settings.__dataclass_fields__
    return [
        _parameter(name, own, types[name], fields[name].default)
        for name, own in options_of(settings).items()
    ]


def _parameter(name: str, own: Option, types: tuple[type, ...], default: Any) -> inspect.Parameter:
    kind = _kind(name, own, types)
    flag = option_name(name)
    names = [f"{flag}/--no-{flag[2:]}" if default else flag] if kind is bool else []
    one = not own.several or kind is bool
    value: Any = kind | None if one else list[kind] | None  # type: ignore[valid-type]
    told = typer.Option(
        *names, metavar=own.metavar, show_default=False, rich_help_panel=own.panel,
        help=own.told(default),
    )  # fmt: skip
    # What is not given is None, but a flag without its opposite is False.
    absent = False if kind is bool and not default else None
    annotation: Any = Annotated[bool if absent is False else value, told]
    return inspect.Parameter(name, KEYWORD, default=absent, annotation=annotation)


def _kind(name: str, own: Option, types: tuple[type, ...]) -> Any:
    """The type that the command line reads: a choice, or the first one; a text where it may be."""
    if own.choices:
        return Enum(name, {choice: choice for choice in own.choices}, type=str)
    return str if str in types else types[0]
