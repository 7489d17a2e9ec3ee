"""Scores of conformal prediction: formulas of counts, and the distribution over images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from uqeval.arrays import Array, np
from uqeval.errors import number_of
from uqeval.metrics._columns import over, quantile
from uqeval.metrics._contract import NO_LABEL, Metric
from uqeval.metrics._fitted_apart import on_items

_CRC = "Angelopoulos et al. 2024, §1.1"
_SIZE = "Angelopoulos & Bates 2023, §3.2"
NO_ITEM = "no evaluated image has pixels that the risk is about"
INFINITE = (
    "the threshold is infinite: σ is 0 at too many calibration pixels with an error, or |error|/σ "
    "exceeds the largest float32"
)
_CALIBRATE = "Calibrate on images like those of the evaluation (--fit-on)."
_SMALLER = "A more accurate model has smaller sets; compare --method, too."
_UNIT = (0.0, 1.0)
_THRESHOLD = on_items("threshold")


def infinite(pixels: Sequence[int] | None) -> str:
    """Return why the threshold is infinite.

    `pixels`: calibration pixels with an infinite score where σ is 0, and where σ is above 0; None
    if they are unknown.
    """
    if pixels is None:
        return INFINITE
    zero, above = pixels
    causes = [f"σ is 0 at {number_of(zero, 'calibration pixel')} with an error"] if zero else []
    if above:
        largest = "|error|/σ exceeds the largest float32 at "
        causes.append(largest + number_of(above, "calibration pixel"))
    return f"the threshold is infinite: {' and '.join(causes)}"


def width(cut: float, sigma: Array, pixels: Array) -> Array:
    """Return the mean width 2·cut·σ of intervals [set]; NaN without pixels."""
    return over(2 * cut * sigma, pixels)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; undefined without values."""
    return sum(values) / len(values) if values else None


Score = Callable[[Array, Array], Array]


def _percentile(p: float) -> Score:
    """Return a function of weights [set, item] and losses [item]: a percentile of 1 - loss."""
    return lambda weights, loss: quantile(p / 100, weights, 1 - loss)


METRICS = (
    Metric("conformal", "coverage", "fraction", "higher", _UNIT, _SIZE, NO_LABEL, over,
           label="coverage", headline=1, of_part="error",
           meaning="Share of pixels whose set contains the label (or interval the target).",
           advice=_CALIBRATE, interval="share", counted=("pixels",), best=None,
           fitted_apart=_THRESHOLD),
    Metric("conformal", "size", "classes", "lower", (0.0, None), _SIZE, NO_LABEL, over,
           label="set size", headline=2,
           meaning="Mean number of classes in the set of a pixel.",
           advice=_SMALLER, interval="linear", fitted_apart=_THRESHOLD,
           least_good=(1.0, "if sets have less than one class on average, smaller ones are more "
                       "often empty")),
    Metric("conformal", "width", "target", "lower", (0.0, None), _SIZE, INFINITE, width,
           label="interval width", headline=3,
           meaning="Mean width of the interval of a pixel, in units of the target.",
           advice=_SMALLER, interval="linear", fitted_apart=_THRESHOLD),
    Metric("conformal", "mean_loss", "fraction", "lower", _UNIT, _CRC, NO_ITEM, mean,
           label="mean loss of images", column="mean loss", headline=4,
           meaning="Mean over images of the controlled risk; at most alpha in expectation.",
           advice=_CALIBRATE, interval="logit", fitted_apart=_THRESHOLD),
    Metric("conformal", "items_above", "fraction", "lower", _UNIT, "docs/metrics.md, Conformal",
           NO_ITEM, mean,
           label="images above alpha", headline=5,
           meaning="Share of images whose own risk is above alpha: the guarantee is an average.",
           advice="Look at these images first: they differ from those of the calibration.",
           interval="share", fitted_apart=_THRESHOLD),
    Metric("conformal", "singletons", "fraction", "higher", _UNIT, _SIZE, NO_LABEL, over,
           label="one class",
           meaning="Share of pixels whose set is a single class.",
           advice=_SMALLER, interval="share", counted=("pixels",), fitted_apart=_THRESHOLD),
    Metric("conformal", "empty", "fraction", None, _UNIT, _SIZE, NO_LABEL, over,
           label="empty",
           meaning="Share of pixels whose set is empty: no class is likely enough.",
           interval="share", counted=("pixels",), fitted_apart=_THRESHOLD),
    Metric("conformal", "items.p05", "fraction", "higher", _UNIT, "docs/metrics.md, Conformal",
           NO_ITEM, _percentile(5.0),
           label="coverage of the worst images", column="5 %",
           meaning="Coverage that 5 % of the images do not reach.",
           advice="Look at the images with the lowest coverage first.", interval="draws",
           quantile=0.05, fitted_apart=_THRESHOLD),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}


def _moments(weights: Array, loss: Array) -> tuple[Array, Array]:
    is_defined = np.isfinite(loss)
    own, values = weights[:, is_defined], 1 - loss[is_defined]
    total = own.sum(axis=1)
    means = over(own @ values, total)
    squares = over((own * (values - means[:, None]) ** 2).sum(axis=1), total)
    return means, np.sqrt(squares)


#: The distribution over images of 1 - loss, the coverage of the pixels that the risk is about.
DISTRIBUTION: Mapping[str, Score] = {
    "items.mean": lambda weights, loss: _moments(weights, loss)[0],
    "items.std": lambda weights, loss: _moments(weights, loss)[1],
    "items.least": _percentile(0.0),
    "items.p05": BY_FIELD["items.p05"].formula,
    "items.p25": _percentile(25.0),
    "items.median": _percentile(50.0),
    "items.p75": _percentile(75.0),
    "items.p95": _percentile(95.0),
    "items.most": _percentile(100.0),
}
