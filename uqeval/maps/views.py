"""The views of sets, of subsets of samples, of tempered samples and of some items."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from uqeval.arrays import Array, Ints, Maps, np
from uqeval.maps.contract import WHOLE, MapSource, View
from uqeval.maps.names import OF_CLASSES, OF_REGIONS, Betas, of_subset, void_id


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
        """Return maps in which the pixels of all other sets are void.

        Of an item without another pixel they have a single one, which is void: each set has a view,
        and most items are of other sets, so the time would grow with the square of their number.
        """
        label = maps["label"]
        is_own = self._is_own(label)
        if not is_own.any():
            maps = {name: values[..., :1, :1] for name, values in maps.items()}
            label, is_own = maps["label"], is_own[:1, :1]
        return maps | {"label": _void_outside(label, is_own)}

    def line(self, maps: Maps, first: Ints) -> tuple[Maps, Ints]:
        is_own = self._is_own(maps["label"])
        has_own = np.logical_or.reduceat(is_own[0], first[:-1])
        if not has_own.all():
            sizes = np.diff(first)
            is_kept = np.repeat(has_own, sizes)
            is_kept[first[:-1]] = True
            maps = {name: values[..., is_kept] for name, values in maps.items()}
            is_own = is_own[:, is_kept]
            first = np.cumsum([0, *np.where(has_own, sizes, 1)])
        return maps | {"label": _void_outside(maps["label"], is_own)}, first

    def _is_own(self, label: Array) -> Array:
        return (label == 0) | (label == self.number)


def _void_outside(label: Array, is_own: Array) -> Array:
    return np.where(is_own, label, label.dtype.type(void_id(label)))


@dataclass(frozen=True)
class InDistribution(View):
    """The classes of in-distribution pixels, in a source of sets."""

    name = "in-distribution"

    def inputs(self, names: Collection[str]) -> set[str]:
        return {"label", *(OF_CLASSES + name for name in names)}

    def maps(self, maps: Maps) -> Maps:
        """Return the maps of classes, and those of regions; pixels out of distribution are void."""
        inner = {
            name.removeprefix(OF_CLASSES): values
            for name, values in maps.items() if name.startswith(OF_CLASSES)
        }  # fmt: skip
        label = inner["label"]
        void = np.iinfo(label.dtype).max
        of_regions = {name: maps[name] for name in maps if name.startswith(OF_REGIONS)}
        return of_regions | inner | {"label": np.where(maps["label"] == 0, label, void)}


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


@dataclass(frozen=True)
class OfItems(View):
    """Some items of another view of the data, such as those of a slice.

    `digest`: of their names, so that saved counts are never taken for those of other items.
    """

    chosen: frozenset[int]
    digest: str
    view: View = WHOLE

    @classmethod
    def of(cls, items: Iterable[int], names: Sequence[str]) -> OfItems:
        """Return the view of some of the items with these names."""
        digest = hashlib.sha256()
        for item in (chosen := sorted(set(items))):
            name = names[item].encode(errors="surrogatepass")
            digest.update(len(name).to_bytes(8, "little") + name)
        return cls(frozenset(chosen), digest.hexdigest())

    def within(self, view: View) -> OfItems:
        """Return the same items in another view of the data."""
        return replace(self, view=view)

    @property
    def items(self) -> frozenset[int]:
        return self.chosen

    @property
    def of_all_items(self) -> View:
        return self.view

    @property
    def name(self) -> str:
        return ";".join(filter(None, (self.view.name, f"items:{self.digest}")))

    def inputs(self, names: Collection[str]) -> set[str]:
        return self.view.inputs(names)

    @property
    def read_as(self) -> View:
        return self.view.read_as

    def source(self, source: MapSource) -> MapSource:
        return self.view.source(source)

    def maps(self, maps: Maps) -> Maps:
        return self.view.maps(maps)
