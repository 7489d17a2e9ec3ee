"""Checks of probabilities and of stored numbers on every pixel; invalid ones are reported, never
repaired. Maps that were read from outside: kernels check none, and use ids as addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, NegativeSigma, StoreError, in_command
from uqeval.maps.labels import SWAPPED
from uqeval.maps.names import (
    ERROR_KEY,
    OF_CLASSES,
    OF_REGIONS,
    TARGET_COUNTS,
    VOID,
    is_annotations,
    is_choices,
    is_lambda,
    of_reference,
    sigma_of,
    void_of,
)
from uqeval.stores.fill_values import is_invalid
from uqeval.stores.sum_hints import hint_of_range, hint_of_sums

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

LOGITS = (
    "If these are logits, call the array `logits`; for one without a name, add --kind=logits, or "
    "write a store: `uqeval convert IN OUT.zarr --kind logits`."
)
#: The largest values, with room for class probabilities that do not quite sum to 1. Larger ones,
#: which a wide --sum-tolerance allows, are read from the store again.
_MOST = {"confidence": 2.0, "label_probability": 2.0, "mean_probs": 2.0, "brier": 2.02}


@dataclass(frozen=True)
class SumCheck:
    """Checks the smallest and largest class sum from the kernels, and describes invalid blocks.

    `unit` is the probability of one unit of the sums. `where` names the item and its store. Pixel
    `i` of the tile is in row `y0 + i // width` and column `x0 + i % width`.
    """

    classes: int
    tolerance: float
    unit: float
    dtype: np.dtype[Any]
    where: str
    width: int
    y0: int = 0
    x0: int = 0

    def fresh(self) -> Array:
        """Return the extremes [least, largest] of no sums."""
        unit_sum = 1.0 / self.unit
        return np.full(2, unit_sum if self.dtype.kind == "f" else round(unit_sum), self.dtype)

    def broken(self, extremes: Array) -> bool:
        """Return whether the class sum of a sample is outside the tolerance, or not a number."""
        low, high = float(extremes[0]) * self.unit, float(extremes[1]) * self.unit
        return not (1.0 - self.tolerance <= low and high <= 1.0 + self.tolerance)

    def explain(self, tile: Array, start: int, stop: int, t0: int, c0: int, totals: Array) -> None:
        """Raise `DataError` with the reason if pixels `start:stop` of a tile are invalid.

        Tile: the input of the kernels [sample, class, pixel], from sample `t0` and class `c0` on;
        `totals`: class sums so far [row, pixel].
        """
        block = tile[:, :, start:stop]
        half = block.dtype == np.int16
        p = (block.view(np.float16) if half else block).astype(np.float64)
        p *= self.unit if block.dtype.kind == "u" else 1.0
        for bad, problem in ((np.isnan(p), "NaN"), (np.isinf(p), "infinite"), (p < 0, "negative")):
            if bad.any():
                t, c, i = (int(k[0]) for k in np.nonzero(bad))
                finite = p[np.isfinite(p)]
                span = f"{finite.min():.4g} to {finite.max():.8g}" if finite.size else "none finite"
                hint = "A probability is finite and not negative: write the sample again."
                if problem == "negative":
                    hint = hint_of_range(finite.min(), finite.max(), LOGITS)
                raise DataError(
                    f"{self.where}: {int(bad.sum())} of {bad.size} probabilities from "
                    f"{self._pixel_name(start)} on are {problem}, first in sample {t0 + t}, class "
                    f"{c0 + c}, {self._pixel_name(start + i)} (values: {span}). {hint}"
                )
        if c0 + p.shape[1] < self.classes:
            return
        # For a tile with the last classes, check the accumulated sums.
        if p.shape[1] == self.classes:
            sums = p.sum(axis=1)
        else:
            sums = totals[t0 : t0 + p.shape[0]] * self.unit
        off = np.abs(sums - 1.0) > self.tolerance
        if not off.any():
            return
        t, i = (int(k[0]) for k in np.nonzero(off))
        if not p.any():
            hint = "All are 0: a chunk that was never written reads as zeros."
        else:
            hint = hint_of_sums(
                sums, p.max(), self.tolerance, LOGITS,
                "--sum-tolerance allows larger differences.",
                floats=block.dtype.kind != "u",
            )  # fmt: skip
        raise DataError(
            f"{self.where}: the class probabilities of {int(off.sum())} of {off.size} pixels from "
            f"{self._pixel_name(start)} on do not sum to 1: the first sum is {sums[t, i]:.6g}, in "
            f"sample {t0 + t}, {self._pixel_name(start + i)} (tolerance {self.tolerance:g}). {hint}"
        )

    def _pixel_name(self, pixel: int) -> str:
        return f"row {self.y0 + pixel // self.width}, column {self.x0 + pixel % self.width}"


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
        f"{where}: {int(bad.sum())} evaluated {what} are NaN, infinite or beyond float32, the "
        f"first is {float(values[y, x]):.6g} at row {y}, column {x}. Mask them with `valid`, or "
        "write them again."
    )


def refuse_negative_sigma(values: Array, name: str, where: str, store: str) -> None:
    """Raise `NegativeSigma` if a map that is used as σ has negative values."""
    if (count := int((values < 0).sum())) > 0:
        y, x = (int(k[0]) for k in np.nonzero(values < 0))
        raise NegativeSigma(
            f"{where}: {count} evaluated values are negative, the first is {values[y, x]:.6g} at "
            f"row {y}, column {x}; --uncertainty {name} is used as σ, which cannot be negative. "
            "Store a natural logarithm as log_variance, log_std or log_b. For scores that need "
            f"only its order: uqeval sparsification {in_command(store)} --uncertainty "
            f"{quote(name)}",
            name,
        )


def evaluated_by(mask: Array, array: StoredArray, where: str) -> Array:
    """Return where a mask `valid` of an array is true: at 1, or at 255 if no value is 1. NaN is
    false, and so are values that attributes of the array declare to be none.

    Raises `DataError` for other values, of which nothing tells what they mean.
    """
    if (bad := is_invalid(mask, array)) is not None:
        mask = np.where(bad, mask.dtype.type(0), mask)
    if mask.dtype.kind == "b":
        return mask
    is_valid, is_known = mask == 1, mask == 0
    if mask.dtype.kind == "f":
        is_known |= np.isnan(mask)
    if not is_valid.any():
        is_valid = mask == 255
    if not (is_known | is_valid).all():
        bad = ~(is_known | is_valid)
        y, x = (int(k[0]) for k in np.nonzero(bad))
        raise DataError(
            f"{where}: {int(bad.sum())} of {bad.size} values of the mask `valid` are not 0 or 1, "
            f"the first is {mask[y, x]:.6g} at row {y}, column {x}. Expected true for the pixels "
            "to evaluate: bool, 0 and 1, or 0 and 255. Save a comparison, such as confidence > 0.5."
        )
    return is_valid


def as_stored(invalid: Sequence[float], stored: np.dtype[Any], plain: np.dtype[Any]) -> Array:
    """Return invalid values rounded to the dtype `stored`: 0.1 in float32 is not 0.1."""
    values = np.array([v for v in invalid if math.isfinite(v)], np.float64)
    if stored.kind == "f":
        with np.errstate(over="ignore"):
            values = values.astype(stored)
    return values.astype(plain)


def has_valid_values(name: str, values: Array, classes: int, kind: str = "classes") -> bool:
    """Return whether all values of a map that was read from outside are possible.

    `classes`: the number of classes of this map. Ids are those of classes, and void where void may
    be. Numbers are finite, and predicted numbers within float32. Probabilities, errors, standard
    deviations and counts are not negative, and the ratio λ may be infinite. Numbers of regions may
    be any.
    """
    if name.startswith(OF_REGIONS):
        return True
    name = name.removeprefix(of_reference("")).removeprefix(OF_CLASSES)
    if kind == "regression":
        return _are_valid_numbers(name, values)
    if name == "prediction" or is_choices(name):
        return bool((values < classes).all())
    if name == "label" or is_annotations(name):
        return bool(((values < classes) | (values == void_of(classes))).all())
    if name in _MOST:
        return bool(((values >= 0) & (values <= _MOST[name])).all())
    return bool(np.isfinite(values).all())


def _are_valid_numbers(name: str, values: Array) -> bool:
    """Return the same of a map of predicted numbers."""
    if name == "label":
        return bool(((values == 0) | (values == VOID)).all())
    if is_lambda(name):
        return bool((values >= 0).all())  # NaN is not
    if name == TARGET_COUNTS and (values[:3] < 0).any():
        return False
    is_signed = name not in ("error", ERROR_KEY, "sigma") and not name.startswith(sigma_of(""))
    with np.errstate(over="ignore"):
        within = np.isfinite(values.astype(np.float32, copy=False)).all()
    return bool(within and (is_signed or (values >= 0).all()))
