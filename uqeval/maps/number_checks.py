"""Checks of stored numbers: sizes, finite values, σ of at least 0, and invalid targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, NegativeSigma, StoreError, quoted
from uqeval.maps.labels import SWAPPED

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

#: The hint for a plane of ids of another size than the predictions.
RESIZE_IDS = "Resize it by nearest neighbour."


def check_size(
    size: tuple[int, ...], expected: tuple[int, int], where: str, subject: str, hint: str = ""
) -> None:
    """Raise `StoreError` unless a plane has the size of the predictions.

    `subject` starts the message after `where`, such as "the target is". `hint` says what to do if
    height and width do not look swapped.
    """
    if size == expected:
        return
    if size == expected[::-1]:
        hint = SWAPPED
    raise StoreError(
        f"{where}: {subject} {'×'.join(map(str, size))} (height×width), the predictions are "
        f"{expected[0]}×{expected[1]}; they must have the same size. {hint}".rstrip()
    )


def refuse_values(values: Array, evaluated: Array, where: str, what: str) -> None:
    """Raise `DataError` for values that are NaN, infinite or beyond float32.

    `evaluated`: the values, and 0 where void.
    """
    with np.errstate(over="ignore"):
        bad = ~np.isfinite(evaluated.astype(np.float32))
    y, x = (int(k[0]) for k in np.nonzero(bad))
    raise DataError(
        f"{where}: {int(bad.sum())} evaluated {what} are NaN, infinite or beyond float32, first "
        f"{float(values[y, x]):.6g} at row {y}, column {x}. Mask them with `valid`, or write them "
        "again."
    )


def refuse_negative_sigma(values: Array, name: str, where: str, store: str) -> None:
    """Raise `NegativeSigma` if a map that is used as σ has negative values."""
    if (count := int((values < 0).sum())) > 0:
        y, x = (int(k[0]) for k in np.nonzero(values < 0))
        raise NegativeSigma(
            f"{where}: {count} evaluated values are negative, first {values[y, x]:.6g} at row "
            f"{y}, column {x}; --uncertainty {name} is used as σ, which cannot be negative. Store "
            "a natural logarithm as log_variance, log_std or log_b. For scores that need only "
            f"its order: uqeval sparsification {quote(store)} --uncertainty {quote(name)}",
            name,
        )


def invalid_of(array: StoredArray) -> list[float]:
    """Return the target values that mean "no measurement", from the attribute `invalid` of an
    array.

    Raises `StoreError` for anything but a number or a list of numbers.
    """
    attribute = array.attributes.get("invalid")
    entries = attribute if isinstance(attribute, list) else [] if attribute is None else [attribute]
    try:
        if any(isinstance(value, bool) for value in entries):
            raise ValueError
        return [float(value) for value in entries]  # also the text "NaN"
    except (TypeError, ValueError, OverflowError):
        raise StoreError(
            f"{array.where}: attribute invalid is {quoted(str(attribute)[:100])}; expected a "
            "number or a list of numbers: values of targets without a measurement."
        ) from None


def as_stored(invalid: Sequence[float], stored: np.dtype[Any], plain: np.dtype[Any]) -> Array:
    """Return invalid values rounded to the dtype `stored`: 0.1 in float32 is not 0.1."""
    values = np.array([v for v in invalid if math.isfinite(v)], np.float64)
    if stored.kind == "f":
        with np.errstate(over="ignore"):
            values = values.astype(stored)
    return values.astype(plain)
