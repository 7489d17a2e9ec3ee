"""Calibration of single images: the mean and the quantiles of their ECE, and the mean of their ACE.

Kahl et al. 2024 (ValUES), §4: pixels of all images together hide images that are badly calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import over, quantile
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._score_kinds import OfFields
from uqeval.metrics.temperature_advice import TEMPERATURE

_NONE = "no image has a labelled pixel"
_REFERENCE = "docs/metrics.md, Calibration of single images"


def mean(weights: Array, values: Floats) -> Floats:
    """Return the mean [set] of the defined values."""
    is_defined = np.isfinite(values)
    w = weights[:, is_defined]
    return over((w * values[is_defined]).sum(axis=1), w.sum(axis=1))


def _value(score: Any) -> Any:
    return lambda values: OfFields((), score).of_all(np.array(values, np.float64))


_QUANTILES = {"median": 0.5, "p90": 0.9, "worst": 1.0}
#: By field: the field of items, and a function of weights and values.
_SCORES: Mapping[str, tuple[str, Any]] = {
    "mean": ("ece", mean),
    **{name: ("ece", partial(quantile, share)) for name, share in _QUANTILES.items()},
    "ace": ("ace", mean),
}
_MEANINGS = {
    "mean": ("mean ECE of images", "ECE of single images, averaged over the images."),
    "median": ("median ECE of images", "Half of the images have a lower ECE."),
    "p90": ("p90 of images' ECE", "Nine in ten images have a lower ECE."),
    "worst": ("worst ECE of an image", "Highest ECE of a single image."),
    "ace": ("mean ACE of images", "ACE of single images, averaged over the images."),
}
METRICS = tuple(
    Metric(
        "calibration", f"per_image.{name}", "fraction", "lower", (0.0, 1.0),
        "Kahl et al. 2024 (ValUES), §4" if name == "ace" else _REFERENCE, _NONE,
        _value(_SCORES[name][1]), label=label, meaning=meaning, **TEMPERATURE,
        interval="draws" if name in _QUANTILES else "positive", quantile=_QUANTILES.get(name),
    )
    for name, (label, meaning) in _MEANINGS.items()
)  # fmt: skip


def of_fields() -> dict[str, OfFields]:
    """Return the scores by their place in the results."""
    return {f"per_image.{n}": OfFields((field,), score) for n, (field, score) in _SCORES.items()}


def results_of_items(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scores of all items."""
    record: dict[str, Any] = {}
    for name, (field, score) in _SCORES.items():
        values = [item[field] for item in items if item.get(field) is not None]
        set_value(record, name, _value(score)(values), _NONE)
    return record
