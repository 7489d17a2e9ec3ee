"""The options of every command, by name and type: read off the metrics' own settings."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.settings import Option

# The metrics are loaded when a file sets their options, which a file of rules does not.

#: Options whose value is a file or a store.
PATHS = ("threshold_from", "fit_on", "reference", "flow_path")


@dataclass(frozen=True)
class SweepOptions:
    """The options of `uqeval sweep`, which is no metric; `sweep` says what they mean."""

    metric: str = ""
    reference: str = ""
    samples: int | str = ""
    repeats: int | str = 8
    seed: int = 0
    error: str = ""
    clip: float = 0.0


def settings_of(family: str) -> Any:
    """The dataclass of a family's settings."""
    from uqeval.metrics import FAMILIES

    return FAMILIES[family].settings_type


def commands() -> dict[str, dict[str, Any]]:
    """The options of each command that evaluates, by command, and the type of each."""
    from uqeval.metrics import FAMILIES

    found = {name: _types(settings_of(name)) for name in FAMILIES}
    return found | {"sweep": _types(SweepOptions)}


def declared_options(command: str) -> dict[str, Option]:
    """What the settings of a family say of its options; nothing for other commands."""
    from uqeval.metrics import FAMILIES
    from uqeval.settings import options_of

    return options_of(FAMILIES[command].settings_type) if command in FAMILIES else {}


def _types(settings: Any) -> dict[str, Any]:
    hints = get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def check_values(command: str, options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a value that no data could be evaluated with."""
    from uqeval.metrics import FAMILIES

    if command not in FAMILIES:
        return
    settings = settings_of(command)
    chosen = {name: value for name, value in options.items() if name != "threshold_from"}
    lists = [value if isinstance(value, list) else [value] for value in chosen.values()]
    if [] in lists:
        raise UsageError("an empty list; expected a value.")
    for values in itertools.islice(itertools.product(*lists), 1000):
        settings.of(**dict(zip(chosen, values, strict=True)))
