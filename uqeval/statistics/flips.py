"""The smallest true calibration error that random signs of the gaps of units do not reject.

Under perfect calibration the gaps (right pixels minus summed confidences) of each unit are as
likely as their negative. If the true gaps are a share λ of the observed ones, that holds for the
rest of the gaps of each unit. The test statistic is the calibration error itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Floats
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


def least_shares(
    samples: Samples, address: str, levels: tuple[float, ...], runs: Sequence[int] = (0,)
) -> tuple[float, ...]:
    """Return for each level the smallest share of a calibration error that the test at
    (1 − level)/2, the tail of an interval, does not reject as the true one. At level 0 this share
    is as often too small as too large. Several runs: of their mean error.

    Of all sums of absolute gaps of a variant at once.
    """
    known = samples.shares.setdefault((levels, tuple(runs)), {})
    if address not in known:
        beside = [text for text in samples.beside("drawn", address) if kind_of(text) == "gaps"]
        # Without the edges that were fitted, a run has no gaps of a score, and no score either.
        scored = [
            text
            for text in beside
            if all(samples.runs[run].gaps(text) is not None for run in runs)
            and all(np.isfinite(samples.value(text, run)) for run in runs)
        ]
        addresses = list(dict.fromkeys([address, *scored]))
        of_runs = zip(*(_flipped(samples, addresses, run) for run in runs), strict=True)
        for text, parts in zip(addresses, of_runs, strict=True):
            mean = _mean_of(parts)
            known[text] = tuple(mean.least_share(level) for level in levels)
    return known[address]


@dataclass(frozen=True)
class Flipped:
    """Gaps with random signs of n units: `sums` [flip, bin] = Σ_i s_i·g_i, and `means` [flip] of
    the signs; `gaps` [bin] = Σ_i g_i. `score(gaps [set, bin])` returns the calibration error [set].
    """

    sums: Floats
    means: Floats
    gaps: Floats
    score: Callable[[Floats], Floats]

    def p(self, share: float) -> float:
        """Return the p-value of the true gaps being a `share` of the observed ones.

        The rest of the gaps of a unit is g_i − share·Σg/n; its sign is random.
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


def _mean_of(parts: Sequence[Flipped]) -> Flipped:
    """Return the flipped gaps of the mean error of several runs, whose signs are the same."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.gaps.size for part in parts])[:-1]

    def score(gaps: Floats) -> Floats:
        of_parts = zip(parts, np.split(gaps, ends, axis=1), strict=True)
        return np.mean([part.score(own) for part, own in of_parts], axis=0)

    sums = np.concatenate([part.sums for part in parts], axis=1)
    gaps = np.concatenate([part.gaps for part in parts])
    return Flipped(sums, parts[0].means, gaps, score)


def signs_of(units: int, seed: int, flips: int = FLIPS) -> Iterator[NDArray[np.int8]]:
    """Yield random signs [flip, unit] in blocks."""
    rng = generator(seed)
    step = max(_BLOCK // max(units, 1), 1)
    for first in range(0, flips, step):
        yield (rng.integers(0, 2, (min(step, flips - first), units)) * 2 - 1).astype(np.int8)


def _flipped(samples: Samples, addresses: Sequence[str], run: int) -> Iterator[Flipped]:
    """Yield the flipped gaps of each of the scores of a run, which are sums of absolute gaps."""
    scoring, places = samples.runs[run], samples.places[run]
    gaps_at = {}
    for text in addresses:
        pair = scoring.gaps(text)
        assert pair is not None, text
        gaps_at[text] = pair
    tallies = {key: scoring.evaluations[key].tallies() for key, _ in gaps_at.values()}
    # Scores of one variant, such as those of a thousand classes, share sums of states.
    whole = Subset(places, scoring.items)
    of_whole = {
        key: {tally: scoring.stacked(tally).sets(whole) for tally in own}
        for key, own in tallies.items()
    }
    weights = {text: gaps.weights(of_whole[key])[0] for text, (key, gaps) in gaps_at.items()}
    means: list[Floats] = []
    sums: dict[str, list[Floats]] = {text: [] for text in gaps_at}
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
        yield Flipped(flipped, np.concatenate(means), blocks[0][0], score)
