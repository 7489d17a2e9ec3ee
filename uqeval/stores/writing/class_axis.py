"""The axis of classes in arrays that a loop writes, which a single class need not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from uqeval.arrays import np
from uqeval.stores.described import DescribedArray, ordered


def ordered_classes(
    values: Any, where: str, forms: Sequence[tuple[str, ...]], classes: int
) -> DescribedArray:
    """Return predictions in the order of their form, as `ordered` does, with an axis of classes.

    With one class, arrays with named axes may be without it.
    """
    without = [tuple(axis for axis in form if axis != "class") for form in forms]
    own = ordered(values, where, (*forms, *without) if classes == 1 else forms)
    axes = next((form for form in without if form == own.dimension_names), None)
    if axes is None:
        return own
    at = axes.index("y")
    stack, axes = np.expand_dims(own.values, at), (*axes[:at], "class", *axes[at:])
    return replace(own, values=stack, dimension_names=axes)
