"""The report of a run, joined from the sections of its evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from uqeval.inputs import Inputs
from uqeval.keys import Key, family_of
from uqeval.report.schema import Report

if TYPE_CHECKING:
    from uqeval.engine.scheduler import Scheduler
    from uqeval.metrics._evaluation import Section


def collect(sections: Mapping[str, Section], names: Sequence[str]) -> dict[str, Any]:
    """What sections say, as the keys of a report that hold it."""
    from uqeval.metrics._evaluation import put_part

    results: dict[str, Any] = {}
    items: list[dict[str, Any]] = [{"name": name} for name in names]
    numerics: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    told: dict[str, dict[str, None]] = {}  # by whom, in order
    for key, section in sections.items():
        own = Key.parse(key)
        whole, part = own.whole, own.part
        for text in section.warnings:
            told.setdefault(text, {})[whole] = None
        if part:
            put_part(results[whole], part, section.results, section.flat)
            continue
        results[key] = section.results
        for item, record in zip(items, section.items, strict=True):
            item[key] = record
        if section.settings:
            settings[key] = section.settings
        if section.numerics:
            numerics[key] = section.numerics
    warnings = [f"{', '.join(keys)}: {text}" for text, keys in told.items()]
    void = [i["name"] for i in items if i.get("segmentation", {}).get("pixels") == 0]
    if void:
        shown = ", ".join(void[:5]) + (" …" if len(void) > 5 else "")
        warnings.append(f"{len(void)} of {len(items)} items have void labels only: {shown}.")
    return {
        "results": results,
        "items": items,
        "settings": settings,
        "numerics": numerics,
        "warnings": warnings,
    }


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def report_of(
    inputs: Inputs,
    record: Mapping[str, Any],
    scheduler: Scheduler,
    seconds: float,
    states: str | None = None,
) -> Report:
    """A report of `record` (results, items, settings, …), with what the run itself has to say."""
    import uqeval
    from uqeval.metrics import FAMILIES

    warnings = list(dict.fromkeys([*inputs.warnings, *record.get("warnings", [])]))
    if inputs.partial:
        part = inputs.record.get("part")
        how = (
            f"part {part['number']} of {part['of']}; `uqeval merge` joins the parts"
            if part else "--limit"
        )  # fmt: skip
        warnings.append(
            f"partial: {inputs.record['evaluated']} of {inputs.record['items']} items ({how})."
        )
        if part and (own := _fitted_alone(record["settings"])):
            warnings.append(
                f"{', '.join(own)}: fitted on this part alone, which cannot be merged; give all "
                "parts --threshold NUMBER, and for PAvPU --curve-range LOW:HIGH."
            )
    families = dict.fromkeys(family_of(key) for key in record["settings"])
    by_key = {family.key or family.name: family for family in FAMILIES.values()}
    known = [by_key[name] for name in families if name in by_key]
    return Report(
        **{
            "metrics": {m.id: m.record() for family in known for m in family.metrics},
            **record,
            "uqeval_version": uqeval.__version__,
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
                **inputs.timing(),
            },
        }
    )


def _fitted_alone(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The variants whose threshold, or whose curve's ends, are no given numbers."""
    from uqeval.metrics.thresholds import Rule

    return [
        key
        for key, own in settings.items()
        if "threshold" in own and own.get("threshold_scope") != "item"
        and (Rule.parse(own["threshold"]).kind != "value" or own.get("curve_range", "") is None)
    ]  # fmt: skip
