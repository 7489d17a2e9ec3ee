"""How often the intervals of all scores of a report contain the truth.

    python benchmarks/every_interval.py [--replications 300] [--only classes …] [--items 10 30 100]

As `biased.py`, for every score with an interval except those of single classes. Kinds of data:
"classes", several samples of a softmax, with the region `boundary:1`; "numbers", means with σ;
"annotators", three label maps of an image. Images differ, and 5 % of their pixels are void. The
truth is the score of the whole population. Of the sets with an interval, it prints the share whose
interval contains the truth, and in parentheses the shares wholly below and wholly above it; then
the share of sets without an interval.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmarks.biased import Population, intervals_of_sets, normalised, outcome
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.options import Method

Array = np.ndarray
ITEMS = (10, 30, 100)
CLASSES, SAMPLES, SIDE = 4, 3, 16
VOID = 255
OF_CLASSES: dict[str, dict[str, Any]] = {
    "segmentation": {},
    "pavpu": {"window": 4},
    "calibration": {
        "isotonic": True,
        "vector": True,
        "estimator": ["plug-in", "kumar-l2", "kumar-l1", "roelofs-sweep"],
    },
    "failure": {},
    "sparsification": {},
}
OF_NUMBERS: dict[str, dict[str, Any]] = {
    "regression": {"ence": True, "depth": True},
    "nmerci": {},
    "sparsification": {},
}
#: Data, families, and options of the evaluation.
Kind = tuple[Callable[[int], dict[str, Any]], Mapping[str, Any], Mapping[str, Any]]


def labels_of(rng: np.random.Generator, z: Array) -> Array:
    """Labels drawn from softmax(z) [item, class, y, x], some of them void."""
    labels = (z - np.log(-np.log(rng.random(z.shape)))).argmax(1).astype(np.uint8)
    labels[rng.random(labels.shape) < 0.05] = VOID
    return labels


def logits(rng: np.random.Generator, items: int) -> tuple[Array, Array]:
    """Logits of smooth images with classes of their own, and what the model does not know."""
    coarse = rng.normal(size=(items, CLASSES, SIDE // 4, SIDE // 4))
    z = 1.5 * np.kron(coarse, np.ones((4, 4))) + rng.normal(size=(items, CLASSES, SIDE, SIDE))
    own, unknown = rng.normal(size=(2, items, CLASSES, 1, 1))
    return z + own, 0.5 * unknown


def classes(items: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    z, unknown = logits(rng, items)
    noise = rng.normal(size=(items, SAMPLES, CLASSES, SIDE, SIDE))
    samples = normalised(np.exp(np.moveaxis(1.3 * z[:, None] + 0.5 * noise, 2, 1)))
    return {
        "predictions": np.moveaxis(samples, 1, 2).astype(np.float32),
        "labels": labels_of(rng, z + unknown),
    }


def numbers(items: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shape = (items, SIDE, SIDE)
    sigma = np.exp(0.5 * rng.normal(size=shape) + 0.3 * rng.normal(size=(items, 1, 1)))
    scale = 1.2 * np.exp(0.3 * rng.normal(size=(items, 1, 1)))
    mean = rng.uniform(5, 20, shape)
    target = np.maximum(mean + 0.3 * scale * sigma * rng.normal(size=shape), 0.5)
    target[rng.random(shape) < 0.05] = np.nan
    stack = {"mean": mean, "std": 0.3 * sigma, "target": target}
    return {"predictions": {name: values.astype(np.float32) for name, values in stack.items()}}


def annotated(items: int) -> dict[str, Any]:
    data = classes(items)
    rng = np.random.default_rng(1)
    z, unknown = logits(rng, items)
    data["labels"] = np.stack([labels_of(rng, z + unknown) for _ in range(3)], 1)
    return data


KINDS: dict[str, Kind] = {
    "classes": (classes, OF_CLASSES, {"region": ["boundary:1"]}),
    "numbers": (numbers, OF_NUMBERS, {}),
    "annotators": (annotated, {"annotators": {}}, {}),
}


def simulate(
    population: Population, units: int, replications: int, method: Method
) -> dict[str, Array]:
    """Of each score the shares of no interval, of those that contain the truth, below, above."""
    counts = {address: np.zeros(4) for address in population.addresses}
    for _, address, true, record in intervals_of_sets(population, units, replications, method):
        counts[address] += outcome(record, true)
    for count in counts.values():
        count[1:] /= max(count[1:].sum(), 1)
        count[0] /= replications
    return counts


def of_all_classes(addresses: list[str]) -> list[str]:
    """Leave out scores of classes, and those of a variant that the default has as well."""
    plain = re.compile(r"\[[^]]*\]")
    chosen = {plain.sub("", text): text for text in reversed(addresses) if "per_class" not in text}
    return list(reversed(chosen.values()))


def population_of(kind: str, items: int, folder: Path) -> Population:
    make, families, options = KINDS[kind]
    path = folder / f"{kind}.states.zip"
    population = Population({**make(items), **options}, families, [], path, 1)
    population.addresses = of_all_classes(population.addresses)
    return population


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--items", type=int, nargs="+", default=ITEMS)
    parser.add_argument("--size", type=int, default=3000, help="items of a population")
    parser.add_argument("--only", nargs="+", default=[*KINDS], metavar="KIND")
    parser.add_argument("--method", choices=get_args(Method), default="auto")
    given = parser.parse_args()
    error = 100 * (0.95 * 0.05 / given.replications) ** 0.5
    print(f"{given.replications} sets, Monte Carlo error {error:.1f} at 95 %; contain the truth, % "
          "(below; above; none)\n")  # fmt: skip
    print(f"| data | score | kind | truth | {' | '.join(map(str, given.items))} |")
    print("|---|---|---|---|" + "---|" * len(given.items))
    for kind in given.only:
        with tempfile.TemporaryDirectory() as folder:
            made = population_of(kind, given.size, Path(folder))
            found = [simulate(made, n, given.replications, given.method) for n in given.items]
        for address, true in zip(made.addresses, made.truth, strict=True):
            cells = " | ".join(_cell(counts[address]) for counts in found)
            print(f"| {kind} | {address} | {kind_of(address)} | {true:.4g} | {cells} |", flush=True)


def _cell(shares: Array) -> str:
    none, held, below, above = (f"{100 * share:.0f}" for share in shares)
    return "–" if shares[0] > 0.5 else f"{held} ({below}; {above}; {none})"


if __name__ == "__main__":
    main()
