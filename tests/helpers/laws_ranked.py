"""Examples and slow oracles of the tallies behind failure detection and sparsification."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import naive
import naive_ranked
import numpy as np
from uncertainties import ANYTHING, CONFIDENCE, ENTROPY

from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import Error
from uqeval.tallies.item_curves import Cuts, ItemCurves
from uqeval.tallies.item_uncertainty import AboveThreshold, ItemPatchMaximum, ItemPercentile
from uqeval.tallies.patches import Patches
from uqeval.tallies.ranked_errors import RankedErrors
from uqeval.tallies.undetected import ItemFailure, Undetected

State = dict[str, Any]
Maps = dict[str, Any]
WRONG, BRIER = Error("zero-one"), Error("brier")

EXAMPLES: tuple[Tally, ...] = (
    RankedErrors(ENTROPY, BRIER, 4),
    RankedErrors(BRIER, BRIER, 4),
    RankedErrors(ANYTHING, WRONG, 4, True, 0, 9, tuple((c, 0) for c in range(4))),
    RankedErrors(ENTROPY, WRONG, 4, True, 9, 13, ((0, 379), (1, 381), (2, 256), (2, 381))),
    RankedErrors(CONFIDENCE, BRIER, 300, False, 22, 10, ((0, 3_112_960), (0, 3_121_152))),
    RankedErrors(ENTROPY, BRIER, 4, False, 19, 13, ((0, 391168), (0, 391936))),
    RankedErrors(ENTROPY, WRONG, 4, False, 19, 13, ((0, 391168),)),
    Undetected(ENTROPY, 4, 0.25),
    Undetected(CONFIDENCE, 300, 0.3),
    ItemFailure(ENTROPY, 4),
    ItemFailure(ANYTHING, 4),
    ItemCurves(ENTROPY, BRIER, 4),
    ItemCurves(ANYTHING, WRONG, 4, Cuts(50, "quantile", "together")),
    ItemCurves(CONFIDENCE, BRIER, 300, Cuts(10, "truncate"), True),
    ItemPercentile(ENTROPY, 4, 95.0),
    ItemPercentile(ANYTHING, 4, 50.0),
    ItemPatchMaximum(Patches(ENTROPY, 4, 3, 1)),
    AboveThreshold(ENTROPY, 4, 0.25),
    AboveThreshold(ANYTHING, 4, 0.0),
    AboveThreshold(ENTROPY, 4, None),
)


def _pixels(tally: Any, score: Any, maps: Maps) -> tuple[Any, Any, Any]:
    """Label, score and error of the pixels that are not void."""
    known = maps["label"] < void_of(tally.classes)
    wrong = (maps["label"] != maps["prediction"]).astype("f4")
    kind = getattr(tally, "error", WRONG)
    error = wrong if kind == WRONG else maps["brier"]
    values = error if isinstance(score, Error) else naive.uncertainty(maps, score.name)
    return maps["label"][known], values[known], error[known].astype("f8")


def _ranked_errors(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for y, v, e in zip(*_pixels(tally, tally.score, maps), strict=True):
            magnitude = int(np.abs(np.float32(v)).view(np.uint32))
            key = 2**31 - 1 - magnitude if v < 0 else 2**31 + magnitude
            row = (int(y) if tally.by_class else 0, key >> (32 - tally.skip))
            if row in tally.bins:
                place = tally.bins.index(row), (key >> tally.rest) % 2**tally.bits
                state["pixels"][place] += 1
                state["errors"][place] += e
    return state


def _undetected(tally: Any, items: Sequence[Maps]) -> State:
    counts = np.zeros((tally.classes, 3), int)
    for maps in items:
        for y, v, e in zip(*_pixels(tally, tally.uncertainty, maps), strict=True):
            counts[y] += (1, int(e), int(e and v <= np.float32(tally.threshold)))
    return {"counts": counts}


def _item_failure(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        _, u, wrong = _pixels(tally, tally.uncertainty, maps)
        if not len(u):
            continue
        n, e = len(u), int(wrong.sum())
        found = naive_ranked.failure(u, wrong)
        pairs = e * (n - e)
        flagged = round((found["fpr95"] or 0) * (n - e))
        state["counts"] += (n, e, flagged)
        state["pairs"] += (pairs, round(2 * pairs * (found["auroc"] or 0)))
        precisions = (e * (found["aupr_error"] or 0), (n - e) * (found["aupr_success"] or 0))
        state["sums"] += (*precisions, n * found["aurc"])
    return state


def _item_curves(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        _, u, error = _pixels(tally, tally.score, maps)
        if not len(u):
            continue
        for i, score in enumerate((u, error)):
            ties = naive_ranked.groups(score, error)
            values = naive_ranked.expanded(score, error)
            n = len(values)
            for k in range(tally.cuts.steps):
                kept = n - k * n // tally.cuts.steps
                if tally.cuts.keep == "truncate":
                    kept = int((1 - k * (1 / tally.cuts.steps)) * n)
                elif tally.cuts.keep == "quantile":
                    kept = n - math.ceil(k * (n - 1) / tally.cuts.steps)
                if tally.cuts.ties == "together":
                    ends = np.cumsum([len(g) for g in ties])
                    kept = int(ends[ends >= kept][0])
                state[("kept", "kept_by_oracle")[i]][k] += kept
                state[("errors", "oracle")[i]][k] += math.fsum(values[:kept])
            if tally.every_rank:
                means = [math.fsum(values[:m]) / m for m in range(1, n + 1)]
                state["areas"][i] += math.fsum(means) - (means[0] + means[-1]) / 2
    return state


def _item_percentile(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        _, u, _ = _pixels(tally, tally.uncertainty, maps)
        if len(u):
            value = np.percentile(np.sort(u).astype("f8"), tally.percentile)
            state["pixels"] += len(u)
            state["value"][...] = max(state["value"][0], value)
    return state


def _item_patch_maximum(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    n = tally.patches.window
    for maps in items:
        u = naive.uncertainty(maps, tally.patches.uncertainty.name)
        known = maps["label"] < void_of(tally.patches.classes)
        for y, x in np.ndindex(*(max(size - n + 1, 0) for size in u.shape)):
            box = slice(y, y + n), slice(x, x + n)
            if known[box].any():
                mean = np.float32(math.fsum(u[box][known[box]].tolist()) / known[box].sum())
                state["patches"] += 1
                state["value"][...] = max(state["value"][0], mean)
    return state


def _above_threshold(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        _, u, _ = _pixels(tally, tally.uncertainty, maps)
        reaching = [float(v) for v in u if v >= np.float32(tally.threshold)]
        state["counts"] += (len(u), sum(v > np.float32(tally.threshold) for v in u), len(reaching))
        state["total"] += math.fsum(reaching)
    return state


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {
    ItemCurves: _item_curves,
    ItemFailure: _item_failure,
    RankedErrors: _ranked_errors,
    Undetected: _undetected,
    ItemPercentile: _item_percentile,
    ItemPatchMaximum: _item_patch_maximum,
    AboveThreshold: _above_threshold,
}
