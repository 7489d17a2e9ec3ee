"""What the intervals hold: how often they cover the truth, and how often a gate passes falsely.

    python benchmarks/intervals.py [--replications 500]

Synthetic per-item counts of a population whose scores are known, drawn again and again; the
intervals are those of `uqeval.statistics.methods`, at level 0.95, beside percentiles of draws.
Clustered items share half of the variance of their drive. A gate passes falsely when the whole
interval is on the good side of a limit that equals the truth: 2.5 % would by the level. Videos are
sequences of pairs whose scores are 0.74 AR(0.93) + noise, as on real CamVid.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uqeval.statistics import methods, video
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds, NoBounds

Array = NDArray[np.float64]
LEVEL = 0.95
#: Items, and of how many drives where they are clustered.
SIZES = {5: 5, 10: 5, 30: 6, 100: 10}


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


def squares(rng: np.random.Generator, drives: Array, items: int) -> Array:
    """Summed squared errors, log-normal over items, and pixels."""
    mean = np.exp(0.5 * effects(rng, drives)[:, 0])
    return np.stack([1000 * mean, np.full(len(drives), 1000.0)], 1)


def root(sums: Array) -> Array:
    return np.sqrt(sums[:, 0] / sums[:, 1])


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
    """Counts of items, the score of their sums, its kind of interval, and which way is better."""

    name: str
    kind: str
    counts: Callable[[np.random.Generator, Array, int], Array]
    of: Callable[[Array], Array]
    higher: bool = True
    truth: Callable[[int], float] | None = None


#: All are shares, from 0 to 1.
SCORES = (
    Score("ratio of counts (PAvPU)", "share", pavpu_counts, ratio),
    Score("mean over items (mTC)", "logit", consistency, ratio),
    Score("mIoU, rare classes", "logit", confusion, miou),
    Score("ECE of 0.03", "gaps", bins(0.03), ece, higher=False),
    Score("ECE of 0.005", "gaps", bins(0.005), ece, higher=False),
    Score("ECE of 0", "gaps", bins(0.0), ece, higher=False, truth=lambda items: 0.0),
    Score("root of a mean (RMSE)", "draws", squares, root, higher=False),
    Score("rate, 1 event expected", "share", rare(1), ratio, False, lambda items: 1 / items),
    Score("rate, 4 events expected", "share", rare(4), ratio, False, lambda items: 4 / items),
)
DESIGNS = ("independent", "clustered, by item", "clustered, by drive")


def bounds(score: Score, of_units: Array, items: int, seed: int) -> Bounds | NoBounds:
    """The interval of a score over units, given their summed counts [unit, number]."""
    units, total = len(of_units), of_units.sum(0)
    value = float(score.of(total[None])[0])
    if score.kind in ("share", "logit"):
        variance = float(methods.jackknife_variance(score.of(total - of_units)))
        if score.kind == "logit":
            return methods.jackknife_t(value, variance, units, LEVEL, logit=True)
        alone = of_units[:, 0] / of_units[:, 1]
        events = int(((alone > 0) if value <= 0.5 else (alone < 1)).sum())
        return methods.korn_graubard(value, variance, units, events, float(total[1]), LEVEL)
    if units < methods.LEAST_DRAWN:
        return NoBounds("too few units")
    drawn = drawn_scores(score, of_units, seed)
    found = methods.expanded(drawn[np.isfinite(drawn)], units, LEVEL)
    if score.kind == "gaps":
        gaps, weights = of_units[:, 10:20] - of_units[:, 20:], np.full(10, 1 / total[:10].sum())
        if methods.gaps_share(gaps, weights, False, 1000, seed) > 1 - LEVEL:
            return Bounds(0.0, found.high, found.method)
    return found


def drawn_scores(score: Score, of_units: Array, seed: int) -> Array:
    names = tuple(f"{i:04d}" for i in range(len(of_units)))
    weights = np.concatenate(list(Resampling(names, 1000, seed).drawn()))
    return score.of(weights @ of_units)


def simulate(score: Score, items: int, design: str, replications: int) -> tuple[float, ...]:
    """Shares: intervals that hold the truth, none, false passes; the same of plain percentiles."""
    rng = np.random.default_rng(items)
    size = items // SIZES[items]

    def population(count: int) -> Array:
        drives = np.arange(count) // (1 if design == "independent" else size)
        return score.counts(rng, drives, items)

    if score.truth is not None:
        truth = score.truth(items)
    else:
        truth = float(score.of(population(200_000).sum(0)[None])[0])
    unit = np.arange(items) // (size if design.endswith("drive") else 1)
    held = none = passed = plain = plainly_passed = 0
    for seed in range(replications):
        of_units = np.zeros((unit.max() + 1, population(1).shape[1]))
        np.add.at(of_units, unit, population(items))
        drawn = drawn_scores(score, of_units, seed)
        low, high = np.quantile(drawn[np.isfinite(drawn)], [0.025, 0.975])
        plain += low <= truth <= high
        plainly_passed += low >= truth if score.higher else high <= truth
        found = bounds(score, of_units, items, seed)
        if isinstance(found, NoBounds):
            none += 1
            continue
        held += found.low - 1e-12 <= truth <= found.high
        passed += found.low >= truth if score.higher else found.high <= truth
    n = replications
    shares = (held / max(n - none, 1), none / n, passed / n, plain / n, plainly_passed / n)
    return tuple(map(float, shares))


def simulate_video(pairs: int, sequences: int, replications: int) -> tuple[float, ...]:
    """The same shares of the mean score of a video, and the mean number of batches."""
    rng = np.random.default_rng(pairs)
    held = none = passed = plain = plainly_passed = 0
    names = [f"{i * sequences // pairs:03d}" for i in range(pairs)]
    for _ in range(replications):
        series = [0.8 + 0.03 * alike(rng, names.count(own)) for own in dict.fromkeys(names)]
        values = np.concatenate(series)
        tau, _ = video.autocorrelation(series)
        groups = np.array(video.batches(names, video.batch_count(pairs, tau)))
        weights = rng.multinomial(pairs, np.full(pairs, 1 / pairs), 500)
        low, high = np.quantile(weights @ values / pairs, [0.025, 0.975])
        plain += low <= 0.8 <= high
        plainly_passed += low >= 0.8
        batches = [values[groups == own] for own in np.unique(groups)]
        if min(map(len, batches)) <= tau:
            none += 1
            continue
        without = np.array([(values.sum() - b.sum()) / (pairs - len(b)) for b in batches])
        variance = float(methods.jackknife_variance(without))
        found = methods.jackknife_t(values.mean(), variance, len(batches), LEVEL, logit=False)
        assert isinstance(found, Bounds)
        held += found.low <= 0.8 <= found.high
        passed += found.low >= 0.8
    n = replications
    return (held / max(n - none, 1), none / n, passed / n, plain / n, plainly_passed / n)


def alike(rng: np.random.Generator, length: int) -> Array:
    """0.74 of the variance AR(1) with 0.93, the rest white."""
    found = np.empty(length)
    state = rng.normal()
    for i in range(length):
        state = 0.93 * state + np.sqrt(1 - 0.93**2) * rng.normal()
        found[i] = state
    return np.sqrt(0.74) * found + np.sqrt(0.26) * rng.normal(size=length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=500)
    replications = parser.parse_args().replications
    found = {
        (score.name, design): [simulate(score, n, design, replications) for n in SIZES]
        for score in SCORES
        for design in DESIGNS
    }
    sizes = {100: 1, 400: 1, 400.5: 4}
    films = [simulate_video(int(n), sequences, replications) for n, sequences in sizes.items()]
    error = 100 * np.sqrt(0.05 * 0.95 / replications)
    print(f"{replications} replications, Monte Carlo error {error:.1f} at 95 %; now (plain "
          "percentiles); –: no interval")  # fmt: skip
    for title, now, before in (
        ("Intervals that hold the truth", 0, 3), ("Gates that pass falsely", 2, 4),
    ):  # fmt: skip
        print(f"\n{title}, %\n")
        print(f"| score | items | {' | '.join(f'{n} of {k} drives' for n, k in SIZES.items())} |")
        print("|---|---|" + "---|" * len(SIZES))
        for (name, design), rates in found.items():
            print(f"| {name} | {design} | {' | '.join(_cell(r, now, before) for r in rates)} |")
        print("\n| mean over pairs of a video | 100 pairs | 400 | 400 of 4 sequences |")
        print("|---|---|---|---|")
        print(f"| batch means | {' | '.join(_cell(rates, now, before) for rates in films)} |")


def _cell(rates: tuple[float, ...], now: int, before: int) -> str:
    if rates[1] > 0.5:
        return f"– ({100 * rates[before]:.0f})"
    none = f", none {100 * rates[1]:.0f}" if rates[1] > 0.01 else ""
    return f"{100 * rates[now]:.0f} ({100 * rates[before]:.0f}){none}"


if __name__ == "__main__":
    main()
