"""Quality of intervals: how often they contain the truth, and how often a gate passes falsely.

    python benchmarks/intervals.py [--replications 400] [--only intervals|verdicts] [--scores …]

Synthetic per-item counts of a population whose scores are known, drawn again and again; the
intervals are those of `uqeval.statistics.methods`, at level 0.95, beside percentiles of draws.
Clustered items share half of the variance of their drive. A gate passes falsely when the whole
interval is on the good side of a limit that equals the truth: 2.5 % would by the level. Videos are
sequences of pairs whose scores are 0.74 AR(0.93) + noise, as on real CamVid, or the mIoU of errors
that drift. Verdicts
(`verdicts.py`): how many more units decide, equal models that "differ", and which items harm most.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.estimates import alike, bounds, drawn_scores, drifting, video_bounds
from benchmarks.populations import SCORES, Array, Score
from benchmarks.verdicts import print_verdicts
from uqeval.statistics.methods import NoBounds

#: Items, and of how many drives where they are clustered.
SIZES = {5: 5, 10: 5, 30: 6, 100: 10}
DESIGNS = ("independent", "clustered, by item", "clustered, by drive")


def simulate(score: Score, items: int, design: str, replications: int) -> tuple[float, ...]:
    """Return the fractions of intervals that contain the true value, of none, of false passes.

    Then the same for plain percentiles.
    """
    rng = np.random.default_rng(items)
    size = items // SIZES[items]

    def population(count: int) -> Array:
        drives = np.arange(count) // (1 if design == "independent" else size)
        return score.counts(rng, drives, items)

    if score.truth is not None:
        truth = score.truth(items)
    else:
        # Far more items than all replications have.
        count = min(200_000, 500 * replications)
        truth = float(score.of(population(count).sum(0)[None])[0])
    unit = np.arange(items) // (size if design.endswith("drive") else 1)
    held = none = passed = plain = plainly_passed = 0
    for seed in range(replications):
        of_units = np.zeros((unit.max() + 1, population(1).shape[1]))
        np.add.at(of_units, unit, population(items))
        drawn = drawn_scores(score, of_units, seed)
        finite = drawn[np.isfinite(drawn)]
        if finite.size:
            low, high = np.quantile(finite, [0.025, 0.975])
            plain += low <= truth <= high
            plainly_passed += low >= truth if score.higher else high <= truth
        found = bounds(score, of_units, seed, drawn)
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
    for _ in range(replications):
        series = [0.8 + 0.03 * alike(rng, pairs // sequences) for _ in range(sequences)]
        values = np.concatenate(series)
        weights = rng.multinomial(pairs, np.full(pairs, 1 / pairs), 500)
        low, high = np.quantile(weights @ values / pairs, [0.025, 0.975])
        plain += low <= 0.8 <= high
        plainly_passed += low >= 0.8
        found = video_bounds(series)
        if isinstance(found, NoBounds):
            none += 1
            continue
        held += found.low <= 0.8 <= found.high
        passed += found.low >= 0.8
    n = replications
    return (held / max(n - none, 1), none / n, passed / n, plain / n, plainly_passed / n)


def simulate_drift(pairs: int, replications: int) -> tuple[float, ...]:
    """The same shares of the mIoU over time of errors that drift; then with the batches of mTC."""
    rng = np.random.default_rng(pairs)
    truth = float(drifting(rng, min(1_000_000, 2500 * replications))[1].mean())
    held, none, passed = np.zeros((3, 2))
    for _ in range(replications):
        consistency, miou = drifting(rng, pairs)
        for k, found in enumerate((video_bounds([miou]), video_bounds([miou], [consistency]))):
            if isinstance(found, NoBounds):
                none[k] += 1
            else:
                held[k] += found.low <= truth <= found.high
                passed[k] += found.low >= truth
    share = held / np.maximum(replications - none, 1)
    rates = (share[0], none[0] / replications, passed[0] / replications, share[1],
             passed[1] / replications)  # fmt: skip
    return tuple(map(float, rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--only", choices=("intervals", "verdicts"))
    parser.add_argument("--scores", nargs="+", default=[own.name for own in SCORES],
                        metavar="NAME", help="rows of the tables of intervals")  # fmt: skip
    given = parser.parse_args()
    if given.only != "verdicts":
        print_intervals(given.replications, given.scores)
    if given.only != "intervals":
        print_verdicts(given.replications)


def print_intervals(replications: int, names: Sequence[str]) -> None:
    """Print both tables of intervals, of the scores with these names."""
    found = {
        (score.name, design): [simulate(score, n, design, replications) for n in SIZES]
        for score in SCORES
        if score.name in names
        for design in DESIGNS
    }
    sizes = {100: 1, 400: 1, 400.5: 4}
    films = [simulate_video(int(n), sequences, replications) for n, sequences in sizes.items()]
    drifts = [simulate_drift(n, replications) for n in (100, 400, 1600)]
    errors = [100 * np.sqrt(share * (1 - share) / replications) for share in (0.95, 0.5)]
    print(f"{replications} replications, Monte Carlo error {errors[0]:.1f} at 5 and 95 %, at most "
          f"{errors[1]:.1f}; now (plain percentiles); –: no interval")  # fmt: skip
    for title, now, before in (
        ("Intervals that contain the true value", 0, 3), ("Gates that pass falsely", 2, 4),
    ):  # fmt: skip
        print(f"\n{title}, %\n")
        print(f"| score | items | {' | '.join(f'{n} of {k} drives' for n, k in SIZES.items())} |")
        print("|---|---|" + "---|" * len(SIZES))
        for (name, design), rates in found.items():
            print(f"| {name} | {design} | {' | '.join(_cell(r, now, before) for r in rates)} |")
        print("\n| mean over pairs of a video | 100 pairs | 400 | 400 of 4 sequences |")
        print("|---|---|---|---|")
        print(f"| batch means | {' | '.join(_cell(rates, now, before) for rates in films)} |")
        print("\n| mIoU of errors that drift (with the batches of mTC) | 100 pairs | 400 | 1600 |")
        print("|---|---|---|---|")
        print(f"| batch means | {' | '.join(_cell(rates, now, before) for rates in drifts)} |")


def _cell(rates: tuple[float, ...], now: int, before: int) -> str:
    if rates[1] > 0.5:
        return f"– ({100 * rates[before]:.0f})"
    none = f", none {100 * rates[1]:.0f}" if rates[1] > 0.01 else ""
    return f"{100 * rates[now]:.0f} ({100 * rates[before]:.0f}){none}"


if __name__ == "__main__":
    main()
