"""Make the options of commands from the settings that declare them (`uqeval.settings`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from uqeval.errors import option_name
from uqeval.settings import (
    Option,
    Settings,
    default_of,
    options_of,
    plain_type,
    shared_option,
    types_of,
)

Command: TypeAlias = Callable[..., None]
#: Typer passes values by name; order and defaults matter only for help.
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_IN, _OUT = "Input", "Output"
#: Longer lists of choices go into the help text. In the column of options they would widen it.
_WIDE = 12
FORMATS = ("table", "json", "csv", "markdown", "latex")


@dataclass(frozen=True)
class OutputOptions(Settings):
    """Options of a report's output, and the store of `uqeval.yaml` to evaluate."""

    # fmt: off
    output: str | None = shared_option(
        None, "Write the report as JSON. - is stdout.", metavar="FILE", panel=_OUT,
        flags=("-o", "--output"), common=True)
    csv: str | None = shared_option(
        None, "Write one row per item as CSV.", metavar="FILE", panel=_OUT, common=True)
    format: str = shared_option("table", "Format of stdout.", panel=_OUT, choices=FORMATS)
    states: bool | None = shared_option(
        None, "Save the states (counts of each item) next to the report, as FILE.states.zip.",
        panel=_OUT, flags=("--states/--no-states",), shown="with -o FILE")
    quiet: bool = shared_option(
        False, "Print no progress, no warnings and no table.", panel=_OUT, flags=("-q", "--quiet"))
    store: str | None = shared_option(
        None, "Without paths: store of uqeval.yaml.", metavar="NAME", panel=_IN,
        shown="the only one that fits")
    # fmt: on


@cache
def shared_options() -> dict[str, Any]:
    """Return the settings that declare each shared option, in the order of help."""
    from uqeval.engine.options import ResumableOptions
    from uqeval.inputs.options import InputOptions
    from uqeval.statistics.options import CutOptions

    declared = (OutputOptions, InputOptions, CutOptions, ResumableOptions)
    return {name: settings for settings in declared for name in options_of(settings)}


class Shared:
    """Values of a command's shared options; defaults for options that it lacks."""

    def __init__(self, values: Mapping[str, Any], typed: frozenset[str]) -> None:
        """Keep `values` of the shared options; `typed`: all options on the command line."""
        self._values, self.typed = values, typed

    def __getattr__(self, name: str) -> Any:
        """Return the value of an option."""
        if name in self._values:
            return self._values[name]
        if (settings := shared_options().get(name)) is None:
            raise AttributeError(name)
        return default_of(settings, name)

    @property
    def option_names(self) -> frozenset[str]:
        """Return the shared options that the command has."""
        return frozenset(self._values)

    def values_of(self, *names: str) -> dict[str, Any]:
        """Return the given values among `names`, as the library takes them."""
        return without_absent(
            **{name: self._values[name] for name in names if name in self._values}
        )


def without_absent(**options: Any) -> dict[str, Any]:
    """Return the options that are not None or an empty list; choices as text."""
    values = {}
    for name, value in options.items():
        if value is None or value in ([], ()):
            continue
        if isinstance(value, list):
            plain: Any = [v.value if isinstance(v, Enum) else v for v in value]
        else:
            plain = value.value if isinstance(value, Enum) else value
        values[name] = plain
    return values


