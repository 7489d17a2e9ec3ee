"""Maps stored as float16: patches and errors whose side of a threshold is decided by rounding."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.metrics.thresholds import Fitted
    from uqeval.tallies import ItemPatchCounts, PatchCounts
    from uqeval.tallies.undetected import Undetected

#: Share of the patches, or of the wrong pixels, above which a warning appears.
WORTH_TELLING = 1e-3


def band(tally: PatchCounts | ItemPatchCounts) -> tuple[Any, Any]:
    """Return tallies of the same patches with thresholds half a float16 step lower and higher.

    The patches in the closed interval are the difference of what the two count as uncertain.
    """
    from uqeval.tallies import ItemPatchCounts
    from uqeval.tallies._values import float16_end

    if isinstance(tally, ItemPatchCounts):
        return dataclasses.replace(tally, half_steps=-1), dataclasses.replace(tally, half_steps=1)
    closed = tally.uncertainty_op == ">="
    ends = (
        tuple(None if t is None else float16_end(t, side, closed) for t in tally.threshold)
        for side in (-1, 1)
    )
    low, high = (dataclasses.replace(tally, threshold=end) for end in ends)
    return low, high


def band_of_errors(tally: Undetected) -> tuple[Undetected, ...]:
    """Return the same for wrong pixels that are not above a threshold; none without a threshold."""
    from uqeval.tallies._values import float16_end

    if tally.threshold is None:
        return ()
    ends = (float16_end(tally.threshold, side, False) for side in (-1, 1))
    return tuple(dataclasses.replace(tally, threshold=end) for end in ends)


def warnings(name: str, fitted: Fitted | None, results: Sequence[Any]) -> list[str]:
    """Return the warning of patches within half a float16 step of the threshold, if there are any.

    `fitted`: None where each item has a threshold of its own. `results`: states of the two tallies
    of `band`, or none. One patch in a thousand or fewer gives no warning.
    """
    if not results or (fitted is not None and None in fitted.threshold):
        return []
    low, high = (state["counts"] for state in results)
    uncertain = int(low[..., 1].sum() - high[..., 1].sum())
    threshold_name = "the threshold of their item"
    if fitted is not None:
        is_single = len(fitted.threshold) == 1
        threshold_name = f"{fitted.threshold[0]:.6g}" if is_single else "their thresholds"
    return _warning(
        name, uncertain, int(low.sum()), "patches have", threshold_name, "they are uncertain"
    )


def warnings_of_errors(name: str, threshold: float | None, results: Sequence[Any]) -> list[str]:
    """Return the warning of wrong pixels within half a float16 step of the threshold, if any.

    `results`: states of the two tallies of `band_of_errors`, or none.
    """
    if not results:
        return []
    low, high = (state["counts"].sum(axis=0).tolist() for state in results)
    uncertain = high[2] - low[2]
    return _warning(
        name, uncertain, low[1], "wrong pixels have", f"{threshold:.6g}", "they are detected"
    )


def _warning(
    name: str, uncertain: int, total: int, noun: str, threshold: str, decided: str
) -> list[str]:
    if uncertain <= WORTH_TELLING * total:
        return []
    return [
        f"{name} is stored as float16, and {uncertain} of {total} {noun} an uncertainty within "
        f"half a float16 step of {threshold}: rounding decides whether {decided}. Store the "
        "map as float32."
    ]
