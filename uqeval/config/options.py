"""Options of every command by name and type, taken from the settings of the metrics."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from uqeval.errors import UsageError
from uqeval.settings import Settings, annotations_of, options_of, shared_option

# Metrics are imported only when needed: rules files do not set their options.

#: Options whose value is a file or a store.
PATHS = ("threshold_from", "fit_on", "item_table", "reference", "flow_path")


@dataclass(frozen=True)
class SweepOptions(Settings):
    """Options of `uqeval sweep`, which belongs to no metric."""

    # fmt: off
    metric: Sequence[str] = shared_option(
        (), "Metric family to evaluate. Repeat for more.", metavar="FAMILY", list_by="repeat",
        common=True,
        shown="segmentation and pavpu for classes; regression, sparsification and nmerci for "
        "regression")
    reference: str | None = shared_option(
        None, "Also compute the KL divergence from these predictions; without labels, only that.",
        metavar="STORE", path=True, common=True)
    samples: int | str | None = shared_option(
        None, "Numbers of samples M.", metavar="1,2,4,…", shown="1, 2, 4, … and all", common=True)
    repeats: int | str = shared_option(
        "8", "Number of subsets for each M: one number, or one per M.", metavar="R", common=True)
    seed: int = shared_option(0, "Seed of the subsets.")
    error: str | None = shared_option(
        None, "Error measure of sparsification: brier or zero-one for classes; rmse, mse, mae, "
        "abs-rel or a1 for regression.", metavar="ERROR")
    clip: float | None = shared_option(
        None, "For divergence: raise both probabilities to at least EPS.", metavar="EPS")
    # fmt: on


def settings_of(command: str) -> Any:
    """Return the dataclass of a command's settings."""
    from uqeval.metrics import FAMILIES

    return FAMILIES[command].settings_type if command in FAMILIES else SweepOptions


@cache
def commands() -> dict[str, Mapping[str, Any]]:
    """Return the types of the options of each command that evaluates."""
    from uqeval.metrics import FAMILIES

    return {name: _types(settings_of(name)) for name in (*FAMILIES, "sweep")}


def _types(settings: Any) -> dict[str, Any]:
    types = annotations_of(settings)
    lists = {name for name, option in options_of(settings).items() if option.list_by}
    return {
        field.name: str if field.name in lists else types[field.name]
        for field in dataclasses.fields(settings)
        if "option" in field.metadata
    }


def check_values(command: str, options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a value that the command's settings do not allow."""
    settings = settings_of(command)
    if settings is SweepOptions:
        return
    checked_values = {name: value for name, value in options.items() if name != "threshold_from"}
    lists = [value if isinstance(value, list) else [value] for value in checked_values.values()]
    if [] in lists:
        raise UsageError("an empty list; expected a value.")
    for values in itertools.islice(itertools.product(*lists), 1000):
        settings.of(**dict(zip(checked_values, values, strict=True)))
