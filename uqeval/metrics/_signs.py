"""Warnings that a score lies on the wrong side of its neutral value, and not by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.keys import family_of


@dataclass(frozen=True)
class Sign:
    """A score whose sign says whether the uncertainty is better than chance.

    `below`: what a value below `neutral` means. Without an interval, a value within `tolerance` of
    `neutral` is close to chance, where `chance` is true. `of_curve`: the tolerance is relative to
    the first value of the curve.
    """

    field: str
    name: str
    neutral: float
    tolerance: float
    below: str
    chance: bool = True
    of_curve: bool = False


SIGNS = {
    "failure": Sign(
        "auroc", "AUROC", 0.5, 0.01, "wrong pixels are more certain than right ones"
    ),
    "pavpu": Sign(
        "surplus", "PAvPU Surplus", 0.0, 0.02,
        "at this threshold the uncertainty is worse than chance, and the PAvPU should not be read",
    ),
    "sparsification": Sign(
        "aurg", "AURG", 0.0, 0.01,
        "removing the least certain pixels is worse than removing random ones", of_curve=True,
    ),
    "nmerci": Sign(
        "nmerci", "n-MeRCI", 0.0, 0.01,
        "that can be for α < 100, where the worst errors have small σ and leave λ^α small",
        chance=False,
    ),
}  # fmt: skip


def sign_warnings(
    family: str, results: Mapping[str, Any], interval: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the warning of a family's score: at most one.

    With an `interval` (`low`, `high`, `level`): where it lies below the neutral value. Without one:
    where the value is close to the neutral one, or below it by more than the tolerance.
    """
    sign = SIGNS.get(family)
    value = results.get(sign.field) if sign else None
    if sign is None or value is None:
        return []
    message = f"the {sign.name} is {value:.4f}"
    if interval is not None:
        low, high = interval.get("low"), interval.get("high")
        if low is None or high is None or high >= sign.neutral:
            return []
        level = f"{100 * interval['level']:g} % interval {low:.4f} to {high:.4f}"
        return [f"{message} ({level}), below {sign.neutral:g}: {sign.below}."]
    tolerance = sign.tolerance
    if sign.of_curve:
        tolerance *= (results.get("curve") or [1.0])[0]
    if value < sign.neutral - tolerance:
        return [
            f"{message}, below {sign.neutral:g}: {sign.below}. There is no interval: "
            "--ci 0.95 shows whether this is chance."
        ]
    if sign.chance and abs(value - sign.neutral) <= tolerance:
        return [f"{message}, close to chance ({sign.neutral:g})."]
    return []


def with_intervals(
    warnings: list[str], results: Mapping[str, Any], intervals: Mapping[str, Any]
) -> list[str]:
    """Return a report's warnings, those of signs by the intervals of the scores that have one."""
    texts = list(warnings)
    for key, record in results.items():
        family = family_of(key)
        sign = SIGNS.get(family)
        interval = intervals.get(f"{key}.{sign.field}") if sign else None
        if interval is None:
            continue
        before = [f"{key}: {text}" for text in sign_warnings(family, record)]
        texts = [text for text in texts if text not in before]
        texts += [f"{key}: {text}" for text in sign_warnings(family, record, interval)]
    return texts
