"""The void id that a store declares, and the one that is assumed if nobody gives one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.arrays import Array, np
from uqeval.errors import DataError, StoreError, cut, quoted

#: An id that no label has: there are at most 65,535 classes.
_NO_LABEL = 65535


class AssumedVoid(int):
    """A void id that nobody gave. With more classes it may as well be a class."""


#: The void id of labels, unless the user or the store gives another.
ASSUMED_VOID = AssumedVoid(255)


def declared_void(attributes: Mapping[str, Any], where: str) -> int | None:
    """Return the attribute `ignore_index`; None without it. Raises `StoreError` if it is no whole
    number.
    """
    void = attributes.get("ignore_index")
    if void is not None and type(void) is not int:
        raise StoreError(
            f"{cut(where)}: attribute ignore_index is {quoted(void)}, expected an integer."
        )
    return void


def stamp_of_void(void: int, classes: int) -> int | str:
    """Return what a stamp of results has of a void id: the id, and where it may be a class, whether
    somebody gave it. Results of earlier versions do not tell, so their stamps differ there.
    """
    if void != ASSUMED_VOID or classes <= void:
        return int(void)
    return f"{int(void)} {'assumed' if isinstance(void, AssumedVoid) else 'given'}"


def refuse_ambiguous(
    ids: Array, classes: int, void: int, where: str, noun: str, option: str
) -> None:
    """Raise `DataError` for ids that may be void or a class: the void id is assumed, and there are
    more classes.

    `option` followed by an id declares it as void.
    """
    if not isinstance(void, AssumedVoid) or classes <= void:
        return
    if count := int(np.count_nonzero(ids == void)):
        raise DataError(
            f"{where}: {count} of {ids.size} pixels have {noun} {int(void)}, which is one of the "
            f"{classes} classes, and the void id unless another is given. If {int(void)} is void, "
            f"give {option}{int(void)}. If it is a class, give an id that no label has: "
            f"{option}{_NO_LABEL}."
        )
