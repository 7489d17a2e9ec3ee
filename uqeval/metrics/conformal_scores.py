"""Scores of conformal prediction, the distribution over images, and conformal risk control.

The fit finds the smallest threshold that the calibration items allow, out of core: Angelopoulos et
al. 2024, eq. 4. With the losses L_i(q) ≤ 1 of n items, q is the smallest score with
(Σ L_i(q) + 1)/(n + 1) ≤ α. L_i(q) is the share of the pixels of item i whose score is above q. With
one pixel an item, this is the ⌈(n + 1)(1 - α)⌉-th smallest score of split conformal prediction.

A first pass counts scores by the high bits of their keys, a second by the low bits in one bin: the
threshold is exact. Sums of shares are compared with the limit as fractions where floats are close.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._columns import over, quantile
from uqeval.metrics._contract import Metric
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import TallyResult
from uqeval.metrics.conformal_settings import ConformalSettings, calibration_items, refuse_few

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.prediction_sets import Nonconformity

_CRC = "Angelopoulos et al. 2024, §1.1"
_SIZE = "Angelopoulos & Bates 2023, §3.2"
NO_PIXEL = "no labelled pixel"
NO_ITEM = "no evaluated image has pixels that the risk is about"
INFINITE = "the threshold is infinite: σ is 0 at too many calibration pixels with an error"
_CALIBRATE = "Calibrate on images like those of the evaluation (--fit-on)."
_SMALLER = "A more accurate model has smaller sets; compare --method, too."
_UNIT = (0.0, 1.0)


def ratio(count: float, total: float) -> float | None:
    """Return count / total; undefined where the total is 0."""
    return count / total if total else None


def width(cut: float, sigma: float, pixels: int) -> float | None:
    """Return the mean width 2·cut·σ of intervals; undefined without pixels."""
    return 2 * cut * sigma / pixels if pixels else None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; undefined without values."""
    return sum(values) / len(values) if values else None


METRICS = (
    Metric("conformal", "coverage", "fraction", "higher", _UNIT, _SIZE, NO_PIXEL, ratio,
           label="coverage", headline=1,
           meaning="Share of pixels whose set contains the label (or interval the target).",
           advice=_CALIBRATE, interval="share", counted=("pixels",), ends_best=False),
    Metric("conformal", "size", "classes", "lower", (0.0, None), _SIZE, NO_PIXEL, ratio,
           label="set size", headline=2,
           meaning="Mean number of classes in the set of a pixel.",
           advice=_SMALLER, interval="linear"),
    Metric("conformal", "width", "target", "lower", (0.0, None), _SIZE, INFINITE, width,
           label="interval width", headline=3,
           meaning="Mean width of the interval of a pixel, in units of the target.",
           advice=_SMALLER, interval="linear"),
    Metric("conformal", "mean_loss", "fraction", "lower", _UNIT, _CRC, NO_ITEM, mean,
           label="mean loss of images", column="mean loss", headline=4,
           meaning="Mean over images of the controlled risk; at most alpha in expectation.",
           advice=_CALIBRATE, interval="logit"),
    Metric("conformal", "items_above", "fraction", "lower", _UNIT, "docs/metrics.md, Conformal",
           NO_ITEM, mean,
           label="images above alpha", headline=5,
           meaning="Share of images whose own risk is above alpha: the guarantee is an average.",
           advice="Look at these images first: they differ from those of the calibration.",
           interval="share"),
    Metric("conformal", "singletons", "fraction", "higher", _UNIT, _SIZE, NO_PIXEL, ratio,
           label="one class",
           meaning="Share of pixels whose set is a single class.",
           advice=_SMALLER, interval="share", counted=("pixels",)),
    Metric("conformal", "empty", "fraction", None, _UNIT, _SIZE, NO_PIXEL, ratio,
           label="empty",
           meaning="Share of pixels whose set is empty: no class is likely enough.",
           interval="share", counted=("pixels",)),
    Metric("conformal", "items.p05", "fraction", "higher", _UNIT, "docs/metrics.md, Conformal",
           NO_ITEM, partial(lambda values, p: percentile(values, p), p=5.0),
           label="coverage of the worst images", column="5 %",
           meaning="Coverage that 5 % of the images do not reach.",
           advice="Look at the images with the lowest coverage first.", interval="draws",
           quantile=0.05),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}

