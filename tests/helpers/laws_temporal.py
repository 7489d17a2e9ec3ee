"""Examples and slow oracles of the tallies behind temporal consistency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import naive_temporal
import numpy as np

from uqeval.tallies._contract import Tally
from uqeval.tallies.temporal import FrameCounts, PairCounts

State = dict[str, Any]
Maps = dict[str, Any]

EXAMPLES: tuple[Tally, ...] = (
    PairCounts("farneback", 0, 4, 255),
    PairCounts("farneback", 1, 4, 255, occlusion=True),
    PairCounts("dis:fast@0.5", 0, 4, 255, clamp=True),
    PairCounts("farneback", 0, 4, 255, mirror=True),
    PairCounts("farneback", 0, 300, 65535, occlusion=True, clamp=True, mirror=True),
    FrameCounts(0, 4, 255),
    FrameCounts(1, 300, 65535),
)


def pair_maps(seed: int, height: int, width: int, classes: int) -> Maps:
    """Maps of one pair with all special cases: void, outside, unknown flow."""
    rng = np.random.default_rng(seed)
    void = 255 if classes <= 255 else 65535
    dtype = "u1" if classes <= 255 else "u2"
    size = (height, width)
    maps: Maps = {}
    for name in ("prediction:0", "prediction_before:0", "prediction:1", "prediction_before:1"):
        maps[name] = ids(rng, size, classes, void, dtype)
    for name in ("label", "label_before"):
        maps[name] = ids(rng, size, classes, void, dtype)
    for name in ("grey", "grey_before"):
        maps[name] = rng.integers(0, 256, size, dtype=np.uint8)
    for method in ("farneback", "dis:fast@0.5"):
        maps[f"flow:{method}"] = flow(rng, size)
        maps[f"flow_forward:{method}"] = flow(rng, size)
    return maps


def ids(rng: Any, size: tuple[int, int], classes: int, void: int, dtype: str) -> Any:
    """Ids of a few classes, an eighth of them void."""
    found = rng.integers(0, min(classes, 4), size).astype(dtype)
    found[found == 3] = classes - 1
    found[rng.random(size) < 0.125] = void
    return found


def flow(rng: Any, size: tuple[int, int]) -> Any:
    """Flow in halves and thirds of pixels, here and there unknown, or to the outside."""
    found = (rng.integers(-6, 7, (*size, 2)) / rng.choice([2, 3], (*size, 2))).astype("f4")
    kind = rng.random(size)
    found[kind < 0.06] = (np.nan, 0)
    found[(kind >= 0.06) & (kind < 0.1)] = (1e10, 0)
    found[(kind >= 0.1) & (kind < 0.12)] = (0, -np.inf)
    found[(kind >= 0.12) & (kind < 0.15)] = (-40, 3)
    return found


def _pairs(tally: Any, items: Sequence[Maps]) -> State:
    found = []
    for maps in items:
        m = tally.model
        frames = [maps[f"prediction:{m}"], maps[f"prediction_before:{m}"]]
        greys = [maps["grey"], maps["grey_before"]]
        flows = [maps[f"flow:{tally.flow}"], maps[f"flow_forward:{tally.flow}"]]
        if tally.mirror:
            frames, greys, flows = frames[::-1], greys[::-1], flows[::-1]
        back = flows[1] if tally.occlusion else None
        found.append(naive_temporal.pair(
            frames[0], frames[1], greys[0], greys[1], flows[0], back,
            tally.classes, tally.void, tally.clamp,
        ))  # fmt: skip
    largest = ("flow_median", "flow_p99", "flow_max")
    return {
        name: (np.max if name in largest else np.sum)([f[name] for f in found], axis=0)
        for name in found[0]
    }


def _frames(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for name, which, label in (
            ("now", "prediction", "label"),
            ("before", "prediction_before", "label_before"),
        ):
            state[name] += naive_temporal.frame(
                maps[f"{which}:{tally.model}"], maps[label], tally.classes, tally.void
            )
    return state


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {
    FrameCounts: _frames,
    PairCounts: _pairs,
}
