"""Figure 2 of Ma et al. 2024: accuracy and uncertainty that are independent of each other.

`python ma_independent.py [FOLDER]` draws 20,000 patches of one pixel: each is wrong with
probability 0.1, whatever its uncertainty. The PAvPU over the threshold looks like that of a model:
it rises to 0.9, because accurate patches are many and the threshold makes them certain. The Surplus
is 0 but for chance, and where it is below 0 (shaded) the PAvPU means nothing.

Writes `independent.json`, `pavpu-threshold.svg` and further figures; takes a few seconds.
"""

import argparse
from pathlib import Path

import numpy as np

import uqeval
from uqeval.report.figures import write_figures

SIDE, CLASSES, ERRORS = 141, 3, 0.1


def independent(rng):
    """Probabilities [item, class, y, x] and labels [item, y, x]."""
    label = rng.integers(0, CLASSES, (1, SIDE, SIDE))
    wrong = rng.random(label.shape) < ERRORS
    predicted = np.where(wrong, (label + 1) % CLASSES, label)
    top = rng.uniform(0.4, 1, label.shape)  # the confidence, drawn without a look at the errors
    is_top = np.arange(CLASSES)[:, None, None] == predicted[:, None]
    probs = np.where(is_top, top[:, None], (1 - top[:, None]) / (CLASSES - 1))
    return probs.astype(np.float32), label.astype(np.uint8)


def main(folder):
    """Evaluate, print, and write the report and its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    probs, labels = independent(np.random.default_rng(0))
    report = uqeval.evaluate(probs, labels, {"pavpu": {"window": 1, "threshold": "median"}})
    report.save(folder / "independent.json")
    write_figures({"independent": report}, folder, "svg")
    pavpu = report.results["pavpu"]
    negative = np.mean([s is not None and s < 0 for s in pavpu["curve"]["surplus"]])
    print(f"PAvPU {pavpu['pavpu']:.3f}, by chance {pavpu['pavpu_chance']:.3f}")
    print(f"Surplus {pavpu['surplus']:+.4f}; below 0 at {negative:.0%} of the thresholds")
    print(folder / "pavpu-threshold.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("ma_independent"))
    main(parser.parse_args().folder)
