"""What the intervals hold: how often they cover the truth, and how often a gate passes falsely.

    python benchmarks/intervals.py [--replications 500]

Synthetic per-item counts of a population whose scores are known, drawn again and again; the draws
and intervals are those of `uqeval.statistics`, at level 0.95. Clustered items share half of the
variance of their drive. A gate passes falsely when the whole interval is on the good side of a
limit that equals the truth: 2.5 % would by the level.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import interval

Array = NDArray[np.float64]
LEVEL = 0.95
#: Items, and of how many drives where they are clustered.
SIZES = {10: 5, 30: 6, 100: 10, 400: 20}


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def effects(rng: np.random.Generator, drives: Array, size: int = 1) -> Array:
    """Standard normal numbers of items, half of whose variance is that of their drive."""
    names, of = np.unique(drives, return_inverse=True)
    shared = rng.normal(size=(len(names), size))[of]
    return (shared + rng.normal(size=(len(drives), size))) / np.sqrt(2)


def pavpu_counts(rng: np.random.Generator, drives: Array, items: int) -> Array:
    """Right patches and all, of images of which more or less is void."""
    n = rng.integers(400, 1000, len(drives))
    return np.stack([rng.binomial(n, logistic(1.4 + 0.8 * effects(rng, drives)[:, 0])), n], 1)


def consistency(rng: np.random.Generator, drives: Array, items: int) -> Array:
    """A score of each pair of frames near 1, with a tail, and its count 1."""
    return np.stack([logistic(2.5 + effects(rng, drives)[:, 0]), np.ones(len(drives))], 1)


def confusion(rng: np.random.Generator, drives: Array, items: int) -> Array:
    """Labelled, predicted and correct pixels of 8 classes, some of them in few images only."""
    share = np.geomspace(1, 0.08, 8)
    there = rng.random((len(drives), 8)) < share
    labelled = np.where(there, rng.lognormal(9 + np.log(share), 0.7, there.shape), 0.0)
    right = labelled * logistic(1.5 + effects(rng, drives, 8))
    wrong = (labelled - right).sum(1, keepdims=True) * share / share.sum()
    return np.concatenate([labelled, right + wrong, right], 1)


def bins(over: float) -> Callable[[np.random.Generator, Array, int], Array]:
    """Pixels, right ones and confidences of 10 bins: `over`-confident, more or less."""

    def counts(rng: np.random.Generator, drives: Array, items: int) -> Array:
        centre = np.linspace(0.05, 0.95, 10)
        weight = rng.dirichlet(20 * centre**2, len(drives))
        right = np.clip(centre - over + 0.06 * effects(rng, drives), 0, 1)
        return np.concatenate([weight, weight * right, weight * centre], 1)

    return counts


def rare(expected: int) -> Callable[[np.random.Generator, Array, int], Array]:
    """Images that are wrong, and all: so many wrong ones are `expected`, alone, or as half of the
    images of half as many drives."""

    def counts(rng: np.random.Generator, drives: Array, items: int) -> Array:
        names, of = np.unique(drives, return_inverse=True)
        if len(names) == len(drives):
            hit = rng.random(len(drives)) < expected / items
        else:
            hit = (rng.random(len(names)) < 2 * expected / items)[of]
            hit &= rng.random(len(drives)) < 0.5
        return np.stack([hit.astype(float), np.ones(len(drives))], 1)

    return counts


def ratio(sums: Array) -> Array:
    return sums[:, 0] / sums[:, 1]


def miou(sums: Array) -> Array:
    labelled, predicted, correct = sums[:, :8], sums[:, 8:16], sums[:, 16:]
    union = labelled + predicted - correct
    with np.errstate(invalid="ignore"):
        return np.nanmean(np.where(union > 0, correct / union, np.nan), 1)


def ece(sums: Array) -> Array:
    n, right, confidence = sums[:, :10], sums[:, 10:20], sums[:, 20:]
    return np.abs(right - confidence).sum(1) / n.sum(1)


@dataclass(frozen=True)
class Score:
    """Counts of items, the score of their sums, and which way is better."""

    name: str
    counts: Callable[[np.random.Generator, Array, int], Array]
    of: Callable[[Array], Array]
    higher: bool = True
    truth: Callable[[int], float] | None = None


#: All are shares, from 0 to 1.
SCORES = (
    Score("ratio of counts (PAvPU)", pavpu_counts, ratio),
    Score("mean over items (mTC)", consistency, ratio),
    Score("mIoU, rare classes", confusion, miou),
    Score("ECE of 0.03", bins(0.03), ece, higher=False),
    Score("ECE of 0.005", bins(0.005), ece, higher=False),
    Score("rate, 1 event expected", rare(1), ratio, False, lambda items: 1 / items),
    Score("rate, 4 events expected", rare(4), ratio, False, lambda items: 4 / items),
)
DESIGNS = ("independent", "clustered, by item", "clustered, by drive")


def simulate(score: Score, items: int, design: str, replications: int) -> tuple[float, ...]:
    """Share of intervals that hold the truth, of those without, and of gates that pass falsely."""
    rng = np.random.default_rng(items)
    size = items // SIZES[items]

    def population(count: int) -> Array:
        drives = np.arange(count) // (1 if design == "independent" else size)
        return score.counts(rng, drives, items)

    if score.truth is not None:
        truth = score.truth(items)
    else:
        truth = float(score.of(population(200_000).sum(0)[None])[0])
    groups = tuple(str(i // size) for i in range(items)) if design.endswith("drive") else None
    held = none = passed = 0
    for seed in range(replications):
        resampling = Resampling(seed=seed, groups=groups)
        counts = population(items)
        draws = score.of(np.concatenate([own @ counts for own in resampling.weights(items)]))
        value = float(score.of(counts.sum(0)[None])[0])
        units = resampling.units(items)
        found = interval(draws, value, LEVEL, lambda n=units: n)
        if found is None:
            none += 1
            continue
        held += found["low"] <= truth <= found["high"]
        passed += found["low"] >= truth if score.higher else found["high"] <= truth
    return held / (replications - none), none / replications, passed / replications


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=500)
    replications = parser.parse_args().replications
    found = {
        (score.name, design): [simulate(score, n, design, replications) for n in SIZES]
        for score in SCORES
        for design in DESIGNS
    }
    for title, column in (("Intervals that hold the truth", 0), ("Gates that pass falsely", 2)):
        print(f"\n{title}, % ({replications} replications)\n")
        print(f"| score | items | {' | '.join(f'{n} of {k} drives' for n, k in SIZES.items())} |")
        print("|---|---|" + "---|" * len(SIZES))
        for (name, design), rates in found.items():
            shown = " | ".join(f"{100 * rate[column]:.1f}" for rate in rates)
            print(f"| {name} | {design} | {shown} |")
    print(f"\nAt most {100 * max(r[1] for rates in found.values() for r in rates):.1f} % had none.")


if __name__ == "__main__":
    main()
