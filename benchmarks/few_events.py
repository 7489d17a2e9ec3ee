"""How often intervals contain the truth if few pixels, or pixels of few images, decide the score.

    python benchmarks/few_events.py [--replications 400] [--only spread …] [--items 10 50]

Populations of images with an uncertainty of each pixel. "spread": wrong pixels are scattered over
all images; "clumped": few images have wrong pixels, 8 or more each; "apart": these are far more
uncertain than right ones, so that few of them are accepted; "alike": the pixels of a clump have
nearly the same uncertainty; "class": few images have pixels of a class, 20 % of them wrong;
"objects", "alike-out", "specks": the same of OUT pixels under a mask; "sets": few OUT images beside
IN images; "images": few images have a high risk. The columns have the number of images and the
expected number of such pixels or images of a set. The truth is the score of the population. Cells
as in `every_interval.py`; the last number is the share of sets without an interval.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.biased import Population, Some, outcome
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import interval
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring

Array = np.ndarray
SIDE, SIZE, DRAWS = 8, 3000, 400
#: Events that a set is expected to have.
PIXELS, IMAGES = (1, 2, 5, 10, 20), (1, 2, 3, 5)
#: Scores that others resemble.
LEFT_OUT = ("per_class", "e_aurc", "coverage.90", "undetected")
#: The risk above which an image has failed.
LIMIT = 0.2


@dataclass(frozen=True)
class Kind:
    """Arguments of `uqeval.evaluate` for a population of so many images with a rate of events an
    image, and the expected events of a set. `fixed`: a set has exactly these OUT images."""

    make: Callable[[int, float], dict[str, Any]]
    families: dict[str, dict[str, Any]]
    events: tuple[int, ...]
    part: str
    fixed: bool = False


def images(rng: np.random.Generator, items: int, spread: float = 0.3) -> Array:
    """Uncertainties of right pixels [item, y, x]; images differ."""
    own = spread * rng.normal(size=(items, 1, 1))
    return own + rng.normal(size=(items, SIDE, SIDE))


def raised(rng: np.random.Generator, values: Array, chosen: Array) -> Array:
    """Uncertainties, higher where chosen, more or less by image."""
    by = 1.5 + 0.5 * rng.normal(size=(len(values), 1, 1))
    return np.where(chosen, values + by, values)


def alike(rng: np.random.Generator, values: Array, chosen: Array) -> Array:
    """Uncertainties, higher where chosen; of the chosen pixels of an image nearly the same."""
    own = 1.5 + rng.normal(size=(len(values), 1, 1)) + 0.3 * rng.normal(size=values.shape)
    return np.where(chosen, own, values)


def apart(rng: np.random.Generator, values: Array, chosen: Array) -> Array:
    """Uncertainties, far higher where chosen, more or less by image."""
    return np.where(chosen, values + 3 + 0.7 * rng.normal(size=(len(values), 1, 1)), values)


def clumps(rng: np.random.Generator, items: int, rate: float) -> Array:
    """Pixels of a blob in a share of the images [item, y, x]."""
    place = rng.integers(0, SIDE - 4, (2, items, 1, 1))
    reach = rng.integers(3, 6, (2, items, 1, 1))
    y, x = np.mgrid[:SIDE, :SIDE]
    inside = (y >= place[0]) & (y < place[0] + reach[0])
    inside &= (x >= place[1]) & (x < place[1] + reach[1])
    return inside & (rng.random((items, 1, 1)) < rate)


def specks(rng: np.random.Generator, items: int, rate: float) -> Array:
    """Single pixels, `rate` of them an image [item, y, x]."""
    return rng.random((items, SIDE, SIDE)) < rate / SIDE**2


Chosen = Callable[[np.random.Generator, int, float], Array]
Raised = Callable[[np.random.Generator, Array, Array], Array]


def wrong(chosen: Chosen, uncertain: Raised = raised) -> Callable[[int, float], dict[str, Any]]:
    """Return a population whose wrong pixels are the chosen ones."""

    def make(items: int, rate: float) -> dict[str, Any]:
        rng = np.random.default_rng(1)
        is_wrong = chosen(rng, items, rate)
        energy = uncertain(rng, images(rng, items), is_wrong)
        return _maps(energy, is_wrong) | {"labels": np.zeros(energy.shape, np.uint8)}

    return make


def of_class(items: int, rate: float) -> dict[str, Any]:
    """A class that few images have; 20 % of its pixels are wrong, more or less by image."""
    rng = np.random.default_rng(1)
    labels = clumps(rng, items, rate).astype(np.uint8)
    share = expit(-1.4 + rng.normal(size=(items, 1, 1)))
    is_wrong = (labels == 1) & (rng.random(labels.shape) < share)
    energy = raised(rng, images(rng, items), is_wrong)
    return _maps(energy, np.where(is_wrong, 0, labels)) | {"labels": labels, "region": ["class:1"]}


def masked(chosen: Chosen, uncertain: Raised = raised) -> Callable[[int, float], dict[str, Any]]:
    """Return a population whose OUT pixels are the chosen ones."""

    def make(items: int, rate: float) -> dict[str, Any]:
        rng = np.random.default_rng(1)
        is_out = chosen(rng, items, rate)
        energy = uncertain(rng, images(rng, items), is_out)
        return _maps(energy, np.zeros(energy.shape)) | {
            "labels": is_out.astype(np.uint8), "ood_mask": 1,
        }  # fmt: skip

    return make


def two_sets(items: int, rate: float) -> dict[str, Any]:
    """IN images, and OUT images, which are more uncertain, more or less by image.

    `rate` of the images are OUT, as in each set: AUPR depends on it.
    """
    rng = np.random.default_rng(1)
    out = round(items * rate)
    inside, outside = images(rng, items - out), images(rng, out, 0.8) + 0.8
    return _maps(inside, np.zeros(inside.shape)) | {
        "out": [_maps(outside, np.zeros(outside.shape))["predictions"]], "labels": None,
    }  # fmt: skip


def risky(items: int, rate: float) -> dict[str, Any]:
    """Images of a low risk, and a few that fail and are more uncertain."""
    rng = np.random.default_rng(1)
    failed = rng.random((items, 1, 1)) < rate
    risk = np.where(failed, rng.beta(8, 8, failed.shape), rng.beta(2, 40, failed.shape))
    energy = raised(rng, images(rng, items, 1.0), failed)
    is_wrong = rng.random(energy.shape) < risk
    return _maps(energy, is_wrong) | {"labels": np.zeros(energy.shape, np.uint8)}


def _maps(energy: Array, predictions: Array) -> dict[str, Any]:
    maps = {"predictions": predictions.astype(np.uint8), "energy": energy.astype(np.float32)}
    return {"predictions": maps, "classes": 2}


FAILURE = {"failure": {"uncertainty": "energy"}}
OOD = {"ood": {"uncertainty": "energy"}}
OF_IMAGES = {"image_failure": {"risk": "accuracy", "uncertainty": "energy", "risk_limit": LIMIT}}
KINDS = {
    "spread": Kind(wrong(specks), FAILURE, PIXELS, "failure."),
    "clumped": Kind(wrong(clumps), FAILURE, IMAGES, "failure."),
    "apart": Kind(wrong(clumps, apart), FAILURE, (3, 6, 15), "failure."),
    "alike": Kind(wrong(clumps, alike), FAILURE, (10, 30, 60, 80), "failure."),
    "class": Kind(of_class, FAILURE, IMAGES, "failure@class:1."),
    "specks": Kind(masked(specks), OOD, PIXELS, "ood."),
    "objects": Kind(masked(clumps), OOD, IMAGES, "ood."),
    "alike-out": Kind(masked(clumps, alike), OOD, (10, 30, 60, 80), "ood."),
    "sets": Kind(two_sets, OOD, (2, 3, 5, 10), "ood.", fixed=True),
    "images": Kind(risky, OF_IMAGES, (1, 2, 3), "image_failure."),
}


def population_of(kind: Kind, rate: float, size: int, folder: Path) -> Population:
    data = kind.make(size, rate)
    population = Population(data, kind.families, [], folder / "of.states.zip", 1)
    population.addresses = [
        text for text in population.addresses
        if text.startswith(kind.part) and not any(name in text for name in LEFT_OUT)
    ]  # fmt: skip
    return population


def sets_of(population: Population, units: int, out: int | None) -> Iterator[Samples]:
    """Yield sets of units; with `out`, as many of them are of the OUT set."""
    rng = np.random.default_rng(units)
    scoring = population.scoring
    of_item = np.array(scoring.index["facts"].get("sets") or [0] * scoring.items)
    seed = 0
    while True:
        if out is None:
            places = rng.integers(0, scoring.items, units)
        else:
            places = np.concatenate([
                rng.choice(np.flatnonzero(of_item == k), n) for k, n in ((0, units - out), (1, out))
            ])  # fmt: skip
        run = Scoring(Some(population, (*places.tolist(), 0)))
        names = tuple(f"{k:06d}" for k in range(units))
        strata = None if out is None else tuple(str(k) for k in of_item[places])
        resampling = Resampling(names, DRAWS, seed, strata=strata)
        yield Samples([run], [tuple(range(units))], resampling, frozenset(population.addresses))
        seed += 1


def simulate(
    population: Population, samples: Iterator[Samples], replications: int, level: float
) -> dict[str, Array]:
    """Of each score the shares of no interval, of those that contain the truth, below, above."""
    counts = {address: np.zeros(4) for address in population.addresses}
    for _, own in zip(range(replications), samples, strict=False):
        for address, true in zip(population.addresses, population.truth, strict=True):
            counts[address] += outcome(interval(own, address, level), true)
    return counts


def cell(counts: Array) -> str:
    none, held, below, above = counts
    sets = held + below + above
    if not sets:
        return "–"
    shares = [100 * n / sets for n in (held, below, above)]
    return "{:.0f} ({:.0f}; {:.0f}; {:.0f})".format(*shares, 100 * none / counts.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--items", type=int, nargs="+", default=(10, 50))
    parser.add_argument("--size", type=int, default=SIZE, help="items of a population")
    parser.add_argument("--events", type=int, nargs="+")
    parser.add_argument("--scores", nargs="+", default=(), metavar="ADDRESS")
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--only", nargs="+", default=[*KINDS], metavar="KIND")
    given = parser.parse_args()
    error = 100 * (given.level * (1 - given.level) / given.replications) ** 0.5
    print(f"{given.replications} sets, level {given.level:.0%}, Monte Carlo error {error:.1f}\n")
    for name in given.only:
        kind = KINDS[name]
        columns: dict[str, dict[str, str]] = {}
        for units in given.items:
            for events in given.events or kind.events:
                if events >= units and kind.events is not PIXELS:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    made = population_of(kind, events / units, given.size, Path(folder))
                    if given.scores:
                        made.addresses = [a for a in made.addresses if a in given.scores]
                    sets = sets_of(made, units, events if kind.fixed else None)
                    found = simulate(made, sets, given.replications, given.level)
                truth = dict(zip(made.addresses, made.truth, strict=True))
                heading = f"{events} of {units}"
                for address, counts in found.items():
                    print(f"{name} {heading} {address} {kind_of(address)} {truth[address]:.4g} "
                          f"{cell(counts)}", flush=True)  # fmt: skip
                columns[heading] = {a: cell(counts) for a, counts in found.items()}
        print(f"\n| {name} | {' | '.join(columns)} |\n|---|" + "---|" * len(columns))
        for address in next(iter(columns.values())):
            cells = " | ".join(column.get(address, "–") for column in columns.values())
            print(f"| {address} | {cells} |")
        print(flush=True)


if __name__ == "__main__":
    main()
