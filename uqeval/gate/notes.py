"""Notes on the value and the interval of a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from uqeval.errors import number_of
from uqeval.records.lookup import Score
from uqeval.records.report import Report
from uqeval.records.resampling import FEW, FEW_EFFECTIVE, Units

#: Settings whose threshold was fitted on other items.
_OTHER_SOURCES = ("threshold_from",)


def notes_on(units: Units) -> Iterator[str]:
    """Yield a note if an interval comes from few units or from batches."""
    if units.effective is not None and units.effective < FEW:
        too_few = units.effective < FEW_EFFECTIVE
        lag1 = "" if units.lag1 is None else f" (lag-1 autocorrelation {units.lag1:.2f})"
        yield (
            f"the interval comes from about {units.effective:.0f} independent pairs{lag1}; below "
            + (
                f"{FEW_EFFECTIVE} it is unreliable: evaluate longer or more sequences"
                if too_few
                else f"{FEW} it may be too narrow"
            )
        )
    elif units.name == "batch":
        yield f"the interval comes from {units.defined} batches of neighbouring pairs"
    elif 0 < (units.defined or 0) < FEW:
        count = number_of(units.defined or 0, units.name)
        yield f"the interval comes from {count}; below {FEW} it may be too narrow"


def notes_on_value(report: Report, score: Score) -> Iterator[str]:
    """Yield a note for each fit on the evaluated items, and for a biased value."""
    address, settings = score.address, report.settings.get(score.address.key)
    settings = settings if isinstance(settings, dict) else {}
    field = address.fields[-1]
    if address.metric == "pavpu" or field == "undetected_error_rate":
        rule = settings.get("threshold")
        fitted = isinstance(rule, str) and not _is_number(rule)
        if fitted and not any(settings.get(name) for name in _OTHER_SOURCES):
            yield (
                f"the threshold ({rule}) was fitted on the evaluated items, so the score is "
                "optimistic; use --threshold-from REPORT or --threshold NUMBER"
            )
    record = score.results.get(address.key)
    record = record if isinstance(record, dict) else {}
    scaled = record.get("temperature")
    scaled = scaled if isinstance(scaled, dict) else {}
    if address.fields[0] == "temperature" and scaled.get("fitted_on") == "all items":
        yield (
            "the temperature was fitted on the evaluated items, so the score is optimistic; use "
            "--fit-on FILE"
        )
    debiased: Any = record.get(f"{field}_debiased")
    if isinstance(debiased, float) and len(address.fields) == 1:
        yield (
            f"the rule checks the plain value, which is biased upward; "
            f"{replace(address, fields=(f'{field}_debiased',)).within} is {debiased:.4g}"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
