"""The records of a run: its report, from the sections of its evaluations; and the states of its
items.

A later run at the same path of states does not read items with the same stamp again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval import maps, version
from uqeval.inputs import Inputs
from uqeval.keys import Key, family_of
from uqeval.records.report import Report, now

if TYPE_CHECKING:
    from uqeval.engine.scheduler import Scheduler
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.metrics._evaluation import Section
    from uqeval.stores.states.writer import StatesWriter


def collect(sections: Mapping[str, Section], names: Sequence[str]) -> dict[str, Any]:
    """Return the contents of sections under the keys of a report."""
    from uqeval.metrics._evaluation import put_part

    results: dict[str, Any] = {}
    items: list[dict[str, Any]] = [{"name": name} for name in names]
    numerics: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, section in sections.items():
        parsed = Key.parse(key)
        family_key, part_name = parsed.whole, parsed.part
        if part_name:
            put_part(results[family_key], part_name, section.results, section.flat)
            for item, record in zip(items, section.items, strict=bool(section.items)):
                item[family_key] = {**item[family_key]}  # equal items share a record
                put_part(item[family_key], part_name, record, section.flat)
            continue
        results[key] = section.results
        for item, record in zip(items, section.items, strict=True):
            item[key] = record
        if section.settings:
            settings[key] = section.settings
        if section.numerics:
            numerics[key] = section.numerics
    warnings = warnings_of(sections)
    void = [i["name"] for i in items if i.get("segmentation", {}).get("pixels") == 0]
    if void:
        void_names = ", ".join(void[:5]) + (" …" if len(void) > 5 else "")
        warnings.append(f"{len(void)} of {len(items)} items have void labels only: {void_names}.")
    return {
        "results": results,
        "items": items,
        "settings": settings,
        "numerics": numerics,
        "warnings": warnings,
    }


def warnings_of(sections: Mapping[str, Section]) -> list[str]:
    """Return the warnings of sections by key; a text of several names all of their keys."""
    keys_by_text: dict[str, dict[str, None]] = {}
    for key, section in sections.items():
        for text in section.warnings:
            keys_by_text.setdefault(text, {})[Key.parse(key).whole] = None
    return [f"{', '.join(keys)}: {text}" for text, keys in keys_by_text.items()]


def report_of(
    inputs: Inputs,
    record: Mapping[str, Any],
    scheduler: Scheduler,
    seconds: float,
    states: str | None = None,
) -> Report:
    """Return a report of `record` (results, items, settings, …) with the facts of the run."""
    from uqeval.metrics import FAMILIES_IN_REPORTS as by_name

    warnings = list(dict.fromkeys([*inputs.warnings, *record.get("warnings", [])]))
    if inputs.partial:
        shard = inputs.record.get("part")
        remedy = (
            f"shard {shard['number']} of {shard['of']}; `uqeval merge` joins the shards"
            if shard else "--limit"
        )  # fmt: skip
        warnings.append(
            f"partial: {inputs.record['evaluated']} of {inputs.record['items']} items ({remedy})."
        )
    flow_seconds = inputs.flow_seconds
    families = dict.fromkeys(family_of(key) for key in record["settings"])
    families_in_order = [by_name[name] for name in families if name in by_name]
    return Report(
        **{
            "metrics": {m.id: m.record() for family in families_in_order for m in family.metrics},
            **record,
            "uqeval_version": version.VERSION,
            "inputs": inputs.record | {"options": inputs.options},
            "states": states,
            "partial": inputs.partial,
            "warnings": warnings,
            "timing": {
                "finished": now(),
                "seconds": seconds,
                "bytes_read": scheduler.bytes_read,
                "passes": scheduler.passes,
                "items_reused": scheduler.items_reused,
                "workers": scheduler.workers,
                "executor": "threads" if scheduler.options.cluster is None else "dask",
                **({} if flow_seconds is None else {"flow_seconds": dict(flow_seconds)}),
            },
        }
    )


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
    from uqeval.inputs.opened import last_digits
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
    before = (
        EarlierStates(path, info.names, stamps, last_digits()) if Path(path).is_file() else None
    )
    return StatesWriter(path, run, resume, before, ItemBlocks(info.sizes, info.classes))


def states_index(
    report: Report,
    info: DatasetInfo,
    fitted: Mapping[str, Any],
    fingerprint: str,
    last_digits: Collection[str],
) -> dict[str, Any]:
    """Return the index of a states file: all that scoring the states again requires.

    `last_digits`: the digests of exp and log where the items were counted.
    """
    # Not `asdict`, which copies the names and sizes of all items one by one.
    info_record = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    for name in ("command", "all_names", "all_sizes"):  # of the run alone
        del info_record[name]
    for name in ("fit_names", "columns", "names_digest"):
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
        "maps_version": maps.VERSION,
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
        "last_digits": sorted(last_digits),
    }
