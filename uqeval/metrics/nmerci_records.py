"""The tallies of n-MeRCI, and its results from counts of λ and ε by bin, of one set or of many.

All values of a bin count as its middle, and so as a tie.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._tiles import AllSums, AtRanks, Cumulated, RankedSets, Tiles, at_ranks
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    Ranks = tuple[int, int, float] | None
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.item_errors import ItemErrors

_FIELDS = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha", "pixels")
#: Fields that need errors of selected pixels, which states do not have.
OF_KEPT = ("nmerci", "merci", "mae_trimmed")


def columns_of(settings: NmerciSettings, sums: SetStates, states: SetStates) -> SetColumns:
    """Return the scores of states of `ItemErrors` and `ErrorRanks`, NaN where undefined."""
    from uqeval.tallies.error_ranks import middles
    from uqeval.tallies.rank_keys import ranks_of

    assert isinstance(states, RankedSets) and states.columns is not None
    value, tiles = states.values, states.tiles
    if value is None:
        value = middles(states.columns)
    counts = tiles.totals("coarse")[:, 0].sum(axis=1).astype(np.int64).tolist()
    ranks = [ranks_of(n, settings.alpha, settings.interpolation) for n in counts]
    ratio, error = (_located(tiles, row, ranks, value) for row in (0, 1))
    rows = []
    for i, item_ranks in enumerate(ranks):
        totals = ns.Sums(int(sums["pixels"][i, 0]), *sums["totals"][i].tolist())
        lambda_, most = (_percentile(at_ranks, i, item_ranks, value) for at_ranks in (ratio, error))
        below = None
        if most is not None and math.isfinite(most):
            end = int(most >= value[error.bins[i, 1]])  # in the bin below the percentile or above
            count, total = (cumulative[i, end] for cumulative in error.upto)
            below = ns.Sums(int(count), float(total), math.nan)
        parts = ns.Parts(totals, lambda_, most, below)
        scores = ns.score(parts, "all", settings.mae)
        trimmed = below.mae if below else None
        rows.append((scores[2], scores[1], scores[0], totals.mae, trimmed, most, totals.pixels))
    values = np.array(rows, np.float64).reshape(-1, len(_FIELDS)).T
    left_out = OF_KEPT if settings.over == "kept" else ()
    named_values = zip(_FIELDS, values, strict=True)
    return {(name,): column for name, column in named_values if name not in left_out}


def _located(
    tiles: Tiles, row: int, ranks: Sequence[Ranks], value: Array
) -> AtRanks:  # fmt: skip
    """Return the bins of the ranks below and above the percentile of each set, and the counts and
    sums of values up to these."""
    finite = np.where(np.isinf(value), 0.0, value)

    @lru_cache(1)  # both fields of a tile are read one after the other
    def cumulative_counts(tile: int) -> Array:
        return tiles.upto("coarse", tile, row)

    def sums(tile: int) -> Array:
        counts = np.diff(cumulative_counts(tile), prepend=0.0, axis=1)
        return np.asarray((counts * finite[tiles.spans[tile]]).cumsum(axis=1))

    required = np.array(
        [
            (0, 0) if rank_pair is None else (rank_pair[0] + 1, rank_pair[1] + 1)
            for rank_pair in ranks
        ]
    )
    of_counts = Cumulated(
        tiles.totals("coarse")[:, row], lambda tile: AllSums(cumulative_counts(tile))
    )
    of_values = Cumulated(tiles.totals("coarse", finite)[:, row], lambda tile: AllSums(sums(tile)))
    return at_ranks(tiles, required, of_counts, of_values)


def _percentile(at_ranks: AtRanks, i: int, ranks: Ranks, value: Array) -> float | None:
    from uqeval.tallies.rank_keys import between

    if ranks is None:
        return None
    lower, upper = value[at_ranks.bins[i]].tolist()
    return between(lower, upper, ranks[2])


#: The α of the curve, in percent.
CURVE = tuple(range(1, 101))


def tallies_of(settings: NmerciSettings) -> tuple[ItemErrors, ErrorRanks]:
    """Return sums of each item and its own percentiles, and λ and ε by the high bits of
    their keys.
    """
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.item_errors import ItemErrors

    over_kept = settings.over == "kept"
    return (
        ItemErrors(settings.alpha, settings.interpolation, over_kept, settings.sigma),
        ErrorRanks(settings.sigma),
    )


def results_of(parts: Mapping[float, ns.Parts], settings: NmerciSettings) -> dict[str, Any]:
    """Return the results of an n-MeRCI from its parts by α."""
    results = {"alpha": settings.alpha} | record_of(parts[settings.alpha], settings)
    scores = [ns.score(parts[float(a)], settings.over, settings.mae) for a in CURVE]
    results["curve"] = {"alpha": list(CURVE), "nmerci": [score[2] for score in scores]}
    if None in results["curve"]["nmerci"]:
        results["curve_reason"] = _gaps(
            [_curve_reason(*score[1:], settings.over) for score in scores]
        )
    return results


def _curve_reason(merci: float | None, nmerci: float | None, over: str) -> str | None:
    """Return the reason if a point of the curve is undefined, else None."""
    if nmerci is not None:
        return None
    if over == "kept":
        return "no finite λ^α, or the largest error of the kept pixels is not above their MAE"
    return "λ^α is infinite" if merci is None else "max^α is not above the MAE"


def _gaps(reasons: Sequence[str | None]) -> str:
    """Return the reasons of the undefined points of the curve, each with the α that it
    holds for.
    """
    messages = []
    for reason, group in itertools.groupby(
        zip(reasons, CURVE, strict=True), key=lambda pair: pair[0]
    ):
        alphas = [alpha for _, alpha in group]
        if reason:
            ends = f" … {alphas[-1]}" if len(alphas) > 1 else ""
            messages.append(f"α = {alphas[0]}{ends}: {reason}")
    return "; ".join(messages)


def record_of(parts: ns.Parts, settings: NmerciSettings) -> dict[str, Any]:
    return ns.record(parts, settings.alpha, settings.over, settings.mae)


def sums_of(state: State) -> ns.Sums:
    """Return all pixels of a state of `ItemErrors`."""
    return ns.Sums(int(state["pixels"][0]), *state["totals"].tolist())


def running(state: State, group: int) -> Sequence[ns.Sums]:
    """Return sums of all pixels of a group at or below each limit, from a state of `SumsBelow`."""
    counts = np.cumsum(state["count"][group]).tolist()
    errors, sigmas = np.cumsum(state["sums"][group], axis=0).T.tolist()
    most = np.maximum.accumulate(state["most"][group]).tolist()
    return [ns.Sums(*four) for four in zip(counts, errors, sigmas, most, strict=True)]


@dataclass(frozen=True)
class Binned:
    """Non-negative values by bin, ascending: the common value of a bin, the number of its values,
    and how many up to its end.
    """

    value: Array
    count: Array
    upto: Array

    @classmethod
    def from_state(cls, coarse: Array) -> Binned:
        """Return the occupied bins of a row of `ErrorRanks`; 0 and ∞ are their own bins' values."""
        bins = np.flatnonzero(coarse != 0)  # of booleans, which is several times as fast
        from uqeval.tallies.error_ranks import middles

        return cls(middles(bins), coarse[bins], np.cumsum(coarse[bins]))

    def percentile(self, p: float, rule: str) -> float | None:
        """Return the p-th percentile by a rule of `uqeval.tallies.rank_keys`."""
        from uqeval.tallies.rank_keys import between, ranks_of

        ranks = ranks_of(int(self.upto[-1]) if self.upto.size else 0, p, rule)
        if ranks is None:
            return None
        lower, upper = self.value[np.searchsorted(self.upto, ranks[:2], side="right")].tolist()
        return between(lower, upper, ranks[2])

    def upto_value(self, limit: float | None) -> ns.Sums | None:
        """Return the values up to a finite limit; None for none."""
        if limit is None or not math.isfinite(limit):
            return None
        end = int(np.searchsorted(self.value, limit, side="right"))
        total = float(self.value[:end] @ self.count[:end].astype(np.float64))
        return ns.Sums(int(self.upto[end - 1]) if end else 0, total, math.nan)


def scores_of(settings: NmerciSettings, sums: State, ranks: State) -> dict[str, Any]:
    """Return the results with percentiles read in bins; scores that need more than bins are
    left out.
    """
    if settings.over == "kept":
        alpha_parts = _parts(settings, sums, ranks, {settings.alpha})[settings.alpha]
        record = {"alpha": settings.alpha} | ns.record(alpha_parts, settings.alpha, "all", "full")
        return {k: v for k, v in record.items() if k.removesuffix("_reason") not in OF_KEPT}
    return results_of(_parts(settings, sums, ranks, {settings.alpha, *map(float, CURVE)}), settings)


def _parts(
    settings: NmerciSettings, sums: State, ranks: State, alphas: set[float]
) -> dict[float, ns.Parts]:
    totals = sums_of(sums)
    ratio, error = map(Binned.from_state, ranks["coarse"])
    parts = {}
    for alpha in alphas:
        ratio_percentile, most = (
            quantity.percentile(alpha, settings.interpolation) for quantity in (ratio, error)
        )
        parts[alpha] = ns.Parts(totals, ratio_percentile, most, error.upto_value(most))
    return parts
