"""Convert files of other tools to stores: tile by tile, checked, in the format of
`PredictionWriter`.

Probabilities as uint16 with a scale take half the bytes of float16, with smaller errors of scores.
`benchmarks/formats.py` measures this; docs/stores.md shows the table.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import DataError, StoreError, UsageError, cut, quoted
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.bfloat16 import SOURCE, FromBfloat16
from uqeval.stores.files.item_folder import kinds_in_folder
from uqeval.stores.files.label_folder import png_files
from uqeval.stores.incoming import checked_floats, checked_labels, label_dtype
from uqeval.stores.store import has_chunks, open_store
from uqeval.stores.void_id import ASSUMED_VOID, refuse_ambiguous, void_id_of
from uqeval.stores.watch import Watch
from uqeval.stores.writing.new_store import (
    NewStore,
    checked_target,
    copied_attributes,
    items_in_chunk,
    replacing,
)
from uqeval.stores.writing.pieces import Piece, Pieces, find_pieces, item_axes, pieces_of
from uqeval.stores.zarr import writer as zw
from uqeval.stores.zarr.source import is_zarr

#: Bytes of a tile between reading and writing; a tile is at least one chunk of both.
_TILE_BYTES = 256 * 2**20

Progress = Callable[[int, int], None]


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    kind: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    axes: str | None = None,
    key: str | None = None,
    class_names: Sequence[str] | None = None,
    ignore_index: int | None = None,
    compression: zw.Compression = "lz4",
    fill_missing: bool = False,
    overwrite: bool = False,
    recoding: Recoding | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Write the content of `source` as a Zarr store at `destination`; return warnings.

    `source`: an `.npy` or `.npz` file, a folder of such files (one per item, [T, C, H, W] or [C, H,
    W], named by their stems), a folder of label PNGs, or a Zarr store, which gets new chunks.
    `axes`: order of the axes of an array without names, in letters of NTCHW; `kind`: its content
    (`probs` if it has classes, or if it has two axes and there are labels); `key`: the array to
    take from an `.npz` file or Zarr group. `labels`: a store or folder with labels for the items.
    `ignore_index`: the void id of labels, by default that of their store, else of `source`.
    With `fill_missing`, missing chunks of a Zarr store are written as the fill value.

    `recoding`: store probabilities as uint16; afterwards it has the loss. `progress` is called with
    the number of finished items and of all items, over all kinds. Nothing is guessed from values,
    and nothing is repaired: probabilities must pass the checks of an evaluation. Raises
    `UsageError` if an option is needed, `StoreError` and `DataError` for sources that are
    unreadable or not as declared, and `OutputError`; then nothing is left at `destination`.
    """
    target = checked_target(destination, [source, labels], overwrite)
    _refuse_without_effect(os.fspath(source), kind, axes, key, fill_missing, labels)
    pieces = find_pieces(
        os.fspath(source), kind, names, axes, key, fill_missing, has_labels=labels is not None
    )
    own_labels = [Store(os.fspath(source), {}, attributes=pieces.attributes)]
    given_labels = []
    if labels is not None:
        store = open_store(
            os.fspath(labels), role="labels", names=pieces.names, fill_missing=fill_missing
        )
        pieces.kinds["labels"] = pieces_of(store.arrays["labels"])
        pieces.warnings += store.warnings
        given_labels.append(store)
    void = void_id_of(ignore_index, given_labels, own_labels)
    if void is not ASSUMED_VOID:
        pieces.attributes["ignore_index"] = void
    if class_names is not None:
        pieces.attributes["class_names"] = list(class_names)
    with replacing(target) as new:
        _write(pieces, new, void, compression, recoding, progress)
    return pieces.warnings


def _refuse_without_effect(
    source: str,
    kind: str | None,
    axes: str | None,
    key: str | None,
    fill_missing: bool,
    labels: str | os.PathLike[str] | None,
) -> None:
    """Raise `UsageError` for options without effect on this source."""
    paths = [source, *([] if labels is None else [os.fspath(labels)])]
    if fill_missing and not any(map(has_chunks, paths)):
        raise UsageError(
            f"--missing-chunks fill is for Zarr stores, and {cut(source)} is not one. Leave it out."
        )
    local = Path(source)
    images = local.is_dir() and not is_zarr(source) and not kinds_in_folder(source)
    if key is not None and (images or local.suffix == ".npy"):
        raise UsageError(
            f"--key {key} names an array of a .npz file or a Zarr group; {cut(source)} has no "
            "names. Leave it out."
        )
    if images and png_files(source):
        if kind not in (None, "labels", "predictions"):
            raise UsageError(
                f"--kind {kind}: {cut(source)} is a folder of PNGs of class ids; expected labels "
                "or predictions."
            )
        if axes is not None and kind != "predictions":
            raise UsageError(
                f"--axes {axes}: {cut(source)} is a folder of label PNGs, one [H, W] per item. "
                "Leave it out."
            )


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


