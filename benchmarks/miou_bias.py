"""The effect of the bias correction on intervals of mIoU: how often they contain the true value.

    python benchmarks/miou_bias.py [--replications 1000]

Populations of independent images whose classes differ in how many images contain them. The interval
of `uqeval.statistics.jackknife`, and in parentheses θ ± t·se alone, on the logit scale.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.estimates import LEVEL, left_out
from benchmarks.populations import Array, effects, logistic, miou
from uqeval.statistics import jackknife
from uqeval.statistics.methods import Bounds

#: By name, the share of images with each class; the mean logit of the share that is right, and how
#: much it differs between images.
POPULATIONS = {
    "8; 8 %": (np.geomspace(1, 0.08, 8), 1.5, 1.0),
    "8; 90 %": (np.full(8, 0.9), 1.5, 1.0),
    "19; 2 %": (np.geomspace(1, 0.02, 19), 1.5, 1.0),
    "4; 30 %": (np.geomspace(1, 0.3, 4), 1.5, 1.0),
    "8; 8 %, low mIoU": (np.geomspace(1, 0.08, 8), 0.0, 1.5),
    "19; 10 %, high mIoU": (np.geomspace(1, 0.1, 19), 2.5, 1.0),
}
SIZES = (5, 10, 30)


def counts(rng: np.random.Generator, images: int, share: Array, skill: float, sd: float) -> Array:
    """Labelled, predicted and correct pixels of the classes."""
    there = rng.random((images, len(share))) < share
    labelled = np.where(there, rng.lognormal(9 + np.log(share), 0.7, there.shape), 0.0)
    right = labelled * logistic(skill + sd * effects(rng, np.arange(images), len(share)))
    wrong = (labelled - right).sum(1, keepdims=True) * share / share.sum()
    return np.concatenate([labelled, right + wrong, right], 1)


def held(name: str, images: int, replications: int) -> tuple[float, float]:
    """Return the shares of intervals that contain the true value: with the bias, and without."""
    own = POPULATIONS[name]
    rng = np.random.default_rng(7)
    blocks = min(10, replications)
    truth = float(miou(sum(counts(rng, 20_000, *own).sum(0) for _ in range(blocks))[None])[0])
    rng = np.random.default_rng(100 + images)
    hits = [0, 0]
    for _ in range(replications):
        each = counts(rng, images, *own)
        total = each.sum(0)
        value, without = float(miou(total[None])[0]), miou(total - each)
        scores = left_out(value, without, images)
        found = jackknife.jackknife_t(scores, LEVEL, logit=True)
        reach, slope = scores.spread().reach(LEVEL), 1 / (value * (1 - value))
        plain = logistic(np.log(value / (1 - value)) + slope * np.array([-reach, reach]))
        hits[0] += isinstance(found, Bounds) and found.low <= truth <= found.high
        hits[1] += plain[0] <= truth <= plain[1]
    return hits[0] / replications, hits[1] / replications


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=1000)
    given = parser.parse_args()
    print(f"| classes; images with the rarest | {' | '.join(f'{n} items' for n in SIZES)} |")
    print("|---|" + "---|" * len(SIZES))
    for name in POPULATIONS:
        rates = [held(name, images, given.replications) for images in SIZES]
        cells = (f"{100 * now:.1f} ({100 * plain:.1f})" for now, plain in rates)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
