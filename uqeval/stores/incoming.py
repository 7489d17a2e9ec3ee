"""Checks of arrays of any framework before they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, cut
from uqeval.stores import bfloat16
from uqeval.stores.class_ids import how_to_give, refuse_ambiguous
from uqeval.stores.float16 import to_half, to_single
from uqeval.stores.sum_hints import hint_of_range, hint_of_sums

#: Logits and labels of fewer pixels may look like probabilities and one-hot labels by chance.
LEAST_PIXELS = 16


def as_array(values: Any, where: str) -> Array:
    """Return `values` of NumPy, PyTorch, JAX or others as a NumPy array, without a copy if
    possible.

    Objects with DLPack, `__array__` or `__array_interface__` (images of Pillow) are accepted,
    including tensors that need gradients or are on a GPU. bfloat16, which NumPy lacks, becomes
    float32, marked as `FromBfloat16`. Raises `DataError` naming `where` for anything else, and for
    masked values.
    """
    kind = type(values).__name__
    try:
        values = _computed(values)
        refuse_masked(values, where)
        coarse = bfloat16.is_bfloat16(values)
        if isinstance(values, np.ndarray) and not coarse:
            _refuse_added_types(values, where)
            return values
        # Frameworks are never imported: these methods mean the same in all of them.
        for method in ("detach", "cpu", "resolve_conj", "resolve_neg"):
            if callable(step := getattr(values, method, None)):
                values = step()
        if coarse:
            values = bfloat16.as_single(values, where)
        plain = hasattr(values, "__array__") or hasattr(values, "__array_interface__")
        if plain or hasattr(values, "__dlpack__"):
            array = np.asarray(values) if plain else np.from_dlpack(values)
            _refuse_added_types(array, where)
            return array.view(bfloat16.FromBfloat16) if coarse else array
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: {kind} cannot be read as a NumPy array ({cut(error)}). Convert it to a "
            "dense NumPy array on the CPU first."
        ) from error
    raise DataError(
        f"{where} is a {kind}; expected an array of NumPy, PyTorch, JAX, or anything with "
        "__dlpack__ or __array__."
    )


def _computed(values: Any) -> Any:
    """Return what a lazy array, such as that of Dask, computes, also of one inside an array of
    xarray; other values unchanged. `np.asarray` of them drops masks."""
    if hasattr(values, "compute") and hasattr(values, "dims"):
        values = values.data
    return values.compute() if callable(getattr(values, "compute", None)) else values


def _refuse_added_types(array: Array, where: str) -> None:
    """Raise `DataError` for a type that another library adds to NumPy, such as float8."""
    if array.dtype.isbuiltin == 2:
        raise DataError(
            f"{where} holds {array.dtype}, which NumPy lacks; expected a type of NumPy or "
            "bfloat16. Convert it first: values.astype(numpy.float32), or class ids to numpy.uint8."
        )


def refuse_masked(values: Any, where: str) -> None:
    """Raise `DataError` if values of a masked array, of NumPy or of a subclass with a `mask`, are
    masked: what is below a mask is arbitrary.
    """
    if type(values) is np.ndarray or not isinstance(values, np.ndarray):
        return
    if count := int(np.count_nonzero(getattr(values, "mask", False))):
        raise DataError(
            f"{where}: {count:,} of {values.size:,} values of the masked array are masked; "
            "expected an array without a mask. Fill it: labels.filled(255) with the void id, "
            "target.astype(float).filled(numpy.nan), valid.filled(False), and arrays of Dask with "
            "dask.array.ma.filled(labels, 255). Predictions need a number at each pixel: mask the "
            "labels or the target there."
        )


def as_stack(
    values: Array,
    counts: tuple[int, int],
    size: tuple[int, int] | None,
    sample: int | None,
    where: str,
) -> Array:
    """Return `values` as [sample, class, y, x]: all T samples, or the one with the number `sample`.

    `counts` is (T, C), `size` (H, W) or None for any. Raises `DataError` for another shape.
    """
    samples, classes = counts
    if sample is not None and not 0 <= sample < samples:
        raise DataError(f"{where}: sample {sample} is not among 0 … {samples - 1}.")
    stack = values[None] if values.ndim == 3 else values
    takes_one_sample = sample is not None or samples == 1
    expected = (1 if takes_one_sample else samples, classes, *(size or stack.shape[2:]))
    if stack.ndim != 4 or stack.shape != expected or 0 in stack.shape:
        rows = f"{size[0]}, {size[1]}" if size else "H, W"
        want = f"[{classes}, {rows}]" if takes_one_sample else f"[{samples}, {classes}, {rows}]"
        alternative = "" if takes_one_sample else f" (or [{classes}, {rows}] with sample=t)"
        at = where if sample is None else f"{where}, sample {sample}"
        raise DataError(
            f"{at} has the shape {list(values.shape)}, expected {want}{alternative}."
            f"{_without_items(values)}"
        )
    return stack


def _without_items(values: Array) -> str:
    """Return how to leave out an axis of one item, as a loop over batches of one has it; empty for
    values without such an axis."""
    if values.ndim != 5 or 1 not in values.shape[:2]:
        return ""
    return f" Leave out the axis of items: values[{'0' if len(values) == 1 else ':, 0'}]."


def checked_floats(
    values: Array, dtype: str, kind: str, where: str, row: int = 0, source: str = "",
    tolerance: float | None = None, with_key: str = "",
) -> Array:  # fmt: skip
    """Return probabilities or logits of one sample [class, y, x] as they will be stored.

    `kind` is `probs` or `logits`, `dtype` float16, float32 or float64; `where` names item and
    sample, and the first row is the item's row `row`. Raises `DataError` for values that are not
    floating point, not finite or negative, or do not sum to one over the classes (within the
    tolerance of `dtype`), and for logits that do. Values of a single class must be in [0, 1].
    `source`: the dtype in which they were computed, for the tolerance; `tolerance`: another one.
    `with_key`: how the caller declares the kind of an array with a name, for messages.
    """
    if values.dtype.kind != "f":
        raise DataError(f"{where} holds {values.dtype}, expected floating point {kind}.")
    of = source or bfloat16.source_of(values, dtype)
    allowed = bfloat16.TOLERANCES[of] if tolerance is None else tolerance
    if kind == "logits":
        with np.errstate(over="ignore"):  # finds values that become infinite
            stored = values.astype(dtype, copy=False)
        if not np.isfinite(stored).all():
            _refuse_infinite(values, stored, where, row)
        if (total := total_of(values, allowed)) is not None:
            raise DataError(f"{where}: {not_logits(total)}")
        return stored
    if values.size == 0:
        return values.astype(dtype)
    values = np.asarray(values)
    off = _off(values)
    if off <= 0.5:  # then all values are in [0, 2); other values and NaN are refused
        rounded = _rounded(values, np.dtype(dtype))
        if _is_sure(values, rounded, off, allowed) or _off(rounded) <= allowed:
            return rounded
    with np.errstate(over="ignore"):
        problem = _explain(values, values.astype(dtype), row, allowed, of, with_key)
    raise DataError(f"{where}: {problem}")


def total_of(logits: Array, tolerance: float, unit: float = 1.0) -> int | None:
    """Return 1 if values [..., class, y, x] that are called logits are probabilities, 100 if they
    are percentages, else None.

    No value is negative then, and all pixels sum to it within the relative `tolerance`. Integers
    count steps of `unit`: they sum to it within half a step more, or a step less (as without
    rounding), for each class. They are not judged if they may then sum to 0. Logits that a constant
    made positive may sum to about 100, so percentages whose sums may be 1 % above it need a class
    of 75, which would lead by 50.
    """
    classes, is_whole = logits.shape[-3], logits.dtype.kind == "u"
    step = classes * unit * (1 + 1e-9)
    ranges = {
        t: (t - step, t + step / 2) if is_whole else (t * (1 - tolerance), t * (1 + tolerance))
        for t in (1, 100)
    }
    pixel_sum = float(logits[(0,) * (logits.ndim - 3)][:, :1, :1].sum(dtype=np.float64)) * unit
    total = next((t for t, (low, high) in ranges.items() if 0 < low <= pixel_sum <= high), None)
    if total is None or classes == 1 or logits.size < LEAST_PIXELS * classes or logits.min() < 0:
        return None
    (low, high), sums = ranges[total], logits.sum(axis=-3, dtype=np.float64) * unit
    if total == 100 and high > 101 and logits.max() * unit < 75:
        return None
    return total if low <= sums.min() and sums.max() <= high else None


def not_logits(total: int) -> str:
    """Return the problem of logits whose classes sum to `total`, as `total_of` returns it."""
    noun, step = ("probabilities", "") if total == 1 else ("percentages", "Divide them by 100. ")
    return (
        f"the logits look like {noun}: none is negative, and all pixels sum to {total} over the "
        f"classes. {step}Call the array `probs`, or declare its kind as probs."
    )


def refuse_one_hot(labels: Array, classes: int, where: str) -> None:
    """Raise `DataError` if labels [annotator, y, x] are planes of classes: one for each class, with
    the same number, 1 or 255, in one of them at each pixel, or in none or void in all of them.

    Planes of a single class are not refused: annotators may disagree about a whole image. Nor are
    planes that are mostly equal: annotators may disagree about every object. Where pixels are 0 in
    all planes, three planes must be used: two annotators may mark different parts of an image.
    """
    if len(labels) != classes or labels[0].size < LEAST_PIXELS:
        return
    is_one = np.count_nonzero(labels, axis=0) == 1
    if 2 * np.count_nonzero(is_one) <= is_one.size:
        return
    value, rest = labels[:, is_one].max(), labels[:, ~is_one]
    is_void = (rest[0] == 0) | (rest[0] < 0) | (rest[0] >= classes)
    least_planes = 3 if (rest == 0).any() else 2
    if (
        value in (1, 255)
        and bool(np.isin(labels[:, is_one], (0, value)).all())
        and bool((is_void & (rest == rest[0])).all())
        and np.count_nonzero(labels[:, is_one].any(axis=1)) >= least_planes
    ):
        void = f", or void in all of them ({rest.shape[1]} pixels)" if rest.size else ""
        ids = "labels.argmax(1)"
        if void:
            ids = ids_of_one_hot(1, classes)
        raise DataError(
            f"{where}: the labels look one-hot: each pixel is {int(value)} in exactly one of "
            f"{classes} planes, one for each class{void}. They would count as labels of {classes} "
            f"annotators. Save class ids instead: {ids} for [N, C, H, W]."
        )


def ids_of_one_hot(axis: int, classes: int) -> str:
    """Return the call that makes class ids of one-hot labels, with void where all planes are
    equal."""
    void = 255 if classes <= 255 else 65535
    return f"np.where(labels.min({axis}) == labels.max({axis}), {void}, labels.argmax({axis}))"


def _off(values: Array) -> float:
    """Return the largest |Σ_c p - 1| of probabilities [class, y, x]; infinite if a value is no
    probability.

    For a single class, 0 if all values are in [0, 1].
    """
    wide = to_single(values) if values.dtype == np.float16 else values
    if not wide.min() >= 0:  # NaN compares false
        return np.inf
    if len(wide) == 1:
        return 0.0 if wide.max() <= 1 else np.inf
    off = float(np.abs(wide.sum(axis=0) - 1.0).max())
    return off if off <= np.inf else np.inf


def _rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    if values.dtype in (dtype, np.float64) or dtype != np.float16:
        return values.astype(dtype, copy=False)  # float64 by way of float32 would round twice
    return to_half(values.astype(np.float32, copy=False))


def _is_sure(values: Array, rounded: Array, off: float, allowed: float) -> bool:
    """Return whether sums that are `off` before rounding need no second check.

    Rounding to float16 changes a sum near 1 by at most 2^-11, and 2^-25 for each class that
    underflows.
    """
    moved = 0.0 if values.dtype == rounded.dtype else 2**-10.9 + len(values) * 2**-25
    return off <= allowed - moved


def _explain(
    values: Array, stored: Array, row: int, tolerance: float, of: str, with_key: str
) -> str:
    """Return why probabilities are invalid. Slow: only called if they are."""
    exact = values.astype(np.float64)
    for bad, problem in ((np.isnan(exact), "NaN"), (np.isinf(exact), "infinite")):
        if bad.any():
            c, y, x = (int(at[0]) for at in np.nonzero(bad))
            return (
                f"{int(bad.sum())} of {bad.size} values are {problem}, first in class {c}, "
                f"row {row + y}, column {x}. A probability is a finite number."
            )
    low, high = float(exact.min()), float(exact.max())
    logits = (
        f"If these are logits, declare --kind=logits{with_key}, or give their softmax over the "
        "classes."
    )
    if low < 0 or len(values) == 1:
        hint = hint_of_range(low, high, logits)
        return f"values from {low:.4g} to {high:.8g} are not probabilities. {hint}"
    sums = stored.astype(np.float64).sum(axis=0)
    off = np.abs(sums - 1.0)
    y, x = (int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
    count = int((off > tolerance).sum())
    fits_half = off.max() <= bfloat16.tolerance_of(values, "float16")
    wider = ""
    if values.dtype == np.float16 and fits_half:
        wider = "Or give --dtype=float16, which allows these sums."
    hint = hint_of_sums(sums, high, tolerance, logits, wider)
    return (
        f"the class probabilities of {count} of {off.size} pixels do not sum to 1, the worst to "
        f"{sums[y, x]:.6g} in row {row + y}, column {x} (tolerance {tolerance:g} for {of}). "
        f"{hint}"
    )


def _refuse_infinite(values: Array, stored: Array, where: str, row: int) -> None:
    if np.isfinite(values).all():
        raise DataError(
            f"{where}: logits up to {float(np.abs(values).max()):.4g} do not fit {stored.dtype}. "
            "Store them with --dtype=float32."
        )
    bad = ~np.isfinite(values)
    c, y, x = (int(at[0]) for at in np.nonzero(bad))
    raise DataError(
        f"{where}: {int(bad.sum())} of {bad.size} logits are NaN or infinite, first in class {c}, "
        f"row {row + y}, column {x}."
    )


def label_dtype(classes: int | None, ignore_index: int) -> np.dtype[Any]:
    """Return the smallest dtype of class ids [0, classes) and `ignore_index`.

    Raises `DataError` if no dtype has both.
    """
    lowest, highest = min(0, ignore_index), max((classes or 1) - 1, ignore_index)
    for name in ("u1", "u2", "i2", "i4", "i8", "u8"):
        info = np.iinfo(name)
        if info.min <= lowest and highest <= info.max:
            return np.dtype(name)
    raise DataError(f"the void id {ignore_index} has more than 64 bits; give --ignore-index 65535.")


def numbered_from_1(labels: Array, strange: Array, classes: int, ignore_index: int) -> str:
    """Return a hint about labels whose only invalid id is the number of classes; empty for others.

    `strange`: the invalid ids, each once.
    """
    if strange.tolist() != [classes] or classes == 1:
        return ""
    if not (labels == 0).any():
        return (
            f" The labels look numbered from 1 to {classes}; class ids start at 0: subtract 1 from "
            "them."
        )
    void, declared = ignore_index, ""
    if 0 <= void < classes:
        void = 255 if classes <= 255 else 65535
        declared = f" and give --ignore-index {void}"
    return (
        f" If the ids run from 1 to {classes} and 0 is void, save np.where(labels == 0, {void}, "
        f"labels - 1){declared}. If they start at 0 and {classes} is void, give --ignore-index "
        f"{classes}."
    )


def checked_labels(
    values: Array, classes: int, ignore_index: int, where: str, row: int = 0
) -> Array:
    """Return class ids [y, x] or [annotator, y, x] as they will be stored; bool as 0 and 1.

    Raises `DataError` for values that are not integers, for ids outside [0, classes) other than
    `ignore_index`, for one-hot labels, and as `refuse_ambiguous`.
    """
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if values.dtype.kind not in "iu":
        raise DataError(f"{where}: labels are {values.dtype}, expected class ids as integers.")
    if values.ndim == 3:
        refuse_one_hot(values, classes, where)
    refuse_ambiguous(values, classes, ignore_index, where, "labels")
    is_class = (values < classes) & (values >= 0) if values.dtype.kind == "i" else values < classes
    bad = ~(is_class | (values == ignore_index))
    if bad.any():
        *plane, y, x = (int(at[0]) for at in np.nonzero(bad))
        strange = np.unique(values[bad])
        hint = numbered_from_1(values, strange, classes, ignore_index)
        if strange.size == 1:
            hint = (
                hint or f" If {strange[0]} is void, {how_to_give(int(strange[0]), ignore_index)}."
            )
        raise DataError(
            f"{where}: {int(bad.sum())} pixels have ids outside 0 … {classes - 1} that are not the "
            f"ignore_index {ignore_index}, the first is {int(values[(*plane, y, x)])} in row "
            f"{row + y}, column {x}." + hint
        )
    return values.astype(label_dtype(classes, ignore_index), copy=False)
