"""Open a path, URL or array as a store of predictions or labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import quoted
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.assembled import Opening, Role, store_of_named, store_of_one
from uqeval.stores.attributes import check_attributes
from uqeval.stores.declared import Declared
from uqeval.stores.files.numpy_array import in_memory
from uqeval.stores.formats import contents_of
from uqeval.stores.incoming import as_array
from uqeval.stores.names import read_names_file

__all__ = ["Role", "contents_of", "open_store", "read_names_file"]


def open_store(
    path: str | os.PathLike[str] | NDArray[Any] | Mapping[str, Any],
    *,
    role: Role,
    names: Sequence[str] | None = None,
    fill_missing: bool = False,
    label_map: str | None = None,
    kind: str | None = None,
    axes: str | None = None,
) -> Store:
    """Return the store at `path`, its arrays with their axes resolved and cut into items.

    `path` may also be `Contents` that are open, an array in memory, or a mapping of arrays by name.
    `role` names the content of a bare array; `kind` and `axes` (letters of NTCHW) declare what it
    does not say. `names` override the store's own; for a folder of label images they say which
    items to look for. With `fill_missing`, chunks that a Zarr store does not hold read as the fill
    value. Raises `StoreError` for anything that is no sound store, `UsageError` for what is
    declared wrongly.
    """
    opening = Opening(role, names, fill_missing, label_map, Declared(kind, axes))
    if isinstance(path, np.ndarray):
        return store_of_one(in_memory(path), opening)
    if isinstance(path, Mapping):
        return _open_mapping(path, opening)
    return contents_of(path).store_once(opening)


#: What a mapping holds beside arrays of numbers.
_ATTRIBUTES = frozenset({"names", "class_names", "ignore_index", "sample_kind"})

_WHERE = "arrays in memory"


def _open_mapping(given: Mapping[str, Any], opening: Opening) -> Store:
    """Return arrays in memory by name, with `names`, `class_names`, `ignore_index` and
    `sample_kind`.

    Raises `StoreError` for what is no sound store.
    """
    members: dict[str, StoredArray] = {}
    attributes: dict[str, Any] = {}
    for kind, values in given.items():
        if kind in _ATTRIBUTES:
            attributes[kind] = _plain(values)
        else:
            if isinstance(values, bool | int | float):
                values = np.asarray(values)
            array = as_array(values, f"{_WHERE}, {quoted(kind)}")
            members[str(kind)] = in_memory(array, f"{kind} in memory")
    check_attributes(attributes, _WHERE)
    return store_of_named(_WHERE, members, attributes, opening)


def _plain(values: Any) -> Any:
    """Return arrays and tuples as lists, NumPy's numbers as Python's."""
    if isinstance(values, tuple):
        return list(values)
    tolist = getattr(values, "tolist", None)
    return tolist() if callable(tolist) else values
