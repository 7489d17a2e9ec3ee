"""Hints about class probabilities whose sums are not 1: what they are instead, and what to do.

The same for the writer, the converter and readers.
"""

from __future__ import annotations

from uqeval.arrays import Array
from uqeval.stores.bfloat16 import TOLERANCE, WAY_OUT

#: Sums of all pixels, and what the values are then.
_TOTALS = {100: "percentages", 255: "probabilities of 8 bits"}
#: Fewer sums may be equal by chance.
_LEAST = 16


def hint_of_sums(
    sums: Array, largest: float, tolerance: float, logits: str, wider: str, *, floats: bool = True
) -> str:
    """Return what to do about sums of which some are not 1.

    `largest`: the largest probability; `tolerance`: that of sums. `logits` says how to declare
    logits, and `wider` how to allow larger differences. `floats`: the values are floating point.
    """
    for total, noun in _TOTALS.items():
        if (abs(sums - total) <= total * max(tolerance, TOLERANCE)).all():
            return f"The sums are {total}, so these are {noun}: divide them by {total}."
    if largest > 1.0 + max(tolerance, TOLERANCE):
        most = float(sums.max())
        if sums.size >= _LEAST and most - sums.min() <= most * max(tolerance, TOLERANCE):
            return (  # logits have other sums at each pixel
                f"All sums are about {most:.3g}, so these may be scaled probabilities: divide them "
                "by their sum over the classes."
            )
        return f"There are values above 1. {logits}"
    if floats and (abs(sums - 1) <= TOLERANCE).all():
        return f"bfloat16 and float16 are too coarse to sum to 1. {WAY_OUT} {wider}".rstrip()
    return (
        "Check the order of axes (dimension_names) and that the softmax ran over the classes, in "
        f"float32 (`logits.float().softmax(dim)`). {wider}"
    ).rstrip()
