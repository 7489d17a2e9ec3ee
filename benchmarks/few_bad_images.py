"""How often intervals miss the truth if few images are bad, or few values lie far off.

    python -m benchmarks.few_bad_images [--replications 2000] [--items 10 20 30 60]

"accuracy": the pixel accuracy of images of 4000 pixels, of which a share is bad (accuracy
Beta(2, 2)) and the others have 0.99 or 1. "interval score": of level 95 % where σ = 1 is right,
from one value an image, or 64 pixels with an error in common (64 % of the variance). "mean ECE":
the mean of the ECE of such images whose pixels have the confidence 0.95; the accuracy of a bad one
is Beta(2, 2), of the others 0.95. "draws": without the jackknife of the logarithm. Cells: % of the
95 % intervals that contain the truth; of those that lie wholly on its good side, which is how many
rules with the truth as limit pass falsely.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from benchmarks.estimates import LEVEL, left_out
from benchmarks.populations import Array
from uqeval.metrics.regression_scores import BY_FIELD
from uqeval.statistics import jackknife, methods
from uqeval.statistics.draws import Resampling
from uqeval.statistics.methods import Bounds, NoBounds

PIXELS, TAIL, CONFIDENCE = 4000, 0.05, 0.95
#: Images with a value outside its interval that an interval of the score needs.
OUTSIDE = BY_FIELD["interval_score"].events.least  # type: ignore[union-attr]
Z = float(ndtri(1 - TAIL / 2))
#: The interval score of level 95 % of N(0, 1): 2z + 2/α·2·(φ(z) − z·α/2).
TRUTH = 2 * Z + 4 / TAIL * (np.exp(-Z * Z / 2) / np.sqrt(2 * np.pi) - Z * TAIL / 2)


def accuracy(rng: np.random.Generator, items: int, bad: float, good: float) -> Bounds:
    """The interval of the pixel accuracy of a set."""
    each = np.where(rng.random(items) < bad, rng.beta(2, 2, items), good)
    right = rng.binomial(PIXELS, each).astype(float)
    value, without = right.sum() / (PIXELS * items), (right.sum() - right) / (PIXELS * (items - 1))
    few = methods.few_events(value, right / PIXELS)
    variance = float((items - 1) * without.var())
    return methods.korn_graubard(value, variance, items, few, float(PIXELS * items), LEVEL)


def interval_score(
    rng: np.random.Generator, items: int, pixels: int, seed: int
) -> Bounds | NoBounds:
    """The interval of the interval score of a set, as of a mean of errors."""
    alike = 0.8 if pixels > 1 else 0.0
    error = alike * rng.normal(size=(items, 1))
    error = np.abs(error + np.sqrt(1 - alike**2) * rng.normal(size=(items, pixels)))
    each = (2 * Z + 2 / TAIL * np.maximum(error - Z, 0)).mean(axis=1)
    if (error > Z).any(axis=1).sum() < OUTSIDE:
        return NoBounds("too few images with values outside the intervals")
    return mean_of_errors(each, seed)


def mean_of_errors(each: Array, seed: int, kind: str = "positive") -> Bounds:
    """The interval of the mean of the errors of images, as of a metric of this kind."""
    items = len(each)
    names = tuple(f"{i:04d}" for i in range(items))
    weights = np.concatenate([own.weights for own in Resampling(names, 1000, seed).drawn()])
    found = methods.expanded(weights @ each / items, items, LEVEL)
    if kind == "draws":
        return found
    scores = left_out(float(each.mean()), (each.sum() - each) / (items - 1), items)
    return methods.up_to(found, jackknife.jackknife_log(scores, LEVEL))


def image_ece(rng: np.random.Generator, items: int, bad: float) -> Array:
    """The ECE of each image."""
    accuracy = np.where(rng.random(items) < bad, rng.beta(2, 2, items), CONFIDENCE)
    return np.abs(rng.binomial(PIXELS, accuracy) / PIXELS - CONFIDENCE)


def cell(find: Callable[[int], Bounds | NoBounds], truth: float, higher: bool, sets: int) -> str:
    """Return the shares of so many sets, in percent."""
    found = [own for own in map(find, range(sets)) if isinstance(own, Bounds)]
    if len(found) < sets / 10:
        return "–"
    held = np.mean([own.low <= truth <= own.high for own in found])
    passed = sum(own.low > truth if higher else own.high < truth for own in found) / sets
    none = f", none {100 * (1 - len(found) / sets):.0f}" if len(found) < sets else ""
    return f"{100 * held:.0f}; {100 * passed:.1f}{none}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--items", type=int, nargs="+", default=(10, 20, 30, 60, 120))
    given = parser.parse_args()
    sets = given.replications
    errors = [100 * np.sqrt(share * (1 - share) / sets) for share in (0.05, 0.2)]
    print(f"{sets} sets, Monte Carlo error {errors[0]:.1f} at 5 %, {errors[1]:.1f} at 20 %\n")
    print(f"| contains; passes falsely, % | {' | '.join(f'{n} images' for n in given.items)} |")
    print("|---|" + "---|" * len(given.items))
    for bad, good in ((0.1, 0.99), (0.1, 1.0), (0.15, 0.99), (0.3, 0.99)):
        cells = []
        for items in given.items:
            rng = np.random.default_rng(items)
            truth = (1 - bad) * good + bad / 2

            def of_accuracy(seed: int) -> Bounds:
                return accuracy(rng, items, bad, good)  # noqa: B023

            cells.append(cell(of_accuracy, truth, True, sets))
        print(f"| accuracy, {bad:.0%} bad, others {good:g} | {' | '.join(cells)} |", flush=True)
    for pixels in (1, 64):
        cells = []
        for items in given.items:
            rng = np.random.default_rng(items)

            def of_score(seed: int) -> Bounds | NoBounds:
                return interval_score(rng, items, pixels, seed)  # noqa: B023

            cells.append(cell(of_score, float(TRUTH), False, sets))
        print(f"| interval score, pixels per image: {pixels} | {' | '.join(cells)} |", flush=True)
    for bad, kind in itertools.product((0.05, 0.1, 0.3), ("draws", "positive")):
        cells, truth = [], float(image_ece(np.random.default_rng(0), 10_000_000, bad).mean())
        for items in given.items:
            rng = np.random.default_rng(items)

            def of_ece(seed: int) -> Bounds:
                return mean_of_errors(image_ece(rng, items, bad), seed, kind)  # noqa: B023

            cells.append(cell(of_ece, truth, False, sets))
        label = f"mean ECE, {bad:.0%} bad" + (", draws" if kind == "draws" else "")
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