def _write(
    pieces: Pieces,
    root: Path,
    void: int,
    compression: zw.Compression,
    recoding: Recoding | None,
    progress: Progress | None,
) -> None:
    forms = {
        kind: [_form(kind, piece()) for piece in parts] for kind, parts in pieces.kinds.items()
    }
    dense = all(len({form.shape for form in kind}) == 1 for kind in forms.values())
    _check_complete(pieces, forms, dense)
    NewStore(root, pieces.items, pieces.names, dense).create(_attributes(pieces, set(forms)))
    kinds_of_classes = ("probs", "logits", "mean_probs")
    classes = {form.size("class") for k in kinds_of_classes for form in forms.get(k, ())}
    checks = _Checks(
        max(*classes, 2) if classes else None, void, recoding, _declared_classes(pieces.attributes)
    )
    names = pieces.names or [str(i) for i in range(pieces.items)]
    watches = {
        kind: Watch(names, [[piece()] for piece in parts]) for kind, parts in pieces.kinds.items()
    }
    largest = max(form.bytes for kind in forms.values() for form in kind)
    in_chunk = items_in_chunk(pieces.items, largest) if dense else 1
    total, copied = sum(map(len, forms.values())), 0
    for kind, parts in pieces.kinds.items():
        store = NewStore(root, len(parts), pieces.names, dense, compression, in_chunk)
        for count in _copy(kind, parts, forms[kind], store, checks, watches[kind]):
            copied += count
            if progress is not None:
                progress(copied, total)
        store.flush()
    for watch in watches.values():
        watch.check_all()


def _check_complete(pieces: Pieces, forms: Mapping[str, list[_Form]], dense: bool) -> None:
    """Raise `StoreError` for items of several sizes without names, or without one of the arrays."""
    if not dense and pieces.names is None:
        raise StoreError(
            "Items of different sizes are stored in one group per item, by name: give their names."
        )
    for kind, found in forms.items():
        if len(found) != pieces.items and kind not in ("flow", "flow_forward"):
            raise StoreError(
                f"{len(found)} of {pieces.items} items have {quoted(kind)}. Store it "
                "for all of them or for none."
            )


def _attributes(pieces: Pieces, kinds: set[str]) -> dict[str, Any]:
    """Return the attributes of the new store, which is not complete yet."""
    given = {k: v for k, v in pieces.attributes.items() if k not in ("uqeval", "names")}
    default = "labels" if kinds == {"labels"} else "predictions"
    own = {"format": default} | dict(pieces.attributes.get("uqeval") or {})
    return given | {"uqeval": own | {"version": zw.VERSION, "complete": False}}


def _declared_classes(attributes: Mapping[str, Any]) -> int:
    """Return how many classes the attributes of a store declare; 0 if they do not tell."""
    declared = (attributes.get("uqeval") or {}).get("classes")
    names = attributes.get("class_names") or ()
    return max(len(names), declared if isinstance(declared, int) else 0)


