"""Options: each is declared once, as a field of a settings class made by `option`.

The command line, the keys of `uqeval.yaml` and their checks, the JSON Schema, the keywords and
docstrings of Python and the tables of `docs/options.md` are made from these fields.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_type_hints

from uqeval.argument_types import fits, in_words, python_value
from uqeval.errors import (
    UsageError,
    did_you_mean,
    is_number,
    number_hint,
    option_name,
    quoted,
)
from uqeval.spelling import as_keywords

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True)
class Option:
    """Declaration of one option; its field gives the name, type and default.

    `help`: one sentence, without the default. `shown`: the default in words, if its value does not
    explain it. `panel`: its heading in `--help`. `choices`: all allowed texts. `least`, `most`,
    `above` and `below`: the allowed range of numbers. `several`: whether several values make
    variants. `common`: whether the short help shows it. `flags`: its names on the command line, if
    they are not `--name`. `list_by`: how the command line gives a list: by "repeat", or as one text
    with "commas". `path`: whether it names a file, a folder or a store; such a path in
    `uqeval.yaml` is relative to the file. `in_file`: whether `uqeval.yaml` may set it. `data`: the
    only kind of data that it applies to: "classes", "regression" or "video". `needs`: the option
    without which it has no effect. `changes_only`: the only fields of results that it changes or
    adds, with all below them, wherever they are (`ece`, also in `temperature.held_out`); scores of
    all other fields stay comparable. `normal`: returns the one spelling of a valid value, such as
    "1" for "1.0"; it may raise `UsageError`.
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
    flags: tuple[str, ...] = ()
    list_by: Literal["", "repeat", "commas"] = ""
    path: bool = False
    in_file: bool = True
    data: str = ""
    needs: str = ""
    changes_only: tuple[str, ...] = ()
    normal: Callable[[Any], Any] | None = None

    def allows(self, number: float) -> bool:
        """Return whether a number is in the allowed range."""
        return not (
            math.isnan(number)
            or (self.least is not None and number < self.least)
            or (self.most is not None and number > self.most)
            or (self.above is not None and number <= self.above)
            or (self.below is not None and number >= self.below)
        )

    def in_words(self, default: Any) -> str:
        """Return the default in words; empty without a default."""
        if self.shown or default in (None, ()):
            return self.shown
        return ("yes" if default else "no") if isinstance(default, bool) else str(default)

    def help_text(self, default: Any) -> str:
        """Return the help with the default, except for flags that are off."""
        default_text = "" if default is False else self.in_words(default)
        return (
            f"{self.help.removesuffix('.')} (default: {default_text})."
            if default_text
            else self.help
        )

    def range(self) -> str:
        """Return the allowed range in words: "from 1 to 10"."""
        if self.least is not None and self.most is not None:
            return f"from {self.least:g} to {self.most:g}"
        if self.least is not None and self.below is not None:
            return f"from {self.least:g} to below {self.below:g}"
        parts = {
            "of at least": self.least, "above": self.above, "up to": self.most, "below": self.below,
        }  # fmt: skip
        return " and ".join(f"{word} {end:g}" for word, end in parts.items() if end is not None)


#: The declaration of fields that are no options: any value of their type.
_PLAIN = Option("")


def option(default: Any, help: str, **properties: Any) -> Any:
    """Return a field of settings with its default and the properties of its `Option`."""
    return dataclasses.field(default=default, metadata={"option": Option(help, **properties)})


def definition_of(definitions: Mapping[str, Any], changes_only: tuple[str, ...] = ()) -> Any:
    """Return the field of settings that chooses among published definitions, with the only fields
    of results that the choice changes or adds."""
    return option(
        "paper",
        "Use the definition of this paper or code, which sets the other options. Repeat for "
        "variants.",
        choices=tuple(definitions),
        common=True,
        changes_only=changes_only,
    )


def documented(declared: type[S]) -> type[S]:
    """Return a class of settings with all options in its docstring."""
    lines = [
        f"`{name}`: {for_python(option.help_text(default_of(declared, name)))}"
        for name, option in options_of(declared).items()
    ]
    declared.__doc__ = "\n\n".join([inspect.cleandoc(declared.__doc__ or ""), *lines])
    return declared


