"""Exact ranks without sorting, in two passes: percentiles of any number of float32 values.

The bits of a float order like the number, so the first pass counts values by the high 19 bits of
their key, and the second counts the low 13 bits of the few bins in which the wanted ranks lie.
`Moments` are for thresholds without ranks: `mean` and `range`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._fields import CountedItems, Counts, Field, Flaws
from uqeval.tallies._values import OfUncertainty, RawMap, Uncertainty
from uqeval.tallies.patches import Patches
from uqeval.tallies.rank_keys import (
    COARSE,
    FINE_BITS,
    between,
    rank_counts,
    ranks_of,
    rows_of_bins,
    value_of,
)

#: Bins that are summed at a time.
_BLOCK = 512


class CountsByRank(Tally):
    """Values of `groups` populations by the bits of their rank keys.

    Without `bins`, the state is `coarse` [group, bin]; with them (group, coarse bin), it is `fine`
    [entry of bins, low bits].
    """

    keeps_items: ClassVar[bool] = False
    checks_columns: ClassVar[bool] = True
    bins: tuple[tuple[int, int], ...]

    @property
    @abstractmethod
    def groups(self) -> int:
        """Return how many populations are ranked apart."""

    @property
    def saved(self) -> bool:
        """Return the coarse counts alone, in which ranks are found to 2⁻¹⁰ relative."""
        return not self.bins

    @property
    def any_order(self) -> bool:
        """Return True: these are counts."""
        return True

    @property
    def fine_dtype(self) -> str:
        """Return the dtype of counts by low bits."""
        return "int64"

    @property
    def fields(self) -> dict[str, Field]:
        if self.bins:
            return {"fine": Field((len(self.bins), 1 << FINE_BITS), self.fine_dtype)}
        return {"coarse": Field((self.groups, COARSE), "int64")}


@dataclass(frozen=True)
class Ranks(CountsByRank):
    """Values by rank: uncertainties or unchanged maps of non-void pixels, or patch means.

    `of`: which values. `by_category`: each category of patches (classes, then mixed) apart.
    """

    id: ClassVar[str] = "ranks"
    of: Uncertainty | RawMap | Patches
    classes: int
    by_category: bool = False
    bins: tuple[tuple[int, int], ...] = ()

    @property
    def groups(self) -> int:
        return self.classes + 1 if self.by_category else 1

    @property
    def pixelwise(self) -> bool:
        """Return whether pixels are ranked, not patches."""
        return not isinstance(self.of, Patches)

    @property
    def version(self) -> int:
        return self.of.version if isinstance(self.of, Patches) else 1

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.of.inputs if isinstance(self.of, Patches) else ("label", self.of.name)

    def evaluated(self, state: State) -> Counts | None:
        if isinstance(self.of, Patches) or "coarse" not in state:
            return None
        return state["coarse"].sum(axis=(-2, -1))

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.counting import count_ranks, count_ranks_finely

        if (counted := self.count_item(maps)) is not None:
            self.fold_items(state, counted)
            return
        values, group, void = self._values(maps)
        if not self.by_category:
            self._update_all(state, values, group, void)
            return
        if not self.bins:
            count_ranks(values, group, void, self.by_category, state["coarse"])
            return
        slot = self._rows_of_groups
        count_ranks_finely(values, group, void, self.by_category, slot, state["fine"])

    def _update_all(self, state: State, values: Array, group: Array, void: int) -> None:
        """Add the pixels of one population."""
        from uqeval.kernels.counting import count_all_ranks, count_all_ranks_finely

        if not self.bins:
            count_all_ranks(values, group, void, state["coarse"][0])
            return
        is_wanted, slot = self._rows_of_bins
        count_all_ranks_finely(values, group, void, is_wanted, slot, state["fine"])

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        if self.by_category or self.bins or not self.pixelwise:
            return None
        values, label, void = self._values(maps)
        return rank_counts(self, first, values, values, label, void, False, FINE_BITS)

    @cached_property
    def _rows_of_bins(self) -> tuple[Array, Array]:
        """Return which coarse bins have a row, uint8 [bin + 1], and which, int16 [bin]."""
        return rows_of_bins([b for _, b in self.bins], (COARSE,))

    @cached_property
    def _rows_of_groups(self) -> Array:
        """Return the row of each coarse bin, int16 [group, bin]; -1 for none."""
        slot = np.full((self.groups, COARSE), -1, np.int16)
        for i, (g, b) in enumerate(self.bins):
            slot[g, b] = i
        return slot

    def _values(self, maps: Maps) -> tuple[Array, Array, int]:
        """Return values [i], their groups [i], and the group that does not count."""
        void = void_of(self.classes)
        if not isinstance(self.of, Patches):
            return self.of.values(maps).reshape(-1), maps["label"].reshape(-1), void
        table = self.of.table(maps)
        category = table["category"]
        return table["mean"], np.where(category == void, self.classes, category), -1


def bins_of(coarse: Array, percentiles: tuple[float, ...]) -> tuple[tuple[int, int], ...]:
    """Return the bins (group, coarse bin) that contain the ranks for `percentile`."""
    bins = set()
    for group, counts in enumerate(coarse):
        n = int(counts.sum())
        if ranks := [r for p in percentiles for r in (ranks_of(n, p, "linear") or ())[:2]]:
            bins |= {(group, b) for b in bins_at(counts, ranks)}
    return tuple(sorted(bins))


def bins_at(counts: Array, ranks: Sequence[int]) -> list[int]:
    """Return the coarse bins of one group, ascending, that hold the given ranks, counted from 0."""
    return sorted({index for index, _ in _located(counts, ranks)})


def _located(counts: Array, ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the bin of each rank, and the rank inside it.

    Sums blocks of bins first: summing up all of many bins takes ten times as long.
    """
    width = math.gcd(counts.size, _BLOCK)
    blocks = np.cumsum(counts.reshape(-1, width).sum(axis=1))
    places = []
    for rank in ranks:
        block = int(np.searchsorted(blocks, rank, side="right"))
        rest = rank - (int(blocks[block - 1]) if block else 0)
        below = np.cumsum(counts[block * width : (block + 1) * width])
        index = int(np.searchsorted(below, rest, side="right"))
        places.append((block * width + index, rest - (int(below[index - 1]) if index else 0)))
    return places


