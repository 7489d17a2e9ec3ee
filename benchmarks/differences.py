"""How often intervals of the difference of two models contain the truth.

    python benchmarks/differences.py [--replications 200] [--only "few, equal, +" …] [--items 10 …]
    python benchmarks/differences.py --relative --level 0.9

Two models predict the same images of a population of `biased.py`. The truth is the difference of
their scores on the whole population. Sets of images are drawn from it, and the interval is that of
`uqeval compare` and of a gate against a baseline. A cell has the share of intervals that contain
the truth, those wholly below it (a `max_rise` gate whose limit is the truth passes falsely), those
wholly above it (`max_drop`), and the median width. For sums of absolute gaps the same follows with
expanded percentiles of the difference less 2b ("before"). With `--relative`, differences are
fractions of the second model's score, as those of `max_rise_relative` and `max_drop_relative`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.biased import (
    ITEMS,
    LEVEL,
    POPULATIONS,
    Population,
    Predict,
    classes,
    normalised,
    numbers,
    samples_of,
    sharp,
)
from uqeval.statistics import methods
from uqeval.statistics.differences import difference
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.samples import Samples

Array = np.ndarray
#: Two equal models have differences of rounding errors.
ROUNDING = 1e-7
CALIBRATION = ("ece", "mce", "ace", "adaptive_ece", "classwise_ece", "per_class.0.ece",
               "temperature.ece", "brier_decomposition.reliability",
               "brier_decomposition.resolution", "nll")  # fmt: skip
OF_CLASSES = (*(f"calibration.{field}" for field in CALIBRATION), "segmentation.miou",
              "segmentation.pixel_accuracy", "failure.auroc", "failure.aurc",
              "failure.fpr95")  # fmt: skip
OF_NUMBERS = ("regression.auce", "regression.ence", "regression.uce", "regression.rmse",
              "sparsification.ause")  # fmt: skip
OPTIONS = {"regression": {"ence": True}}


def pooled(axis: int, factor: float) -> Predict:
    """Return a model that sees only the mean of softmax(z) of two pixels, to the power of factor.

    It is calibrated if the factor is 1. The models of both axes are equally good.
    """

    def predict(z: np.ndarray) -> np.ndarray:
        probs = np.moveaxis(normalised(np.exp(z)), axis, -1)
        means = probs.reshape(*probs.shape[:-1], -1, 2).mean(-1).repeat(2, -1)
        return normalised(np.moveaxis(means, -1, axis) ** factor)

    return predict


#: A population, and two models of its images.
PAIRS: dict[str, tuple[str, Predict, Predict]] = {
    "few, one calibrated": ("few, 0", sharp(1.3), sharp(1.0)),
    "few, + and nearly 0": ("few, +", sharp(1.3), sharp(0.93)),
    "few, equal, 0": ("few, 0", pooled(2, 1.0), pooled(3, 1.0)),
    "few, equal, +": ("few, +", pooled(2, 1.4), pooled(3, 1.4)),
    "few, worse and better": ("few, +", pooled(2, 1.4), sharp(1.3)),
    "few, two versions, +": ("few, +", sharp(1.3), sharp(1.2)),
    "many, one calibrated": ("many, 0", sharp(1.3), sharp(1.0)),
    "many, two versions, +": ("many, +", sharp(1.3), sharp(1.2)),
    "groups, + and nearly 0": ("groups, +", sharp(1.3), sharp(0.93)),
    "groups, worse and better": ("groups, +", pooled(2, 1.4), sharp(1.3)),
    "groups, equal, +": ("groups, +", pooled(2, 1.4), pooled(3, 1.4)),
    "groups, two versions, +": ("groups, +", sharp(1.3), sharp(1.2)),
}
#: A population of numbers, and by how much both models' σ is too small.
PAIRS_OF_NUMBERS = {
    "numbers, few, one calibrated": ("numbers, few, 0", 1.3, 1.0),
    "numbers, few, two versions, +": ("numbers, few, +", 1.3, 1.2),
}


def models_of(name: str, folder: Path, items: int | None, only: list[str]) -> list[Population]:
    """Return the two models of a pair, with `only` these scores."""
    population = (PAIRS[name] if name in PAIRS else PAIRS_OF_NUMBERS[name])[0]
    size, together = items or POPULATIONS[population][0], POPULATIONS[population][4]
    if name in PAIRS:
        scores = OF_CLASSES
        data = [classes(population, size, predict)[0] for predict in PAIRS[name][1:]]
    else:
        scores = OF_NUMBERS
        data = [numbers(population, size, factor)[0] for factor in PAIRS_OF_NUMBERS[name][1:]]
    addresses = [text for text in scores if not only or text in only]
    families = dict.fromkeys(text.partition(".")[0] for text in addresses)
    metrics = {family: OPTIONS.get(family, {}) for family in families}
    return [
        Population(of_model, metrics, addresses, folder / f"{k}.zip", together)
        for k, of_model in enumerate(data)
    ]


def before(samples: Samples, address: str, units: int) -> tuple[float, float]:
    """The interval of a sum of absolute gaps without the paired MOVER."""
    draws = samples.scores("drawn", address)
    changes = draws[0] - draws[1]
    value = samples.value(address) - samples.value(address, 1)
    bounds = methods.beyond_bias(methods.expanded(changes, units, LEVEL), changes, value, units)
    return bounds.low, bounds.high


def changes(models: list[Population], relative: bool) -> Array:
    """Return the true differences of the two models, or the relative ones."""
    first, second = (model.truth for model in models)
    return (first - second) / np.abs(second) if relative else first - second


def simulate(
    models: list[Population], units: int, replications: int, level: float, relative: bool
) -> dict[str, str]:
    """Return the cell of each score for sets of some units."""
    rng = np.random.default_rng(units)
    addresses = models[0].addresses
    ends: dict[str, list[tuple[float, ...]]] = {address: [] for address in addresses}
    for seed in range(replications):
        samples = samples_of(models, models[0].places(rng, units), seed, addresses)
        for address in addresses:
            bounds = difference(samples, address, level, relative)
            if isinstance(bounds, methods.NoBounds):
                continue
            has_old = kind_of(address) == "gaps" and not relative and level == LEVEL
            old = before(samples, address, units) if has_old else ()
            ends[address].append((bounds.low, bounds.high, *old))
    truth = dict(zip(addresses, changes(models, relative).tolist(), strict=True))
    return {text: _cell(np.array(rows), truth[text], replications) for text, rows in ends.items()}


def _cell(ends: Array, truth: float, replications: int) -> str:
    if len(ends) < replications / 2:
        return "–"
    cells = []
    for low, high in ends.T.reshape(-1, 2, len(ends)):
        below, above = (high < truth - ROUNDING).mean(), (low > truth + ROUNDING).mean()
        shares = [f"{100 * share:.0f}" for share in (1 - below - above, below, above)]
        cells.append("{} ({}; {})".format(*shares) + f" {np.median(high - low):.4f}")
    none = 100 * (1 - len(ends) / replications)
    return " before ".join(cells) + (f", none {none:.0f}" if none > 0.5 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--items", type=int, nargs="+", default=ITEMS)
    parser.add_argument("--size", type=int, help="items of a population")
    parser.add_argument("--scores", nargs="+", default=[], metavar="ADDRESS")
    parser.add_argument("--level", type=float, default=LEVEL)
    parser.add_argument("--relative", action="store_true")
    parser.add_argument("--only", nargs="+", default=[*PAIRS, *PAIRS_OF_NUMBERS], metavar="PAIR")
    given = parser.parse_args()
    print(f"| models | score | difference | {' | '.join(map(str, given.items))} |")
    print("|---|---|---|" + "---|" * len(given.items))
    for name in given.only:
        with tempfile.TemporaryDirectory() as folder:
            models = models_of(name, Path(folder), given.size, given.scores)
            columns = [
                simulate(models, n, given.replications, given.level, given.relative)
                for n in given.items
            ]
        true_changes = changes(models, given.relative)
        for address, true in zip(models[0].addresses, true_changes, strict=True):
            cells = " | ".join(column[address] for column in columns)
            print(f"| {name} | {address.partition('.')[2]} | {true:.4f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
