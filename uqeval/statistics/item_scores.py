"""Scores that are computed from the records of items, and their places in a record."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Floats
from uqeval.metrics._evaluation import Evaluation
from uqeval.metrics._score_kinds import OverItems
from uqeval.records.addresses import split_fields
from uqeval.statistics.weighting import Subset


def set_score(record: dict[str, Any], name: str, value: float) -> None:
    """Set a field, `a.b` inside the record `a`; NaN is undefined."""
    *parents, last = split_fields(name)
    for parent in parents:
        record = record.setdefault(parent, {})
    if math.isfinite(value):
        record[last] = value
        record.pop(f"{last}_reason", None)
    else:
        record[last] = None
        record.setdefault(f"{last}_reason", "undefined for these items")


def put_kept(record: dict[str, Any], over: OverItems, count: int) -> None:
    """Add the number of items that a variant does not leave out; without any, give the reason of
    all undefined scores."""
    record[over.kept] = count
    if not count:
        _replace_reasons(record, over.none_kept, over.fitted)


def _replace_reasons(value: Any, reason: str, except_of: Collection[str] = ()) -> None:
    if isinstance(value, list):
        for row in value:
            _replace_reasons(row, reason)
    elif isinstance(value, dict):
        for name, own in value.items():
            if name.endswith("_reason") and name.removesuffix("_reason") not in except_of:
                value[name] = reason
            else:
                _replace_reasons(own, reason)


def scores_over_items(
    evaluation: Evaluation[Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the scores of all items that are computed from fields of their records."""
    over = evaluation.over_items()

    def column(field: str) -> Floats:
        values = [record.get(field) for record in records]
        return np.array([np.nan if v is None else float(v) for v in values])

    kept = np.ones(len(records), bool) if over.leaves_out is None else column(over.leaves_out) == 0
    weights = Subset(np.flatnonzero(kept), len(records))
    scores = {name: float(weights.mean(column(field))[0]) for name, field in over.means.items()}
    for name, (field, share) in over.quantiles.items():
        scores[name] = float(weights.quantiles(column(field), [share])[0, 0])
    with np.errstate(all="ignore"):
        for name, of_fields in over.of_fields.items():
            values = [column(field) for field in of_fields.fields]
            is_counted = of_fields.counted(records)
            counted = weights if is_counted is None else weights.only(is_counted)
            scores[name] = float(of_fields.score(counted.weights, *values)[0])
    return scores
