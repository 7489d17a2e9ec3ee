"""Maps stored as float16: patches whose side of a threshold is decided by rounding."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.metrics.thresholds import Fitted
    from uqeval.tallies import PatchCounts

#: Share of the patches from which on they are worth a warning.
WORTH_TELLING = 1e-3


def half_step(value: float) -> float:
    """Return half the distance of neighbouring float16 numbers at `value`: the rounding error."""
    exponent = max(math.frexp(abs(value))[1] - 1, -14) if value else -14  # equal below 2⁻¹⁴
    return math.ldexp(0.5, exponent - 10)


def band(tally: PatchCounts) -> tuple[PatchCounts, PatchCounts]:
    """Return tallies of the same patches with thresholds half a float16 step lower and higher."""
    low, high = (
        tuple(None if t is None else t + sign * half_step(t) for t in tally.threshold)
        for sign in (-1, 1)
    )
    # Both ends belong to the band.
    return (
        dataclasses.replace(tally, threshold=low, uncertainty_op=">="),
        dataclasses.replace(tally, threshold=high, uncertainty_op=">"),
    )


def warnings(name: str, fitted: Fitted | None, counted: Sequence[Any]) -> list[str]:
    """Return the warning of patches within half a float16 step of the threshold, if there are any.

    `counted`: states of the two tallies of `band`, or none. Few patches (one in a thousand) are not
    worth it.
    """
    if not counted or fitted is None or None in fitted.threshold:
        return []
    low, high = (state["counts"] for state in counted)
    total = int(low.sum())
    near = int(low[..., 1].sum() - high[..., 1].sum())
    if near <= WORTH_TELLING * total:
        return []
    shown = ", ".join(f"{t:.6g}" for t in fitted.threshold[:1])
    where = shown if len(fitted.threshold) == 1 else "their thresholds"
    return [
        f"{name} is stored as float16, and {near} of {total} patches have an uncertainty within "
        f"half a float16 step of {where}: rounding decides whether they are uncertain. Store the "
        "map as float32."
    ]
