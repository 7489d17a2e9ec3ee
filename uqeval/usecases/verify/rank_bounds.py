"""How far a run may be from a score of a ranking because it counts the pixels of a bin as a tie.

A run ranks pixels by the high 22 bits of a float32, and splits only some of the bins. Of a pixel in
a bin, the precision or the risk has a smallest and a largest value over all orders of the bin. The
sum of these ranges over all bins is the limit of the bound that a report states.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import is_number
from uqeval.usecases.verify import ranks

#: The low bits of a float32 that a run over data does not look at.
LOW_BITS = 10
#: The scores with a bound, by their fields in failure detection.
FAILURE = {name: name for name in ("auroc", "aupr_error", "aupr_success", "aurc", "e_aurc",
                                   "augrc")}  # fmt: skip


def limits(score: Array, wrong: Array, low_bits: int = LOW_BITS) -> dict[str, float]:
    """Return the limits of the bounds of flat pixels by the fields of `FAILURE`; those without a
    wrong or a right pixel that do not need it alone."""
    return limits_of_groups(*ranks.grouped(ranks.bins_of(score, low_bits), wrong))


def limits_of_groups(n: Array, e: Array) -> dict[str, float]:
    """Return the limits of the bounds of the pixels and errors of bins, bins ascending."""
    c, pixels, errors = n - e, float(n.sum()), float(e.sum())
    rights, swaps = pixels - errors, float((e * c / 2).sum())
    before, wrong_before = np.cumsum(n) - n, np.cumsum(e) - e
    above, wrong_above = pixels - before - n, errors - wrong_before - e
    risk = np.where(n > 1, _reach(e, c, wrong_before, before, least=0), 0.0)
    found: dict[str, float] = {}
    if pixels:
        found["aurc"] = found["e_aurc"] = float((n * risk).sum()) / pixels
        found["augrc"] = swaps / pixels**2
    if errors:
        found["aupr_error"] = float((e * _reach(e, c, wrong_above, above)).sum()) / errors
    if rights:
        right_before = before - wrong_before
        found["aupr_success"] = float((c * _reach(c, e, right_before, before)).sum()) / rights
    if errors and rights:
        found["auroc"] = swaps / errors / rights
    return found


def _reach(hits: Array, misses: Array, hits_before: Array, before: Array, least: int = 1) -> Array:
    """Return how far the share of hits up to a pixel of a bin may be from that of the whole bin.

    The share is largest after all hits, which come first, and smallest after all misses and `least`
    hits.
    """
    share = (hits_before + hits) / np.maximum(before + hits + misses, 1)
    largest = (hits_before + hits) / np.maximum(before + hits, 1)
    smallest = (hits_before + least) / np.maximum(before + misses + least, 1)
    return np.asarray(np.maximum(largest - share, share - smallest))


def add_bounds(
    scores: dict[str, Any], slack: dict[str, float], reported: Mapping[str, Any],
    pixels: tuple[Array, Array, Array], fields: Mapping[str, str] = FAILURE,
) -> None:  # fmt: skip
    """Add the bounds that a report states to recomputed scores, up to their limits, and let the
    scores differ by them.

    `pixels`: score, whether wrong, and `rounding` [pixel, draw]. `fields`: names in `FAILURE`.
    """
    stated = {own: reported.get(f"{own}_bound") for own in fields if reported.get(own) is not None}
    if not stated:
        return
    score, wrong, rounding = ranks.ascending(*pixels)
    rankings = chain([score], ranks.draws_of(score, rounding))
    bins = (ranks.bins_of(ranking, LOW_BITS) for ranking in rankings)
    drawn = [limits_of_groups(*groups) for groups in ranks.distinct(bins, wrong)]
    for field, bound in stated.items():
        own = [each[fields[field]] for each in drawn if fields[field] in each]
        limit = max(own, default=0.0)
        slack[f"{field}_bound"] = ranks.RANGES * (limit - min(own, default=0.0))
        possible = min(max(float(bound), 0.0), limit) if is_number(bound) else limit
        scores[f"{field}_bound"] = possible
        slack[field] = slack.get(field, 0.0) + possible
