"""Ranks of errors ε and of ratios λ = ε/σ, both in one pass (see `ranks`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import VOID
from uqeval.tallies._contract import KnownItems
from uqeval.tallies._errors import OfErrors
from uqeval.tallies._fields import CountedItems, Counts, FieldOfItems, Flaws
from uqeval.tallies.rank_keys import COARSE, FINE_BITS, rank_counts, rows_of_bins, values_of
from uqeval.tallies.ranks import CountsByRank

RATIO, ERROR = 0, 1


def middles(columns: Array) -> Array:
    """Return the middle of each bin of `ErrorRanks`; 0 and ∞ are their own bins' values."""
    first = values_of(columns << FINE_BITS)
    middle = (first.view(np.int32) + (1 << (FINE_BITS - 1))).view(np.float32)
    return np.where((first == 0) | np.isinf(first), first, middle).astype(np.float64)


@dataclass(frozen=True)
class ErrorRanks(OfErrors, CountsByRank):
    """Evaluated pixels by the rank keys of λ and of ε.

    Without `bins`, the state is `coarse` [(λ, ε), bin]; with them (which of both, coarse bin), it
    is `fine` [entry of bins, low bits]. `few`: no bin holds more pixels than 16 bits count, so that
    the counts of some hundred bins stay in the cache.
    """

    id: ClassVar[str] = "error_ranks"
    by_column: ClassVar[bool] = True
    pixelwise = True
    sigma: str = "sigma"
    bins: tuple[tuple[int, int], ...] = ()
    few: bool = False

    @property
    def groups(self) -> int:
        """Return λ and ε."""
        return 2

    def parameters(self) -> dict[str, Any]:
        """Return the parameters; without `few` if it is false, as in older states."""
        return {k: v for k, v in super().parameters().items() if k != "few" or v}

    @property
    def fine_dtype(self) -> str:
        return "uint16" if self.few else "int64"

    def flaws(self, state: State) -> Flaws:
        if "coarse" in state:
            counts = state["coarse"].sum(axis=-1)
            differ = counts[..., RATIO] != counts[..., ERROR]
            yield "other numbers of ratios than of errors", differ

    def evaluated(self, state: State) -> Counts | None:
        return None if self.bins else state["coarse"][..., ERROR, :].sum(axis=-1)

    def column_values(self, columns: Array, factor: float) -> Array:
        values = middles(columns)
        return np.stack([values / factor, values])

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.ratios import count_ratios, count_ratios_finely

        error, sigma, label = self.flat(maps)
        if not self.bins:
            count_ratios(error, sigma, label, VOID, state["coarse"])
            return
        count_ratios_finely(error, sigma, label, VOID, *self._rows_of_bins, state["fine"])

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        from uqeval.kernels.members import set_ratios

        if self.bins or first.size == 2:
            return None
        error, sigma, label = self.flat(maps)
        ratio = np.empty(error.size, np.float32)
        set_ratios(error[None], sigma[None], ratio[None])
        items, entries = np.arange(first.size - 1), []
        for group, values in enumerate((ratio, error.astype(np.float32, copy=False))):
            own = rank_counts(self, first, values, values, label, VOID, False, FINE_BITS).fields[0]
            assert own.places is not None and own.first is not None
            item = np.repeat(items, np.diff(own.first))
            entries.append((item, own.places + group * COARSE, own.values))
        item, places, counts = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        order = np.argsort(item, kind="stable")  # of an item the entries of λ, then those of ε
        ends = np.searchsorted(item[order], np.arange(first.size))
        return CountedItems(items.size, (FieldOfItems(counts[order], places[order], ends),))

    @cached_property
    def _rows_of_bins(self) -> tuple[Array, Array]:
        """Return which coarse bins of λ and ε have a row, and which."""
        return rows_of_bins(self.bins, (2, COARSE))