Score = Callable[[Array, Array], Array]


def percentile(values: Sequence[float], p: float) -> float | None:
    """Return a percentile, linearly interpolated; undefined without values."""
    found = float(quantile(p / 100, np.ones((1, len(values)), np.int64), np.array(values))[0])
    return found if np.isfinite(found) else None


def _percentile(p: float) -> Score:
    """Return a function of weights [set, item] and losses [item]: a percentile of 1 - loss."""
    return lambda weights, loss: quantile(p / 100, weights, 1 - loss)


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
    "items.p05": _percentile(5.0),
    "items.p25": _percentile(25.0),
    "items.median": _percentile(50.0),
    "items.p75": _percentile(75.0),
    "items.p95": _percentile(95.0),
    "items.most": _percentile(100.0),
}


#: Counts by bin of all items with the same number of pixels.
CountsOf = Callable[[int], Array]
#: Sums of shares that differ by less, relative to the number of items, are compared exactly.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Calibration:
    """The threshold: the largest score in a set (∞ if infinite), of "lac" the least probability.

    `items`: those with a pixel; `loss`: their mean loss at the threshold.
    """

    cut: float
    items: int
    loss: float


def calibrate(
    settings: ConformalSettings, info: DatasetInfo, scores: Nonconformity
) -> Generator[tuple[Tally, ...], dict[Tally, TallyResult], Calibration]:
    """Return the threshold of the calibration items. Raises `UsageError` where there are too few
    with a pixel of the class whose risk is controlled.
    """
    import dataclasses

    from uqeval.tallies.prediction_sets import EvaluatedPixels

    pixels = EvaluatedPixels(scores.classes, scores.of_class)
    results = yield (pixels, scores)
    groups: dict[int, list[int]] = {}
    for item in calibration_items(settings, info):
        count = int(results[pixels].of_items(pixels, [item])["pixels"][0])
        if count:
            groups.setdefault(count, []).append(item)
    items = [item for own in groups.values() for item in own]
    of_class = scores.of_class
    what = "valid pixels" if of_class is None else f"pixels of class {info.class_names[of_class]}"
    refuse_few(items, settings, f" with {what}")
    search = _Search(groups, settings.level * (len(items) + 1) - 1)
    coarse = search.narrow(lambda size: _counts(scores, results[scores], groups[size]))
    finer = dataclasses.replace(scores, coarse=coarse)
    result = (yield (finer,))[finer]
    fine = search.narrow(lambda size: _counts(finer, result, groups[size]))
    return Calibration(scores.value_of(coarse, fine), len(items), search.loss / len(items))


def _counts(tally: Tally, result: TallyResult, items: list[int]) -> Array:
    """Return the counts of some items by bin."""
    return result.of_items(tally, items)["counts"]


class _Search:
    """The smallest bin with Σ_i (pixels of item i above it)/(pixels of item i) ≤ limit.

    `groups`: the items by their number of pixels; only the sum over a group matters.
    """

    def __init__(self, groups: Mapping[int, list[int]], limit: Fraction) -> None:
        self._items, self._limit = groups, limit
        #: Pixels of each group above all bins that are searched, and then above the one found.
        self._above = dict.fromkeys(groups, 0)

    @property
    def loss(self) -> float:
        """Return the sum of the shares above the bin found last."""
        return float(self._sum(self._above))

    def narrow(self, counts_of: CountsOf) -> int:
        """Return the bin; the next search is inside it."""
        shares: Any = 0.0
        for size in self._items:
            shares = shares + counts_of(size) / size
        occupied = np.flatnonzero(shares)
        tails = shares.sum() - np.cumsum(shares) + self.loss
        slack = _CLOSE * (sum(map(len, self._items.values())) + 1)
        candidates = occupied[tails[occupied] <= float(self._limit) + slack]
        for bin_ in candidates.tolist():
            above = {
                size: before + int(counts_of(size)[bin_ + 1 :].sum())
                for size, before in self._above.items()
            }
            if tails[bin_] <= float(self._limit) - slack or self._sum(above) <= self._limit:
                break
        self._above = above
        return int(bin_)

    @staticmethod
    def _sum(above: Mapping[int, int]) -> Fraction:
        """Return the sum of the shares, exactly."""
        return sum((Fraction(count, size) for size, count in above.items()), Fraction(0))
