"""n-MeRCI from saved states: λ^α, max^α and the trimmed MAE from counts by bin.

All values of a bin count as its middle, and so as a tie. Errors of pixels chosen by their λ are
not among the states: what is taken over the kept pixels alone is left out, and so is the table by
depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import Array, State, np
from uqeval.metrics.nmerci_columns import OF_KEPT, middles
from uqeval.metrics.nmerci_records import CURVE, results_of, sums_of
from uqeval.metrics.nmerci_settings import NmerciSettings


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
