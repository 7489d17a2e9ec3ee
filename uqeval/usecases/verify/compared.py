"""Hold recomputed values against those of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.keys import family_of

#: Relative to the larger of 1 and the value, by family: maps of classes are float32, whose last bit
#: depends on the library's logarithm; all else is float64.
TOLERANCE = {"calibration": 1e-6, "failure": 1e-5, "sparsification": 1e-5, "divergence": 1e-6}
DEFAULT = 1e-9


@dataclass(frozen=True)
class Difference:
    """A value of a report that the plain path does not find."""

    where: str
    field: str
    reported: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.field} is {self.reported!r}, recomputed {self.recomputed!r}"


@dataclass
class Tally:
    """How many values were compared, and those that differ."""

    compared: int
    differences: list[Difference]
    largest: float = 0.0


def compare(
    where: str, key: str, reported: Mapping[str, Any], found: Mapping[str, Any],
    slack: Mapping[str, float] | None = None, into: Tally | None = None,
) -> Tally:  # fmt: skip
    """Compare the fields that both have; `slack`: more that a field may differ, absolute."""
    tally = into if into is not None else Tally(0, [])
    family = family_of(key)
    tolerance = TOLERANCE.get(family, DEFAULT)
    for field, ours, theirs in _fields(reported, found):
        tally.compared += 1
        extra = (slack or {}).get(field, 0.0)
        apart = distance(ours, theirs)
        if math.isfinite(apart):
            tally.largest = max(tally.largest, apart / max(1.0, abs(theirs or 0.0)))
        whole = isinstance(ours, int) and isinstance(theirs, int)
        limit = extra + (0.0 if whole else tolerance * max(1.0, abs(theirs or 0.0)))
        if not apart <= limit:
            tally.differences.append(Difference(where, f"{key}.{field}", ours, theirs))
    return tally


def _fields(
    reported: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for field, theirs in found.items():
        if field not in reported:
            continue
        ours = reported[field]
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for name in dict.fromkeys((*ours, *theirs)):
                yield f"{field}.{name}", ours.get(name), theirs.get(name)
        else:
            yield field, ours, theirs


def distance(ours: Any, theirs: Any) -> float:
    """Return how far two values are apart: 0 for two that are undefined, ∞ for one."""
    if ours is None and theirs is None:
        return 0.0
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (ours, theirs))
    if not numbers:
        return 0.0 if ours == theirs else math.inf
    return abs(float(ours) - float(theirs))
