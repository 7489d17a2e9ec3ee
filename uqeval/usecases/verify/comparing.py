"""Compare recomputed values with those of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.keys import family_of

#: Tolerances by family, relative to the larger of 1 and the value. Maps of classes are float32,
#: whose last bit depends on the library's logarithm; other values are float64.
TOLERANCE = {"calibration": 1e-6, "failure": 1e-5, "sparsification": 1e-5, "divergence": 1e-6}
DEFAULT = 1e-9


@dataclass(frozen=True)
class Difference:
    """A value of a report that differs from the recomputed one."""

    where: str
    field: str
    reported: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.field} is {self.reported!r}, recomputed {self.recomputed!r}"


@dataclass
class Tally:
    """The number of compared values, and those that differ."""

    compared: int
    differences: list[Difference]
    largest: float = 0.0


def compare(
    where: str, key: str, reported: Mapping[str, Any], recomputed: Mapping[str, Any],
    slack: Mapping[str, float] | None = None, tally_of_differences: Tally | None = None,
) -> Tally:  # fmt: skip
    """Compare the fields that both have; `slack`: additional absolute tolerance of a field."""
    tally = tally_of_differences if tally_of_differences is not None else Tally(0, [])
    family = family_of(key)
    tolerance = TOLERANCE.get(family, DEFAULT)
    for field, first, second in _fields(reported, recomputed):
        tally.compared += 1
        extra = (slack or {}).get(field, 0.0)
        difference = distance(first, second)
        if math.isfinite(difference):
            tally.largest = max(tally.largest, difference / max(1.0, abs(second or 0.0)))
        are_integers = isinstance(first, int) and isinstance(second, int)
        limit = extra + (0.0 if are_integers else tolerance * max(1.0, abs(second or 0.0)))
        if not difference <= limit:
            tally.differences.append(Difference(where, f"{key}.{field}", first, second))
    return tally


def _fields(
    reported: Mapping[str, Any], recomputed: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for field, recomputed_value in recomputed.items():
        if field not in reported:
            continue
        reported_value = reported[field]
        if isinstance(recomputed_value, dict) and isinstance(reported_value, dict):
            for name in dict.fromkeys((*reported_value, *recomputed_value)):
                yield f"{field}.{name}", reported_value.get(name), recomputed_value.get(name)
        else:
            yield field, reported_value, recomputed_value


def distance(first: Any, second: Any) -> float:
    """Return the distance of two values: 0 if both are undefined, ∞ if one is."""
    if first is None and second is None:
        return 0.0
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (first, second))
    if not numbers:
        return 0.0 if first == second else math.inf
    return abs(float(first) - float(second))
