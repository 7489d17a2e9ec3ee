"""How often `compare` says that equal shares differ, if they are shares of other numbers of pixels.

    python benchmarks/other_counts.py [--replications 400] [--items 20 60] [--factors 1 2 4]

Two models have wrong pixels at random, the first one `factor` times as many as the second. Each
wrong pixel is certain with the same chance, so `pavpu.p_uncertain_given_inaccurate` is the same for
both. A cell has the share of sets with p at most 0.05, and with the word better or worse, which
also needs an interval without 0.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import uqeval
from uqeval.compare import Choice, Difference, compare, load_models

SIZE = 16
#: Wrong pixels of an image of the second model.
WRONG = 1.5
CERTAIN = 0.05
SCORE = "pavpu.p_uncertain_given_inaccurate"


def save(path: Path, rng: np.random.Generator, items: int, wrong: float) -> None:
    """Write the report of a model with this mean number of wrong pixels, and its states."""
    shape = (items, SIZE, SIZE)
    is_wrong = rng.random(shape) < wrong / SIZE**2
    is_certain = ~is_wrong | (rng.random(shape) < CERTAIN)
    likeliest = np.where(is_certain, 0.99, 0.55).astype(np.float32)
    probs = np.stack([np.where(is_wrong, 1 - likeliest, likeliest)] * 2, axis=1)
    probs[:, 1] = 1 - probs[:, 0]
    labels = np.zeros(shape, np.uint8)
    settings = {"window": 1, "threshold": 0.3, "curve_range": "0:0.7", "deciles": False}
    states = path.with_suffix(".states.zip")
    report = uqeval.evaluate(probs, labels, {"pavpu": settings}, states=states, workers=1)
    report.save(path)


def compared(folder: Path, rng: np.random.Generator, items: int, factor: float) -> Difference:
    """Return the difference of two models."""
    paths = [str(folder / f"{name}.json") for name in "ab"]
    for path, wrong in zip(paths, (factor * WRONG, WRONG), strict=True):
        Path(path).with_suffix(".states.zip").unlink(missing_ok=True)
        save(Path(path), rng, items, wrong)
    found = compare(load_models(paths), Choice(metrics=(SCORE,), draws=100))
    change = found.rows[0].cells[1].difference
    assert change is not None
    return change


def main() -> None:
    """Print a table with a row for each number of images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--items", type=int, nargs="+", default=[20, 60])
    parser.add_argument("--factors", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    chosen = parser.parse_args()
    print("| images |", " | ".join(f"{factor:g} × as many" for factor in chosen.factors), "|")
    print("|---" * (1 + len(chosen.factors)) + "|")
    for items in chosen.items:
        cells = []
        for factor in chosen.factors:
            rng = np.random.default_rng([items, int(1000 * factor)])
            with tempfile.TemporaryDirectory() as folder:
                changes = [
                    compared(Path(folder), rng, items, factor) for _ in range(chosen.replications)
                ]
            small = np.mean([own.p is not None and own.p <= 0.05 for own in changes])
            words = np.mean([own.verdict == "differs" for own in changes])
            cells.append(f"{100 * small:.1f} %, {100 * words:.1f} %")
        print(f"| {items} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