#: Words of help for the command line, and those of docstrings.
_PYTHON_WORDS = {
    "Repeat for more": "A list gives several", "Repeat for variants": "A list gives variants",
    ", separated by commas": ", as a list", "LABELS is": "`labels` is",
    "Continue the same command": "Continue the same evaluation",
}  # fmt: skip


def for_python(help_text: str) -> str:
    """Return the help of an option with keywords for flags, and lists for repeated options."""
    for words, python_words in _PYTHON_WORDS.items():
        help_text = help_text.replace(words, python_words)
    return as_keywords(help_text)


def takes(*declared: Any) -> Callable[[F], F]:
    """Make the options of these settings keywords of a function with `**options`.

    The signature and the docstring list them. `make_settings` turns them into settings.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [*signature.parameters.values()]
        lines = [inspect.cleandoc(function.__doc__ or "")]
        named_parameters = [
            parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD
        ]
        for settings in declared:
            for name, declared_option in options_of(settings).items():
                field = settings.__dataclass_fields__[name]
                named_parameters.append(
                    inspect.Parameter(name, _KEYWORD, default=field.default, annotation=field.type)
                )
                lines.append(f"`{name}`: {for_python(declared_option.help_text(field.default))}")
        function.__signature__ = signature.replace(parameters=named_parameters)  # type: ignore[attr-defined]
        function.__doc__ = "\n\n".join(lines)
        return function

    return decorate


def make_settings(
    values: Mapping[str, Any], *declared: type, function: Callable[..., Any] | None = None,
    elsewhere: Callable[[str], str] = lambda name: "",
) -> tuple[Any, ...]:  # fmt: skip
    """Return settings of each class from option `values` by name.

    Raises `UsageError` for a name that no class has. `function`: the function that got the values;
    its other keywords are suggested too. `elsewhere`: returns where to give an option that belongs
    to another place; empty for other names.
    """
    fields = {
        settings: {field.name for field in dataclasses.fields(settings)} for settings in declared
    }
    names_known = [name for names in fields.values() for name in names]
    strange = [name for name in values if name not in names_known]
    if strange:
        parameters = inspect.signature(function).parameters.values() if function else ()
        names_known = sorted(
            {
                *(name for settings in declared for name in options_of(settings)),
                *(parameter.name for parameter in parameters if parameter.kind is _KEYWORD),
            }
        )
        expected = f"expected some of {', '.join(names_known)}."
        hint = elsewhere(strange[0]) or did_you_mean(strange[0], names_known, expected)
        raise UsageError(f"unknown options {strange}; {hint}")
    return tuple(
        settings(
            **{
                name: value if annotations_of(settings)[name] is Any else python_value(value)
                for name, value in values.items()
                if name in names
            }
        )
        for settings, names in fields.items()
    )


class Settings:
    """Base of all settings: frozen dataclasses whose fields are made by `option`.

    Raises `UsageError` for a value that its option does not allow; the message names the option as
    on the command line. `uqeval.argument_types` turns it into a keyword for callers in Python.
    """

    #: Changes to the defaults by definition.
    definitions: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": {}}

    def __post_init__(self) -> None:
        check(self)

    def unused(self, in_region: bool = True) -> set[str]:
        """Return the options without effect beside the others. `in_region`: whether there is a
        region."""
        return {"definition"}  # it only sets other options

    def reads(self) -> tuple[tuple[str, str], ...]:
        """Return the keys and fields of other results from whose items the scores are computed."""
        return ()

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return settings of a definition, with `values` in place of its values."""
        definition = values.get("definition", "paper")
        if not isinstance(definition, str) or definition not in cls.definitions:
            names = ", ".join(cls.definitions)
            raise UsageError(f"--definition {quoted(definition)}; expected one of {names}.")
        return cls(**{**cls.definitions[definition], **values})


def default_of(settings: Any, name: str) -> Any:
    """Return the default of an option."""
    return settings.__dataclass_fields__[name].default


def shared_option(default: Any, help: str, **properties: Any) -> Any:
    """Return a field of settings that has one value per run and makes no variants."""
    return option(default, help, several=False, **properties)


def same_option(settings: Any, name: str, default: Any = ..., **changes: Any) -> Any:
    """Return a field with the option of other settings, changed as given."""
    changed = dataclasses.replace(options_of(settings)[name], **changes)
    default = default_of(settings, name) if default is ... else default
    return dataclasses.field(default=default, metadata={"option": changed})


