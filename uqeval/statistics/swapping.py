"""Sums over items for the permutation test, which swaps two runs in single items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array, Floats
from uqeval.statistics.column_sums import ColumnHalves, ColumnSums
from uqeval.statistics.item_values import SparseValues
from uqeval.statistics.weighting import Fold, Make, Values, Weighting

#: Bytes of dense tiles, or of differences of two runs, in a cache; others are made again for each
#: block of sets.
_KEPT = 192 << 20


@dataclass(frozen=True)
class Halves:
    """Numbers of the items of one run minus those of the same items of another [item, number], and
    the sums of each run [number]."""

    differences: Values
    first: Floats
    second: Floats

    @property
    def nbytes(self) -> int:
        """Return the bytes of the numbers by item."""
        return self.differences.nbytes

    @classmethod
    def of(cls, values: Values) -> Halves | None:
        """Return the halves of numbers [item, number] of one run, then of another; None where a
        product could not hold their sums, or most numbers are zero.

        Counts whose differences add up to less than 2^24 are float32, in which their sums are
        exact.
        """
        if isinstance(values, SparseValues):
            return cls._of_entries(values)
        if values.dtype.kind == "i" or not np.isfinite(values).all():
            return None
        first, second = np.split(values, 2)
        differences = first - second
        if differences.dtype != np.float32:
            most = np.abs(differences).sum(axis=0).max(initial=0)
            if most < 2**24 and (differences == np.rint(differences)).all():
                differences = differences.astype(np.float32)
        sums = (half.sum(axis=0, dtype=np.float64) for half in (first, second))
        return cls(differences, *sums)

    @classmethod
    def _of_entries(cls, values: SparseValues) -> Halves | None:
        """Return the same of sparse numbers, whose differences are sparse, too."""
        if not np.isfinite(values.value).all():
            return None
        items, width = values.items // 2, values.width
        is_first = values.item < items
        weighted = (np.where(own, values.value, 0) for own in (is_first, ~is_first))
        first, second = (
            np.bincount(values.column, own, width).astype(np.float64) for own in weighted
        )
        item, number = values.item % np.int32(items), values.value
        most = np.bincount(values.column, np.abs(number), width).max(initial=0)
        is_light = most < 2**24 and (number == np.rint(number)).all()
        signed = np.where(is_first, number, -number)
        signed = signed.astype(np.float32 if is_light else np.float64, copy=False)
        return cls(SparseValues(items, width, item, values.column, signed), first, second)


class Swaps:
    """Sets of items of two runs: each has its own where `keeps_models` [set, item] is 1, else those
    of the other. Items are those of one run and then those of the other."""

    def __init__(self, keeps_models: NDArray[np.int8]) -> None:
        self.sets = len(keeps_models)
        self._keeps = np.ascontiguousarray(keeps_models)
        #: The weights of differences: of the items that keep their model.
        self._keeping = Weighting(self._keeps)

    @cached_property
    def weightings(self) -> tuple[Weighting, Weighting]:
        """Return the weights of all items in the sets of either run."""
        weights = np.concatenate([self._keeps, 1 - self._keeps], axis=1)
        return Weighting(weights), Weighting(1 - weights)

    def pair(self, halves: Halves) -> tuple[Array, Array]:
        """Return the sums of both runs, [set, number], from one product."""
        moved = self._keeping.sums(halves.differences)
        return halves.second + moved, halves.first - moved

    def folds(self, cache: dict[tuple[Any, ...], Halves | None]) -> tuple[Fold, Fold]:
        """Return the sums of both runs. `cache`: halves that are kept for the next sets."""
        products: dict[tuple[Any, ...], Array] = {}

        def sums(run: int, make: Make, key: tuple[Any, ...]) -> Array:
            halves = kept(cache, key, lambda: Halves.of(make()))
            if halves is None:
                return self.weightings[run].sums(make())
            moved = products.pop(key, None)
            if moved is None:
                products[key] = moved = self._keeping.sums(halves.differences)
            return halves.first - moved if run else halves.second + moved

        return partial(sums, 0), partial(sums, 1)

    def columns(self, halves: ColumnHalves, run: int) -> ColumnSums:
        """Return sums of single columns of one of the two runs."""
        base, sign = (halves.first, -1.0) if run else (halves.second, 1.0)
        return ColumnSums(halves.differences, self._keeps, base, sign)


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


_Made = TypeVar("_Made", bound="_Sized | None")


def kept(cache: dict[Any, _Made], key: tuple[Any, ...], make: Callable[[], _Made]) -> _Made:
    """Return the entry of a cache, or make it; keep it within `_KEPT` bytes."""
    if key in cache:
        return cache[key]
    made = make()
    # A copy: other threads add entries.
    held = sum(entry.nbytes for entry in list(cache.values()) if entry is not None)
    if made is None or held + made.nbytes <= _KEPT:
        cache[key] = made
    return made
