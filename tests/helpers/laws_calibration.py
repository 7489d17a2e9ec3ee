"""Examples and slow oracles of the tallies of calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import naive_calibration as naive
import numpy as np

from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._values import RawMap
from uqeval.tallies.at_temperature import Tempered, TemperedSamples
from uqeval.tallies.fine_gaps import FineGaps
from uqeval.tallies.ranks import Ranks
from uqeval.tallies.reliability import (
    AdaptiveReliability,
    Bins,
    ClassReliability,
    ItemAdaptive,
    PooledAdaptive,
    ProperScores,
    Reliability,
)
from uqeval.tallies.tempered import Likelihoods, SampleLikelihoods, TemperatureSlopes

EXAMPLES: tuple[Tally, ...] = (
    Reliability(4, Bins()),
    Reliability(300, Bins(8, "upper")),
    Reliability(4, Bins(5, "upper-float32")),
    ClassReliability(4, Bins(10)),
    ClassReliability(4, Bins(7, "upper")),
    AdaptiveReliability(4, (0.5625, 0.75, 0.75, 0.875)),
    AdaptiveReliability(4, ()),
    PooledAdaptive(4, (0.5625, 0.75)),
    ItemAdaptive(4, 5),
    ItemAdaptive(4, 1),
    FineGaps(4),
    FineGaps(4, positive=True),
    ProperScores(4, 2.0**-24),
    ProperScores(300, 0.01),
    Ranks(RawMap("confidence"), 4),
    Ranks(RawMap("confidence"), 4, bins=((0, 391936), (0, 391680))),
    TemperatureSlopes(4, 1 / 32, 0.0, 11),
    TemperatureSlopes(20, 0.75, 0.0625, 3),
    TemperatureSlopes(4, 0.75, 0.0625, 3, sample=7),
    Tempered(4, 0.5, Bins(), 2.0**-24),
    Tempered(4, 1.75, Bins(6, "upper"), 0.125),
    SampleLikelihoods(4, 0.5, 0.25, 3, 2.0**-24),
    SampleLikelihoods(300, 0.5, 0.0, 3, 0.125),
    Likelihoods(4, 0.5, 0.0, 3, 0.01),
    Likelihoods(4, 0.5, 0.25, 2, 2.0**-24, sample=7),
    TemperedSamples(4, 0.5, Bins(), 2.0**-24),
    TemperedSamples(4, 1.75, Bins(6, "upper"), 0.125),
)

State = dict[str, Any]


def _known(tally: Any, items: Sequence[Any], name: str) -> Any:
    """A map's values [..., i] at the non-void pixels of all items."""
    return np.concatenate(
        [m[name][..., m["label"] != void_of(tally.classes)] for m in items], axis=-1
    )


def _binned(bins: Bins, conf: Any, hit: Any) -> State:
    state = {name: np.zeros(bins.count + 1) for name in ("count", "correct", "confidence")}
    special = np.zeros(3)
    inner = {np.float32(k / bins.count) for k in range(1, bins.count)}
    if bins.edge != "upper-float32":
        inner = {v for v in inner if float(v) * bins.count == round(float(v) * bins.count)}
    for c, h in zip(conf, hit, strict=True):
        b = bins.count if c >= 1 else naive.bin_of(c, bins.count, bins.edge)
        state["count"][b] += 1
        state["correct"][b] += h
        state["confidence"][b] += float(c)
        special += [c == 1, c in inner, not 0 <= c <= 2]
    return state | {"special": special}


def _reliability(tally: Any, items: Sequence[Any]) -> State:
    conf, label, predicted = (
        _known(tally, items, k) for k in ("confidence", "label", "prediction")
    )
    return _binned(tally.bins, conf, predicted == label)


def _class_reliability(tally: Any, items: Sequence[Any]) -> State:
    probs, label = _known(tally, items, "mean_probs"), _known(tally, items, "label")
    found = [_binned(tally.bins, probs[c], label == c) for c in range(tally.classes)]
    state = {k: np.stack([one[k] for one in found]) for k in ("count", "correct", "confidence")}
    return state | {"special": sum(one["special"] for one in found)}


def _adaptive(tally: Any, items: Sequence[Any]) -> State:
    state = {k: np.zeros(len(tally.edges) + 1) for k in ("count", "correct", "confidence")}
    names = ("confidence", "label", "prediction")
    for c, y, p in zip(*(_known(tally, items, k) for k in names), strict=True):
        b = sum(np.float32(edge) < c for edge in tally.edges)
        state["count"][b] += 1
        state["correct"][b] += y == p
        state["confidence"][b] += float(c)
    return state


def _item_adaptive(tally: Any, items: Sequence[Any]) -> State:
    state = {k: np.zeros(tally.bins) for k in ("count", "correct", "confidence")}
    for maps in items:
        known = maps["label"] != void_of(tally.classes)
        conf, hit = maps["confidence"][known], (maps["label"] == maps["prediction"])[known]
        for c, h in zip(conf, hit, strict=True):
            b = int(tally.bins * (conf < c).sum()) // conf.size
            state["count"][b] += 1
            state["correct"][b] += h
            state["confidence"][b] += float(c)
    return state


