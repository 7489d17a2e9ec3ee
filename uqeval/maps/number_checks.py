"""Checks of stored numbers: sizes, finite values, and standard deviations of at least 0."""

from __future__ import annotations

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, NegativeSigma, StoreError
from uqeval.maps.labels import SWAPPED

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
            f"its order: uqeval sparsification {store} --uncertainty {name}",
            name,
        )