def options_of(settings: Any) -> dict[str, Option]:
    """Return the options of a class of settings by name, without those of only one choice."""
    return {
        field.name: field.metadata["option"]
        for field in dataclasses.fields(settings)
        if "option" in field.metadata and field.metadata["option"].choices != (field.default,)
    }


def fields_changed(settings: Any, name: str) -> tuple[str, ...]:
    """Return the only fields of results that an option changes or adds, its own or those of the
    option that it needs; empty if it may change all scores."""
    fields = settings.__dataclass_fields__
    option = fields[name].metadata.get("option", _PLAIN) if name in fields else _PLAIN
    return option.changes_only or (fields_changed(settings, option.needs) if option.needs else ())


@cache
def annotations_of(settings: Any) -> dict[str, Any]:
    """Return the annotation of each option."""
    return get_type_hints(settings)


@cache
def types_of(settings: Any) -> dict[str, tuple[type, ...]]:
    """Return the types of one value of each option: (float, NoneType) for `float | None`."""
    annotations = annotations_of(settings)
    return {
        field.name: getattr(annotations[field.name], "__args__", (annotations[field.name],))
        for field in dataclasses.fields(settings)
    }


def plain_type(option: Option, types: tuple[type, ...]) -> type:
    """Return the type that the command line reads a value as: text, unless only numbers fit."""
    numbers = [kind for kind in types if kind in (bool, int, float)]
    return str if option.choices or str in types or not numbers else numbers[0]


def number_text(value: float) -> str:
    """Return a number as the text that options of text are recorded with: "1" for 1.0."""
    return repr(value + 0.0).removesuffix(".0")


def normal_value(settings: Any, name: str, value: Any) -> Any:
    """Return a valid value of an option in its one spelling, so that equal values are recorded and
    compared as equal: a float where only floats fit, a list where lists fit.

    Raises `UsageError` for a text that its option cannot read.
    """
    field = settings.__dataclass_fields__[name]
    option, types = field.metadata.get("option", _PLAIN), types_of(settings)[name]
    if option.normal is not None and value is not None:
        return option.normal(value)
    if option.list_by and str in types and isinstance(value, str | int | float):
        value = [value]
    if float in types and not {int, str} & {*types} and is_number(value):
        return float(value)
    return value


def check(settings: Any) -> None:
    """Raise `UsageError` for the first setting that its option does not allow."""
    for field in dataclasses.fields(settings):
        check_value(type(settings), field.name, getattr(settings, field.name))
        _check_needed(settings, field)


def _check_needed(settings: Any, field: dataclasses.Field[Any]) -> None:
    """Raise `UsageError` for an option without the one that it needs."""
    option, value = field.metadata.get("option", _PLAIN), getattr(settings, field.name)
    if option.needs and value not in (field.default, []) and not getattr(settings, option.needs):
        metavar = settings.__dataclass_fields__[option.needs].metadata["option"].metavar
        needed = f"{option_name(option.needs)} {metavar or ''}".strip()
        raise UsageError(
            f"{option_name(field.name)} has an effect only with {needed}; give that too."
        )


def check_value(settings: Any, name: str, value: Any) -> None:
    """Raise `UsageError` for a value that an option does not allow."""
    field = settings.__dataclass_fields__[name]
    # A default outside the choices means: depends on the data.
    if type(value) is type(field.default) and value == field.default:
        return
    option, annotation = field.metadata.get("option", _PLAIN), annotations_of(settings)[name]
    if (expected := _expected(option, annotation, value)) is not None:
        meant = number_hint(value, option.most if option.below is None else option.below)
        raise UsageError(f"{option_name(name)} {quoted(value)}; expected {expected}.{meant}")


def _expected(option: Option, annotation: Any, value: Any) -> str | None:
    """Return the message about a value that is not allowed; None for an allowed value."""
    if option.choices:
        values = value if option.list_by and isinstance(value, list | tuple) else [value]
        are_choices = all(isinstance(v, str) and v in option.choices for v in values)
        return None if are_choices else f"one of {', '.join(option.choices)}"
    if option.path and isinstance(value, str) and not fits(str | Path, value):
        return "a path"
    if fits(annotation, value) and (not is_number(value) or option.allows(value)):
        return None
    return f"{in_words(annotation)} {option.range()}".strip()