def typed_options(context: Any) -> frozenset[str]:
    """Return the names of the options on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(n for n, source in sources.items() if source and source.name == "COMMANDLINE")


def with_options(
    *shared: str,
    of: Any = None,
    form: Literal["object", "values", "given"] = "object",
    help: Mapping[str, str] | None = None,
) -> Callable[..., Command]:
    """Add to a command the options of the settings `of`, then the `shared` options.

    The command gets a `Shared` as `shared`, if it has that parameter, and `settings`. `form` of
    `settings`: "object" is an object of the class `of`, "values" a dict of all values, and "given"
    a dict of the values on the command line. The dicts serve commands that take other values from
    `uqeval.yaml`. `help`: other help of shared options, by their names.
    """

    def decorate(declared: Command) -> Command:
        declared_parameters = _parameters_of(declared)
        takes_shared = declared_parameters.pop("shared", None) is not None
        declared_parameters.pop("settings", None)
        settings = options_of(of) if of is not None else {}
        common = [
            n for n in (shared_options() if shared else ()) if n in shared and n not in settings
        ]
        parameters = [
            *declared_parameters.values(),
            *(_parameter(of, name, absent=form == "given") for name in settings),
            *(
                _parameter(shared_options()[n], n, help=(help or {}).get(n))
                for n in common
                if n not in declared_parameters
            ),
        ]

        def command(context: typer.Context, **values: Any) -> None:
            if takes_shared:
                shared_values = {n: _plain(shared_options()[n], n, values.pop(n))
                         for n in common if n not in declared_parameters}  # fmt: skip
                values["shared"] = Shared(shared_values, typed_options(context))
            if of is not None:
                settings_values = {name: values.pop(name) for name in settings}
                values["settings"] = _settings(of, settings_values, form)
            declared(**values)

        context = inspect.Parameter("context", _KEYWORD, annotation=typer.Context)
        return _signed(command, declared, [context, *parameters])

    return decorate


def _settings(of: Any, values: dict[str, Any], form: str) -> Any:
    if form == "object":
        return of(**{name: _plain(of, name, value) for name, value in values.items()})
    if form == "values":
        return without_absent(**values)
    # Typer passes this value for a flag that is not on the command line.
    return without_absent(
        **{n: value for n, value in values.items() if value is not _absent(of, n)}
    )


def _plain(settings: Any, name: str, value: Any) -> Any:
    """Return the value of an option as its settings take it: choices as text, lists as lists."""
    option = options_of(settings)[name]
    if value is None or (value == [] and option.list_by):
        return default_of(settings, name)
    plain = without_absent(value=value)["value"]
    return plain.split(",") if option.list_by == "commas" else plain


def _absent(settings: Any, name: str) -> Any:
    """Return the value of an option that is not given: None, or False for a plain flag."""
    flag = bool in types_of(settings)[name] and default_of(settings, name) is False
    return False if flag else None


def _parameter(
    settings: Any, name: str, absent: bool = False, help: str | None = None
) -> inspect.Parameter:
    """Return the parameter of a command from which Typer makes the option.

    `absent`: with the default None, which shows whether the option was given. `help`: in place of
    that of the option.
    """
    option, types = options_of(settings)[name], types_of(settings)[name]
    declared = default_of(settings, name)
    kind: Any = _enum(name, option.choices) if option.choices else plain_type(option, types)
    is_single = kind is bool or option.list_by == "commas" or not (option.several or option.list_by)
    default = _absent(settings, name) if absent else declared
    default = None if isinstance(default, tuple | list) and not default else default
    value: Any = kind if is_single else list[kind]
    metavar, text = option.metavar, help or option.help_text(declared)
    if metavar is None and len("|".join(option.choices)) > _WIDE:
        metavar = name.split("_")[-1].upper()
        if not all(choice in text for choice in option.choices):
            text += f" One of {', '.join(option.choices)}."
    typer_option = typer.Option(
        *_flags(name, option, kind, declared), metavar=metavar, show_default=False,
        rich_help_panel=option.panel, help=text,
    )  # fmt: skip
    annotation: Any = Annotated[value if default is not None else value | None, typer_option]
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation)


def _enum(name: str, choices: Iterable[str]) -> Any:
    return Enum(name, {choice: choice for choice in choices}, type=str)


def _flags(name: str, option: Option, kind: Any, declared: Any) -> list[str]:
    """Return the flags of an option; none if Typer derives the right flag from its name."""
    if option.flags:
        return list(option.flags)
    flag = option_name(name)
    if kind is bool:
        return [flag if declared is False else f"{flag}/--no-{flag[2:]}"]
    return []


def _signed(function: Command, like: Command, parameters: list[inspect.Parameter]) -> Command:
    """Return the function with these `parameters`, and the name and docstring of `like`."""
    # Typer reads names and defaults from the signature, and options from the annotations.
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    function.__name__, function.__doc__ = like.__name__, like.__doc__
    return function


def _parameters_of(function: Command) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name, with evaluated annotations."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return {
        name: parameter.replace(kind=_KEYWORD, annotation=hints[name])
        for name, parameter in parameters.items()
    }
