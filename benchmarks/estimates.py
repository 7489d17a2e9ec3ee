"""Intervals of synthetic counts and videos, by the formulas of `uqeval.statistics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from benchmarks.populations import Array, Score
from uqeval.statistics import jackknife, methods, units
from uqeval.statistics.draws import Resampling
from uqeval.statistics.flips import Flipped, signs_of
from uqeval.statistics.methods import Bounds, NoBounds

LEVEL = 0.95


def bounds(
    score: Score, of_units: Array, seed: int, drawn: Array | None = None
) -> Bounds | NoBounds:
    """The interval of a score over units, given their summed counts [unit, number].

    `drawn`: the score of draws of units, where they are known.
    """
    total = of_units.sum(0)
    units = len(of_units) if score.units is None else score.units(of_units)
    value = float(score.of(total[None])[0])
    if units < 2:
        return NoBounds("too few units")
    scores = left_out(value, score.of(total - of_units), units)
    if score.kind == "logit":
        return jackknife.jackknife_t(scores, LEVEL, logit=True)
    if score.kind == "share":
        alone = of_units[:, 0] / of_units[:, 1]
        few = methods.few_events(value, alone)
        variance = scores.spread().variance
        return methods.korn_graubard(value, variance, units, few, float(total[1]), LEVEL)
    if units < methods.LEAST_DRAWN:
        return NoBounds("too few units")
    drawn = drawn_scores(score, of_units, seed) if drawn is None else drawn
    found = methods.expanded(drawn[np.isfinite(drawn)], units, LEVEL)
    if score.kind == "positive":
        return methods.up_to(found, jackknife.jackknife_log(scores, LEVEL))
    if score.kind == "gaps":
        assert score.gaps is not None
        found = methods.beyond_bias(found, drawn[np.isfinite(drawn)], value, units)
        share = flipped(score.gaps(of_units), seed).least_share(LEVEL)
        low = min(found.low, share * value) if share else 0.0
        return replace(found, low=max(low, 0.0))
    return found


def flipped(gaps: Array, seed: int) -> Flipped:
    """Gaps [unit, bin] of units with random signs; the score is the sum of their absolute sums."""
    signs = np.concatenate(list(signs_of(len(gaps), seed))).astype(np.float64)
    return Flipped(signs @ gaps, signs.mean(axis=1), gaps.sum(axis=0), absolute)


def absolute(gaps: Array) -> Array:
    """The sum of absolute gaps [set] of gaps [set, bin]."""
    found: Array = np.abs(gaps).sum(axis=1)
    return found


def left_out(value: float, without_unit: Array, units: int) -> jackknife.LeftOut:
    """Return a score of units with its values without each of them."""
    return jackknife.LeftOut(value, without_unit, [np.arange(len(without_unit))], units, units)


def drawn_scores(score: Score, of_units: Array, seed: int) -> Array:
    names = tuple(f"{i:04d}" for i in range(len(of_units)))
    weights = np.concatenate([own.weights for own in Resampling(names, 1000, seed).drawn()])
    return score.of(weights @ of_units)


def video_bounds(
    series: Sequence[Array], other: Sequence[Array] | None = None
) -> Bounds | NoBounds:
    """The interval of the mean of the scores of pairs of sequences, by batch means.

    `other`: the scores that decide the batches (None: the scores themselves).
    """
    values = np.concatenate(list(series))
    names = [f"{i:03d}" for i, own in enumerate(series) for _ in own]
    tau, _ = units.autocorrelation(series if other is None else other)
    groups = np.array(units.batches(names, units.batch_count(len(values), tau)))
    batches = [values[groups == own] for own in np.unique(groups)]
    if min(map(len, batches)) <= tau:
        return NoBounds("too short")
    without = np.array([(values.sum() - b.sum()) / (len(values) - len(b)) for b in batches])
    value = float(values.mean())
    return jackknife.batch_means(left_out(value, without, len(batches)), LEVEL)


def alike(rng: np.random.Generator, length: int) -> Array:
    """0.74 of the variance AR(1) with 0.93, the rest white."""
    found = autoregressive(rng, length, 0.93)
    return np.sqrt(0.74) * found + np.sqrt(0.26) * rng.normal(size=length)


def autoregressive(rng: np.random.Generator, length: int, factor: float) -> Array:
    """Standard normal numbers, each the last one times a factor and noise."""
    first, *noise = rng.normal(size=length + 1).tolist()
    rest = float(np.sqrt(1 - factor**2))
    states = accumulate(noise, lambda state, own: factor * state + rest * own, initial=first)
    return np.fromiter(states, np.float64)[1:]


def drifting(rng: np.random.Generator, length: int) -> tuple[Array, Array]:
    """The consistency and the mIoU of pairs whose wrong columns drift, AR(1) with 0.97.

    Two classes have 8 of 16 columns each, and a few of the second are called the first. The
    consistency sees the changes of their number only, so it is nearly white.
    """
    wrong = np.rint(16 * (0.2 + 0.12 * np.tanh(autoregressive(rng, length + 1, 0.97))))
    miou = (8 / (8 + wrong) + (8 - wrong) / 8) / 2 + 0.01 * rng.normal(size=length + 1)
    consistency = 0.95 - np.abs(np.diff(wrong)) / 16 + 0.01 * rng.normal(size=length)
    return consistency, miou[1:]
