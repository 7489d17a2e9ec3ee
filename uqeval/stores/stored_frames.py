"""Frames of a video in a stored array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError, listed
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.planes import VideoPlanes


class StoredFrames(VideoPlanes):
    """The array `frames` [N, H, W, 3] of a store, or one [H, W, 3] an item; uint8.

    Raises `StoreError` if it is not there, or not of this form.
    """

    sequential = False

    def __init__(self, store: Store) -> None:
        if "frames" not in store.arrays:
            raise StoreError(
                f"{store.path}: holds {listed(sorted(store.arrays))}, but no array `frames` "
                "[N, H, W, 3]. Store the frames there, or give a folder of images or a video file."
            )
        super().__init__(store.path, store.arrays["frames"])
        self.names = store.names
        for array in self.arrays:
            _check(array)

    def read(self, i: int) -> NDArray[np.uint8]:
        """Return frame `i` as [y, x, 3]; a chunk that holds several frames is decoded once."""
        return np.ascontiguousarray(self._planes.read(i).transpose(1, 2, 0))

    def where_of(self, i: int) -> str:
        """Return the array, and the frame's name or number."""
        return f"{self._planes.where(i)}, frame {self.names[i] if self.names else i}"


def _check(array: StoredArray) -> None:
    channels = array.shape[array.axes.index("class")]
    if channels != 3:
        raise StoreError(
            f"{array.where}: has {channels} channels in its shape {array.shape}; frames are "
            "[N, H, W, 3], red, green and blue last. Transpose them, or name the axes in "
            "dimension_names."
        )
    if array.dtype != np.uint8:
        raise StoreError(
            f"{array.where}: holds {array.dtype}; frames are uint8, 0 … 255. Scale them and store "
            "them again."
        )
