"""Sparsification: the error of what is left when the least certain pixels are removed.

Ilg et al. 2018, §5; Gustafsson et al. 2020, §4.2. Curves over the fraction removed,
against the oracle that removes the largest errors first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics._advice import RANKING
from uqeval.metrics._contract import Metric, set_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._rank_bins import RankBins
    from uqeval.tallies import Cuts

VOID = "no pixel to evaluate"
ZERO = "the error of all pixels is 0: there is nothing to divide the curves by"
INFINITE = "the error of all pixels is infinite: |ε|/|target| where the target is 0"
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
        """Area between the curve and the oracle."""
        return self.areas[0] - self.areas[1]

    @property
    def aurg(self) -> float:
        """Area between the curve of a random order, which is constant, and the curve."""
        return self.model[0] * self.span - self.areas[0]


def curves(
    kept: Sequence[int],
    model: Sequence[float],
    oracle: Sequence[float],
    *,
    rooted: bool,
    normalised: bool,
    zero_at_1: bool = False,
    kept_by_oracle: Sequence[int] | None = None,
    every: tuple[float, float] | None = None,
    bound: float = 0.0,
) -> Curves | str:
    """Curves from the sums of errors of the pixels `kept`; why there are none, if there are none.

    `rooted`: the root of the mean; `normalised`: divided by the value at 0; `zero_at_1`: a point
    (1, 0) is appended. `every`: the areas are not of these curves but of those over all ranks
    k/N, given as Σ of the mean errors, ends halved.
    """
    if not kept or kept[0] == 0:
        return VOID
    if min(kept) == 0:
        return EMPTY
    if not math.isfinite(model[0]):
        return INFINITE
    means = []
    for counts, sums in ((kept, model), (kept_by_oracle or kept, oracle)):
        values = [s / n for s, n in zip(sums, counts, strict=True)]
        means.append([math.sqrt(v) for v in values] if rooted else values)
    by = means[0][0] if normalised else 1.0
    if by == 0:
        return ZERO
    means = [[v / by for v in values] for values in means]
    n, span = kept[0], (len(kept) - 1) / len(kept)
    if every is not None:
        areas = tuple(area / n / by for area in every)
        span = (n - 1) / n
    else:
        areas = tuple(_trapezoid([*v, 0.0] if zero_at_1 else v, len(kept)) for v in means)
        span = 1.0 if zero_at_1 else span
    return Curves(means[0], means[1], (areas[0], areas[1]), span, by, bound / n / by)


def _trapezoid(values: Sequence[float], steps: int) -> float:
    return math.fsum([*values, -values[0] / 2, -values[-1] / 2]) / steps


def cut_ladder(ladder: RankBins, cuts: Cuts) -> tuple[list[int], list[float]]:
    """Pixels kept and their error sums at each cut; exact once `cut_rungs` is empty."""
    kept, sums = cuts.sums(ladder.upto, ladder.errors_upto.astype(float))
    return kept.tolist(), sums.tolist()


def cut_rungs(ladder: RankBins, cuts: Cuts) -> list[int]:
    """The open rungs in which a cut falls."""
    rungs = _divided(ladder, cuts)
    return rungs[ladder.open[rungs]].tolist()  # type: ignore[no-any-return]


def cut_ties(ladder: RankBins, cuts: Cuts) -> int:
    """Pixels of the ties that a cut divides; exact once `cut_rungs` is empty."""
    return int(ladder.pixels[_divided(ladder, cuts)].sum())


def _divided(ladder: RankBins, cuts: Cuts) -> NDArray[Any]:
    """The rungs in which a cut falls."""
    import numpy as np

    upto = ladder.upto
    if not upto.size:
        return np.zeros(0, np.int64)
    kept = np.array(cuts.kept(int(upto[-1])))
    rungs = np.searchsorted(upto, kept)
    return np.unique(rungs[(upto[rungs] != kept) & (kept > 0)])


def area_of_every_rank(ladder: RankBins) -> tuple[float, float]:
    """Σ over m = 1 … N of the mean error of the m first pixels, ends halved, and its bound.

    Within a rung of n pixels of error e after N_b of error E_b: Σ (E_b + j·e/n)/(N_b + j), which
    its order can move by no more than Σ e/(N_b + j).
    """
    import numpy as np

    n, e = ladder.pixels, ladder.errors
    upto, errors = ladder.upto, ladder.errors_upto
    below = upto - n
    spread = harmonics(below, upto)
    part = e + (errors - e - below * (e / n)) * spread
    ends = (e[0] / n[0] + errors[-1] / upto[-1]) / 2
    # The first pixel's error may be anything in its rung.
    bound = float((e * spread)[ladder.open].sum()) + (float(e[0]) / 2 if ladder.open[0] else 0.0)
    return float(np.sum(part)) - float(ends), bound


def harmonics(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """H_b - H_a = 1/(a + 1) + … + 1/b of whole numbers […], a <= b, to the last places."""
    import numpy as np

    few = 64
    table = np.append(0.0, np.cumsum(1 / np.arange(1, few + 1)))
    start, stop = np.maximum(a, few), np.maximum(b, few)

    def rest(m: NDArray[Any]) -> NDArray[Any]:
        x = 1 / m
        y = x * x
        found: NDArray[Any] = x / 2 - y * (1 / 12 - y * (1 / 120 - y / 252))
        return found

    tail = np.log1p((stop - start) / start) + rest(stop) - rest(start)
    first, last = (np.minimum(own, few).astype(np.int64) for own in (a, b))
    found: NDArray[Any] = table[last] - table[first] + tail
    return found


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
           advice=RANKING, interval="draws"),
)  # fmt: skip


def scores(found: Curves | str) -> dict[str, Any]:
    """AUSE and AURG, or None with the reason."""
    record: dict[str, Any] = {}
    for metric in METRICS:
        value = None if isinstance(found, str) else metric.formula(found)
        set_value(
            record, metric.field, value, found if isinstance(found, str) else metric.undefined
        )
    return record
