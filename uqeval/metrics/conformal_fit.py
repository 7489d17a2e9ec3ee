"""Conformal risk control out of core: the smallest threshold that the calibration items allow.

Angelopoulos et al. 2024, eq. 4: with the losses L_i(q) ≤ 1 of n items, q is the smallest score with
(Σ L_i(q) + 1)/(n + 1) ≤ α. L_i(q) is the share of the pixels of item i whose score is above q. With
one pixel an item, this is the ⌈(n + 1)(1 - α)⌉-th smallest score of split conformal prediction.

A first pass counts scores by the high bits of their keys, a second by the low bits in one bin: the
threshold is exact. Sums of shares are compared with the limit as fractions where floats are close.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.errors import StoreError
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import TallyResult
from uqeval.metrics.conformal_settings import ConformalSettings, calibration_items, refuse_few

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.prediction_sets import Nonconformity

#: Counts by bin of all items with the same number of pixels.
CountsOf = Callable[[int], Array]
#: Sums of shares that differ by less, relative to the number of items, are compared exactly.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Calibration:
    """The threshold: the largest score (∞ if infinite); of classes 1 less this.

    `items`: those with a pixel; `loss`: their mean loss at the threshold. `infinite`: if the
    threshold is, their pixels with an infinite score, where σ is 0 and where σ is above 0.
    """

    cut: float
    items: int
    loss: float
    infinite: tuple[int, int] | None = None


def calibrate(
    settings: ConformalSettings, info: DatasetInfo, scores: Nonconformity
) -> Generator[tuple[Tally, ...], dict[Tally, TallyResult], Calibration]:
    """Return the threshold of the calibration items. Raises `UsageError` where there are too few
    with a pixel of the class whose risk is controlled; `StoreError` for counts of pixels and scores
    that differ, which only forged states have.
    """
    import dataclasses

    from uqeval.tallies.prediction_sets import EvaluatedPixels, InfiniteScores

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
    search = _Search(groups, settings.level * (len(items) + 1) - 1, info.where)
    coarse = search.narrow(lambda size: _counts(scores, results[scores], groups[size]))
    finer = dataclasses.replace(scores, coarse=coarse)
    is_infinite = scores.is_infinite(coarse)
    causes = InfiniteScores(settings.ratio, settings.sigma)
    results = yield (finer, causes) if is_infinite else (finer,)
    fine = search.narrow(lambda size: _counts(finer, results[finer], groups[size]))
    infinite = None
    if is_infinite:
        state = results[causes].of_items(causes, items)
        infinite = (int(state["zero"][0]), int(state["above"][0]))
    cut = scores.value_of(coarse, fine)
    return Calibration(cut, len(items), search.loss / len(items), infinite)


def _counts(tally: Tally, result: TallyResult, items: list[int]) -> Array:
    """Return the counts of some items by bin."""
    return result.of_items(tally, items)["counts"]


class _Search:
    """The smallest bin with Σ_i (pixels of item i above it)/(pixels of item i) ≤ limit.

    `groups`: the items by their number of pixels; only the sum over a group matters. `where`: the
    store, for messages.
    """

    def __init__(self, groups: Mapping[int, list[int]], limit: Fraction, where: str = "") -> None:
        self._items, self._limit, self._where = groups, limit, where
        #: Pixels of each group above all bins that are searched, and then above the one found.
        self._above = dict.fromkeys(groups, 0)
        #: Pixels of each group in all bins that are searched, and then in the one found.
        self._inside = {size: size * len(items) for size, items in groups.items()}

    @property
    def loss(self) -> float:
        """Return the sum of the shares above the bin found last."""
        return float(self._sum(self._above))

    def narrow(self, counts_of: CountsOf) -> int:
        """Return the bin; the next search is inside it. Raises `StoreError` for other numbers of
        scores than of pixels."""
        shares: Any = 0.0
        for size, pixels in self._inside.items():
            counts = counts_of(size)
            if int(counts.sum()) != pixels:
                raise StoreError(
                    f"{self._where}: the states have {int(counts.sum())} scores of {pixels} "
                    "calibration pixels: they are damaged or forged. Evaluate again."
                )
            shares = shares + counts / size
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
        self._inside = {size: int(counts_of(size)[bin_]) for size in self._items}
        return int(bin_)

    @staticmethod
    def _sum(above: Mapping[int, int]) -> Fraction:
        """Return the sum of the shares, exactly."""
        return sum((Fraction(count, size) for size, count in above.items()), Fraction(0))
