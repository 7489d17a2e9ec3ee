"""Image classification: items without rows and columns, read as images of one pixel."""

from __future__ import annotations

from uqeval.arrays import Array
from uqeval.stores.array import Region, StoredArray, WrappedArray


class OnePixel(WrappedArray):
    """An array whose `axes` lack y and x, read with both: each item is an image of 1×1 pixels."""

    def __init__(self, array: StoredArray) -> None:
        super().__init__(array)
        axes = array.axes
        if len(axes) > 2:  # probably an image without its item axis
            self.where += f" (read as [{', '.join(axes)}] of image classification)"
        self.shape, self.chunks = (*array.shape, 1, 1), (*array.chunks, 1, 1)
        self.axes = self.dimension_names = (*axes, "y", "x")

    def read(self, region: Region) -> Array:
        """Return the values of `region`, whose last two slices are those of y and x."""
        return self._array.read(region[:-2])[..., None, None]

    def missing(self) -> list[tuple[int, ...]] | None:
        missing = super().missing()
        return None if missing is None else [(*place, 0, 0) for place in missing]
