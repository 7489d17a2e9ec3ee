"""Run evaluations over maps in memory, as the scheduler does, without stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqeval.metrics._driver import Running, drive
from uqeval.metrics._evaluation import Evaluation, Section, TallyResult
from uqeval.tallies._contract import Tally


def counted(tally: Tally, items: Sequence[dict[str, Any]]) -> TallyResult:
    """A tally over items: folded in their order, from states packed one by one."""
    packed = [tally.pack(tally.state_of(_made(maps) | maps)) for maps in items]
    total = tally.empty()
    for data in packed:
        tally.merge(total, tally.unpack(data))
    return TallyResult(total, packed if tally.keeps_items else [])


def _made(maps: dict[str, Any]) -> dict[str, Any]:
    """Return the maps that a source derives from these maps, unless they exist."""
    keys = {"error:rank": np.float32(maps["error"])} if "error" in maps else {}
    return {"target_counts": np.zeros(10)} | keys


def evaluated(evaluation: Evaluation[Any], items: Sequence[dict[str, Any]]) -> tuple[Section, int]:
    """Return the section of an evaluation of items of maps, and how many passes it took."""
    running, passes = Running({"": drive({"": evaluation})}), 0
    while running.requests:
        passes += 1
        running.send({tally: counted(tally, items) for tally in running.tallies})
    return running.results[""][""], passes
