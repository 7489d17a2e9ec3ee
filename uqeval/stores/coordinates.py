"""Coordinates of axes: a value for each item, row or column, as xarray and netCDF store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError

#: The axes whose coordinates are compared.
COMPARED = ("item", "y", "x")
#: Seconds of the units of times, such as "days since 2026-01-01".
_SECONDS = {
    "day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0, "millisecond": 1e-3,
    "microsecond": 1e-6, "nanosecond": 1e-9,
}  # fmt: skip


@dataclass(frozen=True)
class Coordinate:
    """The values along one axis, which `load` reads, and their attributes.

    `is_guess`: whether only its name tells the axis, not that of its dimension.
    """

    where: str
    axis: str
    is_guess: bool
    load: Callable[[], Array]
    attributes: Mapping[str, Any]

    @cached_property
    def values(self) -> Array | None:
        """Texts, or numbers as float64, times in seconds; None if they cannot be compared."""
        with suppress(StoreError, ValueError, TypeError, OverflowError):
            return _comparable(self.load(), self.attributes)
        return None


def _comparable(values: Array, attributes: Mapping[str, Any]) -> Array | None:
    if values.dtype.kind in "OUST":
        return values.astype(np.str_)
    if values.dtype.kind == "M":
        return values.astype("M8[ns]").astype(np.int64) / 1e9
    numbers = values.astype(np.float64)
    unit, is_time, start = str(attributes.get("units", "")).partition(" since ")
    if is_time:
        origin = np.datetime64(start.strip().removesuffix("Z").replace(" ", "T", 1), "ns")
        numbers = (
            numbers * _SECONDS[unit.strip().removesuffix("s")] + int(origin.astype("i8")) / 1e9
        )
    return numbers if np.isfinite(numbers).all() else None


def is_other_order(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same values, apart from rounding, in another order."""
    if first.shape != second.shape or first.dtype.kind != second.dtype.kind:
        return False
    if np.array_equal(first, second):
        return False
    ordered, other = np.sort(first), np.sort(second)
    if first.dtype.kind == "U":
        return bool((ordered == other).all() and (first != second).any())
    steps = [gaps[gaps > 0].min(initial=np.inf) for gaps in (np.diff(ordered), np.diff(other))]
    step = max(steps)
    rounding = np.abs(ordered - other).max(initial=0.0)
    return bool(rounding <= 1e-3 * step < np.inf and np.abs(first - second).max() > step / 2)
