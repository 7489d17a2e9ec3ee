"""Items that are read together: items at consecutive positions of one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uqeval.stores.array import ItemArray


def follow(items: Sequence[ItemArray]) -> NDArray[np.bool_]:
    """Return of each item but the first whether it is at the next position of the same array as
    the item before it. The order of items may be another than that of the array.
    """
    return (np.diff([id(item.array) for item in items]) == 0) & (np.diff(_positions(items)) == 1)


def batch_ends(members: Sequence[Sequence[ItemArray]]) -> list[int]:
    """Return the first item of each batch, and the number of items. The items of a batch share
    chunks, and follow each other in each member.
    """
    count = len(members[0])
    may_end, must_end = np.ones(count + 1, bool), np.zeros(max(count - 1, 0), bool)
    for items in members:
        array_of = {id(item.array): item.array for item in items}
        in_chunk = {
            number: max(array.chunks[array.axes.index("item")], 1) if "item" in array.axes else 1
            for number, array in array_of.items()
        }
        chunks = _positions(items) // np.array([in_chunk[id(item.array)] for item in items])
        is_next = follow(items)
        may_end[1:-1] &= ~(is_next & (np.diff(chunks) == 0))
        must_end |= ~is_next
    may_end[1:-1] |= must_end
    return np.flatnonzero(may_end).tolist()


def _positions(items: Sequence[ItemArray]) -> NDArray[np.int64]:
    return np.array([item.index or 0 for item in items])
