"""Sparsification: the error that remains when the least certain pixels are removed.

Ilg et al. 2018, §5; Gustafsson et al. 2020, §4.2. Curves over the fraction removed,
against the oracle that removes the largest errors first; AUSE and AURG of one set, or of many.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._columns import as_numbers, difference, over
from uqeval.metrics._contract import RANKING, Chance, Metric, set_value
from uqeval.metrics._items import exact_sums
from uqeval.metrics._tiles import Cumulated, at_ranks

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins
    from uqeval.metrics.failure_columns import SetRankBins
    from uqeval.tallies.item_curves import Cuts

VOID = "no pixel to evaluate"
ZERO = "the error of all pixels is 0: there is nothing to divide the curves by"
INFINITE = (
    "the error of all pixels is infinite: |ε|/|target| where the target is 0, or a1 where it is 0 "
    "or less"
)
EMPTY = "too few pixels: a cut keeps none of them"
REASONS = ("", VOID, EMPTY, INFINITE, ZERO)


@dataclass(frozen=True)
class CutSums:
    """Pixels that sets of pixels keep at each cut, and the sums of their errors, [set, step] all.

    `kept`, `errors`: in the order of the uncertainty; `kept_by_oracle`, `oracle`: in the order of
    the errors themselves. `every_rank`: if the areas are over all ranks k/N, Σ of the mean errors,
    ends halved, of both orders [set]. `bound` [set]: how far the difference of these may be off.
    """

    kept: Array
    errors: Array
    kept_by_oracle: Array
    oracle: Array
    every_rank: tuple[Array, Array] | None = None
    bound: Array | float = 0.0


@dataclass(frozen=True)
class Curves:
    """Mean errors of the kept pixels, `model`, and of the oracle, both [set, step].

    All others are [set]. `area`, `oracle_area`: the areas under both curves; `span`: the length of
    their axis. `by`: what both were divided by. `bound`: how far the difference of the areas may be
    off. `flaw`: why a set has no curve, an index of `REASONS`; 0: it has one.
    """

    model: Array
    oracle: Array
    area: Array
    oracle_area: Array
    span: Array
    by: Array
    bound: Array
    flaw: Array

    @property
    def ause(self) -> Array:
        """Return area between the curve and the oracle; NaN without a curve."""
        return self._defined(difference(self.area, self.oracle_area))

    @property
    def aurg(self) -> Array:
        """Return area between the curve of a random order, which is constant, and the curve."""
        return self._defined(difference(self.model[:, 0] * self.span, self.area))

    @property
    def reasons(self) -> list[str]:
        """Return why each set has no curve; empty where it has one."""
        return [REASONS[flaw] for flaw in self.flaw.tolist()]

    def _defined(self, values: Array) -> Array:
        return np.where(self.flaw == 0, values, np.nan)


def curves(sums: CutSums, *, rooted: bool, normalised: bool, zero_at_1: bool = False) -> Curves:
    """Return the curves of sets of pixels.

    `rooted`: the root of the mean; `normalised`: divided by the value at 0; `zero_at_1`: a point
    (1, 0) is appended.
    """
    with np.errstate(all="ignore"):
        model, oracle = sums.errors / sums.kept, sums.oracle / sums.kept_by_oracle
        if rooted:
            model, oracle = np.sqrt(model), np.sqrt(oracle)
        by = model[:, 0] if normalised else np.ones(len(model))
        flaw = np.select(
            [sums.kept[:, 0] == 0, sums.kept.min(axis=1) == 0, ~np.isfinite(sums.errors[:, 0]),
             by == 0],
            [REASONS.index(reason) for reason in (VOID, EMPTY, INFINITE, ZERO)],
        )  # fmt: skip
        by = np.where(flaw == 0, by, np.nan)  # no curve; sums of infinite errors would fail
        model, oracle = model / by[:, None], oracle / by[:, None]
        n, steps = sums.kept[:, 0], model.shape[1]
        if sums.every_rank is not None:
            area, oracle_area = (area / n / by for area in sums.every_rank)
            span = (n - 1) / n
        else:
            areas = _trapezoid(np.concatenate([model, oracle]), steps, zero_at_1)
            area, oracle_area = np.split(areas, 2)
            span = np.full(len(n), 1.0 if zero_at_1 else (steps - 1) / steps)
        return Curves(model, oracle, area, oracle_area, span, by, sums.bound / n / by, flaw)


def joined(parts: Sequence[Curves]) -> Curves:
    """Return the curves of all sets from those of consecutive sets."""
    names = [field.name for field in dataclasses.fields(Curves)]
    return Curves(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def mean_over_items(items: Curves) -> Curves:
    """Return the mean of the items' curves as that of one set, areas included.

    Items without curves are left out. If all are, the reason is that of the first with pixels.
    """
    good = np.flatnonzero(items.flaw == 0)
    flaws = items.flaw[items.flaw != REASONS.index(VOID)]

    def mean(values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            means: Array = exact_sums(values[good].T[None]) / np.float64(good.size)
        return means

    model, area = mean(items.model), mean(items.area)
    # With this span, AURG is the mean of the items' AURG.
    span = over(mean(items.aurg) + area, model[:, 0])
    flaw = [0] if good.size else flaws[:1] if flaws.size else [REASONS.index(VOID)]
    return Curves(
        model, mean(items.oracle), area, mean(items.oracle_area),
        np.where(model[:, 0] == 0, 0.0, span), mean(items.by), np.zeros(1), np.array(flaw),
    )  # fmt: skip


def _trapezoid(values: Array, steps: int, zero_at_1: bool) -> Array:
    """Return the areas under curves [set, step]: ends halved, or a last point (1, 0) appended."""
    halves = [-values[:, :1] / 2] if zero_at_1 else [-values[:, :1] / 2, -values[:, -1:] / 2]
    return exact_sums(np.concatenate([values, *halves], axis=1)) / steps


def values_at_cuts(rank_bins: RankBins, cuts: Cuts) -> tuple[Array, Array]:
    """Return the retained pixels and error sums of one set at each cut, [1, step]; exact without
    `bins_to_split`."""
    if not rank_bins.total:
        return np.zeros((1, cuts.steps), np.int64), np.zeros((1, cuts.steps))
    ends = np.array([0, rank_bins.pixels.size])
    return cuts.sums(rank_bins.pixels, rank_bins.errors_upto.astype(float), ends)


def bins_to_split(rank_bins: RankBins, cuts: Cuts) -> list[int]:
    """Return the open bins that contain a cut."""
    bins = _divided(rank_bins, cuts)
    return bins[rank_bins.open[bins]].tolist()


def cut_ties(rank_bins: RankBins, cuts: Cuts) -> int:
    """Return the pixels of ties that a cut divides; exact once `bins_to_split` is empty."""
    return int(rank_bins.pixels[_divided(rank_bins, cuts)].sum())


def _divided(rank_bins: RankBins, cuts: Cuts) -> Array:
    """Return the bins that contain a cut."""
    cumulative = rank_bins.upto
    if not cumulative.size:
        return np.zeros(0, np.int64)
    retained = np.array(cuts.kept(int(cumulative[-1])))
    bins = np.searchsorted(cumulative, retained)
    return np.unique(bins[(cumulative[bins] != retained) & (retained > 0)])


def bound_of_area(rank_bins: RankBins) -> float:
    """Return how far the order in the bins can move `area_of_every_rank`: by Σ e/(N_b + j)."""
    errors, is_open = rank_bins.errors, rank_bins.open
    spread = harmonics(rank_bins.upto - rank_bins.pixels, rank_bins.upto)
    # The first pixel's error may be anything in its bin.
    first = float(errors[0]) / 2 if is_open[0] else 0.0
    return float((errors * spread)[is_open].sum()) + first


def harmonics(a: Array, b: Array) -> Array:
    """Return H_b - H_a = 1/(a + 1) + … + 1/b of whole numbers […], a <= b, to the last places."""
    table_size = 64
    table = np.append(0.0, np.cumsum(1 / np.arange(1, table_size + 1)))
    start, stop = np.maximum(a, table_size), np.maximum(b, table_size)

    def series(m: Array) -> Array:
        x = 1 / m
        y = x * x
        return x / 2 - y * (1 / 12 - y * (1 / 120 - y / 252))

    tail = np.log1p((stop - start) / start) + series(stop) - series(start)
    first, last = (np.minimum(ends, table_size).astype(np.int64) for ends in (a, b))
    return table[last] - table[first] + tail


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


def scores(curves: Curves) -> list[dict[str, Any]]:
    """Return AUSE and AURG of each set, None with the reason where it has no curve."""
    columns = [as_numbers(metric.formula(curves)) for metric in METRICS]
    records: list[dict[str, Any]] = []
    for reason, *values in zip(curves.reasons, *columns, strict=True):
        records.append({})
        for metric, value in zip(METRICS, values, strict=True):
            set_value(records[-1], metric.field, value, reason or metric.undefined)
    return records


def curve_points(rank_bins: SetRankBins, cuts: Cuts) -> tuple[Array, Array]:
    """Return pixels kept and their error sums at each cut, [set, step] both."""
    retained = cuts.kept_of(rank_bins.total.astype(np.int64))
    fields = (Cumulated.from_tiles(rank_bins.tiles, name) for name in ("pixels", "errors"))
    at_cuts = at_ranks(rank_bins.tiles, retained, *fields)
    (below, total), (upper, errors) = at_cuts.before, at_cuts.upto
    if cuts.ties == "together":
        return upper, errors
    share = over(retained - below, upper - below)
    interpolated = total + share * (errors - total)
    return retained, np.where(retained == upper, errors, interpolated)


def area_of_every_rank(rank_bins: SetRankBins) -> Array:
    """Return Σ over m = 1 … N of the mean error of the m first pixels, ends halved: [set].

    Within a bin of n pixels of error e after N_b of error E_b: Σ (E_b + j·e/n)/(N_b + j).
    """
    n, e = rank_bins.pixels, rank_bins.errors
    below = rank_bins.upto - n
    mean = np.where(n > 0, e / n, 0.0)
    bin_areas = e + (rank_bins.errors_upto - e - below * mean) * harmonics(below, rank_bins.upto)
    first = (n > 0).argmax(axis=1)[:, None]
    ends = np.take_along_axis(mean, first, 1)[:, 0] + over(
        rank_bins.errors_upto[:, -1], rank_bins.total
    )
    return bin_areas.sum(axis=1) - ends / 2
