"""Counts of items by the bin of a pixel's rank, from which scores of a ranking follow.

Intervals of a run count pixels by the high bits of a float32 as equal: bins of a relative width of
2^-10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.families import Pixels
from uqeval.usecases.verify.resampled import Counted, CountedScores
from uqeval.usecases.verify.sparsification import areas, curves

#: Of more counts, no interval is recomputed.
_MOST = 1 << 27


def by_bin(scores: Sequence[Array], errors: Sequence[Array]) -> Array | None:
    """Return pixels and Σ error of each bin, [item, 2·bin], bins ascending; None if they are too
    many."""
    item_bins = [ranks.bins_of(score, ranks.INTERVAL_BITS) for score in scores]
    every = np.unique(np.concatenate(item_bins))
    if 2 * len(scores) * every.size > _MOST:
        return None
    counts = np.zeros((len(scores), 2, every.size))
    for row, bins, error in zip(counts, item_bins, errors, strict=True):
        place = np.searchsorted(every, bins)
        for numbers, weights in zip(row, (None, error), strict=True):
            numbers[:] = np.bincount(place, weights, every.size)
    return counts.reshape(len(scores), -1)


def _moved(
    maps: Sequence[Array], errors: Sequence[Array], roundings: Sequence[Array], beside: Array
) -> Iterator[Array]:
    """Yield the counts of items whose `maps` have random rounding errors, draw by draw, `beside`
    those that no draw changes."""
    step = ranks.noise(np.concatenate(maps))
    draws = [ranks.rounded_in_bins(*own, step) for own in zip(maps, roundings, strict=True)]
    for of_draw in zip(*draws, strict=True):
        if (counts := by_bin(of_draw, errors)) is not None:
            yield np.concatenate([beside, counts], axis=1)


def failure(
    key: str, parts: Sequence[Pixels], results: Mapping[str, Any], names: Sequence[str]
) -> CountedScores:
    """Return the scores of failure detection, and the undetected errors of the set and of each
    class."""
    maps, errors = [item.maps[key] for item in parts], [item.wrong for item in parts]
    of_ranks = ranked(ranks.FAILURE, maps, errors, [item.rounding[key] for item in parts])
    return _undetected(key, parts, results, names) | of_ranks


def ranked(
    formulas: Mapping[tuple[str, ...], Callable[[ranks.Groups], Array]], maps: Sequence[Array],
    errors: Sequence[Array], roundings: Sequence[Array],
) -> CountedScores:  # fmt: skip
    """Return the scores of a ranking of the pixels of items by `maps`, which are wrong or right.

    `roundings`: the `ClassMaps.rounding` of each map, [pixel, draw].
    """
    scores: CountedScores = {}
    # The numbers of wrong and of right pixels come first.
    kinds = np.array([[wrong.sum(), (~wrong).sum()] for wrong in errors])
    counts = by_bin(maps, errors)
    if counts is None:
        return scores

    moved = partial(_moved, maps, errors, roundings, kinds)
    counts = np.concatenate([kinds, counts], axis=1)
    for fields, formula in formulas.items():
        # The scores at a coverage or risk, one of several, compare no kinds of pixels.
        compared = ((0,), (1,)) if len(fields) == 1 else ()
        risk, events = _of_groups(formula), None
        if fields[0] == "risk_at_coverage":
            events = partial(_accepted, risk, int(fields[-1]))
        scores[fields] = Counted(counts, risk, moved=moved, kinds=compared, events=events)
    return scores


def _accepted(risk: Callable[[Array], Array], percent: int, sums: Array) -> float:
    """Return the accepted wrong pixels of a risk at a coverage, in those of a unit with some."""
    wrong, pixels = sums[:, 0], float(sums[:, :2].sum())
    accepted = float(risk(sums.sum(axis=0)[None])[0]) * percent / 100 * pixels
    return min(accepted / max(float(wrong.sum()), 1.0), 1.0) * int((wrong > 0).sum())


def sparsification(
    scores: Sequence[Array], rankings: Sequence[Array], errors: Sequence[Array], steps: int,
    rooted: bool, roundings: Sequence[Array] = (),
) -> CountedScores:  # fmt: skip
    """Return AUSE and AURG. `scores`: the uncertainties of each item, `rankings`: the errors by
    which the best order ranks its pixels; `roundings`: as in `ranked`, none of exact scores."""
    counts, best = by_bin(scores, errors), by_bin(rankings, errors)
    if counts is None or best is None:
        return {}

    def score(place: int) -> Callable[[Array], Array]:
        return lambda sums: _areas(sums)[place]

    def _areas(sums: Array) -> tuple[Array, Array]:
        of_best, of_model = np.split(sums, [best.shape[1]], axis=1)
        n, own = np.split(of_best, 2, axis=1)
        oracle = curves(n, own, steps, rooted)
        n, own = np.split(of_model, 2, axis=1)
        return areas(curves(n, own, steps, rooted), oracle)

    counts = np.concatenate([best, counts], axis=1)
    moved = partial(_moved, scores, errors, roundings, best) if roundings else tuple
    return {
        (name,): Counted(counts, score(k), moved=moved) for k, name in enumerate(("ause", "aurg"))
    }


def _of_groups(formula: Callable[[ranks.Groups], Array]) -> Callable[[Array], Array]:
    return lambda sums: formula(ranks.Groups(*np.split(sums[:, 2:], 2, axis=1)))


def _undetected(
    key: str, parts: Sequence[Pixels], results: Mapping[str, Any], names: Sequence[str]
) -> CountedScores:
    threshold = results.get("uncertainty_threshold")
    if threshold is None:
        return {}
    scores: CountedScores = {}
    for c, fields in enumerate([(), *(("per_class", name) for name in names)], -1):
        rows, near = [], 0
        for item in parts:
            own = np.ones(item.label.shape, bool) if c < 0 else item.label == c
            share, uncertain = ranks.undetected(item.maps[key][own], item.wrong[own], threshold)
            rows.append([(share or 0.0) * own.sum(), own.sum()])
            near += uncertain
        counts = np.array(rows, np.float64)
        scores[*fields, "undetected_error_rate"] = Counted(
            counts, lambda s: s[:, 0] / s[:, 1], lambda s: s[:, 1],
            slack=near / max(float(counts[:, 1].sum()), 1.0),
        )  # fmt: skip
    return scores
