"""Save the states of a run's items, and find the states that a later run can reuse.

A later run at the same path does not read items with the same stamp again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval import version

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.records.report import Report
    from uqeval.stores.states.writer import StatesWriter


def states_of_run(
    inputs: Inputs,
    families: Mapping[str, Any],
    path: str | Path,
    resume: bool,
    stamps: list[str | None],
    identity: Mapping[str, Any],
) -> StatesWriter:
    """Return the file for a run's states, and the reusable states at its path.

    `identity`: further settings that must be equal in a run to resume.
    Reuses the states of a finished earlier run, and with `resume` those of an interrupted one.
    """
    from uqeval.stores.states.blocks import ItemBlocks
    from uqeval.stores.states.earlier import EarlierStates
    from uqeval.stores.states.writer import StatesWriter

    run = {
        "uqeval_version": version.VERSION,
        "fingerprint": inputs.fingerprint,
        "items": list(inputs.source.names),
        "options": {name: str(value) for name, value in inputs.options.items()},
        "metrics": {name: repr(dict(options)) for name, options in families.items()},
        "stamps": stamps,
        **identity,
    }
    info = inputs.info()
    before = EarlierStates(path, info.names, stamps) if Path(path).is_file() else None
    return StatesWriter(path, run, resume, before, ItemBlocks(info.sizes, info.classes))


def states_index(
    report: Report, info: DatasetInfo, fitted: Mapping[str, Any], fingerprint: str
) -> dict[str, Any]:
    """Return the index of a states file: all that scoring the states again requires."""
    # Not `asdict`, which copies the names and sizes of all items one by one.
    info_record = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    del info_record["command"], info_record["all_names"]  # of the run alone
    for name in ("fit_names", "columns"):
        if not info_record[name]:
            del info_record[name]
    info_record["video"] = None
    if info.video is not None:
        video = dataclasses.replace(info.video, flow_record=lambda method: {})
        flows = [record["flow"] for record in report.results.values() if record.get("flow")]
        info_record["video"] = dataclasses.asdict(video) | {
            "flow_record": {flow["id"]: flow for flow in flows}
        }
    return {
        "uqeval_version": report.uqeval_version,
        "fingerprint": fingerprint,
        "items": list(info.names),
        "records": report.items,
        "results": report.results,
        "numerics": report.numerics,
        "facts": info_record,
        "inputs": report.inputs,
        "settings": report.settings,
        "fitted": dict(fitted),
        "metrics": report.metrics,
        "partial": report.partial,
    }
