"""How often a gate passes falsely if a new model differs from its baseline in few items.

    python benchmarks/few_changes.py [--items 10 30 100] [--rates 0.01 0.02 0.05 0.1 0.2]
                                     [--better 0 0.3 0.6] [--replications 1000]

Shares. Items of one pixel, a tenth of them wrong in both models; a share of the others (`--rates`)
is wrong in the new model only, and a fraction of that share (`--better`) in the baseline only. A
rule with `max_drop` and `confidence: 0.95` has a limit of exactly the true drop, so it passes
falsely where the interval of the drop is wholly below it. Exact: intervals of `uqeval gate` for
each number of such items, with its multinomial probability. "no item": the probability that no item
is worse.

Means of errors, and other scores with draws. Images of 16 numbers; of a share of them (`--rates`)
half have errors 1.5 times as large in the new model, the others 0.6 times, so that errors rise. Of
`--replications` sets: those in which a rule passes falsely, first with `max_rise: 0`, then with the
true rise as limit; and those without an interval. "before": from percentiles of draws alone.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import binom, multinomial

import uqeval
from benchmarks.biased import Population, samples_of
from uqeval.arrays import Floats
from uqeval.statistics import methods
from uqeval.statistics.differences import difference
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

LEVEL = 0.95
#: Images of a population, their side, and the factors of the errors of those that differ.
IMAGES, SIDE, WORSE, BETTER = 6000, 4, 1.5, 0.6
ERRORS = ("regression.mae", "regression.rmse", "regression.nll", "sparsification.ause")


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


def models_of(folder: Path, rate: float, images: int) -> list[Population]:
    """Return the new model and the baseline, whose errors differ in a share of the images."""
    rng = np.random.default_rng(2)
    mean, error = rng.uniform(5, 20, (images, SIDE, SIDE)), rng.normal(size=(images, SIDE, SIDE))
    own = rng.random((images, 1, 1))
    factor = np.select([own < rate / 2, own < rate], [WORSE, BETTER], 1.0)
    families: dict[str, dict[str, object]] = {text.partition(".")[0]: {} for text in ERRORS}
    models = []
    for number, of_model in enumerate((factor * error, error)):
        maps = {"mean": mean + of_model, "std": np.ones_like(mean), "target": mean}
        data = {"predictions": {name: values.astype(np.float32) for name, values in maps.items()}}
        path = folder / f"{number}.states.zip"
        models.append(Population(data, families, list(ERRORS), path, 1))
    return models


def percentiles(samples: Samples, text: str, items: int) -> Bounds:
    """Return the interval of a difference from its draws alone."""
    new, old = samples.scores("drawn", text)
    return methods.expanded(new - old, items, LEVEL)


def passes_of(models: list[Population], items: int, replications: int) -> dict[str, str]:
    """Return of each score how often rules pass falsely, in percent: `max_rise` of 0, and of the
    true rise; and how often there is no interval."""
    rng = np.random.default_rng(items)
    rises = dict(zip(ERRORS, models[0].truth - models[1].truth, strict=True))
    counts = {text: np.zeros(5) for text in ERRORS}
    for seed in range(replications):
        samples = samples_of(models, models[0].places(rng, items), seed, list(ERRORS))
        for text, rise in rises.items():
            found = difference(samples, text, LEVEL)
            if isinstance(found, NoBounds):
                counts[text][-1] += 1
                continue
            ends = found.high, percentiles(samples, text, items).high
            counts[text][:4] += [end <= limit for end in ends for limit in (0.0, rise)]
    return {
        text: "{:.1f}; {:.1f} (before {:.1f}; {:.1f}), none {:.0f}".format(*own)
        for text, own in ((text, 100 * own / replications) for text, own in counts.items())
    }


def print_errors(rates: list[float], all_items: list[int], replications: int, images: int) -> None:
    """Print the table of means of errors."""
    error = 100 * (0.05 * 0.95 / replications) ** 0.5
    print(f"\n{replications} sets, Monte Carlo error {error:.1f} at 5 %\n")
    print("| score, % | items | " + " | ".join(f"{rate:.0%}" for rate in rates) + " |")
    print("|---" * (len(rates) + 2) + "|")
    cells: dict[tuple[str, int], list[str]] = {}
    for rate in rates:
        with tempfile.TemporaryDirectory() as folder:
            models = models_of(Path(folder), rate, images)
            for items in all_items:
                for text, cell in passes_of(models, items, replications).items():
                    cells.setdefault((text, items), []).append(cell)
    for (text, items), own in cells.items():
        print(f"| {text} | {items} | " + " | ".join(own) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.02, 0.05, 0.1, 0.2])
    parser.add_argument("--better", type=float, nargs="+", default=[0.0, 0.3, 0.6])
    parser.add_argument("--replications", type=int, default=1000, help="sets for means of errors")
    parser.add_argument("--images", type=int, default=IMAGES, help="images of a population")
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
        print_errors(options.rates, options.items, options.replications, options.images)


if __name__ == "__main__":
    main()
