"""Open the stores of a report, and check whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import UsageError, all_listed, cut, data_of_kind, listed, option_name
from uqeval.records.inputs import has_no_fingerprint

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report

#: Options of a report that name files which are opened again.
_FILES = ("label_map", "flow_path", "flow_forward_path", "depth_map")
#: Options that are not taken from a report: paths that its stores give, caches, and parts of items.
_NOT_FROM_REPORTS = (
    "video", "ood_mask", "pseudo_labels", "names", "map_cache", "flow_cache", "fitted", "part",
    "limit",
)  # fmt: skip


@dataclass(frozen=True)
class Role:
    """A store of a report: its role, its path and its fingerprint, None if it is unknown."""

    name: str
    path: str
    fingerprint: str | None


def roles_of(report: Report) -> list[Role]:
    """Return the stores of a report in the order in which commands take them."""
    inputs = report.inputs
    options = inputs.get("options") or {}
    roles = []
    if frames := inputs.get("frames"):
        roles.append(_role("frames", frames | {"path": options.get("video") or frames["path"]}))
    predictions = inputs.get("predictions") or []
    roles += [_role("predictions", record) for record in predictions]
    paths = [str(record.get("path")) for record in predictions]
    pseudo = bool(options.get("pseudo_labels"))
    for name in ("labels", "target", "reference", "ood_mask"):
        record = inputs.get(name)
        if isinstance(record, Mapping) and (
            name == "reference" or str(record.get("path")) not in paths
        ):
            roles.append(_role("pseudo-labels" if pseudo and name == "labels" else name, record))
    return roles


def _role(name: str, store: Mapping[str, Any]) -> Role:
    return Role(name, str(store.get("path")), fingerprint_of(store))


def fingerprint_of(store: Mapping[str, Any]) -> str | None:
    """Return the fingerprint in the record of a store; None if it is unknown, as it may be at a web
    server: another store always has one, so a forged report must not leave it out."""
    is_of_web = str(store.get("path")).lower().startswith(("http://", "https://"))
    is_unknown = is_of_web and has_no_fingerprint(store)
    return None if is_unknown else str(store.get("fingerprint"))


def with_paths(roles: Sequence[Role], stores: Sequence[str], report: str) -> list[Role]:
    """Return the roles with the given stores in place of the report's paths.

    Without stores the report's own paths, relative to the working folder and inside of it. Raises
    `UsageError` for another number of stores, and for a path that leads anywhere else or nowhere.
    """
    if stores:
        if len(stores) != len(roles):
            raise UsageError(
                f"{len(stores)} stores for the report {report}, which has {len(roles)}: "
                f"{all_listed(f'{role.name} {role.path}' for role in roles)}. Give them all "
                "in this order, or none."
            )
        pairs = zip(roles, stores, strict=True)
        return [Role(role.name, path, role.fingerprint) for role, path in pairs]
    if why := why_outside(roles):
        raise UsageError(f"{report}: {why} Give the stores: {command_of(report, roles)}")
    if why := why_missing(roles):
        names = " ".join(role.name.upper().replace("_", "-") for role in roles)
        raise UsageError(
            f"{report}: {why} Change to that folder, or give the stores: uqeval verify "
            f"{quote(report)} {names}"
        )
    return list(roles)


def _is_missing(path: str) -> bool:
    """Return whether nothing is at a path of a report, or at that of one of its members."""
    members = [path] if not _is_absent(path) else filter(None, path.split("+"))
    return any(map(_is_absent, members))


def _is_absent(path: str) -> bool:
    where = Path(path.partition("::")[0])
    return not where.exists() and not any(above.is_file() for above in where.parents)


def why_outside(roles: Sequence[Role]) -> str:
    """Return why stores of a report are not opened by the paths in it; empty if all may be."""
    return next(
        (
            f"the path of its {role.name}, {role.path}, is outside the working folder, and uqeval "
            "does not open such a path from a report."
            for role in roles
            if not is_inside(role.path)
        ),
        "",
    )


def why_missing(roles: Sequence[Role]) -> str:
    """Return why stores of a report cannot be opened by the paths in it: nothing is there; empty if
    all are there."""
    return next(
        (
            f"there is nothing at the path of its {role.name}, {cut(role.path)}. Paths in a report "
            "are relative to the folder in which it was evaluated."
            for role in roles
            if _is_missing(role.path)
        ),
        "",
    )


def command_of(report: str, roles: Sequence[Role]) -> str:
    """Return the command that verifies a report; with its stores, if one is outside the working
    folder."""
    paths = [role.path for role in roles]
    stores = [] if all(map(is_inside, paths)) else paths
    return f"uqeval verify {' '.join(map(quote, [report, *stores]))}"


def is_inside(path: str) -> bool:
    """Return whether a path is relative and stays in the working folder, by its name alone; of
    members that `+` joins, whether each does.
    """
    return (
        "://" not in path and _is_below(path) and all(map(_is_below, filter(None, path.split("+"))))
    )


def _is_below(path: str) -> bool:
    clean = os.path.normpath(path)
    is_absolute = os.path.isabs(clean) or path.startswith("~")  # noqa: PTH117
    return bool(path) and not is_absolute and clean != ".." and not clean.startswith("../")


def open_stores(report: Report, roles: Sequence[Role], name: str) -> Inputs:
    """Open the stores as the run did. Raises `UqevalError`."""
    from uqeval.inputs import InputOptions, beside_reference, open_inputs
    from uqeval.inputs.common import open_predictions

    options_of_run = dict(report.inputs.get("options") or {})
    _refuse_outside(options_of_run, name)
    known_options = {field.name for field in fields(InputOptions)}
    input_settings = {key: value for key, value in options_of_run.items() if key in known_options}
    # Roles give the paths of stores; a report names no other file than those of `_FILES`.
    input_settings |= dict.fromkeys(_NOT_FROM_REPORTS)
    path_of_role = {role.name: role.path for role in roles}
    if "frames" in path_of_role:
        input_settings["video"] = path_of_role["frames"]
        if (frame_names := report.inputs.get("frame_names")) is not None:
            input_settings["names"] = frame_names
    if "pseudo-labels" in path_of_role:
        input_settings["pseudo_labels"] = path_of_role["pseudo-labels"]
    predictions = [role.path for role in roles if role.name == "predictions"]
    if out := input_settings.get("out"):
        predictions, input_settings["out"] = _sets(predictions, out)
    if "ood_mask" in path_of_role:
        input_settings["ood_mask"] = path_of_role["ood_mask"]
    elif isinstance(mask := report.inputs.get("ood_mask"), int):
        input_settings["ood_mask"] = mask
    truth = path_of_role.get("labels") or path_of_role.get("target")
    named = [settings.get("uncertainty") for settings in report.settings.values()]
    input_settings["read_maps"] = [name for name in named if isinstance(name, str)]
    options = InputOptions(**input_settings)
    if "frames" not in path_of_role and (
        # A --names of the run also replaces names of the stores.
        options_of_run.get("names") is not None
        or open_predictions(predictions, options, has_other_truth=truth is not None).names is None
    ):
        # The run had them from --names, or numbered its items.
        names = list(report.item_names)
        number = "in/{}" if out else "{}"
        if out:
            names = names[: int(report.inputs["sets"][0]["items"])]
        if names != [number.format(i) for i in range(len(names))]:
            options = InputOptions(**(input_settings | {"names": names}))
    inputs = open_inputs(predictions or None, truth, options)
    if "reference" in path_of_role:
        inputs = beside_reference(inputs, path_of_role["reference"], options)
    return inputs


def _refuse_outside(options: Mapping[str, Any], report: str) -> None:
    """Raise `UsageError` for a file in the options of a report outside the working folder."""
    files = {option_name(name): options.get(name) for name in _FILES}
    regions = options.get("region") or ()
    for region in [regions] if isinstance(regions, str) else regions:
        form, _, place = str(region).strip().partition(":")
        if form == "map":  # a name or a path
            files[f"--region {cut(str(region))}"] = place
    for option, file in files.items():
        if file is not None and not is_inside(str(file)):
            raise UsageError(
                f"{report}: its {option} is {cut(str(file))}, which is outside the working folder, "
                "and uqeval does not open such a path from a report. Put the file into the working "
                "folder, evaluate again with its relative path, and verify that report."
            )


def _sets(paths: Sequence[str], out: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Return the paths of IN, and a list of those of each OUT set as the run had them."""
    from uqeval.inputs.opened import members_of

    sizes = [len(members_of(given)) for given in out]
    ends = np.cumsum([len(paths) - sum(sizes), *sizes]).tolist()
    sets = [list(paths[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    return sets[0], sets[1:]


def fingerprints(
    report: Report, inputs: Inputs, roles: Sequence[Role]
) -> Iterator[tuple[Role, str | None]]:
    """Yield each store with its present fingerprint, also ground truth inside another store."""
    record = inputs.record
    stores = iter(record.get("predictions") or [])
    current: Mapping[str, Any]
    for role in roles:
        if role.name == "predictions":
            current = next(stores, {})
        else:
            current = record.get("labels" if role.name == "pseudo-labels" else role.name) or {}
        yield role, fingerprint_of(current)
    role_names = {"labels" if role.name == "pseudo-labels" else role.name for role in roles}
    for name in ("labels", "target"):
        before, current = report.inputs.get(name), record.get(name) or {}
        if before and name not in role_names:
            first = next(role.path for role in roles if role.name == "predictions")
            path = str(current.get("path", first))  # any member of an ensemble may have them
            yield Role(name, path, fingerprint_of(before)), fingerprint_of(current)
    for name in ("flow", "regions"):
        saved = zip(report.inputs.get(name) or [], record.get(name) or [], strict=False)
        for before, current in saved:
            yield Role(name, str(before["path"]), fingerprint_of(before)), fingerprint_of(current)


def refuse_other_items(report: Report, inputs: Inputs, name: str) -> None:
    """Raise `UsageError` if the stores do not contain the items of the report."""
    kind = "video" if "frames" in report.inputs else "classes"
    if "sets" in report.inputs or "ood_mask" in report.inputs:
        kind = "ood"
    elif kind == "classes" and "classes" not in report.inputs:
        kind = "regression"
    if inputs.source.kind != kind:
        raise UsageError(
            f"{name} was made from {data_of_kind(kind)}, but {inputs.source.where} holds "
            f"{data_of_kind(inputs.source.kind)}. Give the stores that the report was made of."
        )
    report_names = list(report.item_names)
    store_names = list(inputs.source.names)
    if report_names == store_names:
        return
    lost = [item for item in report_names if item not in set(store_names)] or report_names
    raise UsageError(
        f"{name}: its {len(report_names)} items are not the {len(store_names)} items of the "
        f"stores, first {listed(lost, 3)}. Give the stores that the report was made of."
    )
