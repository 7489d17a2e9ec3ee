"""Examples and slow oracles of the tallies of conformal prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import naive_conformal as naive
import numpy as np

from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies.prediction_sets import (
    EvaluatedPixels,
    InfiniteScores,
    Nonconformity,
    PredictionIntervals,
    PredictionSets,
)

State = dict[str, Any]
Maps = dict[str, Any]

EXAMPLES: tuple[Tally, ...] = (
    EvaluatedPixels(4),
    EvaluatedPixels(300, 7),
    Nonconformity("lac", 4),
    Nonconformity("aps", 4, 1),
    Nonconformity("aps-randomised", 300),
    Nonconformity("lac", 4, coarse=770),
    Nonconformity("aps", 4, coarse=32768),
    PredictionSets("lac", 4, 0.25),
    PredictionSets("aps", 4, 0.5),
    PredictionSets("aps-randomised", 4, 0.75),
    PredictionSets("aps", 300, 0.125),
)
#: Of predicted numbers.
OF_NUMBERS: tuple[Tally, ...] = (
    PredictionIntervals("lambda", "sigma", 1.0),
    PredictionIntervals("lambda", "sigma", None),
    InfiniteScores("lambda", "sigma"),
)
_INFINITE = 0x7F800000


def _pixels(tally: Any, items: Sequence[Maps]) -> list[tuple[Any, int, int]]:
    """Probabilities, place in the item and label of each pixel that counts."""
    found = []
    for maps in items:
        label = maps["label"]
        for y, x in np.argwhere(label != void_of(tally.classes)):
            if getattr(tally, "of_class", None) in (None, label[y, x]):
                place = int(y * label.shape[1] + x)
                found.append((maps["mean_probs"][:, y, x], place, int(label[y, x])))
    return found


def _evaluated_pixels(tally: Any, items: Sequence[Maps]) -> State:
    return {"pixels": np.array([len(_pixels(tally, items))])}


def _nonconformity(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for p, place, label in _pixels(tally, items):
        remaining = abs(naive.SCORES[tally.score](p, place)[label])
        key = _INFINITE - int(np.float32(remaining).view(np.int32))
        if tally.coarse is None:
            state["counts"][key >> 15] += 1
        elif key >> 15 == tally.coarse:
            state["counts"][key & 0x7FFF] += 1
    return state


def _prediction_sets(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for p, place, label in _pixels(tally, items):
        scores = naive.SCORES[tally.score](p, place)
        size = sum(score <= -tally.cut for score in scores)
        hit = scores[label] <= -tally.cut
        state["pixels"][label] += 1
        state["covered"][label] += hit
        state["sizes"][label] += size
        state["by_size"][size] += 1
        state["covered_by_size"][size] += hit
    return state


def _prediction_intervals(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for y, x in np.argwhere(maps["label"] != 255):
            state["pixels"] += 1
            state["covered"] += tally.cut is None or maps["lambda"][y, x] <= tally.cut
            state["sigma"] += maps["sigma"][y, x]
    return state


def _infinite_scores(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for y, x in np.argwhere(maps["label"] != 255):
            if maps["lambda"][y, x] == np.inf:
                state["zero" if maps["sigma"][y, x] == 0 else "above"] += 1
    return state


Oracle = Callable[[Any, Sequence[Maps]], State]
ORACLES: dict[type[Tally], Oracle] = {
    EvaluatedPixels: _evaluated_pixels,
    Nonconformity: _nonconformity,
    PredictionSets: _prediction_sets,
}
ORACLES_OF_NUMBERS: dict[type[Tally], Oracle] = {
    PredictionIntervals: _prediction_intervals,
    InfiniteScores: _infinite_scores,
}
