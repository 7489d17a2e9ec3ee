"""What a reader of a verdict has to know of its value and interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uqeval.gate.resampling import Interval

if TYPE_CHECKING:
    from uqeval.gate.lookup import Found
    from uqeval.report.schema import Report

#: Below so many units an interval may be too narrow.
FEW = 30
#: Thresholds that are no numbers: they are fitted on the evaluated items.
_GIVEN = ("threshold_from",)


def notes_on(interval: Interval) -> Iterator[str]:
    """How few units the interval rests on."""
    if interval.unit == "batch":
        yield f"the interval rests on {interval.units} batches of neighbouring pairs"
    elif 0 < interval.units < FEW:
        noun = interval.unit if interval.units == 1 else f"{interval.unit}s"
        yield f"the interval rests on {interval.units} {noun}; below {FEW} it may be too narrow"


def notes_on_value(report: Report, found: Found) -> Iterator[str]:
    """What was fitted on the evaluated items, and that a value is biased."""
    address, settings = found.address, report.settings.get(found.address.key)
    settings = settings if isinstance(settings, dict) else {}
    field = address.fields[-1]
    if address.metric == "pavpu" or field == "undetected_error_rate":
        rule = settings.get("threshold")
        fitted = isinstance(rule, str) and not _is_number(rule)
        if fitted and not any(settings.get(name) for name in _GIVEN):
            yield (
                f"its threshold ({rule}) was fitted on the evaluated items, which is optimistic; "
                "give --threshold-from REPORT or --threshold NUMBER"
            )
    record = found.results.get(address.key)
    record = record if isinstance(record, dict) else {}
    scaled = record.get("temperature")
    scaled = scaled if isinstance(scaled, dict) else {}
    if address.fields[0] == "temperature" and scaled.get("fitted_on") == "all items":
        yield "its temperature was fitted on the evaluated items (optimistic); give --fit-on FILE"
    debiased: Any = record.get(f"{field}_debiased")
    if isinstance(debiased, float) and len(address.fields) == 1:
        yield (
            f"the rule judges the plain value, which is biased upward; {address.key}.{field}"
            f"_debiased is {debiased:.4g}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
