"""Image classification: items without rows and columns, read as images of one pixel."""

from __future__ import annotations

from uqeval.arrays import Array
from uqeval.stores.array import Region, StoredArray


class OnePixel(StoredArray):
    """An array whose `axes` lack y and x, read with both: each item is an image of 1×1 pixels."""

    def __init__(self, array: StoredArray) -> None:
        axes = array.axes
        self._array = array
        self.where = array.where
        if len(axes) > 2:  # probably an image without its item axis
            self.where += f" (read as [{', '.join(axes)}] of image classification)"
        self.shape = (*array.shape, 1, 1)
        self.dtype = array.dtype
        self.chunks = (*array.chunks, 1, 1)
        self.axes = self.dimension_names = (*axes, "y", "x")
        self.attributes = array.attributes
        self.dimensions, self.coordinates = array.dimensions, array.coordinates
        self.anywhere, self.in_memory = array.anywhere, array.in_memory
        self.is_remote = array.is_remote
        self.format_name, self.write_all_chunks = array.format_name, array.write_all_chunks

    def read(self, region: Region) -> Array:
        """Return the values of `region`, whose last two slices are those of y and x."""
        return self._array.read(region[:-2])[..., None, None]

    @property
    def stored_rank(self) -> int:
        return self._array.stored_rank

    def check_claims(self) -> None:
        self._array.check_claims()

    def missing(self) -> list[tuple[int, ...]] | None:
        missing = self._array.missing()
        return None if missing is None else [(*place, 0, 0) for place in missing]

    def wrong_lengths(self) -> list[str]:
        return self._array.wrong_lengths()

    def stored_bytes(self) -> int | None:
        return self._array.stored_bytes()

    def fingerprint(self) -> str | None:
        return self._array.fingerprint()

    def stamp(self, index: int | None) -> str | None:
        return self._array.stamp(index)

    def states(self, index: int | None) -> dict[str, str]:
        return self._array.states(index)

    def file_group(self, index: int) -> int:
        return self._array.file_group(index)

    def recheck(self) -> None:
        self._array.recheck()
