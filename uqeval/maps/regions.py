"""Regions of pixels, as views: boundaries, classes, depths, boxes and maps of ids."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from uqeval.arrays import Array, Maps, np
from uqeval.maps.contract import View
from uqeval.maps.names import (
    BOUNDARY,
    DEPTH,
    INSIDE,
    LABEL,
    LABEL_BEFORE,
    REGION_SHARE,
    TARGET_COUNTS,
    UNMASKED_LABEL,
    before_of,
    ids_of_map,
    void_id,
)

if TYPE_CHECKING:
    from uqeval.maps.contract import MapSource

#: A patch belongs to a region if at least this share of its valid pixels does.
SHARE = 0.5


@dataclass(frozen=True)
class Region(View):
    """Some pixels of an image. Subclasses define `text`, `inside`, and the maps they `need`.

    `share`: a patch belongs to the region if at least this share of its valid pixels does.
    """

    share: float = field(default=SHARE, kw_only=True)

    @property
    def version(self) -> int:
        """Return the version of the region's definition. Saved states of others are not used."""
        return 1

    @property
    @abstractmethod
    def text(self) -> str:
        """Return the region as users write it."""

    @property
    def need(self) -> tuple[str, ...]:
        """Return the maps, except `label`, that `inside` reads."""
        return ()

    @property
    def needs_labels(self) -> bool:
        """Return whether the region depends on class labels."""
        return False

    @property
    def of_neighbours(self) -> bool:
        """Return whether the region depends on other pixels, or on the place in the image."""
        return False

    @abstractmethod
    def inside(self, maps: Maps) -> Array:
        """Return a mask [y, x] of the pixels of an image in the region, void ones or not."""

    @property
    def name(self) -> str:
        share = "" if self.share == SHARE else f";share={self.share!r}"
        version = "" if self.version == 1 else f";version={self.version}"
        return self.text + share + version

    def inputs(self, names: Collection[str]) -> set[str]:
        reads = {*names, *self.need}
        if not _of_pairs(names):
            return reads | {"label"} | ({"target"} if TARGET_COUNTS in reads else set())
        if self.needs_labels:
            reads.add(LABEL)
        if LABEL_BEFORE in names:
            reads |= {before_of(name) for name in self.need}
        return reads

    def maps(self, maps: Maps) -> Maps:
        """Return maps in which only the pixels of the region are evaluated.

        Labels outside the region are void, and `INSIDE` is its mask; `UNMASKED_LABEL` has all
        labels. In a video, predicted ids of frame t outside the region are void too.
        """
        if _of_pairs(maps):
            return self._maps_of_pair(maps)
        label = maps["label"]
        inside = self.inside(maps)
        masked = _void_outside(label, inside)
        results = maps | {
            "label": masked, UNMASKED_LABEL: label, INSIDE: inside,
            REGION_SHARE: np.array(self.share),
        }  # fmt: skip
        if TARGET_COUNTS in maps:
            from uqeval.kernels.members import count_targets

            results[TARGET_COUNTS] = np.zeros(10)
            count_targets(maps["target"], masked, void_id(label), results[TARGET_COUNTS])
        return results

    def _maps_of_pair(self, maps: Maps) -> Maps:
        """Return the maps of a pair of frames: the region is that of each frame's own labels."""
        ids = {name: values for name, values in maps.items() if name.startswith("prediction:")}
        frame = maps | {"label": maps.get(LABEL, next(iter(ids.values())))}
        inside = self.inside(frame)
        results = maps | {name: _void_outside(values, inside) for name, values in ids.items()}
        results[INSIDE] = inside
        if LABEL in maps:
            results[LABEL] = _void_outside(maps[LABEL], inside)
        if LABEL_BEFORE in maps:
            label = maps[LABEL_BEFORE]
            before = {name: maps[before_of(name)] for name in self.need}
            inside = self.inside(before | {"label": label})
            results[LABEL_BEFORE] = _void_outside(label, inside)
        return results


