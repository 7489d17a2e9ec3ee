"""The interfaces of maps for the engine, the tallies and the metrics: sources and views.

A source has the maps of all items. A view turns the maps of an item into the maps to count: which
data a tally counts. The engine groups tallies by their view. All views of a source are counted in
one read of it; a view that needs other maps has another source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from uqeval.arrays import Array, Ints, Maps, np

#: Called between tiles; raises an exception to stop the work.
Heartbeat = Callable[[int], None]


class StackedMaps(Sequence[Maps]):
    """The maps of consecutive small items of one size: `arrays` [item, …, y, x] by name.

    The maps of an item are made when they are read: a dict for each item of one pixel takes longer
    than to count it.
    """

    def __init__(self, arrays: Maps) -> None:
        self.arrays = arrays

    @classmethod
    def joined(cls, parts: Sequence[StackedMaps]) -> StackedMaps:
        """Return the items of several, one after another."""
        if len(parts) == 1:
            return parts[0]
        names = parts[0].arrays
        return cls({name: np.concatenate([part.arrays[name] for part in parts]) for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def only(self, places: Sequence[int]) -> StackedMaps:
        """Return some of the items."""
        return StackedMaps({name: values[places] for name, values in self.arrays.items()})

    @overload
    def __getitem__(self, place: int) -> Maps: ...
    @overload
    def __getitem__(self, place: slice) -> StackedMaps: ...
    def __getitem__(self, place: int | slice) -> Maps | StackedMaps:
        own = {name: values[place] for name, values in self.arrays.items()}
        return StackedMaps(own) if isinstance(place, slice) else own

    def line(self, name: str) -> Array:
        """Return a map with the pixels of all items in one row, [..., 1, pixel]."""
        values = np.moveaxis(self.arrays[name], 0, -3)
        return np.ascontiguousarray(values).reshape(*values.shape[:-3], 1, -1)


class MapSource(Protocol):
    """Maps of all items, by name. `kind` is the kind of data (`uqeval.metrics.DatasetInfo`).

    Every source has `label` [y, x]: the class of a pixel, or the largest value of its dtype where
    the pixel is not evaluated. Sources inherit what they do not change.
    """

    kind: str
    names: tuple[str, ...]
    classes: int
    where: str

    @property
    def items(self) -> int:
        """Return the number of items."""
        return len(self.names)

    @property
    def samples(self) -> int | None:
        """Return the number of samples or members of a pixel; None for maps."""

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item."""

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns. Raises `UqevalError` for maps that do not exist."""

    def batches(self) -> list[range]:
        """Return ranges of items that must be read together."""
        return [range(i, i + 1) for i in range(self.items)]

    def joins(self, batches: range) -> bool:
        """Return whether several whole batches are read faster in one call of `read`."""
        return False

    def chain_ends(self) -> list[int]:
        """Return the numbers of items after which no state depends on the items before."""
        return list(range(1, self.items + 1))

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes."""

    def read(self, batch: range, heartbeat: Heartbeat = ...) -> Sequence[Maps]:
        """Return the wanted maps [y, x] of the items of a batch."""


class MappedSource(MapSource, Protocol):
    """A source that is fast to read again, if `mapped`: then each pass may read it."""

    mapped: bool

    def need(self, names: Collection[str]) -> None:
        """Set the wanted maps that the next pass reads."""

    def maps_bytes(self) -> int:
        """Return bytes of the wanted maps of all items."""


class View(ABC):
    """Which data are counted. Subclasses are frozen dataclasses: their fields are parameters."""

    @property
    def name(self) -> str:
        """Return the name in saved states; "" if the tally's own parameters determine it."""
        return ""

    def inputs(self, names: Collection[str]) -> set[str]:
        """Return the maps that this view reads from a source, for a tally that reads `names`."""
        return set(names)

    @property
    def items(self) -> frozenset[int] | None:
        """Return the numbers of the items that are counted; None for all."""
        return None

    @property
    def of_all_items(self) -> View:
        """Return the same view of all items."""
        return self

    @property
    def read_as(self) -> View:
        """Return a view with the same source; the maps of all such views are read once."""
        return self

    def source(self, source: MapSource) -> MapSource:
        """Return the source of the view's maps: `source` or another source made from it.

        Raises `UsageError` for data that do not support the view.
        """
        return source

    @abstractmethod
    def maps(self, maps: Maps) -> Maps:
        """Return the maps to count, computed from an item's maps, which do not change."""

    def line(self, maps: Maps, first: Ints) -> tuple[Maps, Ints] | None:
        """Return the maps [1, pixel] to count of several items in one row, and their places in it.

        Item i has the pixels from `first[i]` to `first[i + 1]` (excluded). None if an item must be
        mapped alone, because its maps depend on more than each pixel.
        """
        return None


@dataclass(frozen=True)
class Whole(View):
    """All pixels of the predictions, unchanged."""

    def maps(self, maps: Maps) -> Maps:
        return maps


WHOLE = Whole()
