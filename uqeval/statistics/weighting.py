"""Sets of items, and sums of numbers of items over each set."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array, Floats, Ints
from uqeval.metrics._columns import quantiles
from uqeval.statistics.column_sums import ColumnSums, MakeColumns
from uqeval.statistics.item_values import SparseValues

T = TypeVar("T")

#: Weights up to this are multiplied in float32 where all sums are exact in it, twice as fast.
LIGHT_WEIGHT = 16
#: Weights of items that are made at a time (16 MB).
_WEIGHTS = 1 << 21
#: Bytes of sums that are cached for a block of sets.
_KEPT_SUMS = 4 << 20

#: Numbers of items, [item, number].
Values: TypeAlias = "Array | SparseValues"
#: Makes numbers [item, number].
Make = Callable[[], Values]
#: Makes numbers [set, …].
MakeSets = Callable[[], Array]
#: Sums over sets of the numbers that a function makes: [set, number]. The key names the numbers.
Fold = Callable[[Make, tuple[Any, ...]], Array]
#: Whether each item is counted [item] to the score of these without each item [item].
Score = Callable[[NDArray[np.bool_]], Floats]
#: Sums [set, number] by the identity of the numbers that were added up, with these.
_Known = dict[int, tuple[weakref.ref[Any], Array]]


class ItemSets(ABC):
    """`sets` sets of items, each with as many of each item as its weight."""

    sets: int

    @abstractmethod
    def sums(self, values: Values) -> Array:
        """Return the sums of `values` [item, number] over each set: [set, number].

        An item of weight 0 adds nothing, not even infinity.
        """

    def columns(self, make: MakeColumns) -> ColumnSums | None:
        """Return sums of single columns over each set; None where all have to be added up."""
        return None

    @abstractmethod
    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        """Return `best`, a minimum or maximum, of `values` [item, number]: [set, number]."""

    @abstractmethod
    def part(self, rows: slice) -> ItemSets:
        """Return some of the sets."""

    @abstractmethod
    def at(self, places: Ints, items: int) -> ItemSets:
        """Return the same sets of `items` others: item i is the one at `places[i]`."""

    def mean(self, values: Floats) -> Array:
        """Return the mean of `values` [item] or [item, value] where they are defined: [set]."""
        is_defined = np.isfinite(values).reshape(len(values), -1)
        defined_values = np.where(is_defined, values.reshape(is_defined.shape), 0.0)
        both = np.stack([defined_values.sum(axis=1), is_defined.sum(axis=1)], axis=1)
        total, count = self.sums(both).T
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Array = total / count
        return means

    def quantiles(self, values: Floats, shares: Sequence[float]) -> Floats:
        """Return quantiles of `values` [item] where they are defined: [set, share]."""
        items, step = len(values), sets_at_a_time(len(values))
        parts = (self.part(slice(first, first + step)) for first in range(0, self.sets, step))
        return quantiles(shares, (part.dense(items) for part in parts), values)

    def dense(self, items: int) -> Array:
        """Return the weights [set, item]."""
        return self.sums(np.eye(items, dtype=np.int64))

    def weights_of_items(self, items: int) -> tuple[slice | Ints, Array]:
        """Return items, among them all that any set has, and their weights [set, item]."""
        return slice(None), self.dense(items)

    def only(self, is_kept: NDArray[np.bool_]) -> ItemSets:
        """Return the same sets without some items."""
        return _Kept(self, is_kept)

    def without_each(self, items: int, key: Hashable, score: Score) -> Floats | None:
        """Return the scores [set] if each set has the same items, all but one; otherwise None.

        `score(is_counted)` returns those of the counted items but for each one, [item]. It is
        computed once for a `key`.
        """
        return None


class Weighting(ItemSets):
    """Sets by their `weights` [set, item], whole numbers that may be negative.

    Small sums are cached, because several scores use them. `known`: those of the same sets that
    were computed before. Weights as other types are not kept with them. `chosen`: if they are few,
    the only items that any set has; sums of a slice read no others.
    """

    def __init__(
        self, weights: Array, known: _Known | None = None, chosen: Ints | None = None
    ) -> None:
        self.weights = weights
        self.sets = len(weights)
        self._known: _Known = {} if known is None else known
        is_few = chosen is not None and 2 * len(chosen) <= weights.shape[1]
        self._chosen = chosen if is_few else None
        self._placed: dict[tuple[bytes, int], tuple[Array, _Known, Ints]] = {}

    def sums(self, values: Values) -> Array:
        known = self._known.get(id(values))
        if known is not None and known[0]() is values:
            return known[1]
        products = self._sums(values)
        products.flags.writeable = False
        kept_bytes = sum(sums.nbytes for _, sums in list(self._known.values()))
        if kept_bytes + products.nbytes <= _KEPT_SUMS:
            self._known[id(values)] = weakref.ref(values), products
        return products

    def _sums(self, values: Values) -> Array:
        products: Array
        if isinstance(values, SparseValues):
            is_light = values.value.dtype == np.float32 and self._light is not None
            products = values.weighted(self._light_by_item if is_light else self._by_item)
        elif self._chosen is not None:
            products = self._of_chosen._sums(values[self._chosen])
        elif values.dtype.kind == "i":
            products = self.weights.astype(np.int64, copy=False) @ values
        elif values.dtype == np.float32 and self._light is not None:
            products = self._light @ values
        elif np.isfinite(values).all():
            products = self._heavy @ values.astype(np.float64, copy=False)
        else:
            products = np.stack([row[row != 0] @ values[row != 0] for row in self.weights])
        return products

    def columns(self, make: MakeColumns) -> ColumnSums | None:
        weights = self._narrow
        values = None if weights is None else make()
        return None if weights is None or values is None else ColumnSums.of(values, weights)

    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        return np.stack(
            [best.reduce(values[row > 0], axis=0, initial=identity) for row in self.weights]
        )

    def part(self, rows: slice) -> Weighting:
        is_whole = len(self.weights[rows]) == self.sets
        return self if is_whole else Weighting(self.weights[rows], chosen=self._chosen)

    def at(self, places: Ints, items: int) -> Weighting:
        if np.array_equal(places, np.arange(items)):
            return Weighting(self.weights, self._known)
        key = places.tobytes(), items
        if key not in self._placed:
            weights = np.zeros((self.sets, items), self.weights.dtype)
            weights[:, places] = self.weights
            self._placed[key] = weights, {}, places
        return Weighting(*self._placed[key])

    def mean(self, values: Floats) -> Array:
        weights = np.repeat(self.weights, values[0].size, axis=1) if len(values) else self.weights
        is_defined = np.isfinite(values.reshape(-1))
        w = weights[:, is_defined].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Array = (w @ values.reshape(-1)[is_defined]) / w.sum(axis=1)
        return means

    def dense(self, items: int) -> Array:
        return self.weights

    def only(self, is_kept: NDArray[np.bool_]) -> Weighting:
        return Weighting(self.weights * is_kept, chosen=self._chosen)

    @cached_property
    def _of_chosen(self) -> Weighting:
        return Weighting(np.ascontiguousarray(self.weights[:, self._chosen]))

    @cached_property
    def _heavy(self) -> Floats:
        return self.weights.astype(np.float64)

    @cached_property
    def _by_item(self) -> Floats:
        return np.ascontiguousarray(self.weights.T, np.float64)

    @cached_property
    def _light_by_item(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.weights.T, np.float32)

    @cached_property
    def _narrow(self) -> NDArray[np.int8] | None:
        is_narrow = np.abs(self.weights).max(initial=0) <= np.iinfo(np.int8).max
        return np.ascontiguousarray(self.weights, np.int8) if is_narrow else None

    @cached_property
    def _light(self) -> NDArray[np.float32] | None:
        is_light = np.abs(self.weights).max(initial=0) <= LIGHT_WEIGHT
        return self.weights.astype(np.float32) if is_light else None


class Subset(Weighting):
    """One set of items, each taken once: the sums have the bits of a run over these items."""

    def __init__(self, chosen: Sequence[int] | Ints, items: int) -> None:
        self.is_chosen = np.zeros(items, bool)
        self.is_chosen[np.asarray(chosen, np.int64)] = True
        super().__init__(self.is_chosen[None].astype(np.int64))

    def sums(self, values: Values) -> Array:
        if isinstance(values, SparseValues):
            return values.total(self.is_chosen)[None]
        return values[self.is_chosen].sum(axis=0)[None]

    def columns(self, make: MakeColumns) -> None:
        return None

    def only(self, is_kept: NDArray[np.bool_]) -> Subset:
        return Subset(np.flatnonzero(self.is_chosen & is_kept), len(is_kept))


class Each(ItemSets):
    """One set for each of some items, which has this item alone."""

    def __init__(self, chosen: Ints) -> None:
        self.chosen, self.sets = chosen, len(chosen)

    def sums(self, values: Values) -> Array:
        return values[self.chosen]

    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        return values[self.chosen]

    def part(self, rows: slice) -> Each:
        return Each(self.chosen[rows])

    def at(self, places: Ints, items: int) -> Each:
        return Each(places[self.chosen])

    def quantiles(self, values: Floats, shares: Sequence[float]) -> Floats:
        own = np.where(np.isfinite(values), values, np.nan)[self.chosen]
        return np.repeat(own[:, None], len(shares), axis=1)

    def dense(self, items: int) -> Array:
        weights = np.zeros((self.sets, items), np.int8)
        weights[np.arange(self.sets), self.chosen] = 1
        return weights

    def weights_of_items(self, items: int) -> tuple[Ints, Array]:
        return self.chosen, np.eye(self.sets, dtype=np.int8)


class _Kept(ItemSets):
    """Sets without the items that are not kept."""

    def __init__(self, inner: ItemSets, is_kept: NDArray[np.bool_]) -> None:
        self._inner, self._is_kept, self.sets = inner, is_kept, inner.sets

    def sums(self, values: Values) -> Array:
        if isinstance(values, SparseValues):
            return self._inner.sums(values.only(self._is_kept))
        return self._inner.sums(np.where(self._is_kept[:, None], values, values.dtype.type(0)))

    def extremes(self, best: np.ufunc, values: Array, identity: Any) -> Array:
        kept_values = np.where(self._is_kept[:, None], values, identity)
        return self._inner.extremes(best, kept_values, identity)

    def dense(self, items: int) -> Array:
        return self._inner.dense(items) * self._is_kept

    def weights_of_items(self, items: int) -> tuple[slice | Ints, Array]:
        chosen, weights = self._inner.weights_of_items(items)
        return chosen, weights * self._is_kept[chosen]

    def without_each(self, items: int, key: Hashable, score: Score) -> Floats | None:
        key = key, self._is_kept.tobytes()
        return self._inner.without_each(items, key, lambda own: score(own & self._is_kept))

    def part(self, rows: slice) -> _Kept:
        return _Kept(self._inner.part(rows), self._is_kept)

    def at(self, places: Ints, items: int) -> _Kept:
        is_kept = np.zeros(items, bool)
        is_kept[places] = self._is_kept
        return _Kept(self._inner.at(places, items), is_kept)


def sets_at_a_time(items: int) -> int:
    """Return the number of sets whose weights of all items are made at a time."""
    return max(_WEIGHTS // max(items, 1), 1)


def are_exact(values: Array) -> bool:
    """Return whether sums of items are exact in the type that `summable` chose for these values."""
    return values.dtype == np.float32 or values.dtype.kind == "i"


def summable(values: Array, most: float) -> Array:
    """Return counts [item, …] in the fastest type in which their sums are exact, other numbers as
    float64. `most`: the largest sum over all items."""
    if values.dtype.kind not in "iu":
        return values.astype(np.float64, copy=False)
    if most * LIGHT_WEIGHT < 2**24:
        return values.astype(np.float32)
    return values.astype(np.float64 if most * len(values) < 2**53 else np.int64, copy=False)