@dataclass(frozen=True)
class Boundary(Region):
    """Valid pixels at most `radius` pixels from a valid pixel of another ground-truth class.

    The distance is Euclidean, between the centres of pixels. Void is no class and makes no
    boundary. `near`: these pixels; else the other valid ones, the interior.
    """

    need = (BOUNDARY,)
    needs_labels = True
    of_neighbours = True

    radius: float
    near: bool = True

    @property
    def version(self) -> int:
        return 1 if self.near else 2  # of a video, the first had the pixels whose label is void

    @property
    def text(self) -> str:
        return f"{'boundary' if self.near else 'interior'}:{short(self.radius)}"

    def inside(self, maps: Maps) -> Array:
        is_near: Array = maps[BOUNDARY] <= self.radius * self.radius
        if self.near:
            return is_near
        label = maps["label"]  # a pair of frames also has pixels whose label is void
        return ~is_near & (label != void_id(label))


@dataclass(frozen=True)
class OfClass(Region):
    """Pixels of one ground-truth class; `called` is the class as reports show it."""

    needs_labels = True

    number: int
    called: str

    @property
    def text(self) -> str:
        return f"class:{self.called}"

    def inside(self, maps: Maps) -> Array:
        return maps["label"] == self.number


@dataclass(frozen=True)
class Depths(Region):
    """Pixels whose depth is at least `low` and below `high`; an unknown depth is in no region."""

    need = (DEPTH,)

    low: float
    high: float

    @property
    def text(self) -> str:
        return f"depth:{short(self.low)}-{short(self.high)}"

    def inside(self, maps: Maps) -> Array:
        depth = maps[DEPTH]
        return (depth >= self.low) & (depth < self.high)


@dataclass(frozen=True)
class Box(Region):
    """Pixels whose centre lies in a box, in fractions of height and width.

    Row y of H lies in it if y0 ≤ (y + ½)/H < y1; columns likewise.
    """

    of_neighbours = True

    y0: float
    y1: float
    x0: float
    x1: float

    @property
    def text(self) -> str:
        y0, y1, x0, x1 = map(short, (self.y0, self.y1, self.x0, self.x1))
        return f"box:{y0}:{y1},{x0}:{x1}"

    def inside(self, maps: Maps) -> Array:
        height, width = maps["label"].shape
        rows = _within(height, self.y0, self.y1)
        columns = _within(width, self.x0, self.x1)
        return rows[:, None] & columns


@dataclass(frozen=True)
class OfMap(Region):
    """Pixels with one id in a map of ids that is called `map`."""

    map: str
    number: int

    @property
    def text(self) -> str:
        return f"map:{self.map}:{self.number}"

    @property
    def need(self) -> tuple[str, ...]:
        return (ids_of_map(self.map),)

    def inside(self, maps: Maps) -> Array:
        return maps[ids_of_map(self.map)] == self.number


@dataclass(frozen=True)
class Within(View):
    """The pixels of a `region` in another view of the data, such as tempered samples."""

    region: Region
    view: View

    @property
    def name(self) -> str:
        return ";".join(filter(None, (self.view.name, self.region.name)))

    @property
    def read_as(self) -> View:
        return self.view.read_as

    def inputs(self, names: Collection[str]) -> set[str]:
        need = set(self.region.need)  # of the image, in each view of its pixels
        return self.view.inputs(self.region.inputs(names) - need) | need

    def source(self, source: MapSource) -> MapSource:
        return self.view.source(source)

    def maps(self, maps: Maps) -> Maps:
        return self.region.maps(self.view.maps(maps))


def _void_outside(ids: Array, inside: Array) -> Array:
    """Return ids [y, x], void outside of a mask."""
    return np.where(inside, ids, ids.dtype.type(void_id(ids)))


def _within(size: int, low: float, high: float) -> Array:
    centres = np.arange(size) + 0.5
    return (centres >= low * size) & (centres < high * size)


def _of_pairs(names: Collection[str]) -> bool:
    """Return whether maps are of pairs of frames."""
    return any(name.startswith("prediction:") for name in names)


def short(value: float) -> str:
    """Return the shortest text of a number that reads back as the same number."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
