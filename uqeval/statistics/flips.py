"""The smallest true calibration error that random signs of the gaps of units do not reject.

Under perfect calibration the gaps (right pixels less summed confidences) of each unit are as likely
as their negative. If the true gaps are a share λ of the observed ones, that holds for what is left
of the gaps of each unit. The test statistic is the calibration error itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.blocks import one_blas_thread
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
#: Halvings of the range of shares: the share is exact to 1/256.
_HALVINGS = 8


def least_share(samples: Samples, address: str, level: float) -> float | None:
    """Return the smallest share of a calibration error that the test at (1 − `level`)/2, the tail
    of an interval, does not reject as the true one; None for scores that are no sum of absolute
    gaps. Of all such scores of a variant at once."""
    if (address, level) not in samples.shares:
        beside = [text for text in samples.beside("drawn", address) if kind_of(text) == "gaps"]
        addresses = dict.fromkeys([address, *beside])
        samples.shares.update(dict.fromkeys((text, level) for text in addresses))
        for text, flipped in _flipped(samples, addresses):
            samples.shares[text, level] = flipped.least_share(level)
    return samples.shares[address, level]


@dataclass(frozen=True)
class Flipped:
    """Gaps with random signs of n units: `sums` [flip, bin] = Σ_i s_i·g_i, and `means` [flip] of
    the signs; `gaps` [bin] = Σ_i g_i. `score(gaps [set, bin])` returns the calibration error [set].
    """

    sums: NDArray[np.float64]
    means: NDArray[np.float64]
    gaps: NDArray[np.float64]
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]]

    def p(self, share: float) -> float:
        """Return the p-value of the true gaps being a `share` of the observed ones.

        What is left of the gaps of a unit is g_i − share·Σg/n; its sign is random.
        """
        drift = share * (1 - self.means)
        scores = self.score(self.sums + drift[:, None] * self.gaps)
        least = self.score(self.gaps[None]) * (1 - _ROUNDING)
        return float((1 + (scores >= least).sum()) / (1 + len(scores)))

    def least_share(self, level: float) -> float:
        """Return the smallest share that is not rejected, rounded down to a multiple of 1/256."""
        tail = (1 - level) / 2
        if self.p(0.0) > tail:
            return 0.0
        rejected, accepted = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (rejected + accepted) / 2
            if self.p(middle) > tail:
                accepted = middle
            else:
                rejected = middle
        return rejected


def signs_of(units: int, seed: int, flips: int = FLIPS) -> Iterator[NDArray[np.int8]]:
    """Yield random signs [flip, unit] in blocks."""
    rng = generator(seed)
    step = max(_BLOCK // max(units, 1), 1)
    for first in range(0, flips, step):
        yield (rng.integers(0, 2, (min(step, flips - first), units)) * 2 - 1).astype(np.int8)


def _flipped(samples: Samples, addresses: Iterable[str]) -> Iterator[tuple[str, Flipped]]:
    """Yield the flipped gaps of the scores of the first run that are sums of absolute gaps."""
    scoring, places = samples.runs[0], samples.places[0]
    gaps_at = {text: pair for text in addresses if (pair := scoring.gaps(text)) is not None}
    tallies = {key: scoring.evaluations[key].tallies() for key, _ in gaps_at.values()}
    whole = Subset(places, scoring.items)
    weights = {}
    for text, (key, gaps) in gaps_at.items():
        weights[text] = gaps.weights({t: scoring.stacked(t).sets(whole) for t in tallies[key]})[0]
    means: list[NDArray[np.float64]] = []
    sums: dict[str, list[NDArray[np.float64]]] = {text: [] for text in gaps_at}
    with one_blas_thread():
        for signs in signs_of(samples.resampling.units, samples.resampling.seed):
            means.append(signs.mean(axis=1))
            # The first set has all signs unchanged: some gaps need it.
            sets = Weighting(np.concatenate([np.ones_like(signs[:1]), signs]))
            placed = samples.placed(scoring, places, sets)
            states = {
                key: {tally: samples.stacked(scoring, places, tally).sets(placed) for tally in own}
                for key, own in tallies.items()
            }
            for text, (key, gaps) in gaps_at.items():
                sums[text].append(gaps.signed(states[key]))
    for text, (_, gaps) in gaps_at.items():
        blocks = sums.pop(text)
        flipped = np.concatenate([block[1:] for block in blocks])
        score = partial(gaps.score, weights=weights[text])
        yield text, Flipped(flipped, np.concatenate(means), blocks[0][0], score)
