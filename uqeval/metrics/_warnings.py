"""Warnings of families: scores on the wrong side of chance, and maps stored as float16."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.keys import family_of
from uqeval.records.intervals import interval_record

if TYPE_CHECKING:
    from uqeval.metrics.thresholds import Fitted
    from uqeval.tallies.patches import ItemPatchCounts, PatchCounts
    from uqeval.tallies.undetected import Undetected


@dataclass(frozen=True)
class Sign:
    """A score whose sign says whether the uncertainty is better than chance.

    `below`: the meaning of a value below `neutral`. Without an interval, a value within `tolerance`
    of `neutral` is close to chance, where `chance` is true. `of_curve`: the tolerance is relative
    to the first value of the curve.
    """

    field: str
    name: str
    neutral: float
    tolerance: float
    below: str
    chance: bool = True
    of_curve: bool = False


#: A score below chance by at most this is close to chance, for any interval: a tenth of
#: the way from 0.5 to 1, as in the findings of a page.
_CLOSE = 0.05

SIGNS = {
    "failure": Sign(
        "auroc", "AUROC", 0.5, 0.01, "wrong pixels are more certain than right ones"
    ),
    "pavpu": Sign(
        "surplus", "PAvPU Surplus", 0.0, 0.02,
        "at this threshold the uncertainty is worse than chance, so do not use the PAvPU",
    ),
    "sparsification": Sign(
        "aurg", "AURG", 0.0, 0.01,
        "removing the least certain pixels is worse than removing random ones", of_curve=True,
    ),
    "nmerci": Sign(
        "nmerci", "n-MeRCI", 0.0, 0.01,
        "for α < 100 this happens if the worst errors have small σ, which do not raise λ^α",
        chance=False,
    ),
}  # fmt: skip


#: The end of a warning without an interval. Sweeps have no `--ci`, and leave it out.
WITHOUT_INTERVAL = " There is no interval: --ci 0.95 shows whether this is chance."


def sign_warnings(
    family: str, results: Mapping[str, Any], interval: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the warning of a family's score: at most one.

    With an `interval` (`low`, `high`, `level`), warns if all of it is below the neutral value.
    Without one, warns if the value is close to the neutral value, or below it by more than the
    tolerance.
    """
    sign = SIGNS.get(family)
    value = results.get(sign.field) if sign else None
    if sign is None or value is None:
        return []
    message = f"the {sign.name} is {value:.4f}"
    scale = (results.get("curve") or [1.0])[0] if sign.of_curve else 1.0
    is_chance = f", close to chance ({sign.neutral:g})."
    if interval is not None:
        low, high = interval.get("low"), interval.get("high")
        if low is None or high is None or high >= sign.neutral:
            return []
        message += f" ({100 * interval['level']:g} % interval {low:.4f} to {high:.4f})"
        if sign.chance and sign.neutral - value <= _CLOSE * scale:
            return [message + is_chance]
        return [f"{message}, below {sign.neutral:g}: {sign.below}."]
    tolerance = sign.tolerance * scale
    if value < sign.neutral - tolerance:
        return [f"{message}, below {sign.neutral:g}: {sign.below}.{WITHOUT_INTERVAL}"]
    if sign.chance and abs(value - sign.neutral) <= tolerance:
        return [message + is_chance]
    return []


def with_intervals(
    warnings: list[str], results: Mapping[str, Any], intervals: Mapping[str, Any]
) -> list[str]:
    """Return a report's warnings; those about signs use the intervals of scores."""
    of_intervals: set[str] = set()
    keys_by_text: dict[str, list[str]] = {}  # a report joins the keys with the same warning
    added: list[str] = []
    for key, record in results.items():
        family = family_of(key)
        for text in sign_warnings(family, record):
            keys_by_text.setdefault(text, []).append(key)
        sign = SIGNS.get(family)
        if sign and (interval := interval_record(intervals, key, [sign.field])) is not None:
            of_intervals.add(key)
            added += [f"{key}: {text}" for text in sign_warnings(family, record, interval)]
    remaining: dict[str, str | None] = {}
    for text, keys in keys_by_text.items():
        without = ", ".join(key for key in keys if key not in of_intervals)
        remaining[f"{', '.join(keys)}: {text}"] = f"{without}: {text}" if without else None
    kept = (remaining.get(text, text) for text in warnings)
    return [*(text for text in kept if text is not None), *added]


#: Share of the patches, or of the wrong pixels, above which a warning appears.
WORTH_TELLING = 1e-3


def band(tally: PatchCounts | ItemPatchCounts) -> tuple[Any, Any]:
    """Return tallies of the same patches with thresholds half a float16 step lower and higher.

    The difference of their counts of uncertain patches is the number of patches in the closed
    interval.
    """
    from uqeval.tallies._values import float16_end
    from uqeval.tallies.patches import ItemPatchCounts

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
        threshold_name = f"{fitted.threshold[0]:.6g}" if fitted.is_single else "their thresholds"
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
