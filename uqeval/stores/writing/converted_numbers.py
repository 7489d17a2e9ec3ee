"""How converted numbers are stored, and their checks: dtypes, scales, recoding as uint16."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import DataError
from uqeval.stores.array import ItemArray, StoredArray, arrays_of
from uqeval.stores.bfloat16 import (
    FROM_HALF,
    SOURCE,
    SUM_TOLERANCE,
    is_coarse,
    source_of,
    tolerance_of,
)
from uqeval.stores.class_ids import refuse_ambiguous, refuse_fill_ids
from uqeval.stores.fill_values import INVALID, RANGE, refuse_fill, with_nan
from uqeval.stores.incoming import (
    checked_floats,
    checked_labels,
    label_dtype,
    not_logits,
    total_of,
)
from uqeval.stores.kinds import SCALED, SPREADS
from uqeval.stores.planes import scale_of, unit_of
from uqeval.stores.writing.new_store import meaning_of
from uqeval.stores.zarr import writer as zw

DTYPE = np.dtype(np.uint16)
STEPS = int(np.iinfo(DTYPE).max)
ATTRIBUTES = {"scale": 1 / STEPS}
_KINDS = frozenset({"probs", "mean_probs"})
OF_CLASSES = _KINDS | {"logits"}


@dataclass(frozen=True)
class Form:
    """The array of one item in the new store: sizes along `axes`, and dtype."""

    axes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def size(self, axis: str) -> int:
        return self.shape[self.axes.index(axis)]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        height, width = self.size("y"), self.size("x")
        values_per_pixel = math.prod(self.shape) // max(1, height * width)
        rows, columns = zw.pixel_chunks(values_per_pixel * self.dtype.itemsize, height, width)
        tile = {"y": rows, "x": columns}
        return tuple(tile.get(a, n) for a, n in zip(self.axes, self.shape, strict=True))


@dataclass(frozen=True)
class Numbers:
    """How the numbers of all items of a kind are stored.

    `unscales`: only some of the items are integers, or those of probabilities have several scales,
    so that integers become the numbers that they stand for. `recoding`: of probabilities, None if
    they are copied.
    """

    kind: str
    dtype: np.dtype[Any]
    unscales: bool
    marks: Mapping[str, Any]
    recoding: Recoding | None

    def form(self, form: Form) -> Form:
        """Return the form of an item in the new store; labels have the chunks of their source."""
        return replace(form, dtype=self.dtype) if self.unscales or self.kind in _KINDS else form

    def attributes(self, array: StoredArray) -> dict[str, Any]:
        """Return the attributes of the new array for items of `array`."""
        own = meaning_of(array.attributes)
        if self.recoding is not None:
            recorded = {k: value for k, value in own.items() if k == SUM_TOLERANCE}
            return ATTRIBUTES | recorded
        if self.kind == "labels":  # that of the store counts
            own.pop("ignore_index", None)
        if self.unscales:
            own.pop("scale", None)
        if self.unscales and array.dtype.kind != "f":  # `stored` has left out such values
            own = {name: value for name, value in own.items() if name not in (*INVALID, *RANGE)}
        return {**own, **self.marks}

    def stored(self, values: Array, array: StoredArray, where: str, row: int) -> Array:
        """Return checked values of an item from `row` on in the form in which they are stored.

        Raises `DataError` for probabilities that have no longer the sums of this form.
        """
        if self.unscales and values.dtype.kind != "f":
            values = self._unscaled(values, array, where, row)
        if self.recoding is not None:
            return self.recoding.recode(values, where)
        stored = values.astype(self.dtype, copy=False)
        # Values of integers are float64 here, so `array` tells whether they change.
        if self.kind in OF_CLASSES and self.dtype.kind == "f" and array.dtype != self.dtype:
            source = self.marks.get("source_dtype", self.dtype.name)
            is_mean = self.kind == "mean_probs"
            allowed = tolerance_of(array, source, is_mean=is_mean)
            try:
                _check_floats(self.kind, stored, source, allowed, where, row)
            except DataError:
                if array.dtype.kind == "f" or self.kind == "logits":
                    raise
                raise DataError(self._too_coarse(array, source, allowed, where)) from None
        return stored

    def _too_coarse(self, array: StoredArray, source: str, allowed: float, where: str) -> str:
        """Return the message about integers whose sums are allowed, but not as floats."""
        return (
            f"{where} holds {array.dtype} with scale {scale_of(array):.6g}, and other items have "
            f"another scale or floating-point numbers, so that all are stored as {self.dtype}. "
            f"Its sums over the classes are rounded: they differ from 1 by more than the "
            f"{allowed:g} that {source} allows. Give --recommended, which divides by "
            "the sums and stores uint16, or write all items with one dtype and scale."
        )

    def _unscaled(self, values: Array, array: StoredArray, where: str, row: int) -> Array:
        """Return the numbers that integers stand for; NaN for those that attributes declare to be
        none. Raises as `stored` does."""
        if self.kind in OF_CLASSES:
            refuse_fill(values, array, None, 0, where, (row, 0))
        return with_nan(
            values * unit_of(array, self.kind),
            values,
            array,
            zero_is_usual=self.kind in SPREADS,
            has_range=self.kind == "target",
        )


@dataclass(frozen=True)
class Checks:
    """Checks of values. `classes` is None if there are no probabilities to give their number;
    `declared_classes` is the number that attributes declare.
    """

    classes: int | None
    ignore_index: int
    recoding: Recoding | None = None
    declared_classes: int = 0

    def numbers(self, kind: str, parts: Sequence[ItemArray], forms: Sequence[Form]) -> Numbers:
        """Return how the items of a kind are stored: labels in the smallest dtype for their ids.

        Raises `StoreError` for integers without a scale that need one.
        """
        dtypes, arrays = {form.dtype for form in forms}, arrays_of(parts)
        if kind == "labels" and self.classes is not None:
            dtypes = {label_dtype(self.classes, self.ignore_index)}
        scales = {None if a.dtype.kind == "f" else repr(scale_of(a)) for a in arrays}
        is_mixed = len(scales) > 1 and (None in scales or kind in _KINDS)
        unscales = kind in SCALED and is_mixed
        if unscales or kind in OF_CLASSES:
            for array in arrays:
                unit_of(array, kind)
        if unscales:  # evaluations compute scaled numbers in float64
            widest = np.float32 if kind in OF_CLASSES else np.float64
            dtypes = {np.dtype(widest), *(dtype for dtype in dtypes if dtype.kind == "f")}
        dtype = np.result_type(*dtypes)
        if kind not in _KINDS:
            return Numbers(kind, dtype, unscales, {}, None)
        if self.recoding is not None and dtype.kind == "f":
            return Numbers(kind, DTYPE, unscales, {}, self.recoding)
        return Numbers(kind, dtype, unscales, _marks(arrays, dtype), None)

    def check(self, kind: str, values: Array, array: StoredArray, where: str, row: int) -> Array:
        """Return `values` of an item from `row` on, as they will be stored. Raises `DataError`."""
        if kind == "labels":
            refuse_fill_ids(values, array, self.ignore_index, where, kind)
        if kind == "labels" and self.classes is not None:
            return checked_labels(values, self.classes, self.ignore_index, where, row)
        if kind == "labels":
            refuse_ambiguous(values, self.declared_classes, self.ignore_index, where, kind)
        if kind not in OF_CLASSES:
            return values
        if values.dtype.kind == "f":
            source, is_mean = source_of(array, values.dtype.name), kind == "mean_probs"
            allowed = tolerance_of(array, values.dtype.name, is_mean=is_mean)
            _check_floats(kind, values, source, allowed, where, row)
        else:
            for at, probs in _samples(values, where):
                _check_scaled(kind, probs, array, at, row)
        return values


def _samples(values: Array, where: str) -> Iterator[tuple[str, Array]]:
    """Yield the name and the values [class, y, x] of each sample of an item."""
    if values.ndim < 4:
        yield where, values
        return
    for sample, probs in enumerate(values):
        yield f"{where}, sample {sample}", probs


def _marks(arrays: Sequence[StoredArray], dtype: np.dtype[Any]) -> Mapping[str, str]:
    """Return the attribute of an array of `dtype` for the sums of probabilities that are coarser in
    some of the `arrays`."""
    if any(map(is_coarse, arrays)):
        return SOURCE
    are_widened = dtype.kind == "f" and dtype.itemsize > 2
    halves = (source_of(array, array.dtype.name) == "float16" for array in arrays)
    return FROM_HALF if are_widened and any(halves) else {}


#: How `uqeval convert` declares the kind of an array with a name.
_WITH_KEY = " (with --key NAME for an array with a name)"


def _check_floats(
    kind: str, values: Array, source: str, allowed: float, where: str, row: int
) -> None:
    """Check floating-point probabilities, with the `allowed` |Σ_c p - 1|, or logits, which were
    computed as `source`. Raises as `Checks.check` does."""
    form = "logits" if kind == "logits" else "probs"
    for at, probs in _samples(values, where):
        checked_floats(probs, values.dtype.name, form, at, row, source, allowed, _WITH_KEY)


def _check_scaled(kind: str, values: Array, array: StoredArray, where: str, row: int) -> None:
    """Check integer probabilities or logits [class, y, x] of `array`. Raises as `Checks.check`
    does."""
    unit = unit_of(array, kind)
    if kind == "logits":
        if (total := total_of(values, 0.0, unit)) is not None:
            raise DataError(f"{where}: {not_logits(total)}")
        return
    off = np.abs(values.sum(axis=0, dtype=np.int64) * unit - 1.0)
    allowed = tolerance_of(
        array, array.dtype.name, rounding=len(values) * unit, is_mean=kind == "mean_probs"
    )
    if len(values) > 1 and off.size and off.max() > allowed:
        y, x = (int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
        raise DataError(
            f"{where}: the class probabilities in row {row + y}, column {x} do not sum to 1: the "
            f"sum is {off[y, x]:.4g} off. Check the scale and the order of axes."
        )


@dataclass
class Recoding:
    """Recodes floating-point probabilities, and records the loss.

    `values`: the number of recoded values. `largest`: the largest difference of a probability from
    its source, at `where`. `worst_sum`: the largest difference of a sum over classes from 1 in the
    source.
    """

    values: int = 0
    largest: float = 0.0
    where: str = ""
    worst_sum: float = 0.0

    def recode(self, values: Array, where: str) -> NDArray[np.uint16]:
        """Return checked probabilities [..., class, y, x] as multiples of 1/65535.

        Probabilities of several classes are divided by their sum first.
        """
        exact = values.astype(np.float64)
        scaled = exact
        if exact.shape[-3] > 1:
            total = exact.sum(axis=-3, keepdims=True)
            self.worst_sum = max(self.worst_sum, float(np.abs(total - 1).max(initial=0)))
            scaled = exact / total
        recoded = np.rint(scaled * STEPS).astype(DTYPE)
        largest = float(np.abs(recoded / STEPS - exact).max(initial=0))
        if largest > self.largest:
            self.largest, self.where = largest, where
        self.values += values.size
        return recoded

    def loss(self) -> str:
        """Return the loss in words."""
        if not self.values:
            return "no floating-point probabilities: all values are unchanged"
        summed = f", which were divided by their sum (up to {self.worst_sum:.1e} from 1)"
        return (
            f"probabilities{summed if self.worst_sum else ''} and rounded to multiples of "
            f"{1 / STEPS:.1e}: the largest change of a value is {self.largest:.1e}"
            + (f" ({self.where})" if self.where else "")
        )
