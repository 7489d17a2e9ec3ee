"""What a metric is: one formula over one tally, with unit, direction, range and reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

#: How the interval of a score is computed (`uqeval.statistics.methods`). "share": a ratio of counts
#: of patches, pixels or items; "logit": another score in [0, 1]; "linear": a score with other
#: bounds; "gaps": a sum of absolute gaps, which is biased upward; "draws": unbounded, or cut at a
#: rank.
IntervalKind = Literal["share", "logit", "linear", "gaps", "draws"]

#: Advice that several metrics share.
TEMPERATURE = "Fit a temperature on other images (--fit-on), or train with label smoothing."
RANKING = "Compare other uncertainties (--uncertainty); a deeper ensemble ranks errors better."
SCALE_SIGMA = "Scale σ by a factor fitted on other images."


@dataclass(frozen=True)
class Metric:
    """One number of a report, `<family>.<field>`.

    `formula` takes the counts that it is a ratio of, and returns None where it is undefined;
    `undefined` says when that is. `direction`: which way is better, None for a description.
    `interval` names the kind of its interval; `counted`, of a share, the fields beside it whose sum
    is the number of trials.
    """

    family: str
    field: str
    unit: str
    direction: Literal["higher", "lower"] | None
    range: tuple[float | None, float | None]
    reference: str
    undefined: str
    formula: Callable[..., float | None]
    #: What pages and tables call it, and its heading in a table of many columns where that is
    #: another: "p(accurate | certain)", "p(acc|cert)".
    label: str = dataclasses.field(kw_only=True)
    column: str = dataclasses.field(default="", kw_only=True)
    #: Its place among the scores of the family that a reader sees first; 0: not among them. The
    #: first one ranks the items.
    headline: int = dataclasses.field(default=0, kw_only=True)
    #: One sentence for somebody who has never met the metric.
    meaning: str = dataclasses.field(kw_only=True)
    #: What to do when it is bad; nothing for a description.
    advice: str = dataclasses.field(default="", kw_only=True)
    interval: IntervalKind = dataclasses.field(kw_only=True)
    counted: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    #: The field of rows by class that belongs to it, where it has another name there.
    of_class: str = dataclasses.field(default="", kw_only=True)

    @property
    def id(self) -> str:
        """Return the metric's address in a report."""
        return f"{self.family}.{self.field}"

    @property
    def heading(self) -> str:
        """Return the heading of its column in a table."""
        return self.column or self.label

    def record(self) -> dict[str, Any]:
        """Return the entry of a report's `metrics`."""
        return {
            "label": self.label,
            "unit": self.unit,
            "direction": self.direction,
            "range": list(self.range),
            "reference": self.reference,
            "meaning": self.meaning,
            "advice": self.advice,
        }


def set_value(record: dict[str, Any], field: str, value: float | None, reason: str) -> None:
    """Add a value to a record; an undefined one is None with its reason beside it."""
    record[field] = value
    if value is None:
        record[f"{field}_reason"] = reason
