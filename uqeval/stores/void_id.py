"""The void id that is assumed if neither the user nor the store gives one."""

from __future__ import annotations

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError

#: An id that no label has: there are at most 65,535 classes.
_NO_LABEL = 65535


class AssumedVoid(int):
    """A void id that nobody gave. With more classes it may as well be a class."""


#: The void id of labels, unless the user or the store gives another.
ASSUMED_VOID = AssumedVoid(255)


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
