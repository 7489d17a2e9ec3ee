"""n-MeRCI from saved states: λ^α, max^α and the trimmed MAE from counts by bin.

All values of a bin count as its middle, and so as a tie. Errors of pixels chosen by their λ are
not among the states: what is taken over the kept pixels alone is left out, and so is the table by
depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics import nmerci_scores as ns
from uqeval.metrics.nmerci_records import CURVE, results_of, sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.metrics.nmerci_settings import NmerciSettings
    from uqeval.tallies._contract import State

_FIELDS = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha", "pixels")
_OF_KEPT = ("nmerci", "merci", "mae_trimmed")


@dataclass(frozen=True)
class Binned:
    """Non-negative values by bin, ascending: the value that all of a bin have, how many they are,
    and how many up to its end.
    """

    value: NDArray[Any]
    count: NDArray[Any]
    upto: NDArray[Any]

    @classmethod
    def of(cls, coarse: NDArray[Any]) -> Binned:
        """The occupied bins of a row of `ErrorRanks`; 0 and ∞ are their own bins' values."""
        import numpy as np

        bins = np.flatnonzero(coarse != 0)  # of booleans, which is several times as fast
        return cls.at(bins, coarse[bins])

    @classmethod
    def at(cls, bins: NDArray[Any], count: NDArray[Any]) -> Binned:
        """The counts of some `bins`, ascending; several rows of counts [set, bin] at once."""
        import numpy as np

        from uqeval.tallies.ranks import FINE_BITS

        bits = ((bins << FINE_BITS) - 2**31).astype(np.int32)
        first = bits.view(np.float32)
        middle = (bits + (1 << (FINE_BITS - 1))).view(np.float32)
        value = np.where((first == 0) | np.isinf(first), first, middle).astype(np.float64)
        return cls(value, count, np.cumsum(count, axis=-1))

    def row(self, i: int) -> Binned:
        """The counts of one of several sets."""
        return Binned(self.value, self.count[i], self.upto[i])

    def percentile(self, p: float, rule: str) -> float | None:
        """The p-th percentile by a rule of `uqeval.tallies.percentiles`."""
        import numpy as np

        from uqeval.tallies.percentiles import between, ranks_of

        ranks = ranks_of(int(self.upto[-1]) if self.upto.size else 0, p, rule)
        if ranks is None:
            return None
        lower, upper = self.value[np.searchsorted(self.upto, ranks[:2], side="right")].tolist()
        return between(lower, upper, ranks[2])

    def upto_value(self, limit: float | None) -> ns.Sums | None:
        """The values up to a finite limit; None for none."""
        import numpy as np

        if limit is None or not math.isfinite(limit):
            return None
        end = int(np.searchsorted(self.value, limit, side="right"))
        total = float(self.value[:end] @ self.count[:end].astype(np.float64))
        return ns.Sums(int(self.upto[end - 1]) if end else 0, total, math.nan)


def scores_of(settings: NmerciSettings, sums: State, ranks: State) -> dict[str, Any]:
    """Return the results with percentiles read in bins; what the bins do not tell is left out."""
    if settings.over == "kept":
        own = _parts(settings, sums, ranks, {settings.alpha})[settings.alpha]
        record = {"alpha": settings.alpha} | ns.record(own, settings.alpha, "all", "full")
        return {k: v for k, v in record.items() if k.removesuffix("_reason") not in _OF_KEPT}
    return results_of(_parts(settings, sums, ranks, {settings.alpha, *map(float, CURVE)}), settings)


def _parts(
    settings: NmerciSettings, sums: State, ranks: State, alphas: set[float]
) -> dict[float, ns.Parts]:
    every = sums_of(sums)
    ratio, error = map(Binned.of, ranks["coarse"])
    found = {}
    for alpha in alphas:
        own, most = (by.percentile(alpha, settings.interpolation) for by in (ratio, error))
        found[alpha] = ns.Parts(every, own, most, error.upto_value(most))
    return found


def columns_of(
    settings: NmerciSettings, sums: SetStates, ranks: SetStates
) -> dict[Place, NDArray[Any]]:
    """The scores of many sets at once: of each its percentiles, by bins that any set occupies."""
    import numpy as np

    assert ranks.columns is not None
    ratio, error = (Binned.at(ranks.columns, ranks["coarse"][:, i]) for i in (0, 1))
    over, sums_of_errors = "all", error.value * error.count
    rows = []
    for i in range(sums.sets):
        every = ns.Sums(int(sums["pixels"][i, 0]), *sums["totals"][i].tolist())
        own, most = (
            by.row(i).percentile(settings.alpha, settings.interpolation) for by in (ratio, error)
        )
        below = None
        if most is not None and np.isfinite(most):
            end = int(np.searchsorted(error.value, most, side="right"))
            count = int(error.upto[i, end - 1]) if end else 0
            below = ns.Sums(count, float(sums_of_errors[i, :end].sum()), math.nan)
        trimmed = below.mae if below else None
        lambda_, merci, nmerci = ns.score(ns.Parts(every, own, most, below), over, settings.mae)
        rows.append((nmerci, merci, lambda_, every.mae, trimmed, most, every.pixels))
    values = np.array(rows, np.float64).reshape(-1, len(_FIELDS)).T
    left_out = _OF_KEPT if settings.over == "kept" else ()
    found = zip(_FIELDS, values, strict=True)
    return {(name,): own for name, own in found if name not in left_out}
