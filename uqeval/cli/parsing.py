"""Typer commands with the messages and the help of uqeval.

There are three differences to Typer. Messages repeat the wrong value. Other names of commands and
options work, with a note. If a command has many options, its help shows the common ones, and
`--help-all` shows all.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from itertools import pairwise
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from uqeval.cli.streams import tell
from uqeval.disk.files import content_of
from uqeval.errors import is_number, number_flaw, number_hint, quoted
from uqeval.keys import COMMANDS_BY_KEY

#: Option that shows the help of all options.
_HELP_ALL = "--help-all"
#: With more options than this, the short help shows only the common ones; with more than `_SEVERAL`
#: it leaves out those that the command shares with others.
_MANY, _SEVERAL = 20, 14
_COMMON = frozenset({
    "output", "csv", "ci", "slices", "baseline", "against", "gallery", "gate", "images", "labels",
    "metric", "ood_mask", "predictions", "risk", "samples", "repeats", "reference", "uncertainty",
})  # fmt: skip
#: Further common options of commands whose help has room for them.
_COMMON_OF = {"run": {"group_by"}, "merge": {"group_by"}}


def unwrap(text: str) -> str:
    """Return a text with one line per paragraph, so that the terminal can wrap it."""
    return "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))


def _without(text: str, flags: set[str]) -> str:
    """Return the help of a command without the sentences that name one of these options; examples
    stay."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        sentences = re.split(r"(?<=\.) (?=[A-Z])", paragraph)
        if not paragraph.startswith("Example"):
            sentences = [own for own in sentences if not flags & {*re.findall("--[a-z-]+", own)}]
        paragraphs.append(" ".join(sentences))
    return "\n\n".join(filter(None, paragraphs))


class Command(TyperCommand):
    """Typer command with the messages and the help of uqeval."""

    _shows_all = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; without --help-all, leave out rare options and what is said of them."""
        whole = self.help = unwrap(self.help or "")
        for parameter in self.get_params(ctx):
            show_type(parameter)
        rare = [] if self._shows_all else self._rare_options()
        for parameter in rare:
            parameter.hidden = True
        self.help = _without(whole, {flag for parameter in rare for flag in parameter.opts})
        if rare:
            self.epilog = f"{len(rare)} more options: {ctx.command_path} {_HELP_ALL}"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.help, self.epilog = whole, None
            for parameter in rare:
                parameter.hidden = False

    def _rare_options(self) -> list[Any]:
        """Return the options that the short help leaves out."""
        from uqeval.cli.declared import shared_options
        from uqeval.metrics import FAMILIES
        from uqeval.settings import options_of

        options: list[Any] = [
            parameter for parameter in self.params if isinstance(parameter, TyperOption)
        ]
        if len(options) <= _SEVERAL:
            return []
        family = FAMILIES.get(self.name or "")
        family_options = options_of(family.settings_type) if family else {}
        common = _COMMON | _COMMON_OF.get(self.name or "", set())
        common |= {name for name, option in family_options.items() if option.common}
        shared = shared_options()
        return [
            parameter
            for parameter in options
            if parameter.name not in common
            and (len(options) > _MANY or parameter.name in shared)
            and not parameter.hidden
        ]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; allow any content in the reports and states that it reads."""
        parameter = _READ_REPORTS.get(self.name or "")
        path = ctx.params.get(parameter) if parameter else None
        with _files(self.name or "", ctx.params):
            if parameter is None:
                result = super().invoke(ctx)
            else:
                read = path if isinstance(path, str) else ", ".join(map(str, path or ()))
                with content_of(read):
                    result = super().invoke(ctx)
        if not ctx.params.get("quiet"):
            _tell_unsaved()
        return result

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments. Raises `typer.BadParameter`."""
        if _HELP_ALL in args:
            self._shows_all, args = True, ["--help"]
        args, notes = replace_options(self.name or "", args)
        check_quickly(self.get_params(ctx))
        try:
            _refuse_missing_values(self, ctx, args)
            texts = _refuse_repeated(self, ctx, args)
            arguments = super().parse_args(ctx, args)
            if not ctx.params.get("quiet"):
                for note in notes:
                    tell(note)
            _check_numbers(self, ctx, texts)
            _check_table(self, ctx)
            return arguments
        except typer.BadParameter as error:
            error.message = _plain(error)
            raise


def show_type(parameter: Any) -> None:
    """Show N or NUMBER in help instead of Python's types; show none for flags and arguments."""
    display = parameter.display_type_rich

    def text_of_type(ctx: Any) -> str | None:
        text: str | None = display(ctx)
        if not text or text == "<bool>" or isinstance(parameter, TyperArgument):
            return None
        if not text.startswith("<"):
            return text
        plain = text.replace("<list[", "<").replace("]>", ">")
        return {"<int>": "N", "<float>": "NUMBER"}.get(plain, plain)

    parameter.display_type_rich = text_of_type


