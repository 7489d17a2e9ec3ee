"""The tallies of n-MeRCI and its results, which saved states give from counts by bin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import Array, State, np
from uqeval.metrics.nmerci_columns import OF_KEPT, middles
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.item_errors import ItemErrors

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
        return cls(middles(bins), coarse[bins], np.cumsum(coarse[bins]))

    def percentile(self, p: float, rule: str) -> float | None:
        """Return the p-th percentile by a rule of `uqeval.tallies.percentiles`."""
        from uqeval.tallies.percentiles import between, ranks_of

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
