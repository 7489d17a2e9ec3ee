"""Rules: limits of the value at an address."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from uqeval.errors import UsageError, cut
from uqeval.gate.given_keys import GivenKeys
from uqeval.gate.waivers import KINDS, Kind, Number, Waiver, check_bounds, parse_day
from uqeval.records.addresses import Address


class Limits(GivenKeys):
    """The limits of one value, and the verdict if it is undefined or inconclusive."""

    model_config = ConfigDict(frozen=True)

    min: Number | None = Field(None, description="Smallest value that passes.")
    max: Number | None = Field(None, description="Largest value that passes.")
    max_drop: Number | None = Field(
        None, description="How far the value may fall below the baseline."
    )
    max_rise: Number | None = Field(
        None, description="How far the value may rise above the baseline."
    )
    max_drop_relative: Number | None = Field(
        None, description="How far the value may fall, as a fraction of the baseline's value."
    )
    max_rise_relative: Number | None = Field(
        None, description="How far the value may rise, as a fraction of the baseline's value."
    )
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = Field(
        None, description="Level of the interval that must lie inside the limit, such as 0.95."
    )
    inconclusive: Literal["fail", "pass"] = Field(
        "fail",
        description="Verdict if the interval contains the limit, or if the value is inside the "
        "limit and has no interval.",
    )
    undefined: Literal["fail", "pass"] = Field(
        "fail", description="Verdict if the value, or that of the baseline, is undefined."
    )
    id: str | None = Field(None, description="Name of the requirement, shown in every output.")
    why: str | None = Field(None, description="Reason for the requirement, shown in every output.")
    waive: Waiver | None = Field(
        None,
        description="Waiver: until when, by whom and why the gate passes although the rule fails.",
    )

    @model_validator(mode="after")
    def _demands_something(self) -> Self:
        if not list(self.kinds_and_values()):
            raise ValueError(f"no limit; give one of {', '.join(KINDS)}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no value is at least {self.min!r} and at most {self.max!r}")
        if self.waive is not None:
            check_bounds(self.waive, dict(self.kinds_and_values()))
        return self

    def kinds_and_values(self) -> Iterator[tuple[Kind, float]]:
        """Yield the limits that are set."""
        for kind in KINDS:
            if (limit := getattr(self, kind)) is not None:
                yield kind, limit

    def only(self, kind: Kind) -> Limits:
        """Return the limits without those of other kinds."""
        waive = None if self.waive is None else self.waive.for_kind(kind)
        changes: dict[str, Any] = {unset: None for unset in KINDS if unset != kind}
        return self.model_copy(update=changes | {"waive": waive})

    def remove(self, kinds: Collection[Kind]) -> Limits:
        """Return the limits without those of the given kinds."""
        return self.model_copy(update=dict.fromkeys(kinds))


@dataclass(frozen=True)
class Rule:
    """Limits for the value at an address; `file` and `line` locate the rule."""

    address: Address
    limits: Limits
    file: str
    line: int

    @property
    def place(self) -> str:
        """Return the file, the line and the address, for messages."""
        return f"{self.file}:{self.line}: {self.address}"


def day_of(today: str | date | None) -> date | None:
    """Return the day that --today names. Raises `UsageError`."""
    if not isinstance(today, str):
        return today
    try:
        return parse_day(today)
    except ValueError as error:
        raise UsageError(f"--today {today}: {error}.") from None


def refuse_unused_day(today: date, rules: Sequence[Rule], file: object) -> None:
    """Raise `UsageError` for --today if no rule has a waiver."""
    if all(rule.limits.waive is None for rule in rules):
        raise UsageError(
            f"--today {today} has no effect: no rule of {cut(file)} has a waiver (waive:). "
            "Leave it out."
            if rules
            else f"--today {today} has no effect: the file has no rules (gate:). Leave it out."
        )
