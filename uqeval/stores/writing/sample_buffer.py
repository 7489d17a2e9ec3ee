"""The samples of items that are not yet complete."""

from __future__ import annotations

from uqeval.arrays import Array, np
from uqeval.errors import DataError


class SampleBuffer:
    """The samples of at most `most` items: one, or all of a batch."""

    def __init__(self, samples: int) -> None:
        self.most = 1
        self._samples = samples
        self._items: dict[int, tuple[Array, set[int]]] = {}

    def __contains__(self, index: int) -> bool:
        return index in self._items

    def there(self, index: int) -> set[int]:
        """Return the buffered samples of an item."""
        return self._items[index][1] if index in self._items else set()

    def full(self) -> bool:
        """Return whether there is no room for another item."""
        return len(self._items) >= self.most

    def add(self, index: int, sample: int, values: Array, description: str) -> Array | None:
        """Add one sample [1, class, y, x]; return all, [sample, class, y, x], after the last one.

        Raises `DataError`, which begins with `description`, for another shape than the item's other
        samples.
        """
        if index not in self._items:
            shape = (self._samples, *values.shape[1:])
            self._items[index] = np.empty(shape, values.dtype), set()
        stack, present = self._items[index]
        if stack.shape[1:] != values.shape[1:]:
            raise DataError(
                f"{description} has the shape {list(values.shape[1:])}; the item's other samples "
                f"have {list(stack.shape[1:])}."
            )
        stack[sample] = values[0]
        present.add(sample)
        if len(present) < self._samples:
            return None
        del self._items[index]
        return stack
