"""Whole evaluations of stores: beside reading alone, and beside the same work by hand."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Case, Setup, evaluate, labels_for, of, softmax_stack

CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
NUMBERS = ("regression", "nmerci", "sparsification")
_BINS = 15


def _make_classes(folder: Path, items: int, height: int, width: int) -> None:
    """Softmax stacks 10×19 in float16, as zstd and uncompressed."""
    import zarr

    stack = softmax_stack(10, 19, height, width)
    for name, compressors in (("zstd", "auto"), ("raw", None)):
        group = zarr.open_group(folder / f"{name}.zarr", mode="w")
        probs = group.create_array(
            "probs", shape=(items, *stack.shape), chunks=(1, 5, 19, height, width), dtype="f2",
            compressors=compressors,
        )  # fmt: skip
        labels = group.create_array(
            "labels", shape=(items, height, width), chunks=(1, height, width), dtype="u1"
        )
        for i in range(items):
            probs[i], labels[i] = np.roll(stack, 37 * i, axis=3), labels_for(stack, i)


def _make_numbers(folder: Path, items: int, height: int, width: int) -> None:
    """Mean, std and target in float32."""
    import zarr

    rng = np.random.default_rng(0)
    group = zarr.open_group(folder / "numbers.zarr", mode="w")
    std = rng.gamma(2.0, 0.5, (height, width)).astype(np.float32) + np.float32(0.01)
    target = rng.uniform(2, 80, std.shape).astype(np.float32)
    mean = target + rng.standard_t(4, std.shape).astype(np.float32) * np.sqrt(std)
    for name, values in (("mean", mean), ("std", std), ("target", target)):
        array = group.create_array(
            name, shape=(items, *std.shape), chunks=(1, *std.shape), dtype="f4"
        )
        for i in range(items):
            array[i] = values


def _read(store: str, labels: str | None, families: tuple[str, ...], workers: int) -> None:
    """Make the maps that the evaluation asks for, once, and drop them."""
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.plans import evaluations_of

    inputs = open_inputs(store, labels, InputOptions())
    source = inputs.source
    plan: dict[str, dict[str, Any]] = {family: {} for family in families}
    source.want(sorted(evaluations_of(inputs.info(), plan)[1]))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda batch: bool(source.read(batch)), source.batches()))


def _beside_reading(store: Path, families: tuple[str, ...], workers: int) -> Iterator[Case]:
    for family in families:
        way = (str(store), None, (family,), workers)
        yield Case(f"{store.stem}: reading for {family}", _read, way, yardstick=True)
        yield Case(f"{store.stem}: {family}", evaluate, way)


def large_stores(setup: Setup) -> tuple[Path, Path]:
    """Return folders of stores of classes and of numbers, made where they are missing."""
    large = (setup.size(512, 32), setup.size(1024, 32))
    classes = setup.make("classes", _make_classes, setup.size(6, 2), *large)
    numbers = setup.make("numbers", _make_numbers, setup.size(12, 2), *(2 * n for n in large))
    return classes, numbers


def reading(setup: Setup) -> Iterator[Case]:
    """A family beside reading its maps: 6 items 10×19×512×1024 float16, 12 of 1024×2048 numbers."""
    classes, numbers = large_stores(setup)
    yield from _beside_reading(classes / "zstd.zarr", CLASSES, setup.workers)
    yield from _beside_reading(numbers / "numbers.zarr", NUMBERS, setup.workers)
    for store in setup.predictions:
        labels = Path(store).parent / "labels"
        way = (store, str(labels) if labels.is_dir() else None, ("pavpu",), setup.workers)
        yield Case(f"{Path(store).name}: reading for pavpu", _read, way, yardstick=True)
        yield Case(f"{Path(store).name}: pavpu", evaluate, way)


def workers(setup: Setup) -> Iterator[Case]:
    """Two workers over one, start-up not included."""
    classes, numbers = large_stores(setup)
    stores = [(classes / f"{name}.zarr", ("pavpu",)) for name in ("zstd", "raw")]
    stores += [(classes / "zstd.zarr", (name,)) for name in ("failure", "sparsification")]
    stores += [(numbers / "numbers.zarr", ("nmerci",))]
    for store, families in stores:
        title = f"{store.stem}, {families[0]}"
        yield Case(f"{title}: 1 worker", evaluate, (str(store), None, families, 1), yardstick=True)
        yield Case(f"{title}: 2 workers", evaluate, (str(store), None, families, 2))


def _items_of(store: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    import zarr

    group = zarr.open_group(store, mode="r")
    for i in range(group["probs"].shape[0]):
        yield group["probs"][i], group["labels"][i]


def _torch(store: str) -> None:
    """Confusion and mean entropy of right and wrong pixels, an item at a time."""
    import torch

    confusion = torch.zeros(19 * 19, dtype=torch.int64)
    for p, y in _items_of(store):
        mean = torch.from_numpy(p).float().mean(dim=0)
        label = torch.from_numpy(y).long()
        prediction = mean.argmax(dim=0)
        entropy = torch.special.entr(mean).sum(dim=0)
        known = label != 255
        confusion += torch.bincount(label[known] * 19 + prediction[known], minlength=19 * 19)
        entropy[known & (label == prediction)].mean()


def _torchmetrics(store: str, calibrated: bool) -> None:
    """MulticlassConfusionMatrix, or MulticlassCalibrationError, updated by item."""
    import torch
    from torchmetrics.classification import MulticlassCalibrationError, MulticlassConfusionMatrix

    metric: Any = MulticlassConfusionMatrix(19, ignore_index=255)
    if calibrated:
        metric = MulticlassCalibrationError(19, _BINS, ignore_index=255)
    for p, y in _items_of(store):
        mean = torch.from_numpy(p).float().mean(dim=0)
        metric.update(mean[None], torch.from_numpy(y)[None].long())
    metric.compute()


def _dask(store: str) -> None:
    """Confusion and mean entropy of right and wrong pixels, by hand, on Dask's threads."""
    import dask
    import dask.array as da

    probs = da.from_zarr(store, component="probs")
    label = da.from_zarr(store, component="labels")
    mean = probs.astype(np.float32).mean(axis=1)
    prediction = mean.argmax(axis=1)
    entropy = -(mean * da.log(mean + np.float32(1e-12))).sum(axis=1)
    known = label != 255
    code = da.where(known, label.astype(np.int64) * 19 + prediction, 19 * 19)
    confusion = da.bincount(code.ravel(), minlength=19 * 19 + 1)
    right = known & (label == prediction)
    dask.compute(confusion, da.where(right, entropy, 0).sum(), right.sum())


