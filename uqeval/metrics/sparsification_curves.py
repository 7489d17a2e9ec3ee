"""Sparsification: the error that remains when the least certain pixels are removed.

Ilg et al. 2018, §5; Gustafsson et al. 2020, §4.2. Curves over the fraction removed,
against the oracle that removes the largest errors first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics._contract import RANKING, Chance, Metric, set_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._rank_bins import RankBins
    from uqeval.tallies import Cuts

VOID = "no pixel to evaluate"
ZERO = "the error of all pixels is 0: there is nothing to divide the curves by"
INFINITE = (
    "the error of all pixels is infinite: |ε|/|target| where the target is 0, or a1 where it is 0 "
    "or less"
)
EMPTY = "too few pixels: a cut keeps none of them"


@dataclass(frozen=True)
class Curves:
    """Mean errors of the pixels kept and of the oracle [step], and the areas under both.

    `by`: what both were divided by. `bound`: how far the difference of the areas may be off.
    """

    model: list[float]
    oracle: list[float]
    areas: tuple[float, float]
    span: float
    by: float
    bound: float = 0.0

    @property
    def ause(self) -> float:
        """Return area between the curve and the oracle."""
        return self.areas[0] - self.areas[1]

    @property
    def aurg(self) -> float:
        """Return area between the curve of a random order, which is constant, and the curve."""
        return self.model[0] * self.span - self.areas[0]


def curves(
    retained: Sequence[int],
    model: Sequence[float],
    oracle: Sequence[float],
    *,
    rooted: bool,
    normalised: bool,
    zero_at_1: bool = False,
    kept_by_oracle: Sequence[int] | None = None,
    every_rank: tuple[float, float] | None = None,
    bound: float = 0.0,
) -> Curves | str:
    """Return curves from the sums of errors of the pixels `retained`; why there are none, if there
    are none.

    `rooted`: the root of the mean; `normalised`: divided by the value at 0; `zero_at_1`: a point
    (1, 0) is appended. `every_rank`: the areas are not of these curves but of those over all ranks
    k/N, given as Σ of the mean errors, ends halved.
    """
    if not retained or retained[0] == 0:
        return VOID
    if min(retained) == 0:
        return EMPTY
    if not math.isfinite(model[0]):
        return INFINITE
    means = []
    for counts, sums in ((retained, model), (kept_by_oracle or retained, oracle)):
        values = [s / n for s, n in zip(sums, counts, strict=True)]
        means.append([math.sqrt(v) for v in values] if rooted else values)
    normaliser = means[0][0] if normalised else 1.0
    if normaliser == 0:
        return ZERO
    means = [[v / normaliser for v in values] for values in means]
    n, span = retained[0], (len(retained) - 1) / len(retained)
    if every_rank is not None:
        areas = tuple(area / n / normaliser for area in every_rank)
        span = (n - 1) / n
    else:
        areas = tuple(_trapezoid([*v, 0.0] if zero_at_1 else v, len(retained)) for v in means)
        span = 1.0 if zero_at_1 else span
    return Curves(
        means[0], means[1], (areas[0], areas[1]), span, normaliser, bound / n / normaliser
    )


def _trapezoid(values: Sequence[float], steps: int) -> float:
    return math.fsum([*values, -values[0] / 2, -values[-1] / 2]) / steps


def values_at_cuts(rank_bins: RankBins, cuts: Cuts) -> tuple[list[int], list[float]]:
    """Return the retained pixels and error sums at each cut; exact without `bins_to_split`."""
    retained, sums = cuts.sums(rank_bins.upto, rank_bins.errors_upto.astype(float))
    return retained.tolist(), sums.tolist()


def bins_to_split(rank_bins: RankBins, cuts: Cuts) -> list[int]:
    """Return the open bins that contain a cut."""
    bins = _divided(rank_bins, cuts)
    return bins[rank_bins.open[bins]].tolist()  # type: ignore[no-any-return]


def cut_ties(rank_bins: RankBins, cuts: Cuts) -> int:
    """Return the pixels of ties that a cut divides; exact once `bins_to_split` is empty."""
    return int(rank_bins.pixels[_divided(rank_bins, cuts)].sum())


def _divided(rank_bins: RankBins, cuts: Cuts) -> NDArray[Any]:
    """Return the bins that contain a cut."""
    import numpy as np

    cumulative = rank_bins.upto
    if not cumulative.size:
        return np.zeros(0, np.int64)
    retained = np.array(cuts.kept(int(cumulative[-1])))
    bins = np.searchsorted(cumulative, retained)
    return np.unique(bins[(cumulative[bins] != retained) & (retained > 0)])


def area_of_every_rank(rank_bins: RankBins) -> tuple[float, float]:
    """Return Σ over m = 1 … N of the mean error of the m first pixels, ends halved, and its bound.

    Within a bin of n pixels of error e after N_b of error E_b: Σ (E_b + j·e/n)/(N_b + j), which
    its order can move by no more than Σ e/(N_b + j).
    """
    import numpy as np

    n, e = rank_bins.pixels, rank_bins.errors
    cumulative, errors = rank_bins.upto, rank_bins.errors_upto
    below = cumulative - n
    spread = harmonics(below, cumulative)
    bin_areas = e + (errors - e - below * (e / n)) * spread
    ends = (e[0] / n[0] + errors[-1] / cumulative[-1]) / 2
    # The first pixel's error may be anything in its bin.
    bound = float((e * spread)[rank_bins.open].sum()) + (
        float(e[0]) / 2 if rank_bins.open[0] else 0.0
    )
    return float(np.sum(bin_areas)) - float(ends), bound


def harmonics(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return H_b - H_a = 1/(a + 1) + … + 1/b of whole numbers […], a <= b, to the last places."""
    import numpy as np

    table_size = 64
    table = np.append(0.0, np.cumsum(1 / np.arange(1, table_size + 1)))
    start, stop = np.maximum(a, table_size), np.maximum(b, table_size)

    def series(m: NDArray[Any]) -> NDArray[Any]:
        x = 1 / m
        y = x * x
        remainder: NDArray[Any] = x / 2 - y * (1 / 12 - y * (1 / 120 - y / 252))
        return remainder

    tail = np.log1p((stop - start) / start) + series(stop) - series(start)
    first, last = (np.minimum(ends, table_size).astype(np.int64) for ends in (a, b))
    sums: NDArray[Any] = table[last] - table[first] + tail
    return sums


