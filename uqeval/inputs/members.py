"""What an ensemble takes from which member, so that no result depends on the order of members.

- Predictions (`probs`, `mean`, `samples`, …) are those of all members.
- Any other array, such as labels, a target, or a map, may be in any of the members. If several have
  it, they must have equal values, which is checked when it is read.
- Groups (cases of volumes) are those of any member; members that have them must agree.
- Names of classes and the void id: `class_names.py`, `stores/void_id.py`.
- The order of items is that of the first member that has names. Other attributes are not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from uqeval.arrays import Array, np
from uqeval.errors import DataError, StoreError, cut
from uqeval.stores.array import ItemArray, ItemsOf, Region, Store, StoredArray, arrays_of
from uqeval.stores.kinds import SPREADS

_PREDICTIONS = frozenset({"probs", "logits", "mean", "samples", *SPREADS})


def joined_members(stores: Sequence[Store]) -> Store:
    """Return the first of two or more members with the arrays and groups of any of them.

    The items of all are in the same order. Raises `StoreError` for members of other groups; reading
    an array raises `DataError` if members have other values.
    """
    first, *others = stores
    arrays = dict(first.arrays)
    for name in dict.fromkeys(name for store in others for name in store.arrays):
        holders = [store.arrays[name] for store in stores if name in store.arrays]
        if name not in _PREDICTIONS:
            arrays[name] = _equal(holders)
    other_paths = {
        name: store.path for store in reversed(others)
        for name in store.arrays if name not in first.arrays
    }  # fmt: skip
    return replace(
        first, arrays=arrays, groups=_groups(stores), other_paths=other_paths,
        held=tuple(dict.fromkeys(name for store in stores for name in store.held or store.arrays)),
        unlisted=any(store.unlisted for store in stores),
        looked_up=frozenset().union(*(store.looked_up for store in stores)),
    )  # fmt: skip


def _groups(stores: Sequence[Store]) -> tuple[str, ...] | None:
    declared = [(store.path, store.groups) for store in stores if store.groups is not None]
    for (path, groups), (other_path, other_groups) in pairwise(declared):
        if groups != other_groups:
            item = next(
                (i for i, (a, b) in enumerate(zip(groups, other_groups, strict=False)) if a != b), 0
            )
            raise StoreError(
                f"item {item} is of the case {cut(groups[item : item + 1])} in {cut(path)} and of "
                f"{cut(other_groups[item : item + 1])} in {cut(other_path)}; members of one "
                "ensemble need the same cases. Write the stores with the same groups."
            )
    return declared[0][1] if declared else None


def _equal(holders: Sequence[Sequence[ItemArray]]) -> Sequence[ItemArray]:
    """Return the items of an array that several members have, which are compared when read."""
    first, *others = holders
    if not others or any(len(items) != len(first) for items in others):
        return first  # other numbers of items are refused later
    if isinstance(first, ItemsOf):
        return ItemsOf(_EqualArray(first.array, first.indices, others), first.indices)
    places: dict[int, dict[int | None, int]] = {}
    for place, part in enumerate(first):
        places.setdefault(id(part.array), {})[part.index] = place
    arrays = {
        id(array): _EqualArray(array, places[id(array)], others) for array in arrays_of(first)
    }
    return [ItemArray(arrays[id(part.array)], part.index) for part in first]


class _EqualArray(StoredArray):
    """An array of the first member, which must have the values of the `others`.

    `places`: the place of each position of its item axis in the sequences of the others.
    """

    def __init__(
        self,
        array: StoredArray,
        places: range | Mapping[int | None, int],
        others: Sequence[Sequence[ItemArray]],
    ) -> None:
        self._array, self._places, self._others = array, places, others
        self.where, self.shape, self.dtype = array.where, array.shape, array.dtype
        self.chunks, self.dimension_names = array.chunks, array.dimension_names
        self.axes, self.attributes = array.axes, array.attributes
        self.in_memory, self.is_remote = array.in_memory, array.is_remote
        self.format_name, self.write_all_chunks = array.format_name, array.write_all_chunks

    def read(self, region: Region) -> Array:
        """Return the values of `region`. Raises `DataError` if another member has other values."""
        values = self._array.read(region)
        if "item" not in self.axes:
            self._compare(None, 1, region, values)
            return values
        along = self.axes.index("item")
        start, stop, _ = region[along].indices(self.shape[along])
        for index, count in self._runs(start, stop):
            own = values[(slice(None),) * along + (slice(index - start, index - start + count),)]
            self._compare(index, count, region, own)
        return values

    def _place(self, index: int | None) -> int | None:
        """Return the place of a position in the items; None for an item that is not evaluated."""
        if isinstance(self._places, range):
            is_item = index is not None and index in self._places
            return self._places.index(index) if is_item else None  # type: ignore[arg-type]
        return self._places.get(index)

    def _runs(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return first position and number of items that follow each other in all members."""
        runs: list[tuple[int, int]] = []
        before: list[ItemArray] = []
        for index in range(start, stop):
            place = self._place(index)
            parts = [] if place is None else [items[place] for items in self._others]
            follows = bool(before) and len(before) == len(parts) and all(
                a.array is b.array and a.index is not None and b.index == a.index + 1
                for a, b in zip(before, parts, strict=True)
            )  # fmt: skip
            if follows:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            elif parts:
                runs.append((index, 1))
            before = parts
        return runs

    def _compare(self, index: int | None, count: int, region: Region, values: Array) -> None:
        place = self._place(index)
        if place is None:
            return
        slices = dict(zip(self.axes, region, strict=True))
        axes = [axis for axis in self.axes if axis != "item"]
        if index is not None and count == 1:
            values = values.squeeze(self.axes.index("item"))
        order = list(self.axes) if count > 1 else axes
        for items in self._others:
            part = items[place]
            array = part.array
            if sorted(set(array.axes) - {"item"}) != sorted(axes):
                self._refuse(array, place)
            of_other = dict(slices)
            if part.index is not None:
                of_other["item"] = slice(part.index, part.index + count)
            other = array.read(tuple(of_other[axis] for axis in array.axes))
            other_axes = list(array.axes)
            if count == 1 and part.index is not None:
                other = other.squeeze(other_axes.index("item"))
                other_axes.remove("item")
            other = other.transpose([other_axes.index(axis) for axis in order])
            if not np.array_equal(values, other, equal_nan=values.dtype.kind == "f"):
                self._refuse(array, place)

    def _refuse(self, other: StoredArray, place: int) -> None:
        raise DataError(
            f"{self.where} and {other.where} differ (item {place} or one that is read with it); "
            "members of one ensemble that both have this array need the same values. Keep it in "
            "one of them, or give labels and targets of their own after the predictions."
        )

    def stored_bytes(self) -> int | None:
        return self._array.stored_bytes()

    def fingerprint(self) -> str | None:
        return self._array.fingerprint()

    def missing(self) -> list[tuple[int, ...]] | None:
        return self._array.missing()

    @property
    def stored_rank(self) -> int:
        return self._array.stored_rank

    @property
    def chunk_bytes(self) -> int:
        """Return the bytes of a decoded chunk of all members."""
        arrays = [array for items in self._others for array in arrays_of(items)]
        return self._array.chunk_bytes + max(array.chunk_bytes for array in arrays)

    def _all(self, index: int | None) -> list[tuple[StoredArray, int | None]]:
        """Return the arrays of all members with an item, and its position in each."""
        place = self._place(index)
        if place is None:
            return [(self._array, index)]
        others = [items[place] for items in self._others]
        return [(self._array, index), *((part.array, part.index) for part in others)]

    def stamp(self, index: int | None) -> str | None:
        stamps = [array.stamp(position) for array, position in self._all(index)]
        return None if None in stamps else " ".join(map(str, stamps))

    def states(self, index: int | None) -> dict[str, str]:
        return {
            path: state for array, position in self._all(index)
            for path, state in array.states(position).items()
        }  # fmt: skip

    def recheck(self) -> None:
        for array in (self._array, *(a for items in self._others for a in arrays_of(items))):
            array.recheck()
