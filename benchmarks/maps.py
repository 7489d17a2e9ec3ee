"""Maps from a sample stack: NumPy, PyTorch CPU where it is installed, and uqeval, in one run.

    python benchmarks/maps.py [--items 6] [--folder build/bench] [--quick]

Part 1: one item in memory, 20 samples × 19 classes × 512×1024 float16, to prediction, confidence,
entropy, expected entropy and mutual information. Part 2: whole commands on stores of several
items against reading alone plus the maps kernel alone, each with all cores. Seconds are medians;
MB/s of float16 as stored; every row is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import cached, labels_for, measure, row, softmax_stack

from uqeval.engine.options import usable_cpus

MAPS = ["confidence", "entropy", "expected_entropy", "mutual_information"]


def with_numpy(path: str) -> None:
    """What a script does: float64 means and entropies of the whole stack at once."""
    p = np.load(path).astype(np.float64)
    mean = p.mean(axis=0)
    mean.argmax(axis=0), mean.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(mean * np.log(mean), axis=0)
        expected = -np.nansum(p * np.log(p), axis=1).mean(axis=0)
    np.maximum(entropy - expected, 0)


def with_numpy_float32(path: str) -> None:
    """The same in float32, one sample at a time: what a careful script does."""
    stack = np.load(path, mmap_mode="r")
    mean = np.zeros(stack.shape[1:], np.float32)
    expected = np.zeros(stack.shape[2:], np.float32)
    tiny = np.float32(1e-12)
    for sample in stack:
        p = sample.astype(np.float32)
        mean += p
        expected -= (p * np.log(p + tiny)).sum(axis=0)
    mean /= len(stack)
    expected /= len(stack)
    mean.argmax(axis=0), mean.max(axis=0)
    np.maximum(-(mean * np.log(mean + tiny)).sum(axis=0) - expected, 0)


def with_torch(path: str) -> None:
    """PyTorch on the CPU, all cores, float32, one sample at a time."""
    import torch

    stack = torch.from_numpy(np.load(path))
    mean = torch.zeros(stack.shape[1:])
    expected = torch.zeros(stack.shape[2:])
    for sample in stack:
        p = sample.float()
        mean += p
        expected += torch.special.entr(p).sum(dim=0)
    mean /= len(stack)
    expected /= len(stack)
    mean.max(dim=0)
    (torch.special.entr(mean).sum(dim=0) - expected).clamp_min(0)


def _in_memory(path: str) -> np.ndarray:
    if path not in _LOADED:
        _LOADED[path] = np.load(path)
    return _LOADED[path]


_LOADED: dict[str, np.ndarray] = {}


def with_uqeval(path: str, workers: int) -> None:
    """uqeval's kernels on a stack in memory, rows shared among threads."""
    from uqeval.maps import reduce_array

    stack = _in_memory(path)
    rows = np.array_split(np.arange(stack.shape[2]), workers)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda r: reduce_array(stack[:, :, r[0] : r[-1] + 1], MAPS), rows))


def numpy_in_memory(path: str) -> None:
    """`with_numpy` without reading the file."""
    p = _in_memory(path).astype(np.float64)
    mean = p.mean(axis=0)
    mean.argmax(axis=0), mean.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(mean * np.log(mean), axis=0)
        expected = -np.nansum(p * np.log(p), axis=1).mean(axis=0)
    np.maximum(entropy - expected, 0)


def _source(path: str) -> Any:
    from uqeval.inputs import InputOptions, open_inputs

    source = open_inputs(path, None, InputOptions()).source
    source.want(["label", "prediction", "entropy"])
    return source


def read_alone(path: str, workers: int) -> None:
    """Decode every chunk once and touch each page of what comes."""
    source = _source(path)

    def read(item: int) -> int:
        total = 0
        for box in source.stack.boxes(item):
            for tile in source.stack.tiles(range(item, item + 1), box):
                total += int(tile.values.reshape(-1)[::2048].view(np.uint16).sum())
        return total

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(read, range(source.items)))


