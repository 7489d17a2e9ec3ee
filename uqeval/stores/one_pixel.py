"""Arrays of image classification, [N, C] or [N, T, C], as arrays of images of one pixel."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from uqeval.stores.array import Region, StoredArray, canonical_axes

#: The axes of image classification, by kind of array.
_FORMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "probs": (("item", "sample", "class"), ("item", "class")),
    "logits": (("item", "sample", "class"), ("item", "class")),
    "labels": (("item",),),
    "predictions": (("item",),),
}


class OnePixel(StoredArray):
    """An array without y and x, shown with both: each item is an image of 1×1 pixels."""

    def __init__(self, array: StoredArray, axes: tuple[str, ...]) -> None:
        array.axes = axes
        array.suit(axes)
        self._array = array
        self.where = array.where
        if len(axes) > 2:  # probably an image without its item axis
            self.where += f" (read as [{', '.join(axes)}] of image classification)"
        self.shape = (*array.shape, 1, 1)
        self.dtype = array.dtype
        self.chunks = (*array.chunks, 1, 1)
        self.dimension_names = (*axes, "y", "x")
        self.attributes = array.attributes
        self.anywhere = array.anywhere

    def read(self, region: Region) -> NDArray[Any]:
        """Return the values of `region`, whose last two slices are those of y and x."""
        return self._array.read(region[:-2])[..., None, None]

    def missing(self) -> list[tuple[int, ...]]:
        """Return grid positions of the chunks that the store does not hold."""
        return [(*place, 0, 0) for place in self._array.missing()]

    def stored_bytes(self) -> int:
        """Return the bytes of the array on disk."""
        return self._array.stored_bytes()

    def fingerprint(self) -> str:
        """Return the fingerprint of the array."""
        return self._array.fingerprint()

    def stamp(self, index: int | None) -> str | None:
        """Return the stamp of the array."""
        return self._array.stamp(index)

    def states(self, index: int | None) -> dict[str, str]:
        """Return the states of the array's files."""
        return self._array.states(index)

    def recheck(self) -> None:
        """Check the array itself."""
        self._array.recheck()


def with_pixel(array: StoredArray, kind: str, *, is_single: bool = False) -> StoredArray:
    """Return the array, as `OnePixel` where its axes are those of image classification.

    `is_single`: it is of one item, without an item axis. Raises `StoreError` for unknown axes.
    """
    forms = _FORMS.get(kind, ())
    if is_single:
        forms = tuple(form[1:] for form in forms)
    if array.dimension_names and any(array.dimension_names):
        axes = canonical_axes(array.dimension_names, array.where)
        fits = any(set(axes) == set(form) for form in forms)
        return OnePixel(array, axes) if fits else array
    for form in forms:
        if form and len(form) == len(array.shape):
            return OnePixel(array, form)
    return array
