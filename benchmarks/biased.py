"""How often intervals of biased scores, such as calibration errors, contain the truth.

    python benchmarks/biased.py [--replications 300] [--only few …] [--items 10 12 30 50 200]

Each population is a large run of `uqeval.evaluate` with its states; the truth is its score. Sets of
items are drawn from it with replacement, and scored from the states as `--ci 0.95` does. Population
"few": images of 64 pixels, "many": of 4096; "0": perfectly calibrated, "+": over-confident, and
images differ; "groups": images come in drives of 5, which differ, and drives are drawn. "numbers"
are predictions with σ. "before" has no correction of the bias, and only "is it 0?" is tested.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.statistics import methods
from uqeval.statistics.draws import Resampling
from uqeval.statistics.flips import least_shares
from uqeval.statistics.intervals import interval
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.options import Method
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.weighting import Subset
from uqeval.stores.states.saved import SavedStates

LEVEL, DRAWS, CLASSES = 0.95, 1000, 5
ITEMS = (10, 12, 30, 50, 200)
#: Images, side in pixels, sharpness of the probabilities, how much images differ, images a drive.
POPULATIONS = {
    "few, 0": (8000, 8, 1.0, 0.0, 1),
    "few, +": (8000, 8, 1.3, 0.5, 1),
    "many, 0": (600, 64, 1.0, 0.0, 1),
    "many, +": (600, 64, 1.3, 0.5, 1),
    "groups, 0": (8000, 8, 1.0, 0.0, 5),
    "groups, +": (8000, 8, 1.3, 0.5, 5),
    "numbers, few, 0": (8000, 8, 1.0, 0.0, 1),
    "numbers, few, +": (8000, 8, 1.3, 0.3, 1),
}
Predict = Callable[[np.ndarray], np.ndarray]
#: The scores of the table, of classes and of numbers.
OF_CLASSES = ("ece", "mce", "ace", "adaptive_ece", "classwise_ece", "per_class.0.ece", "smooth_ece",
              "temperature.ece", "brier_decomposition.reliability",
              "brier_decomposition.resolution", "brier_decomposition.uncertainty",
              "per_image.median", "per_image.p90")  # fmt: skip
#: Those whose intervals did not test whether they are 0.
UNTESTED = ("ace", "auce_over", "ence", "uce")
OPTIONS = {"regression": {"ence": True}}
OF_NUMBERS = ("auce", "auce_over", "ence", "uce", "rmse")


def sharp(factor: float) -> Predict:
    """Return a model that predicts softmax(factor·z)."""
    return lambda z: normalised(np.exp(factor * z))


def normalised(probs: np.ndarray) -> np.ndarray:
    """Return probabilities that add up to 1 over the classes."""
    return probs / probs.sum(1, keepdims=True)


def classes(name: str, items: int, predict: Predict | None = None) -> tuple[dict[str, Any], str]:
    """Probabilities of images whose labels are drawn from others: softmax(z) of softmax(factor·z).

    An image, or the images of a drive, have classes of their own, and prefer some of them more than
    the model knows.
    """
    _, side, factor, differ, together = POPULATIONS[name]
    rng = np.random.default_rng(1)
    shape = (items, CLASSES, side, side)
    own = rng.normal(size=(-(-items // together), CLASSES)).repeat(together, 0)[:items, :, None]
    unknown = rng.normal(size=(*own.shape[:1], CLASSES, 1))[::together].repeat(together, 0)[:items]
    z = 1.5 * rng.normal(size=shape) + own[..., None]
    noise = -np.log(-np.log(rng.random(shape)))
    labels = (z + differ * unknown[..., None] + noise).argmax(1).astype(np.uint8)
    probs = (predict or sharp(factor))(z)
    return {"predictions": probs[:, None].astype(np.float32), "labels": labels}, "calibration"


def numbers(name: str, items: int, factor: float | None = None) -> tuple[dict[str, Any], str]:
    """Means and σ of pixels whose errors are `factor` times as large, more or less by image."""
    _, side, usual, differ, _ = POPULATIONS[name]
    rng = np.random.default_rng(1)
    shape = (items, side, side)
    sigma = np.exp(0.5 * rng.normal(size=shape))
    scale = usual * np.exp(differ * rng.normal(size=(items, 1, 1)))
    stack = {
        "mean": 5 + 0 * sigma,
        "std": sigma * usual / (factor or usual),
        "target": 5 + scale * sigma * rng.normal(size=shape),
    }
    return {"predictions": {k: v.astype(np.float32) for k, v in stack.items()}}, "regression"


@dataclass(frozen=True)
class Some:
    """The states of some items of a run, some of them several times.

    The last of `places` is not sampled: so the scores of the run itself, which are those of the
    population, are not taken for those of the set.
    """

    population: Population
    places: tuple[int, ...]
    evaluated: dict[str, Any] = field(default_factory=dict)
    path = "a set"

    @cached_property
    def index(self) -> dict[str, Any]:
        index, scoring = self.population.scoring.index, self.population.scoring
        sizes = [index["facts"]["sizes"][i] for i in self.places]
        names = [f"{k:06d}" for k in range(len(self.places))]
        records = [scoring.records[i] for i in self.places]
        return {**index, "items": names, "records": records,
                "facts": index["facts"] | {"sizes": sizes}}  # fmt: skip

    def parameters(self) -> list[dict[str, Any]]:
        return self.population.scoring.parameters()

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        packed = self.population.packed(parameters, most)
        return (packed[i] for i in self.places)


class Population:
    """A run over all items of a population, its scores, and the states of its items.

    `addresses`: the scores (none: all that have intervals).
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        metrics: Mapping[str, Any],
        addresses: list[str],
        path: Path,
        together: int,
    ) -> None:
        uqeval.evaluate(**data, metrics=metrics, states=path)
        self._states = SavedStates(path)
        self.scoring = Scoring(self._states)
        self.together = together
        self.addresses = addresses or [
            text for text in self.scoring.addresses if kind_of(text) is not None
        ]
        self._packed: dict[str, list[bytes]] = {}

    @classmethod
    def of(cls, name: str, folder: Path, items: int | None, only: Collection[str]) -> Population:
        """Return a population of the table, with `only` these fields."""
        make = numbers if name.startswith("numbers") else classes
        data, family = make(name, items or POPULATIONS[name][0])
        fields = OF_NUMBERS if family == "regression" else OF_CLASSES
        addresses = [f"{family}.{own}" for own in fields if not only or own in only]
        metrics = {family: OPTIONS.get(family, {})}
        path = folder / f"{family} {name}.states.zip"
        return cls(data, metrics, addresses, path, POPULATIONS[name][4])

    @cached_property
    def truth(self) -> Any:
        """The scores of all items."""
        everything = Subset(np.arange(self.scoring.items), self.scoring.items)
        return self.scoring.table(everything, self.addresses)[0]

    def packed(self, parameters: Mapping[str, Any], most: int) -> list[bytes]:
        key = json.dumps(parameters, sort_keys=True)
        if key not in self._packed:
            self._packed[key] = list(self._states.states(parameters, most))
        return self._packed[key]

    def places(self, rng: np.random.Generator, units: int) -> tuple[int, ...]:
        drives = rng.integers(0, self.scoring.items // self.together, units)
        return tuple((drives[:, None] * self.together + np.arange(self.together)).ravel().tolist())


def samples_of(
    populations: list[Population], places: tuple[int, ...], seed: int, only: list[str]
) -> Samples:
    """The samples of one set of items in one run, or in two of the same images."""
    runs = [Scoring(Some(own, (*places, 0))) for own in populations]
    together = populations[0].together
    units = tuple(f"{k // together:06d}" for k in range(len(places)))
    resampling = Resampling(units, DRAWS, seed, "item" if together == 1 else "group")
    return Samples(runs, [tuple(range(len(places)))] * len(runs), resampling, frozenset(only))


def before(samples: Samples, address: str, units: int) -> methods.Bounds:
    """The interval without a correction of the bias."""
    draws = samples.scores("drawn", address)[0]
    bounds = methods.expanded(draws[np.isfinite(draws)], units, LEVEL)
    tested = kind_of(address) == "gaps" and address.rpartition(".")[2] not in UNTESTED
    if tested and least_shares(samples, address, (2 * LEVEL - 1,)) == (0.0,):
        return methods.Bounds(0.0, bounds.high, bounds.method)
    return bounds


def outcome(record: Mapping[str, Any], true: float) -> Any:
    """Return 1 for what an interval is, else 0: none, around the truth, below it, above it."""
    low, high = record["low"], record["high"]
    if low is None:
        return np.array([1, 0, 0, 0])
    below, above = high < true - 1e-9, low > true + 1e-9
    return np.array([0, not (below or above), below, above])


def intervals_of_sets(
    population: Population, units: int, replications: int, method: Method = "auto"
) -> Iterator[tuple[Samples, str, float, dict[str, Any]]]:
    """Yield of each set of units, and each score, the samples, the address, the truth and the
    interval."""
    rng = np.random.default_rng(units)
    addresses = population.addresses
    for seed in range(replications):
        samples = samples_of([population], population.places(rng, units), seed, addresses)
        for address, true in zip(addresses, population.truth, strict=True):
            yield samples, address, true, interval(samples, address, LEVEL, method)


def simulate(population: Population, units: int, replications: int) -> dict[str, list[Any]]:
    """Return of each score the shares of intervals that contain the truth, now and before, of
    intervals wholly below the truth, of none, and of values outside their own interval."""
    rates = {address: np.zeros(5) for address in population.addresses}
    for samples, address, true, record in intervals_of_sets(population, units, replications):
        low, high, value = record["low"], record["high"], samples.value(address)
        rates[address][3] += low is None
        if low is None:
            continue
        old = before(samples, address, units)
        rates[address] += [low - 1e-12 <= true <= high, old.low - 1e-12 <= true <= old.high,
                           high < true, 0, not low <= value <= high]  # fmt: skip
    return {address: (rate / replications).tolist() for address, rate in rates.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--items", type=int, nargs="+", default=ITEMS)
    parser.add_argument("--size", type=int, help="items of a population")
    parser.add_argument("--scores", nargs="+", default=(), metavar="FIELD")
    parser.add_argument("--only", nargs="+", default=[*POPULATIONS], metavar="NAME",
                        help="populations")  # fmt: skip
    given = parser.parse_args()
    error = 100 * (0.95 * 0.05 / given.replications) ** 0.5
    print(f"{given.replications} sets, Monte Carlo error {error:.1f} at 95 %; contain the truth, % "
          "(before; too low; –: no interval)\n")  # fmt: skip
    print(f"| population | score | truth | {' | '.join(map(str, given.items))} |")
    print("|---|---|---|" + "---|" * len(given.items))
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only:
            made = Population.of(name, Path(folder), given.size, given.scores)
            found = [simulate(made, n, given.replications) for n in given.items]
            for address, true in zip(made.addresses, made.truth, strict=True):
                cells = [_cell(rates[address]) for rates in found]
                field = address.partition(".")[2]
                print(f"| {name} | {field} | {true:.4f} | {' | '.join(cells)} |", flush=True)


def _cell(rates: list[float]) -> str:
    held, old, under, none, outside = (round(100 * rate) for rate in rates)
    if none > 50:
        return "–"
    text = f"{held} ({old}; {under})"
    return text + (f", value outside {outside}" if outside else "")


if __name__ == "__main__":
    main()
