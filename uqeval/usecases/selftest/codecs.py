"""Check that stores and files are read back as written, to the bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.errors import StoreError
from uqeval.stores.planes import Planes
from uqeval.stores.zarr.by_library import read_array, write_array
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.selftest.record import Checks

_EVERYTHING = (slice(None),) * 4


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group."""
    values = synthetic_data.uniform("codecs", (3, 4, 9, 11)) + 1
    for dtype in ("float16", "float32", "float64", "uint8", "uint16", "int32", "bool"):
        data = (values * 100).astype(dtype) if dtype != "bool" else values > 1.001
        name = f"Zarr v3, zstd, {dtype}"
        checks.run(name, partial(_zarr, checks, name, folder, data, 3, "zstd"))
    for form, kinds in (
        (3, ("none", "gzip", "blosc", "crc32c")),
        (2, ("none", "zlib", "lz4", "blosc")),
    ):
        for kind in kinds:
            name = f"Zarr v{form}, {kind}, float32"
            data = values.astype(np.float32)
            checks.run(name, partial(_zarr, checks, name, folder, data, form, kind))
    checks.run("writer", lambda: _writer(checks, folder))
    checks.run("arrays", lambda: _arrays(checks, folder))
    checks.run("labels", lambda: _labels(checks, folder))
    checks.run("flow", lambda: _flow(checks, folder))
    checks.run("damage", lambda: _damage(checks, folder))


def _zarr(
    checks: Checks, name: str, folder: Path, data: Any, form: int, kind: str
) -> None:  # fmt: skip
    """Write by the Zarr library, read by uqeval."""
    from uqeval.stores.zarr.group import open_zarr

    path = folder / f"{name.replace(' ', '-').replace(',', '')}.zarr"
    write_array(path, data, (2, 3, 4, 11), kind, form)
    stored: Any = open_zarr(str(path))
    values = stored.read(_EVERYTHING)
    is_same = values.dtype == data.dtype and np.array_equal(values, data)
    checks.add(name, is_same, "other values were read than were written", data.size)


def _writer(checks: Checks, folder: Path) -> None:
    """Write by PredictionWriter, read by the Zarr library."""
    from uqeval.writer import PredictionWriter

    predictions = synthetic_data.classes("writer", items=2)
    path = folder / "writer.zarr"
    names = [str(name) for name in predictions["names"]]
    size = predictions["probs"].shape[-2:]
    with PredictionWriter(str(path), names=names, samples=3, classes=5, size=size) as writer:
        for name, stack in zip(names, predictions["probs"], strict=True):
            for t, sample in enumerate(stack):
                writer.add(name, sample, sample=t)
    values = read_array(path, "probs")
    checks.add(
        "PredictionWriter, read by zarr",
        np.array_equal(values, predictions["probs"]),
        "other values were read than were written",
        values.size,
    )


def _arrays(checks: Checks, folder: Path) -> None:
    from uqeval.stores.store import open_store

    for order in ("C", "F"):
        data = np.asarray(synthetic_data.uniform(f"npy {order}", (3, 4, 9, 11)), order=order)
        np.save(folder / f"{order}.npy", data)
        store = open_store(str(folder / f"{order}.npy"), role="predictions")
        values = next(iter(store.arrays.values()))[0].array.read(_EVERYTHING)
        checks.add(f".npy, order {order}", np.array_equal(values, data), "other values", data.size)
    for name, save in (("npz", np.savez), ("npz, compressed", np.savez_compressed)):
        path = folder / f"{name[-4:]}.npz"
        data = synthetic_data.uniform(name, (3, 9, 11))
        save(path, mean=data, std=data + 1, target=data)
        values = np.stack([
            item_array.array.read((slice(None),) * 3)[item_array.index]
            for item_array in open_store(str(path), role="predictions").arrays["std"]
        ])  # fmt: skip
        checks.add(f".{name}", np.array_equal(values, data + 1), "other values", data.size)


def _labels(checks: Checks, folder: Path) -> None:
    from PIL import Image

    from uqeval.stores.store import open_store

    for mode, dtype, below in (("8 bit", np.uint8, 256), ("16 bit", np.uint16, 65536)):
        labels_folder = folder / mode.replace(" ", "-")
        labels_folder.mkdir()
        data = synthetic_data.integers(f"labels {mode}", (2, 9, 11), below).astype(dtype)
        for name, plane in zip("ab", data, strict=True):
            Image.fromarray(plane).save(labels_folder / f"{name}.png")
        store = open_store(str(labels_folder), role="labels", names=("a", "b"))
        planes = Planes(store.arrays["labels"])
        is_same = all(np.array_equal(planes.read(i), data[i]) for i in range(2))
        checks.add(f"labels as PNG, {mode}", is_same, "other ids were read", data.size)


def _flow(checks: Checks, folder: Path) -> None:
    import cv2

    from uqeval.stores.video.flow_files import open_flows
    from uqeval.stores.video.sequences import sequences_of

    names = ("f_0", "f_1")
    pairs = sequences_of(names, 2, "frames").pairs
    data: Any = ((synthetic_data.uniform("flow", (9, 11, 2)) - 0.5) * 64).astype(np.float32)
    data = np.round(data * 64) / 64
    for kind in ("flo", "png", "npy"):
        flow_folder = folder / f"flow-{kind}"
        flow_folder.mkdir()
        path = str(flow_folder / f"f_1.{kind}")
        if kind == "flo":
            cv2.writeOpticalFlow(path, data)
        elif kind == "npy":
            np.save(path, data)
        else:
            stored = np.ones((9, 11, 3), np.uint16)
            stored[..., 2], stored[..., 1] = (data[..., i] * 64 + 2**15 for i in (0, 1))
            cv2.imwrite(path, stored)
        flow = open_flows(str(flow_folder), pairs, names, 2).read(0)
        checks.add(f"optical flow as .{kind}", np.array_equal(flow, data), "other flow", data.size)


def _damage(checks: Checks, folder: Path) -> None:
    """Check that a chunk that was changed on disk is refused."""
    from uqeval.stores.zarr.group import open_zarr

    path = folder / "damaged.zarr"
    data = synthetic_data.uniform("damage", (2, 3, 8, 8)).astype("f4")
    write_array(path, data, data.shape, "crc32c")
    (chunk,) = (file for file in (path / "c").rglob("*") if file.is_file())
    stored_bytes = bytearray(chunk.read_bytes())
    stored_bytes[len(stored_bytes) // 2] ^= 1
    chunk.write_bytes(bytes(stored_bytes))
    try:
        stored: Any = open_zarr(str(path))
        stored.read(_EVERYTHING)
        refused = False
    except StoreError:
        refused = True
    checks.add("a changed chunk is refused", refused, "it was read without an error")
