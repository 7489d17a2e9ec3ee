"""The evaluations of a run, rebuilt from its saved states, and scores over the records of items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Floats
from uqeval.keys import family_of
from uqeval.metrics import FAMILIES_IN_REPORTS, Family
from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
from uqeval.metrics._evaluation import Evaluation
from uqeval.metrics._family import settings_of
from uqeval.records.addresses import Address, values_of
from uqeval.statistics.weighting import Subset


def variants_of(
    index: Mapping[str, Any], info: DatasetInfo
) -> dict[str, tuple[Family, dict[str, Evaluation[Any]]]]:
    """Return the family of each variant of a run, and its evaluations by key: it and its parts."""
    variants = {}
    for key, record in index["settings"].items():
        family = FAMILIES_IN_REPORTS.get(family_of(key))
        if family is not None:
            settings = settings_of(family.settings_type, record)
            variants[key] = family, family.evaluations(key, settings, info, index["fitted"])
    return variants


def evaluations_of(index: Mapping[str, Any]) -> dict[str, Evaluation[Any]]:
    """Return the evaluations of a run by key, if the states contain their fitted values."""
    variants = variants_of(index, info_of(index["facts"])).values()
    return {
        key: evaluation
        for _, evaluations in variants
        for key, evaluation in evaluations.items()
        if evaluation.can_score
    }


def info_of(record: Mapping[str, Any]) -> DatasetInfo:
    """Return the facts about the data of a run, from its states."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    if (video := fields.get("video")) is not None:
        fields_of_video = {k: tuple(v) if isinstance(v, list) else v for k, v in video.items()}
        flows = video["flow_record"]
        fields["video"] = VideoInfo(
            **fields_of_video | {"flow_record": lambda method: dict(flows.get(method, {}))}
        )
    fields["sizes"] = tuple((h, w) for h, w in fields["sizes"])
    return DatasetInfo(**fields)


def addresses_of(
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the address and the path of each number of a report."""
    for key, record in results.items():
        for fields, path, _ in values_of(record):
            yield Address.of_key(key, fields).within, (key, *path)


def set_score(record: dict[str, Any], name: str, value: float) -> None:
    """Set a field, `a.b` inside the record `a`; NaN is undefined."""
    *parents, last = name.split(".")
    for parent in parents:
        record = record.setdefault(parent, {})
    if math.isfinite(value):
        record[last] = value
        record.pop(f"{last}_reason", None)
    else:
        record[last] = None
        record.setdefault(f"{last}_reason", "undefined for these items")


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
    with np.errstate(all="ignore"):
        for name, of_fields in over.of_fields.items():
            values = [column(field) for field in of_fields.fields]
            scores[name] = float(of_fields.score(weights.weights, *values)[0])
    return scores
