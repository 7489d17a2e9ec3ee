"""Published estimates of the calibration error of the top label that have less bias than the ECE.

Kumar et al. 2019 correct the errors of bins of equal mass for noise; Roelofs et al. 2022 choose the
number of bins. The edges of bins of equal mass are exact order statistics of the confidences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import over
from uqeval.metrics._contract import NO_LABEL, Metric
from uqeval.metrics._evaluation import Passes
from uqeval.metrics._items import exact_sums
from uqeval.metrics.temperature_advice import TEMPERATURE

if TYPE_CHECKING:
    from uqeval.metrics.calibration_scores import Binned
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors

#: By name, edges and the pixels that share their confidence with an edge and another pixel.
Edges = dict[str, tuple[tuple[float, ...], int]]


def upper_ranks(pixels: int, bins: int) -> list[int]:
    """Return the ranks, from 0 on, of the inner edges of bins ⌊bins·#{confidence < c}/pixels⌋.

    A pixel's bin is how many k from 1 to bins - 1 have v_k < c, where v_k is the
    ⌈k·pixels/bins⌉-th smallest confidence: at least k/bins of the pixels, and so v_k, lie below c.
    Equal confidences stay in one bin.
    """
    return [-(-k * pixels // bins) - 1 for k in range(1, bins)] if pixels else []


def sets_at_once(bins: int) -> int:
    """Return for how many sets edges can be found at the same time in 32 MB.

    The first pass takes 4 MB a set, the second 64 kB an edge.
    """
    return max(2**25 // max(2**22, bins * 2**16), 1)


def exact_edges(
    classes: int, coarse: Any, ranks_by_name: Mapping[str, Sequence[int]],
    of: Uncertainty | None = None,
) -> Passes:  # fmt: skip
    """Find the confidences at the given ranks in one pass; return `Edges`.

    `coarse` counts the confidences of all pixels by the high bits of their keys. `of`: a map in
    place of the confidence.
    """
    from uqeval.tallies._values import RawMap
    from uqeval.tallies.ranks import Ranks, bins_at, order_statistics

    bins = bins_at(coarse, [rank for ranks in ranks_by_name.values() for rank in ranks])
    value_of_rank: dict[int, Any] = {}
    if bins:
        detail = Ranks(of or RawMap("confidence"), classes, bins=tuple((0, b) for b in bins))
        fine = (yield (detail,))[detail].total["fine"]
        value_of_rank = {b: fine[i] for i, b in enumerate(bins)}
    edges: Edges = {}
    for name, ranks in ranks_by_name.items():
        values = tuple(order_statistics(coarse, value_of_rank, ranks))
        edges[name] = values, _tied_pixels(value_of_rank, values)
    return edges


def _tied_pixels(fine: Mapping[int, Any], edges: Sequence[float]) -> int:
    from uqeval.tallies.rank_keys import FINE_BITS, keys_of

    total = 0
    for key in keys_of(np.array(sorted(set(edges)))).tolist():
        count = int(fine[key >> FINE_BITS][key & ((1 << FINE_BITS) - 1)])
        total += count if count > 1 else 0
    return total


#: Names of the estimators, which are definitions, too.
PUBLISHED = ("kumar-l2", "kumar-l1", "roelofs-sweep")
#: The number of bins at which the sweep stops: an edge costs 64 kB of counts.
MOST_SWEPT = 1000


def kumar_l2(binned: Binned) -> Array:
    """Return √max(0, Σ_b n_b/N·(gap_b² - accuracy_b(1 - accuracy_b)/(n_b - 1))).

    Bins of one pixel count as 0. NaN without pixels. Kumar et al. 2019, Definition 5.1;
    `unbiased_l2_ce` of the package uncertainty-calibration.
    """
    n, total = binned.count, binned.count.sum(axis=-1)
    accuracy = over(binned.correct, n)
    noise = over(accuracy * (1 - accuracy), n - 1)
    parts = over(n, total[..., None]) * (over(-binned.signed, n) ** 2 - noise)
    squares = np.maximum(exact_sums(np.where(n > 1, parts, 0.0)), 0.0)
    return np.where(total > 0, np.sqrt(squares), np.nan)


def kumar_l1(binned: Binned) -> Array:
    """Return 2·ECE - Σ_b n_b/N·E|a_b - confidence_b|, a_b ~ N(accuracy_b, its standard error).

    The mean has a closed form (folded normal); the package uncertainty-calibration averages 1,000
    random draws. May be below 0. NaN without pixels, and where a bin holds one pixel.
    """
    n, total = binned.count, binned.count.sum(axis=-1)
    gap, accuracy = over(binned.signed, n), over(binned.correct, n)
    spread = np.sqrt(over(accuracy * (1 - accuracy), n))
    parts = over(n, total[..., None]) * (2 * abs(gap) - _mean_distance(gap, spread))
    sums = exact_sums(np.where(n > 0, parts, 0.0))
    return np.where((total > 0) & (n != 1).all(axis=-1), sums, np.nan)


def _mean_distance(mean: Array, std: Array) -> Array:
    """Return E|X| of X ~ N(mean, std²)."""
    z = over(mean, std)
    erf = np.array([math.erf(value / math.sqrt(2)) for value in z.flat]).reshape(z.shape)
    spread = std * math.sqrt(2 / math.pi) * np.exp(-z * z / 2) + mean * erf
    return np.where(std == 0, abs(mean), spread)


def sweep_l1(binned: Binned) -> Array:
    """Return Σ_b n_b/N·gap_b, the ECE of the bins; NaN without pixels."""
    return over(exact_sums(abs(binned.signed)), binned.count.sum(axis=-1))


def sweep_l2(binned: Binned) -> Array:
    """Return √(Σ_b n_b/N·gap_b²); NaN without pixels."""
    gaps = abs(binned.signed)
    squares = np.where(binned.count > 0, over(gaps * gaps, binned.count), 0.0)
    return np.sqrt(over(exact_sums(squares), binned.count.sum(axis=-1)))


_KUMAR, _ROELOFS = "Kumar et al. 2019, §5", "Roelofs et al. 2022, Algorithm 1"

METRICS = (
    Metric("calibration", "kumar_l2", "fraction", "lower", (0.0, 1.0), _KUMAR, NO_LABEL, kumar_l2,
           label="Kumar l2",
           meaning="Root of the mean squared gap, corrected for the noise of the bins.",
           **TEMPERATURE, interval="biased"),
    Metric("calibration", "kumar_l1", "fraction", "lower", (-1.0, 1.0), _KUMAR,
           f"{NO_LABEL}, or a bin of equal mass holds a single pixel", kumar_l1,
           label="Kumar l1",
           meaning="Mean gap, corrected for the noise of the bins.",
           **TEMPERATURE, interval="biased", best=0.0),
    Metric("calibration", "sweep_l1", "fraction", "lower", (0.0, 1.0), _ROELOFS, NO_LABEL, sweep_l1,
           label="sweep l1",
           meaning="Mean gap, in the largest number of bins in which accuracy does not fall.",
           **TEMPERATURE, interval="biased"),
    Metric("calibration", "sweep_l2", "fraction", "lower", (0.0, 1.0), _ROELOFS, NO_LABEL, sweep_l2,
           label="sweep l2",
           meaning="Root of the mean squared gap, in the largest number of bins in which "
                   "accuracy does not fall.",
           **TEMPERATURE, interval="biased"),
)  # fmt: skip

#: The scores of each estimator.
_SCORES = {"kumar-l2": METRICS[:1], "kumar-l1": METRICS[1:2], "roelofs-sweep": METRICS[2:]}


def metrics_of(estimator: str) -> tuple[Metric, ...]:
    """Return the scores of an estimator."""
    return _SCORES[estimator]


def sweep_tally(classes: int) -> RankedErrors:
    """Return the tally from which the sweep chooses the number of bins.

    Pixels and wrong ones by 1 - confidence, in bins of relative width 2⁻¹⁰.
    """
    from uqeval.tallies._errors import Error
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors

    return RankedErrors(Uncertainty("confidence"), Error("zero-one"), classes)


def edge_ranks(bins: int, pixels: int, swept: State | None) -> list[int]:
    """Return the ranks of the confidences, from 0 on, at the inner edges of the bins.

    `swept`: the state of `sweep_tally`, for the sweep.
    """
    if swept is not None:
        return upper_ranks(pixels, sweep(swept))
    # As numpy.array_split cuts the sorted confidences: the first bins are larger by one.
    bins = min(bins, pixels)
    return [k * (pixels // bins) + min(k, pixels % bins) - 1 for k in range(1, bins)]


def sweep(state: Mapping[str, Any]) -> int:
    """Return the largest B such that accuracy does not fall in 2, 3 … B bins of equal mass.

    1 where it falls in two bins. Pixels that share a bin of the state stay together, so that B may
    differ from the number without a histogram: see `kept_together`.
    """
    pixels, right, below = _histogram(state)
    total = int(pixels.sum())
    for bins in range(2, min(total - 1, MOST_SWEPT) + 1):
        starts = np.flatnonzero(np.diff(below * bins // total, prepend=-1))
        counts, hits = np.add.reduceat(pixels, starts), np.add.reduceat(right, starts)
        if (np.diff(hits / counts) < 0).any():
            return bins - 1
    return max(min(total - 1, MOST_SWEPT), 1)


def kept_together(state: Mapping[str, Any]) -> int:
    """Return how many pixels share a bin of the state that an edge of 2, 3 … B + 1 bins of equal
    mass would divide if their confidences differ. 0: the B of `sweep` is exact.
    """
    pixels, _, below = _histogram(state)
    total = int(pixels.sum())
    is_divided = np.zeros(pixels.shape, bool)
    for bins in range(2, min(sweep(state) + 1, total - 1, MOST_SWEPT) + 1):
        is_divided |= below * bins // total < (below + pixels - 1) * bins // total
    return int(pixels[is_divided].sum())


def _histogram(state: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return the pixels and the right ones of each nonempty bin of the state, by ascending
    confidence, and how many pixels have less."""
    pixels, wrong = (state[name][0][::-1] for name in ("pixels", "errors"))
    nonempty = np.flatnonzero(pixels)
    pixels, right = pixels[nonempty], (pixels - wrong)[nonempty]
    return pixels, right, np.cumsum(pixels) - pixels
