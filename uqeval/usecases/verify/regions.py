"""Pixels of a region, from its definition: boundaries, classes, boxes, depths and maps of ids."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import cut, data_of_kind
from uqeval.usecases.verify.classes import ClassMaps
from uqeval.usecases.verify.numbers import is_declared_invalid

#: The regions that are recomputed, by the kind of data.
COVERED = {
    "classes": ("boundary", "interior", "class", "box", "depth", "map"),
    "regression": ("box", "depth", "map"),
    "video": ("boundary", "interior", "class", "box", "depth", "map"),
    "ood": ("box", "depth", "map"),
}  # fmt: skip
_DEPTHS = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)-(inf|[0-9.]+(?:e[+-]?[0-9]+)?)")


def not_covered(region: str, kind: str) -> str | None:
    """Return why the scores of a region are not recomputed; None if they are."""
    form = region.partition(":")[0]
    if form not in COVERED.get(kind, ()):
        return f"regions {form} of {data_of_kind(kind)} are not recomputed"
    return None


def unknown(region: str, kind: str, class_names: Sequence[str], source: Any) -> str | None:
    """Return why the opened stores have no such region; None if they have it."""
    form, _, value = region.partition(":")
    try:
        _numbers_in(region, class_names)
    except ValueError:
        return f"{cut(region)} is no region"
    name = value.rpartition(":")[0]
    is_open = hasattr(source, "depth") if form == "depth" else name in getattr(source, "maps", ())
    if form in ("depth", "map") and not is_open:
        return f"the options of the report do not name {cut(region)}"
    return None


def _numbers_in(region: str, class_names: Sequence[str]) -> list[float]:
    """Return the radius, the class, the id of a map, the least depth and the next that is too
    large, or the ends y0, y1, x0, x1 of a box. Raises `ValueError`."""
    form, _, value = region.partition(":")
    if form == "class":
        return [class_names.index(value) if value in class_names else int(value)]
    if form == "map":
        return [int(value.rpartition(":")[2])]
    if form == "depth":
        match = _DEPTHS.fullmatch(value)
        return [float(end) for end in match.groups()] if match else [float(value), math.nan]
    ends = [float(end) for end in value.replace(",", ":").split(":")]
    if len(ends) != (4 if form == "box" else 1):
        raise ValueError(region)
    return ends


def of_place(region: str, source: Any, item: int, shape: tuple[int, int]) -> Array | None:
    """Return the pixels [y, x] in a box, a depth or a map of ids; None for other regions.

    box:y0:y1,x0:x1 has the pixels whose centre lies in these fractions of the size. Without a depth
    map, the depth is the target.
    """
    form, mask = region.partition(":")[0], None
    if form == "box":
        y0, y1, x0, x1 = _numbers_in(region, ())
        rows, columns = (np.arange(size) + 0.5 for size in shape)
        in_rows = (y0 * shape[0] <= rows) & (rows < y1 * shape[0])
        in_columns = (x0 * shape[1] <= columns) & (columns < x1 * shape[1])
        mask = np.outer(in_rows, in_columns)
    elif form == "depth":
        low, high = _numbers_in(region, ())
        planes = source.target if source.depth is None else source.depth.items
        stored = planes.read(item)
        depth = stored.astype(np.float64)
        is_unknown = is_declared_invalid(stored, planes.parts[item].array)
        mask = (low <= depth) & (depth < high) & ~is_unknown
    elif form == "map":
        name = region.partition(":")[2].rpartition(":")[0]
        mask = source.maps[name].items.read(item) == int(_numbers_in(region, ())[0])
    return mask


def in_region(
    maps: ClassMaps, region: str | None, class_names: Sequence[str], source: Any, item: int
) -> ClassMaps:
    """Return maps in which the pixels outside of a region are void; None is the whole image."""
    if region is None:
        return maps
    inside = of_place(region, source, item, maps.void.shape)
    if inside is None:
        assert maps.label is not None
        inside = of_labels(region, maps.label, maps.void, class_names)
    return replace(maps, void=maps.void | ~inside, void_of_image=maps.void)


def of_labels(region: str, label: Array, void: Array, class_names: Sequence[str]) -> Array:
    """Return the pixels [y, x] of a class, at the boundaries of classes, or in their interior."""
    if region.startswith("class:"):
        return (label == _numbers_in(region, class_names)[0]) & ~void
    is_near = _distances(label, void) <= _numbers_in(region, ())[0] ** 2
    return (is_near if region.startswith("boundary:") else ~is_near) & ~void


def _distances(label: Array, void: Array) -> Array:
    """Return the squared distance of each pixel [y, x] to the nearest one of another class; void
    is no class."""
    from scipy.ndimage import distance_transform_edt

    squares: Array = np.full(label.shape, np.inf)
    for c in np.unique(label[~void]):
        is_class = (label == c) & ~void
        distance = distance_transform_edt(~is_class)
        squares = np.where(label == c, squares, np.minimum(squares, np.rint(distance**2)))
    return squares
