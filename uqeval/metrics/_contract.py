"""What a metric is: one formula over one tally, with unit, direction, range and reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Metric:
    """One number of a report, `<family>.<field>`.

    `formula` takes the counts that it is a ratio of, and returns None where it is undefined;
    `undefined` says when that is. `direction`: which way is better, None for a description.
    """

    family: str
    field: str
    unit: str
    direction: Literal["higher", "lower"] | None
    range: tuple[float | None, float | None]
    reference: str
    undefined: str
    formula: Callable[..., float | None]

    @property
    def id(self) -> str:
        """The metric's address in a report."""
        return f"{self.family}.{self.field}"

    def record(self) -> dict[str, Any]:
        """What a report says of the field."""
        return {
            "unit": self.unit,
            "direction": self.direction,
            "range": list(self.range),
            "reference": self.reference,
        }


def put(record: dict[str, Any], field: str, value: float | None, reason: str) -> None:
    """Add a value to a record; an undefined one is None with its reason beside it."""
    record[field] = value
    if value is None:
        record[f"{field}_reason"] = reason
