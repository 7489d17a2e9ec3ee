"""The stores of a run, opened and checked against what is asked of them, before any is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.config import Config, Store
from uqeval.errors import StoreError, UqevalError, UsageError, cut
from uqeval.inputs import Inputs, beside_reference, open_inputs
from uqeval.usecases.plans import check_family, everything, input_options
from uqeval.usecases.run.outcome import Failures, Outcome, RunSettings
from uqeval.usecases.run.preflight import metric_keys, table_of

if TYPE_CHECKING:
    from uqeval.statistics.options import CutOptions


@dataclass(frozen=True)
class Task:
    """One store, opened and checked, and what is asked of it."""

    name: str
    store: Store
    inputs: Inputs
    families: dict[str, Mapping[str, Any]]
    sweep: dict[str, Any] | None
    cut: CutOptions | None = None
    #: Whether all metrics that apply are evaluated, and others are left out.
    everything: bool = False

    def keys(self) -> set[str]:
        """What its report will hold."""
        return metric_keys(self.inputs, self.families) | (
            {"sweep"} if self.sweep is not None else set()
        )


def opened(config: Config, name: str, chosen: RunSettings) -> Task:
    """A store with all that is asked of it, checked without reading data."""
    store = config.stores[name]
    asked = config.metrics_of(name)
    families: dict[str, Mapping[str, Any]] = dict(asked or {})
    sweep = families.pop("sweep", None)
    try:
        _refuse_missing(store)
        inputs = _open(store, chosen, families)
        if asked is None:
            families, told = everything(inputs, chosen.uncertainty)
            inputs = dataclasses.replace(inputs, warnings=[*inputs.warnings, *told])
        elif not asked:
            raise UsageError("evaluate names no command for it; leave it out for all that applies.")
    except UqevalError as error:
        raise type(error)(f"{config.at('stores', name)}{error}") from None
    for family, options in families.items():
        try:
            check_family(inputs, family, options)
        except UqevalError as error:
            raise type(error)(f"{config.at('evaluate', name, family)}{error}") from None
    if sweep is not None:
        try:
            _check_sweep(store, inputs, sweep, chosen)
        except UqevalError as error:
            raise type(error)(f"{config.at('evaluate', name, 'sweep')}{error}") from None
    if families and inputs.source.kind == "classes" and inputs.record.get("labels"):
        families = {"segmentation": {}, **families}
    return Task(
        name, store, inputs, families, None if sweep is None else dict(sweep),
        everything=asked is None,
    )  # fmt: skip


def _refuse_missing(store: Store) -> None:
    """Raise `StoreError` that names all paths of a store where several are not there.

    A single one is left to who opens it, and knows what it should be.
    """
    caches = (store.flow_cache, store.map_cache)
    local = [path for path in store.paths() if path not in caches and "://" not in path]
    gone = [path for path in local if not Path(path.partition("::")[0]).exists()]
    if len(gone) > 1:
        raise StoreError(f"there is nothing at {cut(', '.join(gone))}. Check the paths.")


def with_cuts(
    tasks: list[Task], cut: CutOptions | None, outcome: Outcome, chosen: RunSettings, stores: int
) -> list[Task]:
    """The stores with what is read off each; without those that the table holds in part.

    A store that the table is not of goes without slices, unless it is of none of all stores.
    """
    if cut is None or cut.slices is None:
        return [dataclasses.replace(task, cut=cut) for task in tasks]
    from uqeval.statistics.table import names_in

    there = names_in(cut.slices)
    of_none = all(there.isdisjoint(task.inputs.source.names) for task in tasks)
    found = []
    for task in tasks:
        if not task.families:  # a sweep alone, of which nothing is read off
            found.append(task)
            continue
        with Failures(task.name, outcome, chosen):
            if of_none and len(tasks) == stores:
                from uqeval.statistics.cut import check_cut

                check_cut(cut, task.inputs.source.names, task.inputs.groups)
            own, told = table_of(task.inputs, cut, there)
            inputs = dataclasses.replace(task.inputs, warnings=[*task.inputs.warnings, *told])
            found.append(dataclasses.replace(task, inputs=inputs, cut=own))
    return found


def _open(store: Store, chosen: RunSettings, families: Mapping[str, Mapping[str, Any]]) -> Inputs:
    given = input_options(options_of(store, chosen))
    tracks = families.get("tc", {}).get("tracks", False)
    if any(tracks) if isinstance(tracks, list) else tracks:
        given = dataclasses.replace(given, whole_sequences=True)
    follows = store.reference is not None
    inputs = open_inputs(store.predictions, store.truth, given, reference_follows=follows)
    if store.reference is not None:
        inputs = beside_reference(inputs, store.reference, given)
    return inputs


def _check_sweep(
    store: Store, inputs: Inputs, sweep: Mapping[str, Any], chosen: RunSettings
) -> None:
    from uqeval.usecases.sweep import arguments, asked_of

    if inputs.source.kind == "video":
        raise UsageError(f"{inputs.source.where} holds video data; a sweep has none.")
    assert store.predictions is not None
    asked = {"reference": store.reference} | arguments(sweep)
    asked_of(
        store.predictions, store.truth, **asked, given=input_options(options_of(store, chosen))
    )


def options_of(store: Store, chosen: RunSettings) -> dict[str, Any]:
    limit = {name: value for name, value in chosen.shared.items() if name == "limit"}
    return store.options() | limit
