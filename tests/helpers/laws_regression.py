"""Examples and slow oracles of the tallies over predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import naive_regression as naive
import numpy as np

from uqeval.kernels.members import FEW_VALUES
from uqeval.tallies._contract import Tally
from uqeval.tallies.depth_sums import DepthSums, PooledSigmaBins, ScaledErrors, SigmaBins
from uqeval.tallies.digits import Digits
from uqeval.tallies.error_ranks import ErrorRanks
from uqeval.tallies.error_sums import ErrorSums, ErrorsUpto, Intervals, SumsBelow, TargetCounts
from uqeval.tallies.intervals import IntervalCounts, PredictiveScores, QuantileCounts
from uqeval.tallies.item_errors import ItemErrors

State = dict[str, Any]
Maps = dict[str, Any]

DEPTH = Intervals(2.5, -1, 4)
EXAMPLES: tuple[Tally, ...] = (
    ErrorSums(),
    DepthSums(),
    ScaledErrors(),
    ScaledErrors("energy"),
    SigmaBins((0.25, 1.0)),
    SigmaBins((), "energy"),
    PooledSigmaBins((0.5,)),
    TargetCounts(),
    ErrorSums("energy", DEPTH),
    PredictiveScores(False, (0.5, 0.9), (0.6745, 1.6449)),
    PredictiveScores(True, (0.75,), (0.98,), "energy"),
    IntervalCounts((0.25, 0.5, 1.0, 2.0)),
    QuantileCounts((-2.0, -0.5, 0.0, 0.25, 1.0)),
    QuantileCounts((0.5,), "energy"),
    SumsBelow("error", ((0.5, 1.0),)),
    ErrorsUpto(0.75, (391936, 392192)),
    SumsBelow("lambda", ((-1.0,), (0.5,), (1.0,), (2.0,)), "sigma", DEPTH),
    ItemErrors(95.0, "linear"),
    ItemErrors(60.0, "truncated", True),
    ErrorRanks(),
    ErrorRanks("sigma", ((0, 392192), (1, 391936), (1, 262144))),
    ErrorRanks("sigma", ((0, 392192), (1, 262144)), few=True),
    Digits("error", DEPTH, 0, tuple((g, 0) for g in range(4))),
    Digits("lambda", DEPTH, 1, ((0, 3064), (1, 3064), (1, 3068))),
    Digits("error", DEPTH, 2, ((1, 3064 << 10), (2, 3056 << 10))),
)


def number_maps(seed: int, height: int, width: int, void: float = 0.2) -> Maps:
    """Maps of one item, with ties, σ = 0 and infinite λ; 0 where not evaluated."""
    rng = np.random.default_rng(seed)
    size = (height, width)
    error = rng.integers(0, 16, size) / 8  # in float64, as a source has it
    sigma = rng.integers(0, 8, size).astype("f4") / 4
    target = (rng.integers(-20, 60, size) / 4).astype("f4")
    label = np.where(rng.random(size) < void, 255, 0).astype("u1")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0, error / sigma, 0)
    sign = rng.choice([-1, 1], size)
    mean = (target + sign * error).astype("f4")
    maps = {"error": error, "mean": mean, "sigma": sigma, "target": target,
            "lambda": ratio.astype("f4"),
            "energy": rng.uniform(0.1, 1, size).astype("f4")}  # fmt: skip
    for values in maps.values():
        values[label == 255] = 0
    known = target[label == 0]
    return {"label": label, "target_counts": target_counts(known), **maps}


def target_counts(known: np.ndarray) -> np.ndarray:
    """Return counts and ends of the evaluated targets of an item."""
    counts = np.zeros(10)
    if known.size:
        values, of_each = np.unique(known.astype(float), return_counts=True)
        smallest = [values[0], of_each[0], values[min(1, len(values) - 1)]]
        largest = [values[-1], of_each[-1], values[max(-2, -len(values))]]
        of_all = [known.size, (known == 0).sum(), (known < 0).sum()]
        counts[:] = [*of_all, *smallest, *largest, min(len(values), FEW_VALUES)]
    return counts


def _pixels(maps: Maps, sigma: str = "sigma") -> list[tuple[float, ...]]:
    """(y, ε, σ, λ) of the evaluated pixels."""
    names = ("target", "error", sigma, "lambda")
    known = maps["label"] == 0
    return [tuple(map(float, row)) for row in zip(*(maps[n][known] for n in names), strict=True)]


def _group(intervals: Intervals | None, y: float) -> int | None:
    if intervals is None:
        return 0
    g = math.floor(y / intervals.step + 1e-9) - intervals.base
    return g if 0 <= g < intervals.count else None


def _error_sums(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        state["invalid"] += int((maps["label"] == 255).sum())
        groups: dict[int, list[tuple[float, ...]]] = {}
        for pixel in _pixels(maps, tally.sigma):
            g = _group(tally.intervals, pixel[0])
            if g is not None:
                groups.setdefault(g, []).append(pixel)
        for g, found in groups.items():
            ys = [y for y, *_ in found]
            state["count"][g] += len(found)
            state["rest"][g] += math.fsum(y - math.fsum(ys) / len(ys) for y in ys)
            state["within"][g] += sum((y - math.fsum(ys) / len(ys)) ** 2 for y in ys)
            state["means"][g] += math.fsum(ys) ** 2 / len(ys)
            state["least"][g] = min(state["least"][g], *ys)
            state["most"][g] = max(state["most"][g], *ys)
            for y, e, s, _ in found:
                state["sums"][g] += (e, e * e, s, s * s, y)
                state["zero"][g] += (s == 0, s == 0 and e > 0)
    return state


def _depth_sums(tally: Any, items: Sequence[Maps]) -> State:
    state = tally.empty()
    for maps in items:
        logs = []
        known = maps["label"] == 0
        for m, y, e in zip(*(maps[n][known] for n in ("mean", "target", "error")), strict=True):
            state["count"] += 1
            if y <= 0 or m <= 0:
                state["bad"][int(y > 0)] += 1
            if y > 0:
                state["sums"] += (e / y, e * e / y)
            if y > 0 and m > 0:
                logs.append(math.log(m) - math.log(y))
                state["close"] += [max(m / y, y / m) < 1.25**k for k in (1, 2, 3)]
        if logs:
            mean = math.fsum(logs) / len(logs)
            state["logs"] += (sum(logs), sum(d * d for d in logs), sum(map(abs, logs)))
            state["within"] += sum((d - mean) ** 2 for d in logs)
            state["means"] += len(logs) * mean * mean
    return state


def _scaled_errors(tally: Any, items: Sequence[Maps]) -> State:
    found = [p for maps in items for p in _pixels(maps, tally.sigma)]
    positive = [(e / s, math.log(s)) for _, e, s, _ in found if s > 0]
    sums = [sum(z * z for z, _ in positive), sum(logs for _, logs in positive)]
    return {"count": [len(found), len(found) - len(positive)], "sums": sums}


def _sigma_bins(tally: Any, items: Sequence[Maps]) -> State:
    state = tally.empty()
    centre = tally.edges[len(tally.edges) // 2] if tally.edges else 0.0
    for _, e, s, _ in (p for maps in items for p in _pixels(maps, tally.sigma)):
        b = sum(np.float32(s) > np.float32(edge) for edge in tally.edges)
        state["count"][b] += 1
        state["errors"][b] += e * e
        state["variances"][b] += s * s
        state["of_sigma"] += (s, s - centre)
        state["squares"] += (s - centre) ** 2
    return state


def _scores(tally: Any, items: Sequence[Maps]) -> State:
    found = [p[:3] for maps in items for p in _pixels(maps, tally.sigma)]
    name = "laplace" if tally.laplace else "gaussian"
    positive = [p for p in found if p[2] > 0]
    intervals = [
        sum(2 * f * s + 2 / (1 - p) * max(e - f * s, 0) for _, e, s in found)
        for p, f in zip(tally.levels, tally.factors, strict=True)
    ]
    return {
        "nll": [naive.regression(positive, name, 3)["nll"] * len(positive)],
        "crps": [naive.regression(found, name, 3)["crps"] * len(found)],
        "intervals": intervals,
    }


def _interval_counts(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for _, e, s, _ in _pixels(maps, tally.sigma):
            lines_with = [k for k, f in enumerate(tally.factors) if e <= f * s]
            state["counts"][lines_with[0] if lines_with else len(tally.factors)] += 1
            state["ties"] += bool(lines_with) and s > 0 and e == tally.factors[lines_with[0]] * s
    return state


def _sums_below(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for y, e, s, ratio in _pixels(maps, tally.sigma):
            g = _group(tally.intervals, y)
            if g is not None:
                value = {"error": e, "lambda": ratio}[tally.of]
                k = sum(limit < value for limit in tally.limits[g])
                if k < len(tally.limits[g]):
                    state["count"][g, k] += 1
                    state["sums"][g, k] += (e, s)
                    state["most"][g, k] = max(state["most"][g, k], e)
    return state


def _item_errors(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        found = _pixels(maps, tally.sigma)
        state["invalid"] += int((maps["label"] == 255).sum())
        state["pixels"] += len(found)
        state["totals"] += (sum(p[1] for p in found), sum(p[2] for p in found))
        state["zero"] += (sum(p[2] == 0 for p in found), sum(math.isinf(p[3]) for p in found))
        if int(len(found) * tally.percentile / 100) < 1:
            continue
        own = [
            naive.percentile([p[k] for p in found], tally.percentile, tally.rule) for k in (3, 1)
        ]
        k, limit = (3, own[0]) if tally.trimmed_by_ratio else (1, own[1])
        kept = [p for p in found if p[k] <= limit]
        state["own"] = np.maximum(state["own"], own)
        state["count"] += len(kept)
        sigma = sum(p[2] for p in kept) if tally.trimmed_by_ratio else 0.0
        state["sums"] += (sum(p[1] for p in kept), sigma)
        state["most"] = np.maximum(state["most"], max(p[1] for p in kept))
    return state


def _errors_upto(tally: Any, items: Sequence[Maps]) -> State:
    found = [e for maps in items for _, e, _, _ in _pixels(maps) if np.float32(e) <= tally.limit]
    fine = np.zeros((len(tally.bins), 1 << 13))
    for e in (e for maps in items for _, e, _, _ in _pixels(maps)):
        key = int(np.float32(e).view(np.uint32)) + 2**31
        if key >> 13 in tally.bins:
            fine[tally.bins.index(key >> 13), key % 2**13] += e
    return {"count": [len(found)], "sum": [sum(found)], "fine": fine}


def _error_ranks(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        for _, e, _, ratio in _pixels(maps, tally.sigma):
            for k, value in enumerate((ratio, e)):
                key = int(np.float32(value).view(np.uint32)) + 2**31
                if not tally.bins:
                    state["coarse"][k, key >> 13] += 1
                elif (k, key >> 13) in tally.bins:
                    state["fine"][tally.bins.index((k, key >> 13)), key % 2**13] += 1
    return state


def _digits(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    bits = 12 if tally.level == 0 else 10
    shift = (20, 10, 0)[tally.level]
    for maps in items:
        for y, e, _, ratio in _pixels(maps):
            key = int(np.float32(e if tally.of == "error" else ratio).view(np.uint32)) + 2**31
            row = (_group(tally.intervals, y), key >> (shift + bits))
            if row in tally.wanted:
                state["counts"][tally.wanted.index(row), (key >> shift) % 2**bits] += 1
    return state


def _target_counts(tally: Any, items: Sequence[Maps]) -> State:
    counts = [maps["target_counts"] for maps in items]
    ends = np.max([own[3:] for own in counts], axis=0, initial=-np.inf)
    return {"counts": sum(own[:3] for own in counts), "ends": ends}


def _quantiles(tally: Any, items: Sequence[Maps]) -> State:
    counts = [0] * (len(tally.quantiles) + 1)
    for maps in items:
        known = maps["label"] == 0
        for m, y, s in zip(*(maps[k][known] for k in ("mean", "target", tally.sigma)), strict=True):
            held = [float(m) - float(y) <= q * float(s) for q in tally.quantiles]
            counts[held.index(True) if any(held) else len(held)] += 1
    return {"counts": counts}


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {
    Digits: _digits,
    ErrorRanks: _error_ranks,
    ErrorSums: _error_sums,
    DepthSums: _depth_sums,
    ScaledErrors: _scaled_errors,
    SigmaBins: _sigma_bins,
    PooledSigmaBins: _sigma_bins,
    ErrorsUpto: _errors_upto,
    QuantileCounts: _quantiles,
    IntervalCounts: _interval_counts,
    ItemErrors: _item_errors,
    PredictiveScores: _scores,
    SumsBelow: _sums_below,
    TargetCounts: _target_counts,
}
