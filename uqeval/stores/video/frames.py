"""The frames of a video: a folder of images, a stored array, or a video file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.disk.suffixes import IMAGES, NUMPY, suffix_of
from uqeval.errors import StoreError, cut, listed
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.contents import Contents
from uqeval.stores.described import DescribedArray
from uqeval.stores.planes import VideoPlanes
from uqeval.stores.store import open_store
from uqeval.stores.video.image_folder import ImageFolder
from uqeval.stores.video.video_file import VIDEOS, VideoFile
from uqeval.stores.zarr.source import is_url, is_zarr


class Frames(Protocol):
    """The frames of a video, uint8 RGB; `names` is None if they only have numbers.

    `sequential` frames are decoded in ascending order only; going back restarts from the first
    frame. `read` and `size` are thread-safe and raise `StoreError`. `store` is that of the array
    `frames`; None for files of images.
    """

    names: tuple[str, ...] | None
    where: str
    sequential: bool
    store: Store | None

    def __len__(self) -> int:
        """Return the number of frames."""

    @property
    def arrays(self) -> Sequence[StoredArray]:
        """Return the arrays with the frames, whose chunks may be missing; none for files."""

    def size(self, i: int) -> tuple[int, int]:
        """Return height and width of frame `i` in pixels."""

    def read(self, i: int) -> NDArray[np.uint8]:
        """Return frame `i` as [y, x, 3], C-contiguous; it may be read-only."""

    def where_of(self, i: int) -> str:
        """Return the name of frame `i` in messages."""

    def fingerprint(self) -> str | None:
        """Return a hex digest of names, sizes and times, or of metadata, without reading the data
        again.
        """

    def stamp(self, i: int) -> str | None:
        """Return text that changes when the frame does; None if changes cannot be detected (see
        `stamps`).
        """

    def states(self, i: int) -> dict[str, str]:
        """Return the states of the files that frame `i` is read from, by path."""


@dataclass(frozen=True)
class Frame:
    """One frame of a video, whose files are watched for changes."""

    frames: Frames
    number: int

    def stamp(self) -> str | None:
        """Return text that changes when the frame does; None if changes cannot be detected (see
        `stamps`).
        """
        return self.frames.stamp(self.number)

    def states(self) -> dict[str, str]:
        """Return the states of its files now, by path."""
        return self.frames.states(self.number)

    @property
    def files(self) -> Hashable:
        """A key of its files (see `Watched`)."""
        return id(self.frames), self.number

    @property
    def arrays(self) -> Sequence[StoredArray]:
        """The stored arrays of the video; none for files of images."""
        return self.frames.arrays


class StoredFrames(VideoPlanes):
    """The array `frames` [N, H, W, 3] of a store, or one [H, W, 3] an item; uint8.

    Raises `StoreError` if it is missing, or has another form.
    """

    sequential = False

    def __init__(self, store: Store) -> None:
        if "frames" not in store.arrays:
            raise StoreError(
                f"{store.path} holds {listed(sorted(store.arrays))}, but no array `frames` "
                "[N, H, W, 3]. Store the frames there, or give a folder of images or a video file."
            )
        super().__init__(store.path, store.arrays["frames"])
        self.names = store.names
        self.store: Store | None = store
        for array in self.arrays:
            _check(array)

    def read(self, i: int) -> NDArray[np.uint8]:
        """Return frame `i` as [y, x, 3]; a chunk with several frames is decoded once."""
        return np.ascontiguousarray(super().read(i).transpose(1, 2, 0))

    def where_of(self, i: int) -> str:
        """Return the array, and the frame's name or number."""
        return f"{super().where_of(i)}, frame {self.names[i] if self.names else i}"


def _check(array: StoredArray) -> None:
    channels = array.length("class")
    if channels != 3:
        raise StoreError(
            f"{array.where} has {channels} channels in its shape {array.shape}; frames are "
            "[N, H, W, 3], red, green and blue last. Transpose them, or name the axes in "
            "dimension_names."
        )
    if array.dtype != np.uint8:
        raise StoreError(
            f"{array.where} holds {array.dtype}; frames are uint8, 0 … 255. Scale them and store "
            "them again."
        )


def open_frames(
    path: str | Path | Contents | Array | DescribedArray | Mapping[str, Any],
    *,
    fill_missing: bool = False,
) -> Frames:
    """Return the frames at `path`: images in a folder, an array `frames` in a store or in memory,
    or a video file.

    With `fill_missing`, missing chunks of a Zarr store read as the fill value. Raises `StoreError`
    for anything else.
    """
    if isinstance(path, str | Path) and not is_url(str(path)) and not is_zarr(str(path)):
        local = Path(path)
        if local.is_dir():
            return ImageFolder(local)
        if local.is_file() and local.suffix.lower() in VIDEOS:
            return VideoFile(local)
        if not local.is_file() or suffix_of(local.name) not in NUMPY:
            problem = " has an unknown format" if local.exists() else ": there is nothing here"
            raise StoreError(
                f"{cut(path)}{problem}; expected a folder of images ({', '.join(IMAGES)}), a "
                "Zarr store, .npy or .npz file of `frames`, or a video file "
                f"({', '.join(VIDEOS)}). Check the path."
            )
    store = open_store(path, role="frames", fill_missing=fill_missing, called="video")
    return StoredFrames(store)
