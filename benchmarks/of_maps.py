"""Maps and patches of arrays in memory: uqeval beside NumPy and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Case, Setup, labels_for, of, softmax_stack

MAPS = ["confidence", "entropy", "expected_entropy", "mutual_information"]
#: The least normal number of float16.
NORMAL = np.float16(2.0**-14)
_BLOCK = 2048
_LOADED: dict[str, np.ndarray] = {}


def loaded(path: str) -> np.ndarray:
    """An array that is read on the first call."""
    if path not in _LOADED:
        _LOADED[path] = np.load(path)
    return _LOADED[path]


def _make_stack(folder: Path, height: int, width: int) -> None:
    stack = softmax_stack(10, 19, height, width)
    np.save(folder / "stack.npy", stack)
    label = labels_for(stack)
    mean = stack.astype(np.float32).mean(axis=0)
    maps = {"label": label, "prediction": mean.argmax(axis=0).astype(np.uint8)}
    maps["entropy"] = -(mean * np.log(mean + np.float32(1e-12))).sum(axis=0)
    for name, values in maps.items():
        np.save(folder / f"{name}.npy", values)


def _numpy(path: str) -> None:
    """As a simple script does it: float64 means and entropies of the whole stack at once."""
    p = loaded(path).astype(np.float64)
    mean = p.mean(axis=0)
    mean.argmax(axis=0), mean.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(mean * np.log(mean), axis=0)
        expected = -np.nansum(p * np.log(p), axis=1).mean(axis=0)
    np.maximum(entropy - expected, 0)


def _numpy_float32(path: str) -> None:
    """As a careful script does it: float32, one sample at a time."""
    stack = loaded(path)
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


def _torch(path: str, threads: int) -> None:
    """PyTorch on the CPU, float32, one sample at a time."""
    import torch

    torch.set_num_threads(threads)
    stack = torch.from_numpy(loaded(path))
    mean, expected = torch.zeros(stack.shape[1:]), torch.zeros(stack.shape[2:])
    for sample in stack:
        p = sample.float()
        mean += p
        expected += torch.special.entr(p).sum(dim=0)
    mean /= len(stack)
    expected /= len(stack)
    mean.max(dim=0)
    (torch.special.entr(mean).sum(dim=0) - expected).clamp_min(0)


def _uqeval(path: str, workers: int) -> None:
    from uqeval.maps.reduction import reduce_array

    stack = loaded(path)
    rows = np.array_split(np.arange(stack.shape[2]), workers)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda r: reduce_array(stack[:, :, r[0] : r[-1] + 1], MAPS), rows))


def maps(setup: Setup) -> Iterator[Case]:
    """One item of 10 samples, 19 classes, 512×1024 float16: mean, prediction and entropies."""
    folder = setup.make("maps", _make_stack, setup.size(512, 16), setup.size(1024, 32))
    path = str(folder / "stack.npy")
    yield Case("NumPy, float64", _numpy, (path,), yardstick=True)
    yield Case("NumPy, float32, a sample at a time", _numpy_float32, (path,))
    for workers in sorted({1, setup.workers}):
        yield Case(f"PyTorch CPU, {of(workers, 'thread')}", _torch, (path, workers), needs="torch")
        yield Case(f"uqeval, {of(workers, 'thread')}", _uqeval, (path, workers))


def _make_shares(folder: Path, height: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(19), (10, height, 64)).astype(np.float32)
    p = np.moveaxis(np.repeat(p, 16, axis=2), -1, 1)
    stack = np.maximum(p, np.float32(NORMAL)).astype(np.float16)
    order = rng.random(stack.shape, dtype=np.float32)
    for percent in (0, 10, 50):
        chosen = order < percent / 100
        stack[chosen] = rng.uniform(0, NORMAL, int(chosen.sum())).astype(np.float16)
        np.save(folder / f"{percent}.npy", stack)


def _first_item(folder: Path, store: str) -> None:
    """Save the samples [sample, class, y, x] of the first item of a store."""
    from uqeval.stores.store import open_store

    part = open_store(store, role="predictions").arrays["probs"][0]
    region = tuple(
        slice(0, 1) if axis == "item" else slice(0, size)
        for axis, size in zip(part.array.axes, part.array.shape, strict=True)
    )
    np.save(folder / "item.npy", part.array.read(region)[0])


def _convert(path: str) -> None:
    loaded(path).astype(np.float32)


def _added(path: str, entropies: bool) -> None:
    """Add all samples block by block, on one thread."""
    from uqeval.kernels.samples import add_samples
    from uqeval.maps.reduction import kernel_view

    tile = kernel_view(loaded(path))
    classes = tile.shape[1]
    sums, totals = np.zeros((classes, _BLOCK), np.int32), np.zeros((1, _BLOCK), np.int32)
    extremes = np.array([2**30, -(2**30)], np.int32)
    plogp = np.zeros(_BLOCK, np.int64) if entropies else None
    terms = np.zeros(_BLOCK, np.int32) if entropies else None
    for start in range(0, tile.shape[2], _BLOCK):
        stop = min(start + _BLOCK, tile.shape[2])
        sums[...] = 0
        add_samples(tile, start, stop, 0, 0, 0, 1.0, sums, totals, extremes, terms, plogp)


def _adding(name: str, path: Path) -> Iterator[Case]:
    values = np.load(path, mmap_mode="r")
    share = np.mean((values > 0) & (values < NORMAL))
    title = f"{name}, {share:.0%} subnormal, {values.nbytes / 1e6:.0f} MB"
    yield Case(f"{title}: astype(float32)", _convert, (str(path),), yardstick=True)
    yield Case(f"{title}: sums", _added, (str(path), False))
    yield Case(f"{title}: sums and entropies", _added, (str(path), True))


def subnormal(setup: Setup) -> Iterator[Case]:
    """Adding float16 samples on one thread, by the share of subnormal numbers."""
    folder = setup.make("shares", _make_shares, setup.size(256, 4))
    for percent in (0, 10, 50):
        yield from _adding("made", folder / f"{percent}.npy")
    for i, store in enumerate(setup.predictions):
        folder = setup.make(f"real-{i}-{Path(store).name}", _first_item, store)
        if np.load(folder / "item.npy", mmap_mode="r").dtype == np.float16:
            yield from _adding(Path(store).name, folder / "item.npy")


def _maps_of(folder: str) -> dict[str, np.ndarray]:
    return {name: loaded(f"{folder}/{name}.npy") for name in ("label", "prediction", "entropy")}


def _count(accurate: Any, mean: Any, kept: Any, thresholds: int) -> None:
    for t in np.linspace(0, 2, thresholds):
        uncertain = mean > np.float32(t).item()
        for a in (accurate, ~accurate):
            for u in (uncertain, ~uncertain):
                (a & u & kept).sum()


def _numpy_patches(folder: str, window: int, stride: int, thresholds: int) -> None:
    """Sliding views and means, float64; one more pass over the patches for each threshold."""
    own = _maps_of(folder)
    known = own["label"] != 255
    right = (own["prediction"] == own["label"]) & known
    uncertainty = np.where(known, own["entropy"], 0).astype(np.float64)

    def sums(values: np.ndarray) -> np.ndarray:
        views = np.lib.stride_tricks.sliding_window_view(values, (window, window))
        return views[::stride, ::stride].sum(axis=(2, 3), dtype=np.float64)

    valid = sums(known)
    with np.errstate(invalid="ignore", divide="ignore"):
        accurate = sums(right) / valid > 0.5
        mean = (sums(uncertainty) / valid).astype(np.float32)
    _count(accurate, mean, valid > 0, thresholds)


def _torch_patches(folder: str, window: int, stride: int, thresholds: int) -> None:
    """Average pooling in float32, all cores; one more pass over the patches for each threshold."""
    import torch

    own = _maps_of(folder)
    known = torch.from_numpy(own["label"] != 255).float()[None, None]
    right = torch.from_numpy(own["prediction"] == own["label"]).float()[None, None] * known
    uncertainty = torch.from_numpy(own["entropy"])[None, None] * known
    pool = torch.nn.AvgPool2d(window, stride)
    valid = pool(known)
    _count(pool(right) / valid > 0.5, pool(uncertainty) / valid, valid > 0, thresholds)


def _uqeval_patches(folder: str, window: int, stride: int) -> None:
    """Everything that `uqeval pavpu` counts of patches, one thread."""
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.patches import PatchCounts, Patches

    tally = Patches(Uncertainty("entropy"), 19, window, stride)
    PatchCounts(tally, (0.5,), ((0.0, 2.0),)).state_of(_maps_of(folder))


def patches(setup: Setup) -> Iterator[Case]:
    """Patches of one item 512×1024; uqeval also has categories, ties and 2 × 101 thresholds."""
    folder = str(setup.make("maps", _make_stack, setup.size(512, 16), setup.size(1024, 32)))
    for window, stride in ((8, 8), (8, 2)):
        way = (folder, window, stride)
        title = f"window {window}, stride {stride}"
        yield Case(f"{title}: NumPy, 1 threshold", _numpy_patches, (*way, 1), yardstick=True)
        yield Case(f"{title}: NumPy, 101 thresholds", _numpy_patches, (*way, 101))
        yield Case(f"{title}: PyTorch, 101 thresholds", _torch_patches, (*way, 101), needs="torch")
        yield Case(f"{title}: uqeval, 101 + 101 thresholds", _uqeval_patches, way)
