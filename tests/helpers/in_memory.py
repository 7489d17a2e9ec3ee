"""Plans run over maps in memory: what `scheduler` does, without stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqeval.metrics._plan import Counted, Plan, Section
from uqeval.tallies import Tally


def counted(tally: Tally, items: Sequence[dict[str, Any]]) -> Counted:
    """A tally over items: folded in their order, from states packed one by one."""
    packed = [tally.pack(tally.state_of(_made(maps) | maps)) for maps in items]
    total = tally.empty()
    for data in packed:
        tally.merge(total, tally.unpack(data))
    return Counted(total, packed if tally.keeps_items else [])


def _made(maps: dict[str, Any]) -> dict[str, Any]:
    """Return what a source makes beside these maps, unless they have it."""
    keys = {"error:rank": np.float32(maps["error"])} if "error" in maps else {}
    return {"target_counts": np.zeros(3, np.int64)} | keys


def run_plan(plan: Plan, items: Sequence[dict[str, Any]]) -> tuple[Section, int]:
    """The section of a plan over items of maps, and how many passes it took."""
    passes = 0
    asked = next(plan)
    while True:
        passes += 1
        try:
            asked = plan.send({tally: counted(tally, items) for tally in asked})
        except StopIteration as stop:
            return stop.value, passes
