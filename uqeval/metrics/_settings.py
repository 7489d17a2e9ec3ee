"""Settings of a family: each option declared once, as a field with all that is known of it.

The command line, `uqeval.yaml` and its JSON Schema, the checks, the docstring of the settings and
the table in `docs/options.md` are read off these fields.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from uqeval.errors import UsageError

S = TypeVar("S")


@dataclass(frozen=True)
class Option:
    """What is known of one setting beside its name, its type and its default.

    `help`: one sentence, which does not repeat the default; `shown`: the default in words, where
    its value does not say it. `panel`: the heading of `--help` that it stands under. `choices`: all
    texts that it may be. Numbers lie from `least` to `most`, and above `above` and below `below`.
    `several`: whether several values make variants. `common`: whether the short help shows it.
    """

    help: str
    metavar: str | None = None
    panel: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    several: bool = True
    shown: str = ""
    common: bool = False

    def allows(self, number: float) -> bool:
        """Whether a number lies in its range."""
        return not (
            math.isnan(number)
            or (self.least is not None and number < self.least)
            or (self.most is not None and number > self.most)
            or (self.above is not None and number <= self.above)
            or (self.below is not None and number >= self.below)
        )

    def in_words(self, default: Any) -> str:
        """Its default; nothing where there is none."""
        if self.shown or default is None:
            return self.shown
        return ("yes" if default else "no") if isinstance(default, bool) else str(default)

    def told(self, default: Any) -> str:
        """Its help with its default; that a flag is off goes without saying."""
        shown = "" if default is False else self.in_words(default)
        return f"{self.help.removesuffix('.')} (default: {shown})." if shown else self.help

    def range(self) -> str:
        """The numbers that it may be, in words: "from 1 to 10"."""
        if self.least is not None and self.most is not None:
            return f"from {self.least:g} to {self.most:g}"
        parts = {
            "of at least": self.least, "above": self.above, "up to": self.most, "below": self.below,
        }  # fmt: skip
        return " and ".join(f"{word} {end:g}" for word, end in parts.items() if end is not None)


def option(default: Any, help: str, **known: Any) -> Any:
    """A field of settings: its default, and what `Option` takes."""
    return dataclasses.field(default=default, metadata={"option": Option(help, **known)})


def definition_of(definitions: Mapping[str, Any]) -> Any:
    """The field of settings that says whose definition they are of."""
    return option(
        "paper",
        "Use the definition of this paper or code: sets the other options. Repeat for variants.",
        choices=tuple(definitions),
        common=True,
    )


def documented(declared: type[S]) -> type[S]:
    """A class of settings, with each option in its docstring."""
    told = [
        f"`{name}`: {own.told(default_of(declared, name))}"
        for name, own in options_of(declared).items()
    ]
    declared.__doc__ = "\n\n".join([inspect.cleandoc(declared.__doc__ or ""), *told])
    return declared


class Settings:
    """The base of all settings, frozen dataclasses whose fields are made by `option`.

    Raises `UsageError` for a value that its option does not allow, named as on the command line.
    """

    #: What each definition in use changes of the defaults, by its name.
    definitions: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}}

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Settings of a definition, with what is `given` in place of its choices."""
        definition = given.get("definition", "paper")
        if definition not in cls.definitions:
            known = ", ".join(cls.definitions)
            raise UsageError(f"--definition {definition!r}; expected one of {known}.")
        return cls(**{**cls.definitions[definition], **given})


def default_of(settings: Any, name: str) -> Any:
    """The default of an option."""
    return settings.__dataclass_fields__[name].default


def options_of(settings: Any) -> dict[str, Option]:
    """The options of a class of settings by name, those with nothing to choose left out."""
    return {
        field.name: field.metadata["option"]
        for field in dataclasses.fields(settings)
        if "option" in field.metadata and field.metadata["option"].choices != (field.default,)
    }


@cache
def types_of(settings: Any) -> dict[str, tuple[type, ...]]:
    """The types of one value of each option: (float, None's type) for `float | None`."""
    hints = get_type_hints(settings)
    return {
        field.name: getattr(hints[field.name], "__args__", (hints[field.name],))
        for field in dataclasses.fields(settings)
    }


def option_name(name: str) -> str:
    """The option of a command that sets `name`."""
    return f"--{name.replace('_', '-')}"


def check(settings: Any) -> None:
    """Raise `UsageError` for the first setting that its option does not allow."""
    types = types_of(type(settings))  # type: ignore[arg-type]
    for field in dataclasses.fields(settings):
        value, own = getattr(settings, field.name), field.metadata.get("option")
        # A default that is no choice leaves it to the data.
        if own is None or (value == field.default and type(value) is type(field.default)):
            continue
        if (expected := _expected(own, types[field.name], value)) is not None:
            raise UsageError(f"{option_name(field.name)} {value!r}; expected {expected}.")


def _expected(own: Option, types: tuple[type, ...], value: Any) -> str | None:
    """What a value would have to be; None for one that is it."""
    if own.choices:
        return None if value in own.choices else f"one of {', '.join(own.choices)}"
    if bool in types:
        return None if isinstance(value, bool) else "true or false"
    if not {int, float} & set(types) or (str in types and isinstance(value, str)):
        return None
    number = type(value) is int or (float in types and isinstance(value, float))
    if number and own.allows(value):
        return None
    return f"{'a number' if float in types else 'a whole number'} {own.range()}".strip()
