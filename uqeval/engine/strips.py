"""The maps of several small items in the views of tallies, one by one and in one row of pixels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import overload

import numpy as np

from uqeval.arrays import Array, Ints, Maps
from uqeval.maps.contract import StackedMaps, View


class ItemsInView(Sequence[Maps]):
    """The maps of items in a view, each made when it is first read."""

    def __init__(self, view: View, items: Sequence[Maps]) -> None:
        self._view, self._items = view, items
        self._made: dict[int, Maps] = {}

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Maps: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Maps]: ...
    def __getitem__(self, place: int | slice) -> Maps | Sequence[Maps]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        if place not in self._made:
            self._made[place] = self._view.maps(self._items[place])
        return self._made[place]


class Strip(dict[str, Array]):
    """Maps [1, pixel] of several items with concatenated pixels, of which item i begins at
    `first[i]`; each map is made when it is first read.
    """

    def __init__(self, items: Sequence[Maps], first: Ints) -> None:
        self._items, self.first = items, first

    @classmethod
    def of(cls, items: Sequence[Maps]) -> Strip:
        """Return the strip of several items."""
        if isinstance(items, StackedMaps):
            return cls(items, np.arange(len(items) + 1) * _pixels(items[0]))
        sizes = [_pixels(maps) for maps in items]
        return cls(items, np.cumsum([0, *sizes], dtype=np.int64))

    def in_view(self, view: View, names: Collection[str]) -> Strip | None:
        """Return the strip of a view that reads these maps; None if each item is mapped alone."""
        found = view.line({name: self[name] for name in names if name in self}, self.first)
        if found is None:
            return None
        maps, first = found
        strip = Strip(ItemsInView(view, self._items), first)
        strip.update(maps)
        return strip

    def __missing__(self, name: str) -> Array:
        if isinstance(self._items, StackedMaps):
            self[name] = self._items.line(name)
            return self[name]
        parts = [maps[name] for maps in self._items]
        flat = [part.reshape(*part.shape[:-2], 1, -1) for part in parts]
        self[name] = np.concatenate(flat, axis=-1)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items[0]


def _pixels(maps: Maps) -> int:
    return next(iter(maps.values())).size if "label" not in maps else maps["label"].size
