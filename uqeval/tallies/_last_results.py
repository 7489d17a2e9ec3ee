"""Results that all regions of an item share, so that they are computed once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from uqeval.arrays import Array

T = TypeVar("T")


class LastResults(threading.local):
    """The last results of each thread: those of one item, by the parameters that they depend on."""

    def __init__(self) -> None:
        self._arrays: tuple[weakref.ref[Array], ...] = ()
        self._results: dict[Hashable, Any] = {}

    def of(self, arrays: tuple[Array, ...], key: Hashable, compute: Callable[[], T]) -> T:
        """Return `compute()`, which depends only on these arrays and on `key`."""
        known = [array() for array in self._arrays]
        if len(known) != len(arrays) or any(a is not b for a, b in zip(known, arrays, strict=True)):
            self._arrays, self._results = tuple(map(weakref.ref, arrays)), {}
        if key not in self._results:
            self._results[key] = compute()
        return cast("T", self._results[key])
