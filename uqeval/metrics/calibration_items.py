"""The distribution of calibration errors over single images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import over
from uqeval.metrics._contract import TEMPERATURE, Metric, set_value
from uqeval.metrics._evaluation import OfFields

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Items of which the weights are added up first.
_RUN = 128
_NONE = "no image has a labelled pixel"
_REFERENCE = "docs/metrics.md, Calibration of single images"


def quantile(
    share: float, weights: NDArray[Any], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a quantile [set] of values [item] that each set has `weights` [set, item] times.

    Interpolated linearly, as NumPy's. NaN without values.
    """
    import numpy as np

    order = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
    if not order.size:
        return np.full(len(weights), np.nan)
    ordered = weights[:, order]
    # The sums of runs of items say in which run a rank lies: only this one is added up by item.
    runs = np.add.reduceat(ordered, np.arange(0, order.size, _RUN), axis=1, dtype=np.int64)
    upto = runs.cumsum(axis=1)
    total = upto[:, -1]
    position = (total - 1) * share
    lower = np.floor(position)

    def value_at(rank: NDArray[Any]) -> NDArray[Any]:
        run = np.minimum((upto <= rank[:, None]).sum(axis=1), upto.shape[1] - 1)[:, None]
        items = np.minimum(run * _RUN + np.arange(_RUN), order.size - 1)
        before = np.take_along_axis(upto - runs, run, axis=1)
        within = np.take_along_axis(ordered, items, axis=1).cumsum(axis=1, dtype=np.int64)
        at = run[:, 0] * _RUN + (before + within <= rank[:, None]).sum(axis=1)
        chosen: NDArray[Any] = values[order][np.minimum(at, order.size - 1)]
        return chosen

    ends = [value_at(rank) for rank in (lower, np.minimum(lower + 1, total - 1))]
    between: NDArray[np.float64] = ends[0] + (ends[1] - ends[0]) * (position - lower)
    return np.where(total > 0, between, np.nan)


def mean(weights: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean [set] of the defined values."""
    import numpy as np

    is_defined = np.isfinite(values)
    w = weights[:, is_defined]
    return over((w * values[is_defined]).sum(axis=1), w.sum(axis=1))


def _value(score: Any) -> Any:
    def value(values: Sequence[float]) -> float | None:
        import numpy as np

        found = score(np.ones((1, len(values)), np.int64), np.array(values, np.float64))[0]
        return float(found) if np.isfinite(found) else None

    return value


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
    "worst": ("worst ECE of an image", "ECE of the image with the highest one."),
    "ace": ("mean ACE of images", "ACE of single images, averaged over the images."),
}
METRICS = tuple(
    Metric(
        "calibration", f"per_image.{name}", "fraction", "lower", (0.0, 1.0),
        "Kahl et al. 2024 (ValUES), §4" if name == "ace" else _REFERENCE, _NONE,
        _value(_SCORES[name][1]), label=label, meaning=meaning, advice=TEMPERATURE,
        interval="draws", quantile=_QUANTILES.get(name),
    )
    for name, (label, meaning) in _MEANINGS.items()
)  # fmt: skip


def of_fields() -> dict[str, OfFields]:
    """Return the scores by their place in the results."""
    return {f"per_image.{n}": OfFields((field,), score) for n, (field, score) in _SCORES.items()}


def results_of(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scores of all items."""
    record: dict[str, Any] = {}
    for name, (field, score) in _SCORES.items():
        values = [item[field] for item in items if item.get(field) is not None]
        set_value(record, name, _value(score)(values), _NONE)
    return record