def percentile(coarse: Array, fine: dict[int, Array], p: float) -> float | None:
    """Return the p-th percentile, linearly interpolated between two exact order statistics.

    `coarse` [bin] counts one group; `fine` maps its wanted bins to counts [low bits]. None without
    values. The same number as `numpy.percentile(values.astype(float64), p)`.
    """
    ranks = ranks_of(int(coarse.sum()), p, "linear")
    if ranks is None:
        return None
    lower, upper = order_statistics(coarse, fine, ranks[:2])
    return between(lower, upper, ranks[2])


def order_statistics(coarse: Array, fine: dict[int, Array], ranks: Sequence[int]) -> list[float]:
    """Return the values of ranks from 0 on; `coarse` and `fine` as in `percentile`."""
    values = []
    for index, within in _located(coarse, ranks):
        ((low, _),) = _located(fine[index], (within,))
        values.append(value_of((index << FINE_BITS) | low))
    return values


@dataclass(frozen=True)
class Moments(OfUncertainty):
    """Count, sum, minimum and maximum of the uncertainty of non-void pixels, by label [class]."""

    id: ClassVar[str] = "moments"
    evaluates = "count"
    uncertainty: Uncertainty
    classes: int

    @property
    def fields(self) -> dict[str, Field]:
        shape = (self.classes,)
        return {
            "count": Field(shape, "int64"),
            "total": Field(shape, "float64", signed=True),
            "least": Field(shape, "float64", "min"),
            "most": Field(shape, "float64", "max"),
        }

    def flaws(self, state: State) -> Flaws:
        more = (state["least"] > state["most"])[state["count"] > 0]
        yield "a minimum above the maximum", more

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.items import measure_items

        value, label = self.uncertainty.values(maps).reshape(-1), maps["label"].reshape(-1)
        measure_items(first, value, label, void_of(self.classes), *state.values())
