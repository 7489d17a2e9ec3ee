"""bfloat16, a type of 8 significant bits that NumPy lacks, read as float32 with a mark.

Probabilities that were rounded to bfloat16 sum to 1 within 2^-9, and within 2^-7 where exponential,
sum, division and mean over the samples were each rounded to it. So the tolerance is 2^-7 wherever
they are stored and read: whether they pass does not depend on their sharpness or the number of
classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import DataError, StoreError, is_number, quoted

#: The allowed |Σ_c p - 1| of probabilities that were bfloat16.
TOLERANCE = 2.0**-7
#: The allowed |Σ_c p - 1| by the dtype in which probabilities are stored.
TOLERANCES = {"bfloat16": TOLERANCE, "float16": 2e-3, "float32": 1e-4, "float64": 1e-4}
#: The attribute of arrays whose numbers were bfloat16, and of those of which some were float16.
SOURCE: Mapping[str, str] = {"source_dtype": "bfloat16"}
FROM_HALF: Mapping[str, str] = {"source_dtype": "float16"}
#: The attribute of maps of probabilities: the allowed |Σ_c p - 1| of the integers that they were
#: computed from, if it is larger than `TOLERANCE`.
SUM_TOLERANCE = "sum_tolerance"

WAY_OUT = (
    "Take the softmax in float32, `logits.float().softmax(dim)` in PyTorch, or store the logits "
    "with --kind=logits."
)


class FromBfloat16(np.ndarray[Any, np.dtype[np.float32]]):
    """A float32 array whose numbers were bfloat16. Its views and copies have this type, too."""


def is_coarse(array: Any) -> bool:
    """Return whether the numbers of an array were bfloat16; a stored array records it in its
    attributes."""
    if isinstance(array, np.ndarray):
        return isinstance(array, FromBfloat16)
    return SOURCE.items() <= getattr(array, "attributes", {}).items()


def source_of(values: Any, dtype: str) -> str:
    """Return the dtype in which probabilities stored as `dtype` were computed, if it was a coarser
    one, else `dtype`. `values`: the array, in memory or stored."""
    if is_coarse(values):
        return SOURCE["source_dtype"]
    is_from_half = FROM_HALF.items() <= getattr(values, "attributes", {}).items()
    return FROM_HALF["source_dtype"] if is_from_half else dtype


def tolerance_of(values: Any, dtype: str, *, rounding: float = 0.0, is_mean: bool = False) -> float:
    """Return the |Σ_c p - 1| that probabilities stored as `dtype` may have; `source_of` describes
    `values` and `dtype`.

    `rounding`: of integers, their unit times the number of classes. `is_mean`: mean probabilities,
    whose samples may have been coarser. Raises `StoreError` as `recorded_tolerance`.
    """
    allowed = rounding or TOLERANCES[source_of(values, dtype)]
    return max(allowed, TOLERANCE, recorded_tolerance(values)) if is_mean else allowed


def recorded_tolerance(values: Any) -> float:
    """Return the attribute `SUM_TOLERANCE` of a stored array, 0 without it. Raises `StoreError` if
    it is no number of 0 or more."""
    recorded = getattr(values, "attributes", {}).get(SUM_TOLERANCE, 0.0)
    if not is_number(recorded) or not 0 <= recorded < np.inf:
        raise StoreError(
            f"{values.where}: {SUM_TOLERANCE} is {quoted(recorded)}, expected a number of 0 or "
            "more. Write the map again, such as with `uqeval reduce`."
        )
    return float(recorded)


def is_bfloat16(values: Any) -> bool:
    """Return whether an array of any framework is bfloat16."""
    return "bfloat16" in str(getattr(values, "dtype", ""))


def as_single(values: Any, where: str) -> Any:
    """Return a bfloat16 array of any framework as float32, by its own conversion.

    Raises `DataError` naming `where` if it has none.
    """
    if callable(widen := getattr(values, "float", None)):
        return widen()
    if callable(convert := getattr(values, "astype", None)):
        return convert("float32")
    raise DataError(
        f"{where} is a {type(values).__name__} of bfloat16, which NumPy does not read. Convert it "
        "to float32 first."
    )


def widened(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the float32 numbers whose upper 16 bits are `bits`."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def warning(where: str) -> str:
    """Return the warning about class probabilities that were bfloat16."""
    return (
        f"{where}: the class probabilities were computed in bfloat16, of 8 significant bits: a "
        "confidence near 1 is 0.992, 0.996 or 1, and sums are accepted within 0.0078 of 1. "
        f"{WAY_OUT}"
    )


def warnings_of(arrays: Iterable[Any]) -> list[str]:
    """Return one warning for all stored probabilities that were bfloat16, if there are any.

    An ensemble, or a store of items of different sizes, has many arrays.
    """
    coarse = list(dict.fromkeys(array.where for array in arrays if is_coarse(array)))
    others = f" and {len(coarse) - 1} more" if coarse[1:] else ""
    return [warning(f"{coarse[0]}{others}")] if coarse else []
