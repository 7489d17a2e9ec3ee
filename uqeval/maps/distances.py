"""Distances of pixels to boundaries between classes."""

from __future__ import annotations

from uqeval.arrays import Array, np


def squared_distances(label: Array) -> Array:
    """Return the squared distance of each valid pixel to the nearest one of another class.

    `label` [y, x]: class ids, void as the largest number of its dtype. int32; the largest number if
    there is no such pixel, and for void.
    """
    from uqeval.kernels.distances import square_distances

    squares = np.full(label.shape, np.iinfo(np.int32).max, np.int32)
    square_distances(label, label.dtype.type(void_id(label)), squares)
    return squares


def void_id(ids: Array) -> int:
    """Return the id of void pixels: the largest number of the dtype."""
    return int(np.iinfo(ids.dtype).max)
