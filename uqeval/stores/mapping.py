"""Arrays in memory, by name, as a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.errors import quoted
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.assembled import Opening, store_of_named
from uqeval.stores.attributes import check_attributes
from uqeval.stores.incoming import as_array
from uqeval.stores.numpy_array import in_memory

#: What a mapping holds beside arrays of numbers.
_ATTRIBUTES = frozenset({"names", "class_names", "ignore_index", "sample_kind"})

_WHERE = "arrays in memory"


def open_mapping(given: Mapping[str, Any], opening: Opening) -> Store:
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
