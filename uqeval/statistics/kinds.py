"""The metric of a report's score, and the kind of its interval."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from uqeval.metrics import FAMILIES_IN_REPORTS, Metric
from uqeval.metrics._contract import IntervalKind
from uqeval.records.addresses import Address
from uqeval.records.scalars import described

#: Kinds of scores whose intervals are percentiles of draws; all others take the jackknife.
DRAWN: tuple[IntervalKind, ...] = ("draws", "positive", "gaps", "biased")
#: Those whose draws show a bias that the interval corrects for.
BIASED: tuple[IntervalKind, ...] = ("gaps", "biased")


@cache
def _records(family: str) -> dict[str, dict[str, Any]]:
    """Return the metrics of a family; imports no other family."""
    if family not in FAMILIES_IN_REPORTS:
        return {}
    return {metric.id: {"metric": metric} for metric in FAMILIES_IN_REPORTS[family].metrics}


@lru_cache(1 << 16)
def metric_at(text: str) -> Metric | None:
    """Return the metric of an address; None for counts and settings."""
    address = Address.parse(text)
    record = described(_records(address.metric), address.metric, address.fields)
    return record["metric"] if record else None


def kind_of(text: str) -> IntervalKind | None:
    """Return the kind of interval of the score at an address; None for counts and settings."""
    metric = metric_at(text)
    return None if metric is None else metric.interval
