"""Waivers: until a given day, the gate passes although a rule fails."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from uqeval.gate.given_keys import GivenKeys
from uqeval.records.scalars import is_below

Kind = Literal["min", "max", "max_drop", "max_rise", "max_drop_relative", "max_rise_relative"]
KINDS: tuple[Kind, ...] = (
    "min", "max", "max_drop", "max_rise", "max_drop_relative", "max_rise_relative",
)  # fmt: skip
#: Limits that low values break. High values break the others.
LOW_FAILS: tuple[Kind, ...] = ("min", "max_drop", "max_drop_relative")


#: The note on a waiver that no limit of its rule needs, in any report.
UNNEEDED = "the waiver is not needed, because the rule passes without it; remove the waiver"

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EXAMPLE = "expected a day such as 2027-01-31"


def parse_day(text: Any) -> date:
    """Return the day that `text` names as YYYY-MM-DD. Raises `ValueError` for anything else."""
    if isinstance(text, date) and not isinstance(text, datetime):
        return text
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        raise ValueError(_EXAMPLE)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"there is no such day; {_EXAMPLE}") from None


Day = Annotated[date, BeforeValidator(parse_day)]
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Number = Annotated[float, Field(allow_inf_nan=False)]


class Waiver(GivenKeys):
    """The last day of a waiver, the person responsible, the reason, and the waived values."""

    model_config = ConfigDict(frozen=True)

    until: Day = Field(description="Last day of the waiver, in UTC: YYYY-MM-DD.")
    by: Text = Field(description="The person responsible, shown in every output.")
    why: Text = Field(description="Why the rule is waived, shown in every output.")
    at_least: Number | None = Field(
        None, description="Lower values are not waived; for limits that low values break."
    )
    at_most: Number | None = Field(
        None, description="Higher values are not waived; for limits that high values break."
    )

    def bound(self, kind: Kind) -> float | None:
        """Return the worst value that is waived for a limit; None: every value."""
        return self.at_least if kind in LOW_FAILS else self.at_most

    def for_kind(self, kind: Kind) -> Waiver:
        """Return the waiver with only the bound that applies to a limit."""
        other_bound = "at_most" if kind in LOW_FAILS else "at_least"
        return self.model_copy(update={other_bound: None})

    def record(self) -> dict[str, Any]:
        """Return the waiver as a record of JSON."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class WaiverUse:
    """The effect of a waiver on a verdict.

    `outcome`: "waived" if the waiver applies; "unneeded" if the rule passes without it. In the
    other cases the rule fails: the waiver has "expired", the value is "beyond" its bound, or the
    value is "undefined". `note`: the outcome as a sentence. `instead_of`: the status without it.
    """

    outcome: Literal["waived", "unneeded", "expired", "beyond", "undefined"]
    note: str
    instead_of: Literal["pass", "fail", "inconclusive"]


def check_bounds(waiver: Waiver, limits: dict[Kind, float]) -> None:
    """Raise `ValueError` for a bound that fits no limit of the rule, or that waives nothing."""
    low = {kind for kind in limits if kind in LOW_FAILS}
    if waiver.at_least is not None and not low:
        raise ValueError(
            "waive.at_least is for limits that low values break (min, max_drop); use at_most"
        )
    if waiver.at_most is not None and low == limits.keys():
        raise ValueError(
            "waive.at_most is for limits that high values break (max, max_rise); use at_least"
        )
    limit_min, limit_max = limits.get("min"), limits.get("max")
    if waiver.at_least is not None and limit_min is not None and waiver.at_least > limit_min:
        raise ValueError(
            f"waive.at_least {waiver.at_least!r} is above min {limit_min!r}, so it waives nothing; "
            "use a value below min"
        )
    if waiver.at_most is not None and limit_max is not None and waiver.at_most < limit_max:
        raise ValueError(
            f"waive.at_most {waiver.at_most!r} is below max {limit_max!r}, so it waives nothing; "
            "use a value above max"
        )


def _apart(value: float, bound: float) -> str:
    """Return a value with four significant digits, or as many as show that it is not the bound."""
    texts = (f"{value:.{digits}g}" for digits in range(4, 17))
    return next((text for text in texts if float(text) != bound), repr(value))


def use_of(
    waiver: Waiver,
    kind: Kind,
    status: Literal["pass", "fail", "inconclusive"],
    counts_as: Literal["pass", "fail"],
    value: float | None,
    today: date,
) -> WaiverUse:
    """Return the effect of a waiver on a day. `value`: None if it is undefined."""
    if counts_as == "pass":
        return WaiverUse("unneeded", UNNEEDED, status)
    prefix = f"the waiver by {waiver.by}"
    if today > waiver.until:
        note = f"{prefix} expired: it was valid until {waiver.until}, and today is {today} (UTC)"
        return WaiverUse("expired", note, status)
    if value is None:
        return WaiverUse("undefined", f"{prefix} does not cover undefined values", status)
    bound, low = waiver.bound(kind), kind in LOW_FAILS
    if bound is not None and (is_below(value, bound) if low else is_below(bound, value)):
        side = "at least" if low else "at most"
        text = _apart(value, bound)
        note = f"{prefix} covers values of {side} {bound!r} only, and the value is {text}"
        return WaiverUse("beyond", note, status)
    status_without = "it fails" if status == "fail" else "it is inconclusive and counts as fail"
    reach = "" if bound is None else f", for values of at {'least' if low else 'most'} {bound!r}"
    note = f"by {waiver.by} until {waiver.until}{reach}: {waiver.why}; otherwise {status_without}"
    return WaiverUse("waived", note, status)
