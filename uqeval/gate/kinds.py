"""The kinds of limits that a rule may set."""

from __future__ import annotations

from typing import Literal

Kind = Literal["min", "max", "max_drop", "max_rise", "max_drop_relative", "max_rise_relative"]
KINDS: tuple[Kind, ...] = (
    "min", "max", "max_drop", "max_rise", "max_drop_relative", "max_rise_relative",
)  # fmt: skip
#: Limits that low values break. High values break the others.
LOW_FAILS: tuple[Kind, ...] = ("min", "max_drop", "max_drop_relative")
