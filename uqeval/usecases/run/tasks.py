"""Open all stores of a run and check them against their metrics before any is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.config import Config, Store
from uqeval.config.model import CUT_PLACES
from uqeval.errors import StoreError, UsageError, all_listed
from uqeval.inputs import InputOptions, Inputs, beside_reference, open_inputs
from uqeval.records.report import Report
from uqeval.statistics.options import CutOptions
from uqeval.stores.contents import Contents
from uqeval.stores.store import contents_of
from uqeval.usecases.plans import (
    check_maps,
    check_regions,
    companions,
    evaluations_of_family,
    everything,
    input_options,
    inputs_for,
    uses_reference,
)
from uqeval.usecases.run.foreseen import foreseen_report
from uqeval.usecases.run.outcome import OF_ITEMS, Failures, Outcome, RunSettings
from uqeval.usecases.run.preflight import metric_keys

if TYPE_CHECKING:
    from uqeval.maps.contract import MapSource
    from uqeval.usecases.sweep.sweeping import PlannedSweep


@dataclass(frozen=True)
class Task:
    """One store, opened and checked, with its metrics and options."""

    name: str
    store: Store
    inputs: Inputs
    families: dict[str, Mapping[str, Any]]
    #: The maps of the predictions alone, without those of a reference.
    source: MapSource
    sweep: PlannedSweep | None = None
    cut: CutOptions | None = None
    #: Whether all metrics that apply are evaluated, and others are left out.
    everything: bool = False

    def keys(self) -> set[str]:
        """Return the keys of the results that the report will have."""
        return metric_keys(self.inputs, self.families) | (
            {"sweep"} if self.sweep is not None else set()
        )

    def foreseen(self, keys: Collection[str]) -> Report:
        """Return the report that is foreseen, of the results `keys`, without the sweep."""
        return foreseen_report(self.inputs, self.families, self.cut, keys)


def open_task(
    config: Config, name: str, run_settings: RunSettings, opened: Mapping[str, Contents]
) -> Task:
    """Return a store with its metrics and options, checked without reading data.

    `opened`: paths that are open already.
    """
    store = config.stores[name]
    metrics = config.metrics_of(name)
    families: dict[str, Mapping[str, Any]] = dict(metrics or {})
    sweep = families.pop("sweep", None)
    with config.errors_at("stores", name, *_missing_key(config, name)):
        stores = _Stores.open_all(store, opened)
        input_settings = input_options(options_of(name, store, run_settings))
        named = [] if metrics is not None else run_settings.uncertainty
        input_settings = inputs_for(families, input_settings, named)
        inputs, source = _open(stores, input_settings)
        if metrics is None:
            families, warnings = everything(inputs, run_settings.uncertainty)
            inputs = dataclasses.replace(inputs, warnings=[*inputs.warnings, *warnings])
        elif not metrics:
            raise UsageError(
                "evaluate lists no command for this store; leave the store out "
                "there to evaluate all that fits."
            )
    evaluations = {}
    for family, options in families.items():
        with config.errors_at("evaluate", name, family):
            evaluations[family] = evaluations_of_family(inputs, family, options)
    of_run = {key: own for by_key in evaluations.values() for key, own in by_key.items()}
    for family, by_key in evaluations.items():
        for evaluation in by_key.values():
            evaluation.use_evaluations(of_run)  # a family may read numbers of another one
        with config.errors_at("evaluate", name, family):
            check_maps(inputs, by_key)
    with config.errors_at("stores", name, "region"):
        check_regions(inputs, families)
    if store.reference is not None and sweep is None and not uses_reference(families):
        with config.errors_at("stores", name, "reference"):
            raise UsageError(
                "no metric of this store uses the reference. List divergence or sweep under "
                "evaluate, or leave the reference out."
            )
    planned = None
    if sweep is not None:
        with config.errors_at("evaluate", name, "sweep"):
            planned = _plan_sweep(stores, inputs, sweep, input_settings)
    if store.images is not None:
        with config.errors_at("stores", name, "images"):
            doubts = _check_images(store, inputs, families)
            inputs = dataclasses.replace(inputs, warnings=[*inputs.warnings, *doubts])
    if families and inputs.record.get("labels"):
        families = companions(inputs.source.kind) | families
    return Task(
        name, store, inputs, families, source, planned, everything=metrics is None
    )  # fmt: skip


def has_pictures(inputs: Inputs, families: Mapping[str, Any]) -> bool:
    """Return whether a page of these metrics shows pictures of items: it needs scores of items,
    which sweeps and sets do not have, and ground truth.
    """
    truth = {"classes": "labels", "regression": "target"}.get(inputs.source.kind)
    is_known = truth is None or bool(inputs.record.get(truth))
    return bool(families) and is_known and inputs.source.kind != "ood"


def _check_images(store: Store, inputs: Inputs, families: Mapping[str, Any]) -> list[str]:
    """Return warnings about images that may be of other items. Raises `UsageError` for images that
    no picture will show.
    """
    from uqeval.usecases.gallery.paint import images_of, warnings_of_images

    if inputs.source.kind == "video":
        raise UsageError(
            "images is for predicted classes or numbers; a video shows its own "
            "frames. Leave it out."
        )
    if not has_pictures(inputs, families):
        raise UsageError(
            "the page of this store shows no pictures: they need labels or a target, and scores of "
            "images. Leave the images out."
        )
    images = images_of(store.images, inputs.source.names)
    return warnings_of_images(store.images, images)


def _missing_key(config: Config, name: str) -> list[str]:
    """Return the key of a store with a path where nothing is; none if all exist.

    Raises a `StoreError` that names all missing paths, if there are several. A single one is an
    error when it is opened; that message also has the expected format.
    """
    caches = ("flow_cache", "map_cache")
    paths_by_key = config.stores[name].paths_by_key()
    missing = {
        path: key
        for key, paths in paths_by_key.items() if key not in caches
        for path in paths
        if "://" not in path and not Path(path.partition("::")[0]).exists()
    }  # fmt: skip
    if len(missing) > 1:
        with config.errors_at("stores", name):
            raise StoreError(f"there is nothing at {all_listed(missing)}. Check the paths.")
    # A mask may be an id, and an entry of `out` the members of an ensemble.
    return [key for key in missing.values() if key not in ("ood_mask", "out")]


def with_cuts(
    config: Config,
    tasks: list[Task],
    cut_options: CutOptions | None,
    outcome: Outcome,
    run_settings: RunSettings,
) -> list[Task]:
    """Return the tasks with their slices and intervals, without stores of which the table has only
    some items.

    A store without any item in the table is evaluated without slices. If the table has items of no
    store at all, that is an error.
    """
    sweeps_only = bool(tasks) and not any(task.families for task in tasks)
    if cut_options is not None and sweeps_only and not outcome.failed:
        raise UsageError(
            "intervals and slices are for scores of items, and sweeps have none. Leave out --ci "
            "and --slices (in a file, `ci:` and `slices:`)."
        )
    if cut_options is None or cut_options.slices is None:
        return [dataclasses.replace(task, cut=cut_options) for task in tasks]
    from uqeval.statistics.slices_and_intervals import check_cut, cut_of_store
    from uqeval.stores.item_table import has_rows, names_in

    def errors_of(option: str) -> AbstractContextManager[None]:
        overridden = option in run_settings.shared
        return nullcontext() if overridden else config.errors_at(*CUT_PLACES.get(option, (option,)))

    with errors_of("slices"):
        names_in_table = names_in(cut_options.slices)
    of_none = not any(has_rows(names_in_table, task.inputs.all_item_names) for task in tasks)
    kept_tasks = []
    for task in tasks:
        if not task.families:  # only a sweep, which has no slices and intervals
            kept_tasks.append(task)
            continue
        with Failures(task.name, outcome, run_settings):
            inputs = task.inputs
            names = inputs.source.names
            if of_none and len(tasks) == len(config.stores):
                check_cut(cut_options, names, inputs.groups, inputs.sets, errors_of)
            table, messages = cut_of_store(
                cut_options,
                names,
                inputs.groups,
                inputs.all_item_names,
                names_in_table,
                inputs.sets,
                errors_of,
            )
            inputs = dataclasses.replace(inputs, warnings=[*inputs.warnings, *messages])
            kept_tasks.append(dataclasses.replace(task, inputs=inputs, cut=table))
    return kept_tasks


@dataclass(frozen=True)
class _Stores:
    """The stores of a task, each opened only once."""

    predictions: list[Contents] | None
    truth: Contents | None
    reference: Contents | None

    @classmethod
    def open_all(cls, store: Store, opened: Mapping[str, Contents]) -> _Stores:
        """Open the paths of a store that are not in `opened`."""

        def contents(path: str) -> Contents:
            return opened[path] if path in opened else contents_of(path)

        paths = store.predictions
        if isinstance(paths, str):
            paths = [paths]
        return cls(
            None if paths is None else [contents(path) for path in paths],
            None if store.truth is None else contents(store.truth),
            None if store.reference is None else contents(store.reference),
        )


def _open(stores: _Stores, input_settings: InputOptions) -> tuple[Inputs, MapSource]:
    """Return the inputs, and the maps of the predictions without those of a reference."""
    follows = stores.reference is not None
    inputs = open_inputs(
        stores.predictions, stores.truth, input_settings, reference_follows=follows
    )
    source = inputs.source
    if stores.reference is not None:
        inputs = beside_reference(inputs, stores.reference, input_settings)
    return inputs, source


def _plan_sweep(
    stores: _Stores, inputs: Inputs, sweep: Mapping[str, Any], input_settings: InputOptions
) -> PlannedSweep:
    from uqeval.usecases.sweep.sweeping import arguments, plan_sweep

    if "part" in inputs.record:
        raise UsageError(
            "a run of a shard cannot contain a sweep. Leave it out of the file, and count it "
            "with `uqeval sweep --part K/N`."
        )
    if inputs.source.kind == "video":
        raise UsageError(
            f"{inputs.source.where} holds video data, which a sweep cannot evaluate. "
            "Leave the sweep out."
        )
    assert stores.predictions is not None
    sweep_options = {"reference": stores.reference} | arguments(sweep)
    return plan_sweep(
        stores.predictions, stores.truth, **sweep_options, input_options=input_settings
    )


def options_of(name: str, store: Store, run_settings: RunSettings) -> dict[str, Any]:
    """Return the options of the inputs of a store by its name."""
    items = {n: value for n, value in run_settings.shared.items() if n in OF_ITEMS}
    fitted = run_settings.fitted_of(name)
    return store.options() | items | ({} if fitted is None else {"fitted": fitted})
