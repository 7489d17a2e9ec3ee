"""The models of a comparison: each the reports of one training, or of several, under a name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uqeval.errors import UsageError, cut, listed
from uqeval.records.folder import Named, load_reports


@dataclass(frozen=True)
class Training:
    """One trained network: its reports by store, and the path that was given."""

    path: Path
    reports: dict[str, Named]


@dataclass(frozen=True)
class Model:
    """A method under its name, trained once or several times."""

    name: str
    trainings: tuple[Training, ...]


def load_models(
    paths: Sequence[str], replicates: Sequence[Sequence[str]] = (), names: Sequence[str] = ()
) -> list[Model]:
    """Return the models at `paths`, one each, then those trained several times, `replicates`.

    A path is a report, or a folder of reports; a single folder means the reports in it.
    `names` of all models (none: the shortest distinctive part of each path).
    Raises `UsageError` and `StoreError`.
    """
    groups = [[training] for training in _trainings(paths, alone=not replicates)]
    for own in replicates:
        trainings = _trainings(own, alone=True)
        if len(trainings) < 2:
            raise UsageError(f"--replicates {' '.join(own)}: one training has no spread; give two.")
        groups.append(trainings)
    if len(groups) < 2 and not replicates:
        raise UsageError(
            f"{' '.join(paths) or 'no report'}: there is nothing to compare; give two reports, or "
            "--replicates of several trainings."
        )
    short = _short_names([own.path for trainings in groups for own in trainings])
    found = iter(short)
    defaults = [_common([next(found) for _ in own]) for own in groups]
    chosen = list(names) or _distinct(defaults)
    if len(chosen) != len(groups):
        raise UsageError(f"--name is given {len(names)} times for {len(groups)} models; name all.")
    if len(set(chosen)) < len(chosen) or "" in chosen:
        raise UsageError(f"--name {cut(', '.join(chosen))}: the names are not all different.")
    return [Model(name, tuple(own)) for name, own in zip(chosen, groups, strict=True)]


def common_stores(models: Sequence[Model]) -> tuple[list[str], list[str]]:
    """Return the stores of which every training has a report, and warnings of the others; one
    report each are of one store whatever they are called. Raises `UsageError` where there is none.
    """
    held = [list(own.reports) for model in models for own in model.trainings]
    if all(len(own) == 1 for own in held):
        return [""], []
    common = [store for store in held[0] if all(store in own for own in held)]
    if not common:
        raise UsageError(
            "the models have no store in common: "
            + "; ".join(map(listed, held))
            + ". Reports are matched by the names of their files."
        )
    others = [
        store for store in dict.fromkeys(s for own in held for s in own) if store not in common
    ]
    return common, [f"{store}: is left out, not all models have a report of it" for store in others]


def report_of(training: Training, store: str) -> Named:
    """Return a training's report of a store, "" being the only one."""
    return training.reports[store] if store else next(iter(training.reports.values()))


def _trainings(paths: Sequence[str], alone: bool) -> list[Training]:
    if alone and len(paths) == 1 and Path(paths[0]).is_dir():
        return [Training(own.path, {own.name: own}) for own in load_reports(paths[0])]
    return [Training(Path(path), {own.name: own for own in load_reports(path)}) for path in paths]


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinctive part of each path. Raises `UsageError`."""
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - no link is followed
    steps = [path.parts if path.is_dir() else path.with_suffix("").parts for path in whole]
    for path, own in zip(paths, whole, strict=True):
        if whole.count(own) > 1:
            raise UsageError(f"{cut(path)} is given twice.")
    deepest = max(map(len, steps))
    single = [[own[-k] if k <= len(own) else "" for own in steps] for k in range(1, deepest + 1)]
    ends = [["/".join(own[-k:]) for own in steps] for k in range(1, deepest + 1)]
    for found in (*single, *ends):
        if len(set(found)) == len(found) and "" not in found:
            return found
    return [str(path) for path in paths]


def _common(names: Sequence[str]) -> str:
    """Return what several trainings are called together: what their names begin with."""
    if len(names) == 1:
        return names[0]
    end = 0
    while end < len(names[0]) and all(name.startswith(names[0][: end + 1]) for name in names):
        end += 1
    return names[0][:end].rstrip("0123456789-_. ") or "replicates"


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        n, own = 1, name
        while own in found:
            n += 1
            own = f"{name} ({n})"
        found.append(own)
    return found
