"""The content of a path, opened once: whether it is ground truth, and its arrays as a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from uqeval.stores.kinds import PREDICTIONS

if TYPE_CHECKING:
    from uqeval.stores.array import Store, StoredArray
    from uqeval.stores.assembled import Opening


class Contents(ABC):
    """Base of all formats: `FORMATS` in `formats.py` lists them. An instance is of one path.

    Whether it is ground truth is decided by names, axes and dtypes, never by values.
    """

    #: Where it lies: a path or a URL.
    path: str
    #: The one array, where it has no name.
    bare: StoredArray | None = None
    #: The names of its arrays, where they have some.
    kinds: frozenset[str] = frozenset()
    #: The store that was made last, and how.
    _latest: tuple[Opening, Store] | None = None

    def __init__(self, path: str) -> None:
        """Open what is there, without reading values. Raises `StoreError`, `UsageError`."""
        self.path = path

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    @staticmethod
    @abstractmethod
    def recognises(path: str) -> bool:
        """Return whether a path is of this format; looks at its name and its kind of file only."""

    @abstractmethod
    def store(self, how: Opening) -> Store:
        """Return the store, its axes resolved and cut into items.

        Raises `StoreError` for what is no sound store, `UsageError` for what is declared wrongly.
        """

    def store_once(self, how: Opening) -> Store:
        """Return `store(how)`; the same store if it is asked for again."""
        if self._latest is None or self._latest[0] != how:
            self._latest = how, self.store(how)
        return self._latest[1]

    def is_labels(self) -> bool:
        """Return whether it holds labels: integers [N] or [N, H, W], or arrays of this name."""
        if self.bare is not None:
            return self.bare.dtype.kind in "biu" and len(self.bare.shape) in (1, 3)
        return "labels" in self.kinds and not self.kinds & PREDICTIONS

    def is_truth(self) -> bool:
        """Return whether it holds labels or a target: numbers [N, H, W] or fewer axes, or such
        names.
        """
        if self.bare is not None:
            return self.bare.dtype.kind in "biuf" and len(self.bare.shape) <= 3
        return bool(self.kinds & {"labels", "target"}) and not self.kinds & PREDICTIONS

    def may_be_predictions(self) -> bool:
        """Return whether what looks like ground truth may be predictions as well.

        Class ids may be predicted; numbers [N, C] or [N, T, C] may be probabilities of image
        classification.
        """
        if self.bare is not None:
            return len(self.bare.shape) in (2, 3) or self.bare.dtype.kind in "biu"
        return self.kinds == {"labels"}