def _best_gain(record: Mapping[str, Any]) -> float | None:
    """Return the AURG of the best possible order.

    None for the Brier score: it depends on the probabilities, as the uncertainty does, so 0 is not
    the score of chance.
    """
    gained, left = record.get("aurg"), record.get("ause")
    if record.get("error") == "brier" or gained is None or left is None:
        return None
    return float(gained + left)


METRICS = (
    Metric("sparsification", "ause", "area", "lower", (0.0, None), "Gustafsson et al. 2020, §4.2",
           ZERO, lambda curves: curves.ause,
           label="AUSE", headline=1,
           meaning="Area between the error curve and the best possible one, when uncertain pixels "
           "are removed first.",
           advice=RANKING, interval="draws"),
    Metric("sparsification", "aurg", "area", "higher", (None, None), "Poggi et al. 2020, §4.2",
           ZERO, lambda curves: curves.aurg,
           label="AURG", headline=2,
           meaning="Area gained over removing pixels at random; below 0 is worse than random.",
           chance=Chance(0.0, "the uncertainty finds large errors", _best_gain),
           advice=RANKING, interval="draws"),
)  # fmt: skip


def scores(curves: Curves | str) -> dict[str, Any]:
    """Return AUSE and AURG, or None with the reason."""
    record: dict[str, Any] = {}
    for metric in METRICS:
        value = None if isinstance(curves, str) else metric.formula(curves)
        set_value(
            record, metric.field, value, curves if isinstance(curves, str) else metric.undefined
        )
    return record
