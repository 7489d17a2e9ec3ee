"""Scores that are computed from the records of items, and their places in a record.

Scores that saved states do not give: null, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Floats
from uqeval.metrics._evaluation import Evaluation
from uqeval.metrics._score_kinds import OverItems
from uqeval.records.addresses import split_fields
from uqeval.records.scalars import BESIDE
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


def put_lost(results: dict[str, Any], of_run: Mapping[str, Any], reason: str) -> list[str]:
    """Add null and the reason for each field that a run has and `results` lacks, also in rows of
    classes; return their names.
    """
    lost = [name for name in of_run if name not in results and not name.endswith(BESIDE)]
    for name in lost:
        results |= {name: None, f"{name}_reason": reason}
    of_classes: dict[str, None] = {}
    rows = results.get("per_class") or []
    for row, class_record in zip(rows, of_run.get("per_class") or [], strict=False):
        names = put_lost(row, class_record, reason)
        of_classes |= dict.fromkeys(f"{name} of classes" for name in names)
    return [*lost, *of_classes]
