"""Test of calibration errors: random signs of the gaps of units.

Under perfect calibration the gaps (right pixels less summed confidences) of each unit are as likely
as their negative. The test statistic is the calibration error itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.blas import one_blas_thread
from uqeval.statistics.draws import generator
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.weighting import Subset, Weighting

if TYPE_CHECKING:
    from uqeval.statistics.samples import Samples

FLIPS = 1000
#: The largest number of signs that are made at a time.
_BLOCK = 1 << 21
#: Relative difference of sums in another order.
_ROUNDING = 1e-12
#: Returns the scores [set] of sets by name.
ScoresOf = Callable[[Weighting], Iterable[tuple[str, NDArray[np.float64]]]]


def share_of_flips(samples: Samples, address: str) -> float | None:
    """Return the share of random signs of the units' gaps that give a calibration error at least
    as large; None for scores that are no sum of absolute gaps. Of all such scores of a variant at
    once."""
    if address not in samples.shares:
        beside = [text for text in samples.beside("drawn", address) if kind_of(text) == "gaps"]
        addresses = dict.fromkeys([address, *beside])
        samples.shares.update(dict.fromkeys(addresses))
        samples.shares.update(_shares_of_scores(samples, addresses))
    return samples.shares[address]


def _shares_of_scores(samples: Samples, addresses: Iterable[str]) -> dict[str, float]:
    """Return the share of random signs of the units whose score is at least the observed one.

    For scores of the first run that are sums of absolute gaps; others are left out.
    """
    scoring, places = samples.runs[0], samples.places[0]
    gaps_at = {text: pair for text in addresses if (pair := scoring.gaps(text)) is not None}
    tallies = {key: scoring.evaluations[key].tallies() for key, _ in gaps_at.values()}
    whole = Subset(places, scoring.items)
    weights = {}
    for text, (key, gaps) in gaps_at.items():
        weights[text] = gaps.weights({t: scoring.stacked(t).sets(whole) for t in tallies[key]})[0]

    def scores_of(signs: Weighting) -> Iterator[tuple[str, NDArray[np.float64]]]:
        sets = samples.placed(scoring, places, signs)
        states = {
            key: {tally: samples.stacked(scoring, places, tally).sets(sets) for tally in own}
            for key, own in tallies.items()
        }
        for text, (key, gaps) in gaps_at.items():
            best = np.max if gaps.largest else np.sum
            yield text, best(np.abs(gaps.signed(states[key])) * weights[text], axis=1)

    with one_blas_thread():
        return shares(scores_of, samples.resampling.units, samples.resampling.seed)


def shares(scores_of: ScoresOf, units: int, seed: int, flips: int = FLIPS) -> dict[str, float]:
    """Return by name the share of random signs that give at least the score of no changed sign.

    `scores_of(signs)`: the scores [set] of sets of units whose weights are their signs.
    """
    rng = generator(seed)
    hits: dict[str, int] = {}
    step = max(_BLOCK // max(units, 1), 1)
    for first in range(0, flips, step):
        signs = rng.integers(0, 2, (min(step, flips - first), units)) * 2 - 1
        unchanged = np.ones((1, units), np.int8)
        sets = Weighting(np.concatenate([unchanged, signs.astype(np.int8)]))
        for name, scores in scores_of(sets):
            at_least = scores[1:] >= scores[0] * (1 - _ROUNDING)
            hits[name] = hits.get(name, 0) + int(at_least.sum())
    return {name: (1 + count) / (1 + flips) for name, count in hits.items()}
