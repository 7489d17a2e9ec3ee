"""How a family of metrics asks for tallies and what it makes of them.

A plan is a generator: it yields the tallies that it needs counted next, over all items, and is sent
back what was counted; a number that is fitted on the whole set costs one such pass. All plans of a
run advance together, so that each pass reads every item once for all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


@dataclass(frozen=True)
class Counted:
    """A tally after a pass: the state of all items, and each item's own, packed."""

    total: State
    items: list[bytes]


@dataclass(frozen=True)
class Section:
    """What a plan returns: its part of a report, one record an item among it.

    `fitted`: what was fitted on the whole set, as JSON can hold it; it is held fixed where scores
    are read off saved states again.
    """

    results: dict[str, Any]
    items: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    numerics: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    fitted: dict[str, Any] = field(default_factory=dict)


class Last(tuple["Tally", ...]):
    """The tallies of a plan's last pass: it needs no maps to be kept for another."""


Plan = Generator["tuple[Tally, ...]", "dict[Tally, Counted]", Section]
#: Returns what is fitted, as a section has it.
Recutting = Generator["tuple[Tally, ...]", "dict[Tally, Counted]", "dict[str, Any]"]
#: Returns options of a command, as a user would give them; None for a threshold that is undefined.
Pooling = Generator["tuple[Tally, ...]", "dict[Tally, Counted]", "dict[str, str | None]"]
