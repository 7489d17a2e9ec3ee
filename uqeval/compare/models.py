"""The models of a comparison: a name, and the reports of one or several trainings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from uqeval.errors import UsageError, all_listed, cut, listed, number_of
from uqeval.records.class_names import class_names, report_called
from uqeval.records.folder import Named, load_reports, why_without_states
from uqeval.records.set_names import distinct


@dataclass(frozen=True)
class Training:
    """One trained network: its reports by store, and their path."""

    path: Path
    reports: dict[str, Named]


@dataclass(frozen=True)
class Model:
    """A method and its name, trained once or several times."""

    name: str
    trainings: tuple[Training, ...]


def load_models(
    paths: Sequence[str],
    replicates: Sequence[Sequence[str]] = (),
    names: Sequence[str] = (),
    least: int = 2,
) -> list[Model]:
    """Return one model for each of `paths`, then one for each group of `replicates`.

    A path is a report or a folder of reports. If there is only one path and it is a folder, each
    report in it is a model. `names`: of all models (default: the shortest distinctive part of each
    path). `least`: the smallest number of models. Raises `UsageError` and `StoreError`.
    """
    groups = [[training] for training in _trainings(paths, single_model=not replicates)]
    for paths_of_one in replicates:
        trainings = _trainings(paths_of_one, single_model=True)
        if len(trainings) < 2:
            raise UsageError(
                f"--replicates {' '.join(paths_of_one)}: one training has no standard deviation; "
                f"give at least two."
            )
        groups.append(trainings)
    if len(groups) < least and not replicates:
        raise UsageError(
            f"{' '.join(paths) or 'no report'}: there is nothing to compare; give at least two "
            "reports, or --replicates with the reports of several trainings."
        )
    short = _short_names([paths_of_one.path for trainings in groups for paths_of_one in trainings])
    remaining = iter(short)
    defaults = [_common([next(remaining) for _ in paths_of_one]) for paths_of_one in groups]
    unique_names = list(names) or distinct(defaults, "{} ({})")
    if len(unique_names) != len(groups):
        raise UsageError(
            f"--name gives {number_of(len(names), 'name')} for {len(groups)} models; give --name "
            "once for each model."
        )
    if len(set(unique_names)) < len(unique_names) or "" in unique_names:
        raise UsageError(
            f"--name {all_listed(unique_names)}: a name is empty or given twice; give each "
            "model its own name."
        )
    return [
        Model(name, tuple(paths_of_one))
        for name, paths_of_one in zip(unique_names, groups, strict=True)
    ]


def common_stores(models: Sequence[Model]) -> tuple[list[str], list[str]]:
    """Return the stores for which every training has a report, and a warning for each other store.

    If every training has only one report, their names do not matter, and the store is "". Raises
    `UsageError` if there is no common store.
    """
    stores_by_training = [list(stores.reports) for model in models for stores in model.trainings]
    if all(len(stores) == 1 for stores in stores_by_training):
        return [""], []
    common = [
        store
        for store in stores_by_training[0]
        if all(store in stores for stores in stores_by_training)
    ]
    if not common:
        raise UsageError(
            "the models have no store in common: "
            + "; ".join(map(listed, stores_by_training))
            + ". Reports are matched by the names of their files."
        )
    partial_stores = [
        store
        for store in dict.fromkeys(s for stores in stores_by_training for s in stores)
        if store not in common
    ]
    return common, [
        f"{store}: left out, because not all models have a report of it" for store in partial_stores
    ]


def report_of(training: Training, store: str) -> Named:
    """Return the report of a training for a store; for "", its only report."""
    return training.reports[store] if store else next(iter(training.reports.values()))


def called_alike(models: Sequence[Model], stores: Sequence[str]) -> list[Model]:
    """Return the models with their reports of the common stores. Classes without names get those of
    the first report of the store that has names."""

    def names_in(store: str) -> dict[int, str]:
        reports = (report_of(t, store).report for model in models for t in model.trainings)
        return next(filter(None, (class_names(report.results) for report in reports)), {})

    names_of = {store: names_in(store) for store in stores}

    def renamed(training: Training) -> Training:
        reports = dict(training.reports)
        for store, names in names_of.items():
            named = report_of(training, store)
            reports[named.name] = replace(named, report=report_called(named.report, names))
        return Training(training.path, reports)

    return [Model(model.name, tuple(map(renamed, model.trainings))) for model in models]


def _trainings(paths: Sequence[str], single_model: bool) -> list[Training]:
    if single_model and len(paths) == 1 and Path(paths[0]).is_dir():
        return [Training(named.path, {named.name: named}) for named in load_reports(paths[0])]
    return [
        Training(Path(path), {named.name: named for named in load_reports(path)}) for path in paths
    ]


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinctive part of each path. Raises `UsageError`."""
    absolute = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - no link is followed
    steps = [path.parts if path.is_dir() else (*path.parent.parts, path.stem) for path in absolute]
    for path, full_path in zip(paths, absolute, strict=True):
        if absolute.count(full_path) > 1:
            raise UsageError(f"{cut(path)} is given twice.")
    deepest = max(map(len, steps))
    single = [
        [full_path[-k] if k <= len(full_path) else "" for full_path in steps]
        for k in range(1, deepest + 1)
    ]
    ends = [["/".join(full_path[-k:]) for full_path in steps] for k in range(1, deepest + 1)]
    for candidates in (*single, *ends):
        if len(set(candidates)) == len(candidates) and "" not in candidates:
            return candidates
    return [str(path) for path in paths]


def _common(names: Sequence[str]) -> str:
    """Return the common beginning of the names of several trainings."""
    if len(names) == 1:
        return names[0]
    end = 0
    while end < len(names[0]) and all(name.startswith(names[0][: end + 1]) for name in names):
        end += 1
    return names[0][:end].rstrip("0123456789-_. ") or "replicates"


def stateless(reports: Sequence[Named]) -> str:
    """Return why a model has no states, and what to do; empty if it has."""
    reasons = (why_without_states(named.path, named.report) for named in reports)
    return next(filter(None, reasons), "").removesuffix(".")
