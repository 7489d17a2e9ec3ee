"""How often a gate passes falsely if a new model differs from its baseline in few items.

    python benchmarks/few_changes.py [--items 10 30 100] [--rates 0.01 0.02 0.05 0.1 0.2]

Items of one pixel, a tenth of them wrong in both models; a share of the others is wrong in the new
model only. A rule with `max_drop` and `confidence: 0.95` has a limit of exactly this share, so it
passes falsely where the interval of the drop is wholly below it. Exact: intervals of `uqeval gate`
for each number of such items, with its binomial probability. "no item": the probability that no
item differs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import binom

import uqeval
from uqeval.statistics.differences import difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

LEVEL = 0.95


def scoring(folder: Path, items: int, wrong: int, seed: int) -> Scoring:
    """Return the states of a model with so many wrong items."""
    confidence = np.random.default_rng(seed).uniform(0.6, 0.99, items)
    right = np.where(np.arange(items) < wrong, 1 - confidence, confidence)
    probs = np.stack([right, 1 - right], axis=1).astype(np.float32)
    path = folder / f"{items}_{wrong}_{seed}.states.zip"
    uqeval.evaluate(probs, np.zeros(items, np.uint8), "segmentation", states=path)
    return Scoring(SavedStates(path))


def largest_drops(folder: Path, items: int) -> list[float]:
    """Return the high end of the drop, by the number of items that only the new model has wrong."""
    both = items // 10
    baseline = scoring(folder, items, both, 1)
    ends = []
    for wrong in range(items - both + 1):
        runs = [scoring(folder, items, both + wrong, 2), baseline]
        samples = Samples(runs, [range(items)] * 2, Resampling(baseline.names))
        found = difference(samples, "segmentation.pixel_accuracy", LEVEL)
        assert isinstance(found, Bounds)
        ends.append(-found.low)
        if -found.low > 0.9:  # more wrong items cannot pass falsely
            break
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.02, 0.05, 0.1, 0.2])
    options = parser.parse_args()
    print("| items | " + " | ".join(f"{rate:.0%}" for rate in options.rates) + " |")
    print("|---" * (len(options.rates) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for items in options.items:
            ends = np.array(largest_drops(Path(folder), items))
            cells = []
            for rate in options.rates:
                others = items - items // 10
                chances = binom.pmf(np.arange(ends.size), others, rate)
                passes = chances[ends < rate * others / items].sum()
                cells.append(f"{passes:.1%} (no item: {chances[0]:.0%})")
            print(f"| {items} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
