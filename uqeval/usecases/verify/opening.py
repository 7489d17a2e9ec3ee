"""Open the stores that a report was made of, and say whether they are still the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, cut, listed

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.report.schema import Report

#: Options of a report that name files which are opened again.
_FILES = ("label_map", "flow_path", "flow_forward_path")


@dataclass(frozen=True)
class Role:
    """A store of a report: what it is for, its path there, and its fingerprint."""

    name: str
    path: str
    fingerprint: str


def roles_of(report: Report) -> list[Role]:
    """Return the stores of a report in the order in which commands take them."""
    inputs = report.inputs
    options = inputs.get("options") or {}
    found = []
    if frames := inputs.get("frames"):
        found.append(_role("frames", frames | {"path": options.get("video") or frames["path"]}))
    predictions = inputs.get("predictions") or []
    found += [_role("predictions", own) for own in predictions]
    pseudo = bool(options.get("pseudo_labels"))
    for name in ("labels", "target", "reference"):
        own = inputs.get(name)
        if own and (name == "reference" or str(own.get("path")) not in _paths(predictions)):
            found.append(_role("pseudo-labels" if pseudo and name == "labels" else name, own))
    return found


def _paths(stores: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(store.get("path")) for store in stores]


def _role(name: str, store: Mapping[str, Any]) -> Role:
    return Role(name, str(store.get("path")), str(store.get("fingerprint")))


def with_paths(roles: Sequence[Role], stores: Sequence[str], report: str) -> list[Role]:
    """Return the roles with the given stores in place of the report's paths.

    Without stores the report's own paths, relative to the working folder and inside of it. Raises
    `UsageError` for another number of stores, and for a path that leads anywhere else.
    """
    if stores:
        if len(stores) != len(roles):
            raise UsageError(
                f"{len(stores)} stores for the report {report}, which is of {len(roles)}: "
                f"{cut(', '.join(f'{own.name} {own.path}' for own in roles))}. Give them all in "
                "this order, or none."
            )
        pairs = zip(roles, stores, strict=True)
        return [Role(own.name, path, own.fingerprint) for own, path in pairs]
    for own in roles:
        if not is_inside(own.path):
            known = " ".join(other.path for other in roles)
            raise UsageError(
                f"{report}: names {own.path} as its {own.name}, which is not inside the working "
                "folder; a path in a report is not followed out of it. Give the stores: "
                f"uqeval verify {report} {known}"
            )
    return list(roles)


def is_inside(path: str) -> bool:
    """Return whether a path is relative and stays in the working folder, by its name alone."""
    clean = os.path.normpath(path)
    absolute = os.path.isabs(clean) or path.startswith("~") or "://" in path  # noqa: PTH117
    return bool(path) and not absolute and clean != ".." and not clean.startswith("../")


def open_stores(report: Report, roles: Sequence[Role], name: str) -> Inputs:
    """Open the stores as the run did. Raises `UqevalError`."""
    from uqeval.inputs import InputOptions, beside_reference, open_inputs
    from uqeval.inputs.common import open_predictions

    given = dict(report.inputs.get("options") or {})
    for option in _FILES:
        if given.get(option) is not None and not is_inside(str(given[option])):
            raise UsageError(
                f"{name}: names {given[option]} as --{option.replace('_', '-')}, which is not "
                "inside the working folder; a path in a report is not followed out of it. Run "
                "uqeval verify in a folder that holds it, or evaluate again with a relative path."
            )
    known = {own.name for own in fields(InputOptions)}
    chosen = {key: value for key, value in given.items() if key in known}
    chosen |= {"flow_cache": None, "pseudo_labels": None, "part": None, "limit": None}
    by = {own.name: own.path for own in roles}
    if "frames" in by:
        chosen["video"] = by["frames"]
    if "pseudo-labels" in by:
        chosen["pseudo_labels"] = by["pseudo-labels"]
    predictions = [own.path for own in roles if own.name == "predictions"]
    truth = by.get("labels") or by.get("target")
    if "frames" in by and (named := report.inputs.get("frame_names")) is not None:
        chosen["names"] = _checked_names(named, name)
    options = InputOptions(**chosen)
    if "frames" not in by and open_predictions(predictions, options).names is None:
        # The run had them from --names, or numbered its items.
        names = [str(item["name"]) for item in report.items]
        if names != [str(number) for number in range(len(names))]:
            options = InputOptions(**(chosen | {"names": names}))
    opened = open_inputs(predictions or None, truth, options)
    if "reference" in by:
        opened = beside_reference(opened, by["reference"], options)
    return opened


def _checked_names(names: Any, report: str) -> list[str]:
    if isinstance(names, list) and all(isinstance(own, str) for own in names):
        return names
    raise UsageError(
        f"{cut(report)}: inputs.frame_names is not a list of strings; expected a report as -o "
        "writes it."
    )


def fingerprints(
    report: Report, opened: Inputs, roles: Sequence[Role]
) -> Iterator[tuple[Role, str]]:
    """Yield each store with the fingerprint that it has now; ground truth inside of one as well."""
    record = opened.record
    stores = iter(record.get("predictions") or [])
    now: Mapping[str, Any]
    for own in roles:
        if own.name == "predictions":
            now = next(stores, {})
        else:
            now = record.get("labels" if own.name == "pseudo-labels" else own.name) or {}
        yield own, str(now.get("fingerprint"))
    named = {"labels" if own.name == "pseudo-labels" else own.name for own in roles}
    for name in ("labels", "target"):
        before, now = report.inputs.get(name), record.get(name) or {}
        if before and name not in named:
            path = next(own.path for own in roles if own.name == "predictions")
            yield Role(name, path, str(before.get("fingerprint"))), str(now.get("fingerprint"))
    saved = zip(report.inputs.get("flow") or [], record.get("flow") or [], strict=False)
    for before, now in saved:
        yield Role("flow", str(before["path"]), str(before["fingerprint"])), now["fingerprint"]


def refuse_other_items(report: Report, opened: Inputs, name: str) -> None:
    """Raise `UsageError` where the stores do not hold the items of the report."""
    kind = "video" if "frames" in report.inputs else "classes"
    if kind == "classes" and "classes" not in report.inputs:
        kind = "regression"
    if opened.source.kind != kind:
        raise UsageError(
            f"{name}: is of {kind} data, but {opened.source.where} holds {opened.source.kind} "
            "data. Give the stores that the report was made of."
        )
    ours = [str(item["name"]) for item in report.items]
    theirs = list(opened.source.names)
    if ours == theirs:
        return
    lost = [item for item in ours if item not in set(theirs)] or ours
    raise UsageError(
        f"{name}: its {len(ours)} items are not the {len(theirs)} items of the stores, first "
        f"{listed(lost, 3)}. Give the stores that the report was made of."
    )
