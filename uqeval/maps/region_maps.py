"""A source with the maps that regions of pixels read: distances, depths and maps of ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, Maps, np
from uqeval.errors import DataError, StoreError, UsageError, cut, listed
from uqeval.maps.checks import RESIZE_IDS, check_size
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.names import (
    BOUNDARY,
    DEPTH,
    MOST_ID,
    OF_REGIONS,
    before_of,
    form_of,
    ids_of_map,
    map_and_id,
    now_of,
    void_id,
)
from uqeval.stores.class_ids import may_be_class
from uqeval.stores.fill_values import with_nan

if TYPE_CHECKING:
    from uqeval.stores.planes import Planes

#: The largest number of ids of a map that become regions.
MOST_REGIONS = 256


@dataclass(frozen=True)
class RegionPlanes:
    """The planes of a map of regions: of each item, of the earlier frame of a pair, and of the
    whole store. `void`: the id of no region; `to_change_void`: what a user does to choose another.
    `fills`: the ids that attributes declare to be none, each with the attribute, if nobody gives or
    declares a void id.
    """

    items: Planes
    before: Planes | None
    whole: Planes
    void: int
    to_change_void: str
    fills: Mapping[int, str]

    @cached_property
    def ids(self) -> list[int]:
        """Return the ids in the whole store, ascending, also `void`. Raises as `plane_of_ids`."""
        found = np.zeros(MOST_ID + 2, bool)
        for item in range(len(self.whole.parts)):
            found[np.unique(plane_of_ids(self.whole, item, self.void, None, str(item)))] = True
        return [int(i) for i in np.flatnonzero(found[: MOST_ID + 1])]


def plane_of_ids(
    planes: Planes, item: int, void: int, size: tuple[int, int] | None, name: str
) -> Array:
    """Return the ids [y, x] of an item as uint16, with 65535 for a `void` that is no uint16.

    Raises `StoreError` for another size or no integers, `DataError` for other ids beyond 65534.
    """
    where = f"{planes.where_of(item)}, item {cut(name)}"
    plane = planes.read(item)
    if plane.dtype.kind not in "biu":
        raise StoreError(f"{where}: dtype {plane.dtype}; a map of regions has integers as ids.")
    if size is not None:
        check_size(plane.shape, size, where, "the map of regions is", RESIZE_IDS)
    is_void = plane == void
    known = plane[~is_void]
    if known.size and not 0 <= known.min() <= known.max() <= MOST_ID + 1:
        raise DataError(
            f"{where}: ids run from {known.min()} to {known.max()}; a map of regions has ids from "
            f"0 to {MOST_ID}, and the void id {int(void)}. If another id is void, set the "
            "attribute ignore_index of the map to it."
        )
    ids = plane.astype(np.uint16, order="C")
    ids[is_void] = void if 0 <= void <= MOST_ID else MOST_ID + 1
    return ids


class WithRegions:
    """The maps of `inner`, and the maps that regions read, whose names begin with `region:`.

    `maps`: planes of ids by name. `depth`: planes of depth; without them, the depth is the target
    of a regression. `region:boundary` int32 is the squared distance to a pixel of another class,
    `region:depth` float64, others uint16.
    """

    def __init__(
        self, inner: MapSource, maps: Mapping[str, RegionPlanes], depth: RegionPlanes | None
    ) -> None:
        self.inner, self.maps, self.depth = inner, maps, depth
        self._wanted: frozenset[str] = frozenset()
        self._needed = self._wanted

    def of(self, inner: MapSource) -> WithRegions:
        """Return another source of the same items, with the same regions."""
        return WithRegions(inner, self.maps, self.depth)

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "maps", "depth"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns. Raises `UqevalError` for maps that do not exist."""
        self._wanted = self._needed = frozenset(n for n in names if n.startswith(OF_REGIONS))
        wants_depth = {DEPTH, before_of(DEPTH)} & self._wanted
        if wants_depth and self.depth is None and self.inner.kind != "regression":
            raise UsageError(
                f"--region depth:LOW-HIGH: {self.inner.where} has no array `depth` of all items. "
                "Give --depth-map FOLDER; for a single store of predictions, the depth of each "
                "pixel may also be its array `depth`."
            )
        self.inner.want(sorted(self._inner_names(names)))

    def _inner_names(self, names: Collection[str]) -> set[str]:
        inner = {name for name in names if not name.startswith(OF_REGIONS)}
        inner |= {"label"} if BOUNDARY in names else set()
        inner |= {"label_before"} if before_of(BOUNDARY) in names else set()
        return inner | ({"target"} if DEPTH in names and self.depth is None else set())

    def need(self, names: Collection[str]) -> None:
        """Set the wanted maps that the next pass reads."""
        self._needed = self._wanted & set(names)
        self.inner.need(self._inner_names(names))  # type: ignore[attr-defined]

    def _pixel_bytes(self) -> int:
        return sum(np.dtype(form_of(name, 1, ())[1]).itemsize for name in self._wanted)

    def maps_bytes(self) -> int:
        """Return bytes of the wanted maps of all items."""
        pixels = sum(h * w for h, w in map(self.inner.size, range(self.inner.items)))
        inner: int = self.inner.maps_bytes()  # type: ignore[attr-defined]
        return inner + pixels * self._pixel_bytes()

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes."""
        pixels = sum(h * w for h, w in map(self.inner.size, batch))
        used = [planes.items.chunk_bytes for planes in self.maps.values()]
        used += [self.depth.items.chunk_bytes] if self.depth else []
        working = 8 if BOUNDARY in self._wanted else 0
        return self.inner.batch_bytes(batch) + pixels * (self._pixel_bytes() + working) + sum(used)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the wanted maps of the items of a batch. Raises `UqevalError`."""
        read_items = list(self.inner.read(batch, heartbeat))
        for item, maps in zip(batch, read_items, strict=True):
            for name in sorted(self._needed):
                maps[name] = self._map(name, item, maps)
                heartbeat(0)
        return read_items

    def _map(self, name: str, item: int, maps: Maps) -> Array:
        """Return a map of regions of one item."""
        now = now_of(name)
        if (now or name) == BOUNDARY:
            return squared_distances(maps["label" if now is None else "label_before"])
        if (now or name) == DEPTH:
            if self.depth is None:
                return np.asarray(maps["target"], np.float64)
            planes = self.depth.items if now is None else self.depth.before
            assert planes is not None
            return self._depth(planes, item)
        regions = next(r for key, r in self.maps.items() if ids_of_map(key) == (now or name))
        planes = regions.items if now is None else regions.before
        assert planes is not None
        size, item_name = self.inner.size(item), self.inner.names[item]
        return plane_of_ids(planes, item, regions.void, size, item_name)

    def _depth(self, planes: Planes, item: int) -> Array:
        """Return the depth of an item, NaN where it is unknown. Raises `StoreError`."""
        where = f"{planes.where_of(item)}, item {cut(self.inner.names[item])}"
        plane = planes.read(item)
        if plane.dtype.kind not in "fiu":
            raise StoreError(f"{where}: dtype {plane.dtype}; a depth map has numbers.")
        check_size(plane.shape, self.inner.size(item), where, "the depth map is")
        array = planes.parts[item].array
        return with_nan(np.ascontiguousarray(plane, np.float64), plane, array, has_range=True)

    def expanded(self, regions: Sequence[str]) -> tuple[str, ...]:
        """Return the regions with `map:NAME` as one region for each id in the map.

        Raises `UsageError` for ids that are in no map, for too many, and for those that may be void
        or a region: the default void id in a map with larger ids, and `fills`.
        """
        results: list[str] = []
        for text in regions:
            if not text.strip().startswith("map:"):
                results.append(text)
                continue
            name, number = map_and_id(text)
            name = name.rstrip("/").rpartition("/")[2]
            planes = self.maps[name]
            stored = planes.ids
            ids = [i for i in stored if i != planes.void]
            if number in stored and number not in ids:
                raise UsageError(
                    f"--region {cut(text)}: {number} is the void id of the map {cut(name)}, so its "
                    f"pixels are in no region. To evaluate them, {planes.to_change_void}."
                )
            if number is not None and number not in ids:
                raise UsageError(
                    f"--region {cut(text)}: no map has the id {number}; {cut(name)} has "
                    f"{listed(ids, 20) or 'none'}. Give one of them, or map:{cut(name)} for all."
                )
            if not ids or len(ids) > MOST_REGIONS:
                raise UsageError(
                    f"--region {cut(text)}: the map has {len(ids)} ids; expected 1 to "
                    f"{MOST_REGIONS}. Name those to evaluate, such as map:{cut(name)}:1."
                )
            doubts = {
                i: f"which the attribute {planes.fills[i]} of the map declares to be none"
                for i in ids if i in planes.fills
            }  # fmt: skip
            if planes.void in stored and may_be_class(planes.void, stored[-1]):
                reason = f"which is void unless another is given, and ids up to {stored[-1]}"
                doubts[int(planes.void)] = reason
            if number is None and doubts:
                doubtful, reason = next(iter(doubts.items()))
                raise UsageError(
                    f"--region {cut(text)}: the map {cut(name)} has the id {doubtful}, {reason}. "
                    f"If {doubtful} is a region, {planes.to_change_void}. If it is void, give "
                    f"{doubtful} in the same way. Or name the regions, such as "
                    f"map:{cut(name)}:{next((i for i in stored if i not in doubts), stored[0])}."
                )
            results += [f"map:{name}:{i}" for i in (ids if number is None else (number,))]
        return tuple(results)


def squared_distances(label: Array) -> Array:
    """Return the squared distance of each valid pixel to the nearest one of another class.

    `label` [y, x]: class ids, void as the largest number of its dtype. int32; the largest number if
    there is no such pixel, and for void.
    """
    from uqeval.kernels.distances import square_distances

    squares = np.full(label.shape, np.iinfo(np.int32).max, np.int32)
    square_distances(label, label.dtype.type(void_id(label)), squares)
    return squares
