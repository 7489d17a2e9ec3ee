"""Examples and a slow oracle of the tally behind the consistency along tracks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uqeval.maps.names import TrackRules
from uqeval.tallies._contract import Tally
from uqeval.tallies.temporal import TrackCounts

State = dict[str, Any]
Maps = dict[str, Any]

EXAMPLES: tuple[Tally, ...] = (
    TrackCounts("dis:medium", 0, 4, TrackRules()),
    TrackCounts("dis:medium", 2, 4, TrackRules()),
    TrackCounts("dis:medium", 2, 4, TrackRules(step=4, structure=False)),
    TrackCounts("file", 1, 300, TrackRules(min_length=5)),
)
NAMES = (
    "tracks:8,2,True,0.01,0.5,0.01,0.002:dis:medium",
    "tracks:4,2,False,0.01,0.5,0.01,0.002:dis:medium",
    "tracks:8,5,True,0.01,0.5,0.01,0.002:file",
)

MODELS = 3


def pair_maps(seed: int, classes: int) -> Maps:
    """Counts of one pair for several models, as a tracker returns them."""
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 10**6, (MODELS, 2 * classes + 19)) for name in NAMES}


def _tracks(tally: Any, items: Sequence[Maps]) -> State:
    (own,) = [n for n in NAMES if n.endswith(f":{tally.flow}") and f":{tally.rules.step}," in n]
    rows = [[int(v) for v in maps[own][tally.model]] for maps in items]
    names = [("tracks", c) for c in range(tally.classes)]
    names += [("consistent", c) for c in range(tally.classes)]
    names += [("points", 0), *(("lengths", b) for b in range(12))]
    names += [("dropped", 0), ("alive", 0), ("changed", 0)]
    names += [("unreliable", 0), ("pixels", 0), ("seeds", 0)]
    found: State = {}
    for row in rows:
        assert len(row) == len(names)
    for k, (name, _) in enumerate(names):
        found.setdefault(name, []).append(sum(row[k] for row in rows))
    return found


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {TrackCounts: _tracks}
