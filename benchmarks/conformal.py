"""How often conformal risk control keeps its guarantee, by the number of calibration images.

`python -m benchmarks.conformal` draws calibration images and new images from a population whose
images differ in difficulty and size, and large images are easier. It prints the mean loss of new
images with its Monte Carlo error, for the threshold of uqeval and for one that takes the pixels of
all images as exchangeable.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from uqeval.metrics.conformal_fit import _Search

Array = np.ndarray[Any, Any]
SIZES = (60, 240, 960)
#: Images of the population, and new images of each repetition.
POPULATION, NEW = 6000, 200
_LOW = 15


@dataclass(frozen=True)
class Row:
    """Mean loss of new images and its standard error, and the share of images above α."""

    images: int
    alpha: str
    loss: float
    error: float
    of_pixels: float
    above: float


def population(seed: int, images: int = POPULATION) -> list[Array]:
    """Return the sorted nonconformity scores of the pixels of each image, float32."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, len(SIZES), images)
    hardness = np.exp(rng.normal(-0.8 - 0.6 * sizes, 1.0))
    return [
        np.sort(1 - np.exp(-own * rng.exponential(size=SIZES[size]))).astype(np.float32)
        for own, size in zip(hardness, sizes, strict=True)
    ]


def threshold(scores: Sequence[Array], alpha: str) -> float:
    """Return the threshold by uqeval's search over bins of keys."""
    groups: dict[int, list[Array]] = {}
    for own in scores:
        groups.setdefault(own.size, []).append(own.view(np.int32))
    keys = {size: np.concatenate(own) for size, own in groups.items()}
    search = _Search(
        {size: list(range(len(own))) for size, own in groups.items()},
        Fraction(alpha) * (len(scores) + 1) - 1,
    )
    high = search.narrow(lambda size: np.bincount(keys[size] >> _LOW, minlength=1 << 15))

    def low_counts(size: int) -> Array:
        inside = keys[size][keys[size] >> _LOW == high]
        return np.bincount(inside & ((1 << _LOW) - 1), minlength=1 << _LOW)

    key = (high << _LOW) | search.narrow(low_counts)
    return float(np.array(key, np.int32).view(np.float32))


def losses(scores: Sequence[Array], q: float) -> Array:
    """Return the share of the pixels of each image whose score is above q."""
    return np.array([1 - np.searchsorted(own, q, side="right") / own.size for own in scores])


def simulate(
    counts: Sequence[int], alphas: Sequence[str], repeats: int, seed: int = 0
) -> Iterator[Row]:
    """Yield a row for each number of calibration images and each α that it can reach."""
    images = population(seed)
    for count in counts:
        for alpha in alphas:
            if count + 1 < 1 / Fraction(alpha):
                continue
            rng = np.random.default_rng([seed, count])
            mean, of_pixels, above = np.zeros((3, repeats))
            for i in range(repeats):
                drawn = [images[j] for j in rng.choice(len(images), count + NEW, replace=False)]
                known, new = drawn[:count], drawn[count:]
                own = losses(new, threshold(known, alpha))
                mean[i], above[i] = own.mean(), (own > float(alpha)).mean()
                pooled = np.sort(np.concatenate(known))
                rank = math.ceil((pooled.size + 1) * (1 - Fraction(alpha)))
                of_pixels[i] = losses(new, pooled[min(rank, pooled.size) - 1]).mean()
            error = mean.std(ddof=1) / np.sqrt(repeats)
            yield Row(count, alpha, mean.mean(), error, of_pixels.mean(), above.mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--images", type=int, nargs="+", default=[9, 19, 50, 100, 300])
    options = parser.parse_args(arguments)
    print("images  alpha  mean loss          of pooled pixels  images above alpha")
    for row in simulate(options.images, ("0.1", "0.2"), options.repeats):
        print(
            f"{row.images:6}  {row.alpha:5}  {row.loss:.4f} ± {row.error:.4f}"
            f"  {row.of_pixels:16.4f}  {row.above:18.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