def _tell_unsaved() -> None:
    """Print how many loops this run compiled and could not save; the next run compiles them too."""
    saved = sys.modules.get("uqeval.kernels._saved")
    if saved is not None and (errors := saved.NOT_SAVED):
        count = f"{len(errors)} compiled loops" if len(errors) > 1 else "a compiled loop"
        tell(
            f"note: {count} could not be saved ({errors[0].strerror}), so the next run compiles "
            "again. Set NUMBA_CACHE_DIR to a writable folder, or compile in advance: uqeval warmup "
            "(docs/containers.md)."
        )


#: Texts of numbers that `int`, `float` and pydantic understand in the same way.
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class _QuickCheck:
    """Typer's check of an option, which loads pydantic only for values that may be wrong.

    To load pydantic takes a tenth of a small run. Other values are the same without it.
    """

    def __init__(self, parameter: Any) -> None:
        """Check values of a Typer parameter."""
        self._full_check = parameter.get_runtime_param
        kind = parameter.type_descriptor.annotation
        self._kind = get_args(kind)[0] if get_origin(kind) is list else kind
        information = parameter.type_descriptor.parameter_info
        self._has_bounds = information.min is not None or information.max is not None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as the command takes it. Raises `typer.BadParameter`."""
        takes_several = param.multiple or param.nargs == -1
        if value is None:
            return () if takes_several else None
        try:
            return [*map(self._quick, value)] if takes_several else self._quick(value)
        except ValueError:
            return self._full_check().coerce(value, param=param, ctx=ctx)

    def _quick(self, value: Any) -> Any:
        """Return a text as its kind of value. Raises `ValueError` for all but simple cases."""
        kind = self._kind
        if kind is str or issubclass(kind, Enum):
            return kind(value)
        is_number = kind in (int, float) and not self._has_bounds
        if is_number and (isinstance(value, kind) or _NUMBER.fullmatch(str(value))):
            return kind(value)
        raise ValueError(value)


def check_quickly(parameters: Iterable[Any]) -> None:
    """Let Typer check the values of these parameters without pydantic where possible."""
    for parameter in parameters:
        check = _QuickCheck(parameter)
        parameter.get_runtime_param = lambda check=check: check


#: Commands that read reports and states, and the argument that names them.
_READ_REPORTS = {
    "gate": "report", "compare": "reports", "report": "paths", "merge": "parts", "select": "report",
}  # fmt: skip


def _refuse_missing_values(command: TyperCommand, ctx: Any, args: Sequence[str]) -> None:
    """Raise `typer.BadParameter` for an option without its value.

    The parser would take the next option for the value: `-o --quiet` would write a file `--quiet`.
    """
    if ctx.resilient_parsing:  # the shell completes this value
        return
    options = {flag: parameter for parameter in command.get_params(ctx)
               if isinstance(parameter, TyperOption)
               for flag in (*parameter.opts, *parameter.secondary_opts)}  # fmt: skip
    before_dashes = args[: args.index("--")] if "--" in args else args
    for flag, value in pairwise([*before_dashes, None]):
        parameter = options.get(flag or "")
        if parameter is None or parameter.is_flag:
            continue
        if value is None:
            given = "no value is given"
        elif value in options or value.startswith("--"):
            given = f"{quoted(value)} looks like an option"
        else:
            continue
        show_type(parameter)
        kind = parameter.display_type_rich(ctx) or "a value"
        text = f"{given}; expected {kind}. {unwrap(parameter.help or '')}"
        raise typer.BadParameter(text, ctx, parameter)


def _refuse_repeated(command: TyperCommand, ctx: Any, args: Sequence[str]) -> dict[str, Any]:
    """Return the texts of the options by their names.

    Raises `typer.BadParameter` for an option of one value that is given twice, and for a flag that
    is given on and off.
    """
    texts, _, given = command.make_parser(ctx).parse_args(args=list(args))
    for parameter, count in Counter(given).items():
        if not isinstance(parameter, TyperOption) or parameter.multiple:
            continue
        forms = (parameter.opts, parameter.secondary_opts)
        if parameter.is_flag and any(set(args).isdisjoint(form) for form in forms):
            continue  # twice is the same as once
        if count > 1:
            text = "given more than once; the option takes one value. Leave out all but one."
            raise typer.BadParameter(text, ctx, parameter)
    return dict(texts)


def _check_numbers(command: TyperCommand, ctx: Any, texts: Mapping[str, Any]) -> None:
    """Raise `typer.BadParameter` for a number that is not valid for its option."""
    for parameter in command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        flaw = number_flaw(name, value)
        for number, text in zip(_as_list(value), _as_list(texts.get(name)), strict=False):
            if is_number(number) and "_" in str(text):  # Python reads 1_0 as 10
                flaw = f"{quoted(text)}; expected a number without underscores."
        if flaw is not None:
            raise typer.BadParameter(flaw, ctx, parameter)  # type: ignore[arg-type]


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _check_table(command: TyperCommand, ctx: Any) -> None:
    """Raise `typer.BadParameter` for --format table if no table is printed."""
    by_name = {parameter.name: parameter for parameter in command.params}
    from uqeval.cli.declared import typed_options

    if "format" not in typed_options(ctx) or ctx.params["format"] != "table":
        return
    if ctx.params.get("quiet"):
        text = "'table'; -q prints no table. Leave one of them out."
    elif ctx.params.get("output") == "-":
        text = "'table'; -o - takes stdout. Give a file to -o, or leave out --format."
    else:
        return
    raise typer.BadParameter(text, ctx, by_name["format"])  # type: ignore[arg-type]


def _plain(error: typer.BadParameter) -> str:
    """Return the message of an error without pydantic's wording."""
    text = error.message.removeprefix("Value error, ")
    expected = text.removeprefix("Input should be ")
    details = getattr(error.__cause__, "errors", None)
    if expected == text or details is None:
        return text
    value = details()[0]["input"]
    words = expected.partition(", unable to parse")[0]
    return (
        f"{quoted(value)}; expected {words}.{number_hint(value, None) if 'number' in words else ''}"
    )


