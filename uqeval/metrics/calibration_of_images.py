"""Calibration of single images: the mean and the quantiles of their ECE, and the mean of their ACE.

Kahl et al. 2024 (ValUES), §4: pixels of all images together hide images that are badly calibrated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from uqeval.arrays import Floats, np
from uqeval.metrics._columns import quantile
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._score_kinds import OverItems
from uqeval.metrics.temperature_advice import TEMPERATURE

_NONE = "no image has a labelled pixel"
_REFERENCE = "docs/metrics.md, Calibration of single images"


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _quantile(share: float, values: Floats) -> float | None:
    ones = np.ones((1, values.size), np.int64)
    return float(quantile(share, ones, values)[0]) if values.size else None


_MEANS = {"mean": "ece", "ace": "ace"}
_QUANTILES = {"median": 0.5, "p90": 0.9, "worst": 1.0}
_FORMULAS: Mapping[str, Callable[[Floats], float | None]] = {
    "mean": _mean,
    **{name: partial(_quantile, share) for name, share in _QUANTILES.items()},
    "ace": _mean,
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
        _FORMULAS[name], label=label, meaning=meaning, **TEMPERATURE,
        interval="draws" if name in _QUANTILES else "positive", quantile=_QUANTILES.get(name),
    )
    for name, (label, meaning) in _MEANINGS.items()
)  # fmt: skip


def over_items() -> OverItems:
    """Return the scores by their place in the results."""
    return OverItems(
        means={f"per_image.{name}": field for name, field in _MEANS.items()},
        quantiles={f"per_image.{name}": ("ece", share) for name, share in _QUANTILES.items()},
    )


def results_of_items(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scores of all items."""
    record: dict[str, Any] = {}
    for name, formula in _FORMULAS.items():
        field = _MEANS.get(name, "ece")
        values = [item[field] for item in items if item.get(field) is not None]
        set_value(record, name, formula(np.array(values, np.float64)), _NONE)
    return record
