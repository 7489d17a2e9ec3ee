"""How often a gate passes falsely if a new model differs from its baseline in few items.

    python benchmarks/few_changes.py [--items 10 30 100] [--rates 0.01 0.02 0.05 0.1 0.2]
                                     [--better 0 0.3 0.6] [--replications 1000]

Shares. Items of one pixel, a tenth of them wrong in both models; a share of the others (`--rates`)
is wrong in the new model only, and a fraction of that share (`--better`) in the baseline only. A
rule with `max_drop` and `confidence: 0.95` has a limit of exactly the true drop, so it passes
falsely where the interval of the drop is wholly below it. Exact: intervals of `uqeval gate` for
each number of such items, with its multinomial probability. "no item": the probability that no item
is worse.

Means of errors. Half of the items that differ (`--rates`) have an error that is larger by 0.4 on
average, the others one that is smaller by 0.36, so that the mean rises. Of `--replications` sets,
by the formulas of `uqeval gate`: those in which a rule passes falsely, first with `max_rise: 0`,
then with the true rise as limit, and those in which no item differs, so that there is no interval.
"before": with percentiles of draws alone. The last number is how much wider intervals are.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import binom, multinomial

import uqeval
from benchmarks.estimates import left_out
from uqeval.arrays import Floats
from uqeval.statistics import jackknife, methods
from uqeval.statistics.differences import are_few, difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

LEVEL = 0.95
#: Draws of the items, and the mean changes of the errors of items that differ.
DRAWS, WORSE, BETTER = 2000, 0.4, -0.36


def scoring(folder: Path, items: int, wrong: range, both: int, seed: int) -> Scoring:
    """Return the states of a model that has the first items (`both`) and those of `wrong` wrong."""
    confidence = np.random.default_rng(seed).uniform(0.6, 0.99, items)
    is_wrong = (np.arange(items) < both) | np.isin(np.arange(items), wrong)
    right = np.where(is_wrong, 1 - confidence, confidence)
    probs = np.stack([right, 1 - right], axis=1).astype(np.float32)
    path = folder / f"{items}_{wrong.start}_{wrong.stop}_{seed}.states.zip"
    uqeval.evaluate(probs, np.zeros(items, np.uint8), "segmentation", states=path)
    return Scoring(SavedStates(path))


def largest_drops(folder: Path, items: int, most: int) -> Floats:
    """Return the high end of the drop [worse, better], by how many items are worse and better, at
    most so many of each."""
    both, counts = items // 10, range(most + 1)
    ends = np.full((most + 1, most + 1), np.inf)
    new = [scoring(folder, items, range(both, both + n), both, 2) for n in counts]
    old = [scoring(folder, items, range(items - n, items), both, 1) for n in counts]
    for worse in counts:
        for better in range(min(most, items - both - worse) + 1):
            runs = [new[worse], old[better]]
            samples = Samples(runs, [range(items)] * 2, Resampling(runs[0].names))
            found = difference(samples, "segmentation.pixel_accuracy", LEVEL)
            assert isinstance(found, Bounds)
            ends[worse, better] = -found.low
    return ends


def mean_errors(rate: float, items: int, replications: int) -> str:
    """Return how often rules on the rise of a mean error pass falsely, in percent."""
    rng = np.random.default_rng(0)
    weights = rng.multinomial(items, np.full(items, 1 / items), DRAWS) / items
    rise, counts, widths = rate / 2 * (WORSE + BETTER), np.zeros(5), np.zeros(2)
    for _ in range(replications):
        own = rng.random(items)
        changes = np.select([own < rate / 2, own < rate], [WORSE, BETTER], 0.0)
        changes *= rng.uniform(0.5, 1.5, items)
        if not changes.any():
            counts[-1] += 1
            continue
        before = now = methods.expanded(weights @ changes, items, LEVEL)
        if are_few(changes):
            scores = left_out(changes.mean(), (changes.sum() - changes) / (items - 1), items)
            now = methods.around(before, jackknife.jackknife_t(scores, LEVEL, logit=False))
        counts[:4] += [own.high <= limit for own in (now, before) for limit in (0.0, rise)]
        widths += [now.high - now.low, before.high - before.low]
    shares = 100 * counts / replications
    return "{:.1f}; {:.1f} (before {:.1f}; {:.1f}), none {:.0f}, ×".format(*shares) + (
        f"{widths[0] / widths[1]:.2f}" if widths[1] else "–"
    )


def print_errors(rates: list[float], all_items: list[int], replications: int) -> None:
    """Print the table of means of errors."""
    error = 100 * (0.05 * 0.95 / replications) ** 0.5
    print(f"\n{replications} sets, Monte Carlo error {error:.1f} at 5 %\n")
    print("| items | " + " | ".join(f"{rate:.0%}" for rate in rates) + " |")
    print("|---" * (len(rates) + 1) + "|")
    for items in all_items:
        cells = [mean_errors(rate, items, replications) for rate in rates]
        print(f"| {items} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--better", type=float, nargs="+", default=[0.0, 0.3, 0.6])
    parser.add_argument("--replications", type=int, default=1000, help="sets for means of errors")
    options = parser.parse_args()
    print("| items | better | " + " | ".join(f"{rate:.0%}" for rate in options.rates) + " |")
    print("|---" * (len(options.rates) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for items in options.items:
            others = items - items // 10
            # More items than these are worse in less than one set of a million.
            most = min(others, int(binom.ppf(1 - 1e-6, others, max(options.rates))))
            ends = largest_drops(Path(folder), items, most)
            numbers = np.moveaxis(np.indices(ends.shape), 0, -1)
            rest = np.maximum(others - numbers.sum(axis=-1), 0)
            outcomes = np.concatenate([numbers, rest[..., None]], axis=-1)
            for share in options.better:
                cells = []
                for rate in options.rates:
                    rates = [rate, share * rate, 1 - (1 + share) * rate]
                    chances = multinomial.pmf(outcomes, others, rates)
                    limit = (1 - share) * rate * others / items
                    passes = chances[ends < limit].sum()
                    cells.append(f"{passes:.1%} (no item: {binom.pmf(0, others, rate):.0%})")
                print(f"| {items} | {share:.0%} | " + " | ".join(cells) + " |", flush=True)
    if options.replications:
        print_errors(options.rates, options.items, options.replications)


if __name__ == "__main__":
    main()