#: Other names of options, by command.
OPTION_ALIASES = {
    "compare": {"--metrics": "--metric", "--baseline": "--against"},
    "sweep": {"--metrics": "--metric"},
}


def replace_command(args: Sequence[str]) -> list[str]:
    """Return the arguments with the documented name of their command. Prints a note."""
    if not args or args[0] not in COMMANDS_BY_KEY:
        return list(args)
    name = COMMANDS_BY_KEY[args[0]]
    if not {"-q", "--quiet"} & set(args):
        tell(f"note: the command `uqeval {args[0]}` is called `uqeval {name}`; use that name.")
    return [name, *args[1:]]


def replace_options(command: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments with the documented names of their options, and notes for the user."""
    aliases = OPTION_ALIASES.get(command, {})
    end = args.index("--") if "--" in args else len(args)
    replaced, notes = [], []
    for arg in args[:end]:
        name, equals, value = arg.partition("=")
        if name in aliases:
            notes.append(
                f"note: the option {name} of `uqeval {command}` is called {aliases[name]}; use "
                "that name."
            )
            name = aliases[name]
        replaced.append(f"{name}{equals}{value}")
    return [*replaced, *args[end:]], list(dict.fromkeys(notes))


def _files(command: str, values: dict[str, Any]) -> AbstractContextManager[None]:
    """Replace URLs among the values of a command by local files (see `cli.remote`)."""
    if not any("://" in str(value) for value in values.values()):
        return nullcontext()
    from uqeval.cli.remote import remote_files

    return remote_files(command, values)