def kernel_alone(path: str, items: int, workers: int) -> None:
    """The maps of `items` stacks that are in memory already."""
    from uqeval.maps import reduce_array

    stack = _in_memory(path)

    def reduce(_: int) -> None:
        for first in range(0, stack.shape[2], 8):
            reduce_array(np.ascontiguousarray(stack[:, :, first : first + 8]), ["entropy"])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(reduce, range(items)))


def evaluate(path: str, workers: int) -> None:
    """All of `uqeval pavpu`, in this process."""
    import uqeval

    uqeval.evaluate(path, workers=workers)


def write_store(folder: Path, name: str, stack: np.ndarray, label: np.ndarray, items: int) -> str:
    """A store of `items` shifted copies of one stack."""
    import zarr

    path = folder / f"{name}-{items}.zarr"
    if path.exists():
        return str(path)
    codecs = {
        "raw": None,
        "zstd": zarr.codecs.ZstdCodec(level=0),
        "lz4": zarr.codecs.BloscCodec(cname="lz4", clevel=1, shuffle="shuffle"),
    }
    group = zarr.open_group(str(path), mode="w")
    samples, classes, height, width = stack.shape
    probs = group.create_array(
        "probs", shape=(items, *stack.shape), chunks=(1, samples, classes, 8, width), dtype="f2",
        compressors=codecs[name], fill_value=float("nan"),
    )  # fmt: skip
    labels = group.create_array(
        "labels", shape=(items, height, width), chunks=(1, height, width), dtype="u1",
        fill_value=255, config={"write_empty_chunks": True},
    )  # fmt: skip
    for i in range(items):
        probs[i] = np.roll(stack, 37 * i, axis=3)
        labels[i] = np.roll(label, 37 * i, axis=1)
    return str(path)


def command(path: str, workers: int) -> tuple[float, float]:
    """Median seconds and peak MB of the whole command as a user runs it, start-up included."""
    times, peak = [], 0.0
    script = (
        "import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True,"
        "stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss/1024)"
    )
    for _ in range(3):
        began = time.perf_counter()
        out = subprocess.run(
            [sys.executable, "-c", script, sys.executable, "-m", "uqeval", "pavpu", path,
             "--workers", str(workers)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        times.append(time.perf_counter() - began)
        peak = float(out.stdout)
    return sorted(times)[1], peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the pixels")
    options = parser.parse_args()
    height, width = (128, 256) if options.quick else (512, 1024)
    folder = options.folder / f"{height}x{width}"
    stack = cached(folder, "stack", lambda: softmax_stack(20, 19, height, width))
    label = cached(folder, "label", lambda: labels_for(stack))
    path, cpus = str(folder / "stack.npy"), usable_cpus()
    nbytes = stack.nbytes

    print(f"maps of 20×19×{height}×{width} float16 ({nbytes / 1e6:.0f} MB), {cpus} CPUs")
    base, peak = measure(numpy_in_memory, path)
    row("NumPy, float64, in memory", base, peak, base, nbytes)
    seconds, peak = measure(with_numpy_float32, path)
    row("NumPy, float32, a sample at a time", seconds, peak, base, nbytes)
    if importlib.util.find_spec("torch"):
        seconds, peak = measure(with_torch, path)
        row("PyTorch CPU, float32, a sample at a time", seconds, peak, base, nbytes)
    for workers in sorted({1, cpus}):
        seconds, peak = measure(with_uqeval, path, workers)
        row(f"uqeval, {workers} threads", seconds, peak, base, nbytes)

    print(f"\nuqeval pavpu on {options.items} items, {cpus} workers; x: of reading + kernel")
    kernel, peak = measure(kernel_alone, path, options.items, cpus)
    total = nbytes * options.items
    row("kernel alone, in memory", kernel, peak, kernel, total)
    for name in ("raw", "lz4", "zstd"):
        store = write_store(folder, name, stack, label, options.items)
        read, peak = measure(read_alone, store, cpus)
        row(f"{name}: reading alone", read, peak, read + kernel, total)
        seconds, peak = measure(evaluate, store, cpus)
        row(f"{name}: evaluate, all of it", seconds, peak, read + kernel, total)
        seconds, peak = command(store, cpus)
        row(f"{name}: the command, with start-up", seconds, peak, read + kernel, total)


if __name__ == "__main__":
    main()
