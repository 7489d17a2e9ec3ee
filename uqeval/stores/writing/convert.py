"""Write an opened store as a new one: tile by tile, checked, in the format of `PredictionWriter`.

Probabilities as uint16 with a scale take half the bytes of float16, with smaller errors of scores.
`benchmarks/formats.py` measures this; docs/stores.md shows the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import DataError, StoreError, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray, arrays_of
from uqeval.stores.bfloat16 import FROM_HALF, SOURCE, is_coarse, source_of
from uqeval.stores.incoming import checked_floats, checked_labels, label_dtype
from uqeval.stores.kinds import FLOWS, scale_of
from uqeval.stores.stack import batch_ends
from uqeval.stores.void_id import refuse_ambiguous, refuse_fill_ids
from uqeval.stores.watch import Watch
from uqeval.stores.writing.convertible import item_axes
from uqeval.stores.writing.new_store import (
    NewStore,
    are_equal,
    copied_attributes,
    items_in_chunk,
    replacing,
)
from uqeval.stores.zarr import writer as zw

#: Bytes of a tile between reading and writing; a tile is at least one chunk of both.
_TILE_BYTES = 256 * 2**20

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Form:
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


def _form(kind: str, item_array: ItemArray) -> _Form:
    array = item_array.array
    axes = item_axes(kind, array.axes)
    return _Form(axes, tuple(array.shape[array.axes.index(a)] for a in axes), array.dtype)


def write_converted(
    source: Store,
    target: Path,
    void: int,
    compression: zw.Compression,
    recoding: Recoding | None,
    progress: Progress | None,
) -> None:
    """Write the arrays, names and attributes of `source` as a Zarr store at `target`.

    `void`: the void id of its labels. `usecases.convert` describes the other parameters. Raises
    `StoreError`, `DataError` and `OutputError`; then nothing is left at `target`.
    """
    forms = {kind: [_form(kind, part) for part in parts] for kind, parts in source.arrays.items()}
    dense = all(len({form.shape for form in kind}) == 1 for kind in forms.values())
    _check_complete(source, forms)
    kinds_of_classes = ("probs", "logits", "mean_probs")
    classes = {form.size("class") for k in kinds_of_classes for form in forms.get(k, ())}
    checks = _Checks(
        max(*classes, 2) if classes else None, void, recoding, _declared_classes(source.attributes)
    )
    numbers = {
        kind: checks.numbers(kind, parts, forms[kind]) for kind, parts in source.arrays.items()
    }
    dense = dense and all(
        are_equal(numbers[kind].attributes(array) for array in arrays_of(parts))
        for kind, parts in source.arrays.items()
    )
    if not dense and source.names is None:
        raise StoreError(
            "Items of different sizes or attributes are stored in one group per item, by name: "
            "give their names."
        )
    names = source.names or [str(i) for i in range(source.items)]
    watches = {
        kind: Watch(names, [[part] for part in parts]) for kind, parts in source.arrays.items()
    }
    largest = max(form.bytes for kind in forms.values() for form in kind)
    in_chunk = items_in_chunk(source.items, largest) if dense else 1
    total, copied = sum(map(len, forms.values())), 0
    with replacing(target) as root:
        NewStore(root, source.items, source.names, dense).create(
            _attributes(source), source.coordinates
        )
        for kind, parts in source.arrays.items():
            store = NewStore(root, len(parts), source.names, dense, compression, in_chunk)
            for count in _copy(parts, forms[kind], store, numbers[kind], checks, watches[kind]):
                copied += count
                if progress is not None:
                    progress(copied, total)
            store.flush()
        for watch in watches.values():
            watch.check_all()
        assert copied == total


def _check_complete(source: Store, forms: Mapping[str, list[_Form]]) -> None:
    """Raise `StoreError` for items without one of the arrays."""
    for kind, found in forms.items():
        if len(found) != source.items and kind not in FLOWS:
            raise StoreError(
                f"{len(found)} of {source.items} items have {quoted(kind)}. Store it "
                "for all of them or for none."
            )


def _attributes(source: Store) -> dict[str, Any]:
    """Return the attributes of the new store, which is not complete yet."""
    given = {k: v for k, v in source.attributes.items() if k not in ("uqeval", "names")}
    default = "labels" if source.arrays.keys() == {"labels"} else "predictions"
    own = {"format": default} | dict(source.attributes.get("uqeval") or {})
    return given | {"uqeval": own | {"version": zw.VERSION, "complete": False}}


def _declared_classes(attributes: Mapping[str, Any]) -> int:
    """Return how many classes the attributes of a store declare; 0 if they do not tell."""
    declared = (attributes.get("uqeval") or {}).get("classes")
    names = attributes.get("class_names") or ()
    return max(len(names), declared if isinstance(declared, int) else 0)


def _copy(
    parts: Sequence[ItemArray],
    forms: list[_Form],
    store: NewStore,
    numbers: _Numbers,
    checks: _Checks,
    watch: Watch,
) -> Iterator[int]:
    """Copy all items of a kind; yield the number of items after each step."""
    kind = numbers.kind
    for start, stop in pairwise(batch_ends([parts])):
        array, form = parts[start].array, numbers.form(forms[start])
        chunk_rows = form.chunks[form.axes.index("y")]
        chunk_bytes = math.prod(form.shape) // form.size("y") * array.dtype.itemsize * chunk_rows
        most = max(1, _TILE_BYTES // chunk_bytes)
        for first in range(start, stop, most):
            items = range(first, min(first + most, stop))
            rows = chunk_rows * max(1, _TILE_BYTES // (len(items) * chunk_bytes))
            attributes = numbers.attributes(array)
            for item in items:
                store.array(
                    item, kind, form.shape, numbers.dtype, form.chunks, form.axes, attributes
                )
            for y in range(0, form.size("y"), rows):
                with watch.reading(items):
                    block = _read(parts[first], form, len(items), y, rows)
                for item, values in zip(items, block, strict=True):
                    where = f"{array.where}, item {store.label(item)}"
                    checked = checks.check(kind, values, array, where, y)
                    stored = numbers.stored(checked, scale_of(array), where, y)
                    place = tuple(y if axis == "y" else 0 for axis in form.axes)
                    store.write(item, kind, stored, *place)
            yield len(items)


def _read(item_array: ItemArray, form: _Form, count: int, y: int, rows: int) -> Array:
    """Return rows from `y` on of `count` items from `item_array` on: [item, *form.axes]."""
    array = item_array.array
    where = {"y": slice(y, min(y + rows, form.size("y")))}
    order = form.axes
    if item_array.index is not None:
        where["item"] = slice(item_array.index, item_array.index + count)
        order = ("item", *order)
    region = tuple(where.get(a, slice(0, n)) for a, n in zip(array.axes, array.shape, strict=True))
    values = array.read(region).transpose([array.axes.index(axis) for axis in order])
    return values if item_array.index is not None else values[None]


@dataclass(frozen=True)
class _Numbers:
    """How the numbers of all items of a kind are stored.

    `unscales`: the items have several scales, or only some of them are scaled integers, so that
    integers become probabilities. `recoding`: of probabilities, None if they are copied.
    """

    kind: str
    dtype: np.dtype[Any]
    unscales: bool
    marks: Mapping[str, Any]
    recoding: Recoding | None

    def form(self, form: _Form) -> _Form:
        """Return the form of an item in the new store; labels have the chunks of their source."""
        return replace(form, dtype=self.dtype) if self.kind in _KINDS else form

    def attributes(self, array: StoredArray) -> dict[str, Any]:
        """Return the attributes of the new array for items of `array`."""
        if self.recoding is not None:
            return ATTRIBUTES
        own = copied_attributes(array)
        if self.kind == "labels":  # that of the store counts
            own.pop("ignore_index", None)
        if self.unscales:
            own.pop("scale", None)
        return {**own, **self.marks}

    def stored(self, values: Array, scale: Any, where: str, row: int) -> Array:
        """Return checked values of an item from `row` on in the form in which they are stored.

        `scale`: that of their array.

        Raises `DataError` for probabilities that have no longer the sums of this form.
        """
        if self.unscales and values.dtype.kind != "f":
            values = values * scale
        if self.recoding is not None:
            return self.recoding.recode(values, where)
        stored = values.astype(self.dtype, copy=False)
        if self.kind in _KINDS and self.dtype.kind == "f" and values.dtype != self.dtype:
            source = self.marks.get("source_dtype", self.dtype.name)
            _check_floats(self.kind, stored, source, where, row)
        return stored


@dataclass(frozen=True)
class _Checks:
    """Checks of values. `classes` is None if there are no probabilities to give their number;
    `declared_classes` is the number that attributes declare.
    """

    classes: int | None
    ignore_index: int
    recoding: Recoding | None = None
    declared_classes: int = 0

    def numbers(self, kind: str, parts: Sequence[ItemArray], forms: Sequence[_Form]) -> _Numbers:
        """Return how the items of a kind are stored: labels in the smallest dtype for their ids."""
        dtypes, arrays = {form.dtype for form in forms}, arrays_of(parts)
        if kind == "labels" and self.classes is not None:
            dtypes = {label_dtype(self.classes, self.ignore_index)}
        if kind not in _KINDS:
            return _Numbers(kind, np.result_type(*dtypes), False, {}, None)
        scales = {None if a.dtype.kind == "f" else repr(scale_of(a)) for a in arrays}
        unscales = len(scales) > 1
        if unscales:
            dtypes = {np.dtype(np.float32), *(dtype for dtype in dtypes if dtype.kind == "f")}
        dtype = np.result_type(*dtypes)
        if self.recoding is not None and dtype.kind == "f":
            return _Numbers(kind, DTYPE, unscales, {}, self.recoding)
        return _Numbers(kind, dtype, unscales, _marks(arrays, dtype), None)

    def check(self, kind: str, values: Array, array: StoredArray, where: str, row: int) -> Array:
        """Return `values` of an item from `row` on, as they will be stored. Raises `DataError`."""
        if kind == "labels":
            refuse_fill_ids(values, array, self.ignore_index, where, kind)
        if kind == "labels" and self.classes is not None:
            return checked_labels(values, self.classes, self.ignore_index, where, row)
        if kind == "labels":
            refuse_ambiguous(values, self.declared_classes, self.ignore_index, where, kind)
        if kind not in ("probs", "logits", "mean_probs"):
            return values
        if values.dtype.kind == "f":
            source = source_of(array, values.dtype.name)
            _check_floats(kind, values, source, where, row)
        else:
            for at, probs in _samples(values, where):
                _check_scaled(kind, probs, scale_of(array), at, row)
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


def _check_floats(kind: str, values: Array, source: str, where: str, row: int) -> None:
    """Check floating-point probabilities or logits, which were computed as `source`. Raises as
    `_Checks.check` does."""
    form = "logits" if kind == "logits" else "probs"
    for at, probs in _samples(values, where):
        checked_floats(probs, values.dtype.name, form, at, row, source)


def _check_scaled(kind: str, values: Array, scale: object, where: str, row: int) -> None:
    """Check integer probabilities or logits [class, y, x]. Raises as `_Checks.check` does."""
    if not isinstance(scale, int | float) or not 0 < scale <= 1:
        raise StoreError(
            f"{where}: {values.dtype} with scale {quoted(scale)} in the attributes, expected the "
            "probability of one unit. Convert the values to floating point, or store a scale."
        )
    off = np.abs(values.sum(axis=0, dtype=np.int64) * scale - 1.0)
    if kind != "logits" and len(values) > 1 and off.size and off.max() > len(values) * scale:
        y, x = (int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
        raise DataError(
            f"{where}: the class probabilities in row {row + y}, column {x} do not sum to 1: the "
            f"sum is {off[y, x]:.4g} off. Check the scale and the order of axes."
        )


DTYPE = np.dtype(np.uint16)
STEPS = int(np.iinfo(DTYPE).max)
ATTRIBUTES = {"scale": 1 / STEPS}
_KINDS = frozenset({"probs", "mean_probs"})


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
