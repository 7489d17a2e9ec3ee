"""Which subsets of the samples are evaluated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from uqeval.arrays import np
from uqeval.errors import UsageError, number_of


def default_samples(total: int) -> list[int]:
    """Return M = 1, 2, 4, … below T, and T."""
    return [2**k for k in range(total.bit_length()) if 2**k < total] + [total]


def draw(
    total: int, samples: Sequence[int], repeats: Sequence[int], seed: int
) -> list[list[tuple[int, ...]]]:
    """Return, for each M, R different subsets of M of `total` samples, each ascending.

    R is at most the number of subsets that there are. Seeded; the same for any platform.
    """
    if seed < 0:
        raise UsageError(f"--seed {seed}; expected a whole number from 0 on.")
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen_subsets: list[list[tuple[int, ...]]] = []
    for m, repeat_count in zip(samples, repeats, strict=True):
        possible = math.comb(total, m)
        if possible <= 4 * repeat_count:
            all_subsets = list(itertools.combinations(range(total), m))
            selected = rng.permutation(len(all_subsets))[:repeat_count]
            chosen_subsets.append([all_subsets[int(i)] for i in sorted(selected)])
            continue
        subsets: dict[tuple[int, ...], None] = {}
        while len(subsets) < repeat_count:
            subset = sorted(rng.permutation(total)[:m].tolist())
            subsets[tuple(subset)] = None
        chosen_subsets.append(list(subsets))
    return chosen_subsets


def checked_samples(samples: Sequence[int] | None, total: int, where: str) -> list[int]:
    """Return the Ms, ascending. Raises `UsageError` for numbers outside 1 … T."""
    if samples is None:
        return default_samples(total)
    ms = list(samples)
    if not ms or sorted(set(ms)) != ms or ms[0] < 1:
        raise UsageError(f"--samples {ms}; expected different numbers from 1 on, ascending.")
    if ms[-1] > total:
        raise UsageError(
            f"--samples {ms[-1]}, but {where} holds {number_of(total, 'sample')} an item."
        )
    return ms


def checked_repeats(repeats: int | Sequence[int], count: int) -> list[int]:
    """Return R for each M.

    Raises `UsageError` below 1, and for another count than one or `count`.
    """
    counts = [repeats] * count if isinstance(repeats, int) else list(repeats)
    if len(counts) == 1:
        counts *= count
    if len(counts) != count or min(counts, default=0) < 1:
        raise UsageError(
            f"--repeats {counts}; expected one number from 1 on, or one for each of the {count} Ms."
        )
    return counts
