"""Write an opened store as a new one: tile by tile, checked, in the format of `PredictionWriter`.

Probabilities as uint16 with a scale take half the bytes of float16, with smaller errors of scores.
`benchmarks/formats.py` measures this; docs/stores.md shows the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from uqeval.arrays import Array
from uqeval.errors import StoreError, quoted
from uqeval.stores.array import ItemArray, Store, arrays_of
from uqeval.stores.coordinates import IN_ATTRIBUTES
from uqeval.stores.kinds import FLOWS, KINDS
from uqeval.stores.stack import batch_ends
from uqeval.stores.watch import Watch
from uqeval.stores.writing.converted_numbers import OF_CLASSES, Checks, Form, Numbers, Recoding
from uqeval.stores.writing.new_store import (
    NewStore,
    are_equal,
    items_in_chunk,
    replacing,
)
from uqeval.stores.zarr import writer as zw

#: Bytes of a tile between reading and writing; a tile is at least one chunk of both.
_TILE_BYTES = 256 * 2**20

Progress = Callable[[int, int], None]


def _form(kind: str, item_array: ItemArray) -> Form:
    array = item_array.array
    forms = [form[1:] for form in KINDS.get(kind, (("item", "y", "x"),))]
    axes = next(form for form in forms if set(form) == set(array.axes) - {"item"})
    return Form(axes, tuple(map(array.length, axes)), array.dtype)


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
    classes = {form.size("class") for k in OF_CLASSES for form in forms.get(k, ())}
    checks = Checks(
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


def _check_complete(source: Store, forms: Mapping[str, list[Form]]) -> None:
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
    own.pop(IN_ATTRIBUTES, None)  # `NewStore` writes them again
    return given | {"uqeval": own | {"version": zw.VERSION, "complete": False}}


def _declared_classes(attributes: Mapping[str, Any]) -> int:
    """Return how many classes the attributes of a store declare; 0 if they do not tell."""
    declared = (attributes.get("uqeval") or {}).get("classes")
    names = attributes.get("class_names") or ()
    return max(len(names), declared if isinstance(declared, int) else 0)


def _copy(
    parts: Sequence[ItemArray],
    forms: list[Form],
    store: NewStore,
    numbers: Numbers,
    checks: Checks,
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
                    stored = numbers.stored(checked, array, where, y)
                    place = tuple(y if axis == "y" else 0 for axis in form.axes)
                    store.write(item, kind, stored, *place)
            yield len(items)


def _read(item_array: ItemArray, form: Form, count: int, y: int, rows: int) -> Array:
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
