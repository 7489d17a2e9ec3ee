"""Coordinates along the axis of classes: numbers must be the ids, texts become `class_names`."""

from __future__ import annotations

from dataclasses import replace

from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import Store, arrays_of
from uqeval.stores.class_ids import other_words, refuse_other_numbers
from uqeval.stores.coordinates import (
    COLUMNS,
    Coordinate,
    count_like,
    ends,
    is_count,
    is_other_order,
)
from uqeval.stores.kinds import shown_axes

#: Names, without a plural s, of texts along the axis of classes that are the names of classes.
_CLASS_TEXTS = ("name", "label", "class", "class_name", "class_label", "category", "categorie")


def with_classes(store: Store) -> Store:
    """Return a store without its coordinates of classes, except those that are compared. Texts
    along the axis of classes become its `class_names`.

    Raises `StoreError` for ids of classes that are in another order than the classes, and for texts
    that contradict the names that the store declares.
    """
    others = {name: own for name, own in store.coordinates.items() if own.axis != "class"}
    classes = _classes(store)
    if classes is None:
        return replace(store, coordinates=others)
    texts: list[tuple[str, list[str]]] = []
    extra: list[tuple[str, list[str]]] = []
    for name, own in sorted(store.coordinates.items(), key=lambda pair: not pair[1].is_index):
        if own.axis != "class" or (values := own.values) is None or len(values) != classes:
            continue
        if own.is_guess and store.items == classes:  # perhaps the class of each item
            continue
        if own.is_extra:  # others, such as colors, are compared only
            if own.name.strip("s") in _CLASS_TEXTS:
                extra.append((own.where, values.tolist()))
            others[name] = own
            continue
        is_text = values.dtype.kind == "U"
        if is_other_order(values, count_like(values)):
            raise StoreError(
                f"{cut(store.path)}: the classes are in another order than their ids: the "
                f"coordinate {cut(own.where)} runs from {ends(values)}, but class 0 is the first. "
                f"{_how_to_sort_classes(own)}."
            )
        if is_text and classes > 1 and not is_count(values):
            texts.append((own.where, values.tolist()))
        elif not is_text:
            others[name] = own
    if not texts and len(extra) == 1 and classes > 1 and not store.attributes.get("class_names"):
        texts = extra
        others = {name: own for name, own in others.items() if own.where != extra[0][0]}
    if not texts:
        return replace(store, coordinates=others)
    where, names = texts[0]
    declared = store.attributes.get("class_names") or names
    pair = (store.path, declared), (where, names)
    refuse_other_numbers(pair, "; the option --class-names does not help")
    warnings = store.warnings
    if len(declared) == len(names):
        warnings += tuple(other_words(declared, store.path, pair[1:]))
    attributes = {**store.attributes, "class_names": list(declared)}
    return replace(store, coordinates=others, attributes=attributes, warnings=warnings)


def _how_to_sort_classes(own: Coordinate) -> str:
    """Return advice about a coordinate of classes that is not in the order of their ids."""
    if own.dimension == COLUMNS:
        sort = "table[sorted(table.columns, key=int)] of pandas or polars"
        remove = "give the numbers without it, such as numpy.asarray(table)"
    elif own.dimension is not None:
        sort = f"ds.sortby(ds[{quoted(own.name)}].astype(int)) of xarray"
        remove = f"remove the coordinate, such as ds.drop_vars({quoted(own.name)})"
    else:
        sort = f"probs.take(numpy.argsort({own.name}), axis) along the axis of classes"
        remove = f"write the file without {quoted(own.name)}"
    return f"Sort the classes by number, such as {sort}; if labels are positions, {remove}"


def _classes(store: Store) -> int | None:
    """Return the size of the axis of classes; None if no array has one."""
    sizes = (
        own.length("class")
        for kind, parts in store.arrays.items()
        for own in arrays_of(parts)
        if "class" in shown_axes(kind, own.axes)
    )
    return next(sizes, None)
