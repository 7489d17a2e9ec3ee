"""Counts of items by the bin of a pixel's rank, from which scores of a ranking follow.

Intervals of a run count pixels by the high bits of a float32 as equal: bins of a relative width of
2^-10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.families import Pixels
from uqeval.usecases.verify.resampled import Counted, CountedScores

#: The low bits of a float32 that a bin does not have.
_LOW_BITS = 13
#: Of more counts, no interval is recomputed.
_MOST = 1 << 27


def bins_of(values: Array) -> Array:
    """Return the bin of each number, a whole number that ascends with it; -0 is 0."""
    bits = (values.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(2**31) - 1 - bits) >> _LOW_BITS


def by_bin(scores: Sequence[Array], errors: Sequence[Array]) -> list[Array]:
    """Return pixels and Σ error of each bin, [item, 2, bin], bins ascending; and the same with all
    scores a little lower and higher, which moves those near an edge. None if they are too many."""
    step = ranks.noise(np.concatenate(scores))
    return [
        counts
        for shift in (0.0, -step, step)
        if (counts := _shifted(scores, errors, shift)) is not None
    ]


def _shifted(scores: Sequence[Array], errors: Sequence[Array], shift: float) -> Array | None:
    item_bins = [bins_of(score.astype(np.float64) + shift) for score in scores]
    every = np.unique(np.concatenate(item_bins))
    if 2 * len(scores) * every.size > _MOST:
        return None
    counts = np.zeros((len(scores), 2, every.size))
    for row, bins, error in zip(counts, item_bins, errors, strict=True):
        place = np.searchsorted(every, bins)
        for numbers, weights in zip(row, (None, error), strict=True):
            numbers[:] = np.bincount(place, weights, every.size)
    return counts


def failure(
    key: str, parts: Sequence[Pixels], results: Mapping[str, Any], names: Sequence[str]
) -> CountedScores:
    """Return the scores of failure detection, and the undetected errors of the set and of each
    class."""
    scores = _undetected(key, parts, results, names)
    # The numbers of wrong and of right pixels come first.
    kinds = np.array([[item.wrong.sum(), (~item.wrong).sum()] for item in parts])
    counts, *moved = (
        np.concatenate([kinds, own.reshape(len(parts), -1)], axis=1)
        for own in by_bin([item.maps[key] for item in parts], [item.wrong for item in parts])
    )
    for fields, formula in ranks.FAILURE.items():
        # The scores at a coverage or risk, one of several, compare no kinds of pixels.
        compared = ((0,), (1,)) if len(fields) == 1 else ()
        scores[fields] = Counted(counts, _of_groups(formula), moved=tuple(moved), kinds=compared)
    return scores


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
