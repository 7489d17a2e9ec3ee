"""Pixels of a region, from its definition: boundaries, interiors, classes and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import cut
from uqeval.usecases.verify.classes import ClassMaps

#: The regions that are recomputed, by the kind of data.
COVERED = {"classes": ("boundary", "interior", "class", "box"), "regression": ("box",)}


def not_covered(region: str, kind: str, class_names: Sequence[str]) -> str | None:
    """Return why the scores of a region are not recomputed; None if they are."""
    form = region.partition(":")[0]
    if form not in COVERED.get(kind, ()):
        return f"regions {form}: of {kind} data are not recomputed"
    try:
        _numbers_in(region, class_names)
    except ValueError:
        return f"{cut(region)} is no region"
    return None


def _numbers_in(region: str, class_names: Sequence[str]) -> list[float]:
    """Return the radius, the class, or the ends y0, y1, x0, x1 of a box. Raises `ValueError`."""
    form, _, value = region.partition(":")
    if form == "class":
        return [class_names.index(value) if value in class_names else int(value)]
    ends = [float(end) for end in value.replace(",", ":").split(":")]
    if len(ends) != (4 if form == "box" else 1):
        raise ValueError(region)
    return ends


def inside_box(region: str, height: int, width: int) -> Array:
    """Return the pixels [y, x] whose centre lies in box:y0:y1,x0:x1, in fractions of the size."""
    y0, y1, x0, x1 = _numbers_in(region, ())
    rows, columns = (np.arange(size) + 0.5 for size in (height, width))
    in_rows = (y0 * height <= rows) & (rows < y1 * height)
    in_columns = (x0 * width <= columns) & (columns < x1 * width)
    mask: Array = np.outer(in_rows, in_columns)
    return mask


def in_region(maps: ClassMaps, region: str | None, class_names: Sequence[str]) -> ClassMaps:
    """Return maps in which the pixels outside of a region are void; None is the whole image."""
    if region is None:
        return maps
    assert maps.label is not None
    form = region.partition(":")[0]
    if form == "box":
        inside = inside_box(region, *maps.void.shape)
    elif form == "class":
        inside = maps.label == _numbers_in(region, class_names)[0]
    else:
        is_near = _distances(maps.label, maps.void) <= _numbers_in(region, ())[0] ** 2
        inside = is_near if form == "boundary" else ~is_near
    return replace(maps, void=maps.void | ~inside, void_of_image=maps.void)


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