def _copy(
    kind: str,
    parts: list[Piece],
    forms: list[_Form],
    store: NewStore,
    checks: _Checks,
    watch: Watch,
) -> Iterator[int]:
    """Copy all items of a kind; yield the number of items after each step."""
    dtypes = {checks.dtype(kind, form) for form in forms}
    dtype = np.result_type(*dtypes)
    first = 0
    while first < len(parts):
        item_array, form = parts[first](), forms[first]
        is_recoded = checks.recodes(kind, form.dtype)
        if is_recoded:
            form = replace(form, dtype=DTYPE)
        array, rows = item_array.array, form.chunks[form.axes.index("y")]
        row_bytes = math.prod(form.shape) // form.size("y") * array.dtype.itemsize
        batch = 1
        if item_array.index is not None:  # items in one chunk are read together
            batch = array.chunks[array.axes.index("item")]
            batch = max(1, min(batch, len(parts) - first, _TILE_BYTES // (rows * row_bytes)))
        rows *= max(1, _TILE_BYTES // (batch * rows * row_bytes))
        for index in range(first, first + batch):
            attributes = ATTRIBUTES if is_recoded else copied_attributes(array)
            store.array(index, kind, form.shape, dtype, form.chunks, form.axes, attributes)
        for y in range(0, form.size("y"), rows):
            with watch.reading(range(first, first + batch)):
                block = _read(item_array, form, batch, y, rows)
            for k, values in enumerate(block):
                where = f"{array.where}, item {store.label(first + k)}"
                values = checks.check(kind, values, array.attributes, where, y)
                if is_recoded:
                    assert checks.recoding is not None
                    values = checks.recoding.recode(values, where)
                start = tuple(y if axis == "y" else 0 for axis in form.axes)
                store.write(first + k, kind, values.astype(dtype, copy=False), *start)
        first += batch
        yield batch


def _read(item_array: ItemArray, form: _Form, batch: int, y: int, rows: int) -> Array:
    """Return rows from `y` on of `batch` items from `item_array` on: [item, *form.axes]."""
    array = item_array.array
    where = {"y": slice(y, min(y + rows, form.size("y")))}
    order = form.axes
    if item_array.index is not None:
        where["item"] = slice(item_array.index, item_array.index + batch)
        order = ("item", *order)
    region = tuple(where.get(a, slice(0, n)) for a, n in zip(array.axes, array.shape, strict=True))
    values = array.read(region).transpose([array.axes.index(axis) for axis in order])
    return values if item_array.index is not None else values[None]


@dataclass(frozen=True)
class _Checks:
    """Checks of values. `classes` is None if there are no probabilities to give their number;
    `declared_classes` is the number that attributes declare.
    """

    classes: int | None
    ignore_index: int
    recoding: Recoding | None = None
    declared_classes: int = 0

    def recodes(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Return whether an array of a kind and dtype is stored as uint16."""
        return self.recoding is not None and self.recoding.applies_to(kind, dtype)

    def dtype(self, kind: str, form: _Form) -> np.dtype[Any]:
        """Return the dtype in which an array is stored; for labels, the smallest one for their
        ids.
        """
        if self.recodes(kind, form.dtype):
            return DTYPE
        if kind == "labels" and self.classes is not None:
            return label_dtype(self.classes, self.ignore_index)
        return form.dtype

    def check(
        self, kind: str, values: Array, attributes: dict[str, Any], where: str, row: int
    ) -> Array:
        """Return `values` of an item from `row` on, as they will be stored. Raises `DataError`."""
        if kind == "labels" and self.classes is not None:
            return checked_labels(values, self.classes, self.ignore_index, where, row)
        if kind == "labels":
            refuse_ambiguous(values, self.declared_classes, self.ignore_index, where, kind)
        if kind not in ("probs", "logits", "mean_probs"):
            return values
        stack = values if values.ndim == 4 else values[None]
        for sample, probs in enumerate(stack):
            at = f"{where}, sample {sample}" if values.ndim == 4 else where
            if values.dtype.kind == "f":
                form = "logits" if kind == "logits" else "probs"
                marked = probs.view(FromBfloat16) if SOURCE.items() <= attributes.items() else probs
                checked_floats(marked, values.dtype.name, form, at, row)
            else:
                _check_scaled(probs, attributes.get("scale"), at, row)
        return values


def _check_scaled(values: Array, scale: object, where: str, row: int) -> None:
    """Check integer probabilities [class, y, x]. Raises as `_Checks.check` does."""
    if not isinstance(scale, int | float) or not 0 < scale <= 1:
        raise StoreError(
            f"{where}: {values.dtype} with scale {quoted(scale)} in the attributes, expected the "
            "probability of one unit. Convert the values to floating point, or store a scale."
        )
    off = np.abs(values.sum(axis=0, dtype=np.int64) * scale - 1.0)
    if len(values) > 1 and off.size and off.max() > len(values) * scale:
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

    def applies_to(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Return whether arrays of a kind and dtype are recoded; others are copied."""
        return kind in _KINDS and dtype.kind == "f"

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
