"""Options that several commands share, and their values in one command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from uqeval.settings import Settings, default_of, options_of, shared_option

_IN, _OUT = "Input", "Output"
FORMATS = ("table", "json", "csv", "markdown")


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
        None, "Save the per-item tallies next to the report, as FILE.states.zip.", panel=_OUT,
        flags=("--states/--no-states",), shown="with -o FILE")
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
    def taken(self) -> frozenset[str]:
        """Return the shared options that the command has."""
        return frozenset(self._values)

    def values_of(self, *names: str) -> dict[str, Any]:
        """Return the given values among `names`, as the library takes them."""
        return given(**{name: self._values[name] for name in names if name in self._values})


def given(**options: Any) -> dict[str, Any]:
    """Return the given options: not None, not an empty list; choices as text."""
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
