"""Distances of pixels to boundaries between classes."""

from __future__ import annotations

from uqeval.arrays import Array, np


def squared_distances(label: Array) -> Array:
    """Return the squared distance of each valid pixel to the nearest one of another class.

    `label` [y, x]: class ids, void as the largest number of its dtype. int32; the largest number if
    there is no such pixel, and for void. Each class takes one exact distance transform. Squared
    distances are integers, so the result is rounded.
    """
    import cv2

    void = void_id(label)
    far = np.iinfo(np.int32).max
    squares = np.full(label.shape, far, np.int32)
    classes = np.flatnonzero(np.bincount(label.reshape(-1), minlength=void + 1)[:void])
    valid = label != void
    for c in classes if len(classes) > 1 else ():
        is_class = label == c
        rows, columns = np.flatnonzero(is_class.any(axis=1)), np.flatnonzero(is_class.any(axis=0))
        others = (is_class | ~valid).view(np.uint8)  # 0 at valid pixels of other classes
        distance = cv2.distanceTransform(others, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        exact = np.square(distance[box], dtype=np.float64)
        np.copyto(squares[box], np.rint(exact).astype(np.int32), where=is_class[box])
    return squares


def void_id(ids: Array) -> int:
    """Return the id of void pixels: the largest number of the dtype."""
    return int(np.iinfo(ids.dtype).max)
