"""Predictions from plain NumPy arrays: `python dump_numpy.py [FOLDER]`.

Images of different sizes, all samples of an image at once; then the same as maps, which are all
that the metrics need and take a small part of the space.
"""

import sys
from pathlib import Path

import numpy as np

from uqeval import PredictionWriter

SAMPLES, CLASSES = 8, 5
SIZES = {"street_000": (48, 64), "street_001": (48, 80), "street_002": (64, 64)}


def predict(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Return random class probabilities [sample, class, y, x], in place of a model."""
    logits = 3 * rng.normal(size=(1, CLASSES, *size)) + rng.normal(size=(SAMPLES, CLASSES, *size))
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)


def main(folder: Path) -> Path:
    """Write `stack.zarr` and `maps.zarr` into `folder`."""
    rng = np.random.default_rng(0)
    about = {"names": list(SIZES), "samples": SAMPLES, "classes": CLASSES, "size": None}
    with (
        PredictionWriter(folder / "stack.zarr", **about) as stack,
        PredictionWriter(folder / "maps.zarr", keep="maps", **about) as maps,
    ):
        for name, size in SIZES.items():
            probs = predict(rng, size)
            stack.add(name, probs)
            maps.add(name, probs)
            for writer in (stack, maps):
                writer.add_labels(name, probs.mean(axis=0).argmax(axis=0))
    return folder / "stack.zarr"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
