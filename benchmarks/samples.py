"""Adding float16 samples, by the share of subnormal numbers: one thread, in memory.

    python benchmarks/samples.py [--store preds.zarr …] [--repeats 7]

Confident networks store many probabilities below 6.1e-5, which float16 holds as subnormal numbers.
Each row is a stack of 10 samples × 19 classes × 256×1024, or the first item of a store. "sums" adds
the samples and their totals, "entropies" also Σ p·ln p. The yardstick is NumPy's conversion of the
same numbers to float32. CPU seconds of the thread, the least of several.

The rows of `shifts` are those of a CPU without float16 instructions (NUMBA_CPU_NAME=generic).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 2048
#: The least normal number of float16.
NORMAL = np.float16(2.0**-14)


def stack_with(share: float) -> np.ndarray:
    """float16 [sample, class, y, x] that sum to about 1, with a share of subnormal numbers."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(19), (10, 256, 64)).astype(np.float32)
    p = np.moveaxis(np.repeat(p, 16, axis=2), -1, 1)
    stack = np.maximum(p, np.float32(NORMAL)).astype(np.float16)
    chosen = rng.random(stack.shape, dtype=np.float32) < share
    stack[chosen] = rng.uniform(0, NORMAL, int(chosen.sum())).astype(np.float16)
    return stack


def first_item(path: str) -> np.ndarray:
    """The samples [sample, class, y, x] of the first item of a store."""
    from uqeval.stores.store import open_store

    part = open_store(path, role="predictions").arrays["probs"][0]
    region = tuple(
        slice(0, 1) if axis == "item" else slice(0, size)
        for axis, size in zip(part.array.axes, part.array.shape, strict=True)
    )
    return part.array.read(region)[0]


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The least CPU seconds of this thread."""
    call()
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return min(times)


def added(tile: np.ndarray, entropies: bool) -> None:
    """Add all samples of a tile [sample, class, pixel] of float16 bits, block by block."""
    from uqeval.kernels.samples import add_samples

    classes = tile.shape[1]
    sums, totals = np.zeros((classes, BLOCK), np.int32), np.zeros((1, BLOCK), np.int32)
    extremes = np.array([2**30, -(2**30)], np.int32)
    terms, plogp = np.zeros(BLOCK, np.int32), np.zeros(BLOCK, np.int64)
    for start in range(0, tile.shape[2], BLOCK):
        stop = min(start + BLOCK, tile.shape[2])
        sums[...] = 0
        add_samples(
            tile, start, stop, 0, 0, 0, 1.0, entropies, sums, totals, extremes, terms, plogp
        )


def report(name: str, stack: np.ndarray, repeats: int) -> None:
    """Print one row."""
    from uqeval.maps.reduction import kernel_view

    tile = kernel_view(stack)
    subnormal = np.mean((stack > 0) & (stack < NORMAL))
    converted = seconds(lambda: stack.astype(np.float32), repeats)
    row = (
        f"{name:<28} {subnormal:5.0%} subnormal   astype {stack.nbytes / converted / 1e9:5.2f} GB/s"
    )
    for entropies, label in ((False, "sums"), (True, "entropies")):
        taken = seconds(lambda e=entropies: added(tile, e), repeats)
        row += f"   {label} {taken * 1e3:6.1f} ms {stack.nbytes / taken / 1e9:5.2f} GB/s"
    print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    prefix = os.environ.get("UQEVAL_BENCH_PREFIX", "")
    for share in (0, 0.1, 0.5, 1):
        report(f"{prefix}made", stack_with(share), options.repeats)
    for path in options.store:
        report(prefix + Path(path).name, first_item(path), options.repeats)
    if not prefix:
        environment = os.environ | {"NUMBA_CPU_NAME": "generic", "UQEVAL_BENCH_PREFIX": "shifts: "}
        subprocess.run([sys.executable, *sys.argv], env=environment, check=True)


if __name__ == "__main__":
    main()
