"""Errors by the rank of a score, without sorting, for sparsification and failure detection.

As in `ranks`, the bits of a float order like the number: a pass counts pixels and sums errors by
some bits of the score's key, the next does so by the bits that follow, where it matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._fields import CountedItems, Counts, Field, Flaws, Thin, is_large
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.rank_keys import FINE_BITS, of_entries, rank_counts, rows_of_bins, ties

#: Bits of a rank key.
KEY_BITS = 32
#: At most every `_SORTED`-th pixel of an item is sorted; if more are wanted, they are counted.
_SORTED = 8


@dataclass(frozen=True)
class RankedErrors(Tally):
    """Non-void pixels and the sums of their errors by score, of all or by class of label.

    `bins`: (group, the high `skip` bits of a key), each a row of the state, in which the next
    `bits` bits of the key are distinguished. The group is the label where `by_class`, else 0. By
    default: all pixels by the high 19 bits (relative width 2⁻¹⁰).
    State: `pixels` and `errors` [row, bin].
    """

    id: ClassVar[str] = "ranked_errors"
    keeps_items: ClassVar[bool] = False
    by_column: ClassVar[bool] = True
    checks_columns: ClassVar[bool] = True
    pixelwise = True
    score: Uncertainty | Error
    error: Error
    classes: int
    by_class: bool = False
    skip: int = 0
    bits: int = 19
    bins: tuple[tuple[int, int], ...] = ((0, 0),)

    @property
    def saved(self) -> bool:
        """Return the counts of all pixels alone, in which ranks are found to 2⁻¹⁰ relative."""
        return self.skip == 0 and not self.by_class

    @property
    def any_order(self) -> bool:
        """Return whether the errors are counts, and no other tally looks at the items' states."""
        return (self.skip > 0 or self.by_class) and self.error.dtype == "int64"

    @property
    def by_order(self) -> bool:
        """Return True for uncertainties. Errors are in units that all models share."""
        return isinstance(self.score, Uncertainty)

    @property
    def inputs(self) -> tuple[str, ...]:
        score = self.score.inputs if isinstance(self.score, Error) else (self.score.name,)
        return tuple(dict.fromkeys((*self.error.inputs, *score)))

    @property
    def fields(self) -> dict[str, Field]:
        shape = (len(self.bins), 1 << self.bits)
        return {"pixels": Field(shape, "int64"), "errors": Field(shape, self.error.dtype)}

    @property
    def rest(self) -> int:
        """Return how many low bits of a key are ignored."""
        return KEY_BITS - self.skip - self.bits

    @property
    def _has_ties(self) -> bool:
        """Return whether its bins are the ties in bins of the default."""
        return (self.skip, self.bits) == (KEY_BITS - FINE_BITS, FINE_BITS)

    def flaws(self, state: State) -> Flaws:
        pixels, errors = state["pixels"], state["errors"]
        if self.error.dtype == "int64":
            yield "more wrong pixels than pixels", errors > pixels
        else:
            yield "errors without pixels", errors[pixels == 0]

    def evaluated(self, state: State) -> Counts | None:
        return state["pixels"].sum(axis=(-2, -1)) if self.saved else None

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.ranked import count_ranked

        is_dense = self.by_class and self.any_order
        if not is_dense and (counted := self.count_item(maps)) is not None:
            self.fold_items(state, counted)
            return
        if not self.by_class:
            self._update_all(state, maps)
            return
        score, error = self._values(maps)
        count_ranked(
            score, error, maps["label"], void_of(self.classes), self.by_class, self.error.squared,
            *self._rows_of_classes, KEY_BITS - self.skip, self.rest, (1 << self.bits) - 1,
            state["pixels"], state["errors"],
        )  # fmt: skip

    def _occupied_bins(self, maps: Maps) -> Thin | None:
        """Return the occupied bins of one item: the dense state is large, and mostly empty.

        Sums of floats in bins with all low bits are those of the ties, sorted, if they have few
        pixels.
        """
        if self.any_order:
            return self._sorted_counts(maps)
        if self.by_class or not self._has_ties:
            return None
        label, prefixes = maps["label"], np.array([prefix for _, prefix in self.bins])
        void, capacity = void_of(self.classes), max(label.size // _SORTED, 1)
        bins = ties(*self._values(maps), label, void, capacity, prefixes, self.error.squared)
        if bins is None:
            return None
        key, pixels, errors = bins
        rows = np.argsort(prefixes)
        first = np.searchsorted(key, prefixes[rows] << self.bits)
        offset = (rows - prefixes[rows]) << self.bits  # from a key to its place
        indices = key + np.repeat(offset, np.diff(first, append=key.size))
        wrong = errors != 0
        return [(indices, pixels), (indices[wrong], errors[wrong].astype(self.error.dtype))]

    def _sorted_counts(self, maps: Maps) -> Thin:
        """Return the occupied bins of the pixels, which are sorted by their bin."""
        from uqeval.kernels.ranked import place_ranked

        score, error = self._values(maps)
        largest = 2 * len(self.bins) << self.bits
        keys: Array = np.empty(score.size, "uint32" if largest <= 1 << 32 else "uint64")
        n = place_ranked(
            score, error, maps["label"], void_of(self.classes), self.by_class,
            *self._rows_of_classes, KEY_BITS - self.skip, self.rest, self.bits, keys,
        )  # fmt: skip
        keys = np.sort(keys[:n])
        places, wrong = keys >> 1, keys & 1
        is_first = np.ones(n, bool)
        np.not_equal(places[1:], places[:-1], out=is_first[1:])
        first = np.flatnonzero(is_first)
        if not n:
            return [(first, first), (first, first)]
        indices, errors = places[first].astype(np.int64), np.add.reduceat(wrong, first, dtype="i8")
        has_errors = errors > 0
        return [(indices, np.diff(first, append=n)), (indices[has_errors], errors[has_errors])]

    def _values(self, maps: Maps) -> tuple[Array, Array]:
        """Return scores and errors [y, x]."""
        error = self.error.values(maps)
        return error if self.score == self.error else self.score.values(maps), error

    def _update_all(self, state: State, maps: Maps) -> None:
        """Add all pixels as one group."""
        from uqeval.kernels.ranked import count_ranked_finely

        score, error, label = (v.reshape(-1) for v in (*self._values(maps), maps["label"]))
        is_wanted, slot = self._rows_of_prefixes
        count_ranked_finely(
            score, error, label, void_of(self.classes), self.error.squared, KEY_BITS - self.skip,
            self.rest, is_wanted, slot, state["pixels"], state["errors"],
        )  # fmt: skip

    @cached_property
    def _rows_of_prefixes(self) -> tuple[Array, Array]:
        """Return which high bits have a row, uint8 [high bits + 1], and which, int32."""
        return rows_of_bins([prefix for _, prefix in self.bins], (1 << self.skip,), "int32")

    @cached_property
    def _rows_of_classes(self) -> tuple[Array, Array, Array]:
        """Return the block of a key's first high bits, int32, the column in the block by its last
        high bits, int32 [block, last bits], and the row [class, column]; 0, 0 and -1 for none."""
        from uqeval.kernels.ranked import LAST_BITS

        high = np.array([prefix for _, prefix in self.bins], np.int64)
        prefixes, columns = np.unique(high, return_inverse=True)
        firsts, blocks = np.unique(prefixes >> LAST_BITS, return_inverse=True)
        block = np.zeros((1 << self.skip >> LAST_BITS) + 1, np.int32)
        block[firsts] = np.arange(1, firsts.size + 1)
        column = np.zeros((firsts.size + 1, 1 << LAST_BITS), np.int32)
        column[blocks + 1, prefixes % (1 << LAST_BITS)] = np.arange(1, prefixes.size + 1)
        slot = np.full((self.classes, prefixes.size + 1), -1, np.int32)
        slot[[group for group, _ in self.bins], columns + 1] = np.arange(len(self.bins))
        return block, column, slot

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        if first.size == 2 and (self.skip or self.by_class):
            thin = self._occupied_bins(maps)
            return None if thin is None else CountedItems.of([thin])
        if self.by_class or self.any_order or not is_large(self.packing.fields["pixels"]):
            return None
        score, error = self._values(maps)
        flat = (score.reshape(-1), error.reshape(-1), maps["label"].reshape(-1))
        if self.skip:
            return self._count_finely(first, *flat)
        return rank_counts(self, first, *flat, void_of(self.classes), self.error.squared, self.rest)

    def _count_finely(self, first: Array, score: Array, error: Array, label: Array) -> CountedItems:
        """Return the states of several items by the bits of their keys below the high ones."""
        from uqeval.kernels.tie_items import count_finely_of_items

        ends, places = np.zeros(first.size, np.int64), np.empty(label.size, np.int64)
        pixels, errors = np.empty(label.size, np.int64), np.empty(label.size)
        count_finely_of_items(
            first, score, error, label, void_of(self.classes), self.error.squared,
            KEY_BITS - self.skip, self.rest, self.bits, *self._rows_of_prefixes,
            _SORTED if self._has_ties else 0, ends, places, pixels, errors,
        )  # fmt: skip
        return of_entries(self, ends, places, pixels, errors)
