"""Views: which data a tally counts. The engine groups tallies by their view.

A view turns the maps of an item into the maps to count. All views of a source are counted in one
read of it; a view that needs other maps has another source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.arrays import Maps, np
from uqeval.maps.names import OF_CLASSES, Betas, of_subset

if TYPE_CHECKING:
    from uqeval.maps.contract import MapSource


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


@dataclass(frozen=True)
class Whole(View):
    """All pixels of the predictions, unchanged."""

    def maps(self, maps: Maps) -> Maps:
        return maps


WHOLE = Whole()


@dataclass(frozen=True)
class OneOfSets(View):
    """In-distribution pixels, and the pixels of another set, by its `number`."""

    number: int

    @property
    def name(self) -> str:
        return f"set:{self.number}"

    def inputs(self, names: Collection[str]) -> set[str]:
        return {*names, "label"}

    def maps(self, maps: Maps) -> Maps:
        """Return maps in which the pixels of all other sets are void."""
        label = maps["label"]
        is_other = (label != 0) & (label != self.number)
        return maps | {"label": np.where(is_other, np.iinfo(label.dtype).max, label)}


@dataclass(frozen=True)
class InDistribution(View):
    """The classes of in-distribution pixels, in a source of sets."""

    name = "in-distribution"

    def inputs(self, names: Collection[str]) -> set[str]:
        return {"label", *(OF_CLASSES + name for name in names)}

    def maps(self, maps: Maps) -> Maps:
        """Return the maps of classes; pixels out of distribution are void."""
        inner = {
            name.removeprefix(OF_CLASSES): values
            for name, values in maps.items() if name.startswith(OF_CLASSES)
        }  # fmt: skip
        label = inner["label"]
        void = np.iinfo(label.dtype).max
        return inner | {"label": np.where(maps["label"] == 0, label, void)}


@dataclass(frozen=True)
class Subset(View):
    """Some of the samples: the subset with this `number` in the source."""

    number: int

    @property
    def name(self) -> str:
        return f"subset:{self.number}"

    def inputs(self, names: Collection[str]) -> set[str]:
        # A map that all subsets share, such as the label, has no prefix.
        return {*names, *(of_subset(self.number, name) for name in names)}

    def maps(self, maps: Maps) -> Maps:
        """Return the maps of this subset, and the maps that all subsets share (no prefix)."""
        prefix = of_subset(self.number, "")
        view_maps = {
            name.removeprefix(prefix): v for name, v in maps.items() if name.startswith(prefix)
        }
        return maps | view_maps


@dataclass(frozen=True)
class Tempered(View):
    """The samples, each scaled by inverse temperatures before they are averaged."""

    betas: Betas

    def source(self, source: MapSource) -> MapSource:
        from uqeval.maps.tempering import tempered

        return tempered(source, self.betas)

    def maps(self, maps: Maps) -> Maps:
        return maps