def _fine_gaps(tally: Any, items: Sequence[Any]) -> State:
    label = _known(tally, items, "label")
    value, hit = (
        (_known(tally, items, "mean_probs")[1], label == 1) if tally.positive
        else (_known(tally, items, "confidence"), label == _known(tally, items, "prediction"))
    )  # fmt: skip
    gaps: list[list[float]] = [[] for _ in range(4097)]
    for c, h in zip(value.astype(float), hit, strict=True):
        node = min(math.floor(4096 * c), 4095)
        gaps[node].append((node + 1 - 4096 * c) * (h - c))
        gaps[node + 1].append((4096 * c - node) * (h - c))
    absolute = math.fsum(abs(hit - value.astype(float)))
    return {"pixels": [len(value)], "absolute": [absolute], "gaps": [*map(math.fsum, gaps)]}


def _proper_scores(tally: Any, items: Sequence[Any]) -> State:
    p, brier = _known(tally, items, "label_probability"), _known(tally, items, "brier")
    logs = [-math.log(max(float(v), tally.clip)) for v in p]
    return {
        "counts": [len(p), sum(float(v) < tally.clip for v in p), 0],
        "sums": [math.fsum(logs), math.fsum(brier.tolist())],
    }


def _sampled(tally: Any, maps: Any) -> Any:
    """An item's maps [..., y = 1, x], with some of its pixels where that is asked for."""
    pixels, apart = maps["label"].size, 1
    while tally.sample and (apart % 2 == 0 or apart * tally.sample < pixels):
        apart += 1
    flat = {k: v.reshape(*v.shape[:-2], 1, -1) for k, v in maps.items() if k in tally.inputs}
    return {k: v[..., ::apart] for k, v in flat.items()}


def _slopes(tally: Any, items: Sequence[Any]) -> State:
    items = [_sampled(tally, maps) for maps in items]
    probs, label = _known(tally, items, "mean_probs"), _known(tally, items, "label")
    state = {"slope": np.zeros(tally.count), "curvature": np.zeros(tally.count)}
    pixels = [0, 0]
    for p, y in zip(probs.T.astype(float), label, strict=True):
        pixels[int(p[y] == 0)] += 1
        if p[y] > 0:
            logs = np.log(p[p > 0])
            for j in range(tally.count):
                step = tally.lowest + j * tally.step if tally.step else tally.lowest * 2**j
                w = np.exp(step * (logs - logs.max()))
                mean = (w * logs).sum() / w.sum()
                state["slope"][j] += mean - math.log(p[y])
                state["curvature"][j] += (w * (logs - mean) ** 2).sum() / w.sum()
    return state | {"pixels": pixels}


def _tempered(tally: Any, items: Sequence[Any]) -> State:
    probs, label = _known(tally, items, "mean_probs"), _known(tally, items, "label")
    after = naive.tempered(probs, 1 / tally.beta)
    hit = _known(tally, items, "prediction") == label
    mine = after[label, np.arange(label.size)]
    state = _binned(tally.bins, after.max(axis=0).astype("f4"), hit)
    nll = [math.fsum(-math.log(max(p, tally.clip)) for p in mine)]
    return state | {"nll": nll, "clipped": [sum(p < tally.clip for p in mine)]}


def _likelihoods(tally: Any, items: Sequence[Any]) -> State:
    items = [_sampled(tally, maps) for maps in items]
    probs, label = _known(tally, items, "mean_probs"), _known(tally, items, "label")
    enters = probs[label, np.arange(label.size)] > 0
    probs, label = probs[:, enters], label[enters]
    sums = []
    for j in range(tally.count):
        beta = tally.lowest + j * tally.step if tally.step else tally.lowest * 2**j
        mine = naive.tempered(probs, 1 / beta)[label, np.arange(label.size)]
        sums.append(math.fsum(-math.log(max(p, tally.clip)) for p in mine))
    return {"nll": sums, "pixels": [enters.sum(), (~enters).sum()]}


def _sample_likelihoods(tally: Any, items: Sequence[Any]) -> State:
    nll = _known(tally, items, "tempered_nll").astype(float)
    finite = np.isfinite(nll[0])
    sums = [math.fsum(np.minimum(row[finite], -math.log(tally.clip))) for row in nll]
    return {"nll": sums, "pixels": [finite.sum(), (~finite).sum()]}


def _tempered_samples(tally: Any, items: Sequence[Any]) -> State:
    p = _known(tally, items, "label_probability")
    nll = [math.fsum(-math.log(max(float(v), tally.clip)) for v in p)]
    clipped = [sum(float(v) < tally.clip for v in p)]
    return _reliability(tally, items) | {"nll": nll, "clipped": clipped}


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Any]], State]] = {
    AdaptiveReliability: _adaptive,
    PooledAdaptive: _adaptive,
    ClassReliability: _class_reliability,
    FineGaps: _fine_gaps,
    ItemAdaptive: _item_adaptive,
    ProperScores: _proper_scores,
    Reliability: _reliability,
    Likelihoods: _likelihoods,
    SampleLikelihoods: _sample_likelihoods,
    Tempered: _tempered,
    TemperedSamples: _tempered_samples,
    TemperatureSlopes: _slopes,
}
