"""What an ensemble takes from which member, so that no result depends on the order of members.

- Predictions (`probs`, `mean`, `samples`, …) are those of all members.
- Any other array, such as labels, a target, or a map, may be in any of the members. If several have
  it, they must have equal sizes and attributes, which is checked before it is used, and equal
  values, which is checked when it is read. An attribute may be missing in some of them.
- Groups (cases of volumes) are those of any member; members that have them must agree.
- Names of classes and the void id: `stores/class_ids.py`.
- The order of items is that of the first member that has names. Other attributes are not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from uqeval.arrays import Array, np
from uqeval.errors import DataError, StoreError, cut, quoted
from uqeval.maps.checks import evaluated_by
from uqeval.stores.array import (
    ItemArray,
    ItemsOf,
    Region,
    Store,
    StoredArray,
    WrappedArray,
    arrays_of,
)
from uqeval.stores.axis_names import AXES
from uqeval.stores.class_ids import whole_of
from uqeval.stores.fill_values import INVALID, RANGE, AssumedFill, is_outside, numbers_of
from uqeval.stores.kinds import SPREADS
from uqeval.stores.planes import Planes

_PREDICTIONS = frozenset({"probs", "logits", "mean", "samples", *SPREADS})
#: The attributes of arrays that are evaluated; other arrays are maps. Units are compared with those
#: of the predictions, where they matter, and void ids of labels with the one that counts.
_EVALUATED: dict[str, tuple[str, ...]] = {
    "labels": (),
    "valid": (*INVALID, *RANGE),
    "target": (*INVALID, *RANGE),
}
_OF_MAPS = ("ignore_index", *INVALID, *RANGE)


def joined_members(stores: Sequence[Store]) -> Store:
    """Return the first of two or more members with the arrays and groups of any of them.

    The items of all are in the same order. Raises `StoreError` for members of other groups. An
    array that members have with other sizes or attributes raises it before it is used
    (`check_claims`), and `DataError` if it has other values.
    """
    first, *others = stores
    arrays = dict(first.arrays)
    of_others = dict.fromkeys(name for store in others for name in store.arrays)
    for name in sorted(of_others, key="valid".__ne__):  # the mask first: targets need it
        holders = [store.arrays[name] for store in stores if name in store.arrays]
        if name not in _PREDICTIONS:
            valid = arrays.get("valid") if name == "target" else None
            arrays[name] = _equal(name, holders, Planes(valid) if valid else None)
    other_paths = {
        name: store.path for store in reversed(others)
        for name in store.arrays if name not in first.arrays
    }  # fmt: skip
    # Items of members with names may have been brought into another order.
    coordinates = {
        name: own for store in reversed(others) for name, own in store.coordinates.items()
        if own.axis != "item" or store.names is None
    }  # fmt: skip
    return replace(
        first, arrays=arrays, groups=_groups(stores), other_paths=other_paths,
        coordinates={**coordinates, **first.coordinates},
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


def _equal(
    name: str, holders: Sequence[Sequence[ItemArray]], valid: Planes | None
) -> Sequence[ItemArray]:
    """Return the items of an array that several members have, which are compared when read, where
    pixels are `valid`."""
    first, *others = holders
    if not others or any(len(items) != len(first) for items in others):
        return first  # other numbers of items are refused later
    arrays = arrays_of(first)
    orders = {_inner(array) for array in arrays}
    planes = {order: [_PlanesOfOther(items, order) for items in others] for order in orders}
    places: dict[int, dict[int | None, int]] = {}
    if not isinstance(first, ItemsOf):
        for place, part in enumerate(first):
            places.setdefault(id(part.array), {})[part.index] = place
    equal = {}
    for array in arrays:
        own = first.indices if isinstance(first, ItemsOf) else places[id(array)]
        equal[id(array)] = _EqualArray(name, array, own, planes[_inner(array)], valid)
    if isinstance(first, ItemsOf):
        return ItemsOf(equal[id(first.array)], first.indices) if equal else first
    return [ItemArray(equal[id(part.array)], part.index) for part in first]


def _inner(array: StoredArray) -> tuple[str, ...]:
    """Return the axes of an item of an array in canonical order."""
    return tuple(axis for axis in AXES if axis in array.axes and axis != "item")


class _PlanesOfOther(Planes):
    """The items of an array of a later member, with axes in the `order` of the first."""

    def __init__(self, parts: Sequence[ItemArray], order: tuple[str, ...]) -> None:
        super().__init__(parts, channels=True, axis="annotator")  # annotators are compared too
        self._order = order


class _EqualArray(WrappedArray):
    """An array of the first member, which must have the values of the `others`.

    `places`: the place of each position of its item axis in the sequences of the others. `valid`:
    the pixels that are evaluated, if a mask says which. Attributes are those of any member.
    """

    def __init__(
        self,
        name: str,
        array: StoredArray,
        places: range | Mapping[int | None, int],
        others: Sequence[Planes],
        valid: Planes | None,
    ) -> None:
        super().__init__(array)
        self._name, self._places = name, places
        self._order, self._others, self._valid = _inner(array), others, valid
        self._holders = [array]
        for planes in others:
            if isinstance(places, range):
                self._holders += planes.arrays
            else:
                self._holders += arrays_of([planes.parts[place] for place in places.values()])
        self._difference: StoreError | None = None
        self._other_ranges: list[_OtherRange] = []
        try:
            _check_sizes(self._holders)
            self.attributes = _attributes(name, self._holders)
            self._other_ranges = _other_ranges(name, self)
        except StoreError as error:  # raised if the array is used
            self._difference = error

    def check_claims(self) -> None:
        """Raise `StoreError` if members have other sizes or attributes."""
        if self._difference is not None:
            raise self._difference

    @property
    def holders(self) -> Sequence[StoredArray]:
        return self._holders

    def read(self, region: Region) -> Array:
        """Return the values of `region`. Raises `DataError` if another member has other values."""
        self.check_claims()
        values = self._array.read(region)
        for other_range in self._other_ranges:
            other_range.refuse(values, self)
        axes, inner = self.axes, tuple(region[self.axes.index(axis)] for axis in self._order)
        own = values.transpose([axes.index(a) for a in ("item", *self._order) if a in axes])
        positions: Sequence[int | None] = [None]
        if "item" in axes:
            along = axes.index("item")
            positions = range(*region[along].indices(self.shape[along]))
        else:
            own = own[None]
        for start, places in self._runs(positions):
            for planes in self._others:
                other = planes.read_together(places)[:, *inner]
                self._compare(own[start : start + len(places)], other, planes, places, inner)
        return values

    def _place(self, index: int | None) -> int | None:
        """Return the place of a position in the items; None for an item that is not evaluated."""
        if isinstance(self._places, range):
            is_item = index is not None and index in self._places
            return self._places.index(index) if is_item else None  # type: ignore[arg-type]
        return self._places.get(index)

    def _runs(self, positions: Sequence[int | None]) -> list[tuple[int, range]]:
        """Return the runs of positions whose places follow each other: start, and places."""
        runs: list[tuple[int, range]] = []
        for start, place in enumerate(map(self._place, positions)):
            if place is None:
                continue
            begin, places = runs[-1] if runs else (0, range(0))
            if runs and begin + len(places) == start and places.stop == place:
                runs[-1] = begin, range(places.start, place + 1)
            else:
                runs.append((start, range(place, place + 1)))
        return runs

    def _compare(
        self, own: Array, other: Array, planes: Planes, places: range, inner: Region
    ) -> None:
        if self._name == "valid":  # true is 1 or 255
            where = planes.where_of(places[0])
            own = np.stack([evaluated_by(mask, self, self.where) for mask in own])
            other = np.stack([evaluated_by(mask, self, where) for mask in other])
        has_nan = own.dtype.kind == other.dtype.kind == "f"
        if np.array_equal(own, other, equal_nan=has_nan):
            return
        for place, a, b in zip(places, own, other, strict=True):
            if np.array_equal(a, b, equal_nan=has_nan):
                continue
            if self._valid is not None and self._valid.size(place) == planes.size(place):
                mask, where = self._valid.read(place), self._valid.where_of(place)
                is_valid = evaluated_by(mask, self._valid.parts[place].array, where)[inner]
                if np.array_equal(a[is_valid], b[is_valid], equal_nan=has_nan):
                    continue
            self._refuse(planes.where_of(place), place)

    def _refuse(self, other: str, place: int) -> None:
        advice = "remove it from the others, or rename it"
        if self._name in _EVALUATED:
            advice = "keep it in one of them, or give labels and targets after the predictions"
        raise DataError(
            f"{self.where} and {other} differ (item {place}); members of one "
            "ensemble that have the same array need the same values. If only one is right, "
            f"{advice}."
        )

    def file_group(self, index: int) -> int:
        return index  # the other members may have it in another file

    @property
    def chunk_bytes(self) -> int:
        """Return the bytes of a decoded chunk and of what it is compared with, and of the chunks of
        others that stay in memory."""
        kept = sum(planes.kept_bytes() for planes in self._others)
        return 2 * self._array.chunk_bytes + max(p.chunk_bytes for p in self._others) + kept

    def _all(self, index: int | None) -> list[tuple[StoredArray, int | None]]:
        """Return the arrays of all members with an item, and its position in each."""
        place = self._place(index)
        if place is None and index is None:
            return [(array, None) for array in self._holders]
        if place is None:
            return [(self._array, index)]
        others = [planes.parts[place] for planes in self._others]
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
        for array in self._holders:
            array.recheck()


def _check_sizes(arrays: Sequence[StoredArray]) -> None:
    """Raise `StoreError` for arrays of several members with other axes or sizes."""
    first, *others = arrays
    size, *sizes = [
        {axis: n for axis, n in zip(array.axes, array.shape, strict=True) if axis != "item"}
        for array in arrays
    ]
    for other, of_other in zip(others, sizes, strict=True):
        if of_other != size:
            raise StoreError(
                f"{first.where} and {other.where} differ in size: {_shown(size)}, and "
                f"{_shown(of_other)}; members of one ensemble that have the same array need the "
                "same sizes. Remove the wrong one, or rename it."
            )


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis} {n}" for axis, n in sizes.items())


def _attributes(name: str, arrays: Sequence[StoredArray]) -> dict[str, Any]:
    """Return the attributes of an array of several members: what its values mean may be declared by
    any of them. Raises `StoreError` if two declare other meanings.
    """
    joined = dict(arrays[0].attributes)
    for key in _EVALUATED.get(name, _OF_MAPS):
        declared = [(meaning, array) for array in arrays if (meaning := _meaning(array, key))]
        for (meaning, array), (other_meaning, other) in pairwise(declared):
            if meaning != other_meaning and key not in RANGE:
                raise StoreError(
                    f"{_two_meanings(key, array, other)}; members of one ensemble that have the "
                    "same array need the same. Change or remove the wrong one."
                )
        if declared:
            joined[key] = declared[0][1].attributes[key]
    return joined


def _two_meanings(key: str, array: StoredArray, other: StoredArray) -> str:
    return (
        f"attribute {key} is {quoted(array.attributes[key])} in {array.where} and "
        f"{quoted(other.attributes[key])} in {other.where}"
    )


class _OtherRange(WrappedArray):
    """An array with the valid range that another member declares for it by the attribute `key`.

    Members may have other ranges, such as those of their own values, if these leave out the same.
    """

    def __init__(
        self, array: StoredArray, key: str, first: StoredArray, other: StoredArray
    ) -> None:
        super().__init__(array)
        self.attributes = {**array.attributes, key: other.attributes[key]}
        self._fault = _two_meanings(key, first, other)

    def read(self, region: Region) -> Array:
        return self._array.read(region)

    def refuse(self, values: Array, joined: StoredArray) -> None:
        """Raise `DataError` if a value is in only one of this range and that of `joined`."""
        masks = [is_outside(values, own) for own in (joined, self)]
        inside, other = (np.zeros(values.shape, bool) if m is None else m for m in masks)
        if (differs := inside != other).any():
            raise DataError(
                f"{self._fault}, and {int(differs.sum())} values are in only one of these ranges, "
                f"the first is {values[differs][0]:.6g}; members of one ensemble that have the "
                "same array need the same. Change or remove the wrong one."
            )


def _other_ranges(name: str, joined: _EqualArray) -> list[_OtherRange]:
    """Return the valid ranges of members that declare another one than the first that has one."""
    ranges = []
    for key in sorted({*RANGE}.intersection(_EVALUATED.get(name, _OF_MAPS))):
        declared = [own for own in joined.holders if _meaning(own, key)]
        ranges += [
            _OtherRange(joined, key, declared[0], other)
            for other in declared[1:] if _meaning(other, key) != _meaning(declared[0], key)
        ]  # fmt: skip
    return ranges


def _meaning(array: StoredArray, key: str) -> list[str]:
    """Return what an attribute says, to compare it; nothing for one that is missing or says
    nothing."""
    if key in INVALID + RANGE:
        declared = (v for v in numbers_of(array, key) if not isinstance(v, AssumedFill))
        return sorted({repr(value) for value in declared})
    given = array.attributes.get(key)
    void = whole_of(given)
    return [] if given is None else [repr(given if void is None else void)]