def peers(setup: Setup) -> Iterator[Case]:
    """The same store by hand, files included: mean, confusion, entropy or calibration error."""
    large = (setup.size(512, 32), setup.size(1024, 32))
    folder = setup.make("classes", _make_classes, setup.size(6, 2), *large)
    for name in ("raw", "zstd"):
        store = str(folder / f"{name}.zarr")
        for workers in sorted({1, setup.workers}):
            yield Case(
                f"{name}: uqeval, segmentation and failure, {of(workers, 'worker')}", evaluate,
                (store, None, ("segmentation", "failure"), workers), yardstick=workers == 1,
            )  # fmt: skip
        way = (store, None, ("calibration",), setup.workers)
        yield Case(f"{name}: uqeval, calibration, {of(setup.workers, 'worker')}", evaluate, way)
        yield Case(f"{name}: PyTorch by hand", _torch, (store,), needs="torch")
        for is_calibrated, what in ((False, "confusion"), (True, "calibration error")):
            yield Case(
                f"{name}: torchmetrics, {what}", _torchmetrics, (store, is_calibrated),
                needs="torchmetrics",
            )  # fmt: skip
        yield Case(f"{name}: Dask by hand", _dask, (store,), needs="dask")


def _make_small(folder: Path, items: int, side: int, classes: int, samples: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, classes, (items, side, side)).astype(np.uint8)
    z = rng.normal(size=(items, samples, classes, side, side)).astype(np.float32)
    # One in ten is wrong, or no temperature would be the best.
    other = rng.integers(0, classes, truth.shape).astype(np.uint8)
    likeliest = np.where(rng.random(truth.shape) < 0.1, other, truth)[:, None, None]
    np.put_along_axis(z, likeliest.astype(np.int64).repeat(samples, 1), 3.0, axis=2)
    p = np.exp(z)
    np.save(folder / "probs.npy", (p / p.sum(2, keepdims=True)).astype(np.float16))
    np.save(folder / "labels.npy", truth)


def small(setup: Setup) -> Iterator[Case]:
    """1,000 items of 64×64, 5 samples of 10 classes: per item, seconds are milliseconds."""
    folder = setup.make("small", _make_small, setup.size(1000, 4), setup.size(64, 8), 10, 5)
    paths = (str(folder / "probs.npy"), str(folder / "labels.npy"))
    for family in ("pavpu", "calibration", "failure"):
        for workers in (1, 2):
            way = (*paths, family, workers, None)
            title = f"{family}, {of(workers, 'worker')}"
            yield Case(title, _evaluate_with, way, yardstick=workers == 1)


def _evaluate_with(probs: str, labels: str, family: str, workers: int, ci: float | None) -> None:
    import uqeval

    axes = "NTCHW" if np.load(probs, mmap_mode="r").ndim == 5 else "NCHW"
    options: dict[str, Any] = {} if ci is None else {"ci": ci}
    uqeval.evaluate(probs, labels, [family], axes=axes, workers=workers, **options)


def _sklearn(probs: str, labels: str, calibrated: bool) -> None:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import average_precision_score, roc_auc_score

    p = np.load(probs).astype(np.float64)[:, 0, :, 0, 0]
    y = np.load(labels).ravel()
    is_right = p.argmax(axis=1) == y
    if calibrated:
        calibration_curve(is_right, np.minimum(p.max(axis=1), 1), n_bins=_BINS)
        return
    entropy = -(p * np.log(p + 1e-12)).sum(axis=1)
    roc_auc_score(~is_right, entropy), average_precision_score(~is_right, entropy)


def pixels(setup: Setup) -> Iterator[Case]:
    """10,000 items of one pixel and 10 classes, such as an image classifier's; or a million."""
    for count in (10_000, 1_000_000)[: 2 if setup.million else 1]:
        folder = setup.make(f"pixels-{count}", _make_small, setup.size(count, 50), 1, 10, 1)
        paths = (str(folder / "probs.npy"), str(folder / "labels.npy"))
        for family, ci in (("failure", None), ("calibration", 0.95)):
            title = f"{count:,}: {{}}, {family}"
            yield Case(
                title.format("scikit-learn"), _sklearn, (*paths, ci is not None),
                needs="sklearn", yardstick=True,
            )  # fmt: skip
            yield Case(
                title.format("uqeval") + (" --ci" if ci else ""), _evaluate_with,
                (*paths, family, setup.workers, ci), warm=not (setup.million and count > 10_000),
            )  # fmt: skip
