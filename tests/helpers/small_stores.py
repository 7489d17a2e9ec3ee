"""Small stores to run commands on: 3 items of 24×32 pixels, 4 samples, 5 classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from PIL import Image

N, T, C, H, W = 3, 4, 5, 24, 32
NAMES = ["aachen", "bonn", "celle"]
CLASS_NAMES = ["road", "car", "person", "sky", "tree"]
VOID = 255


def logits(items: int = N, seed: int = 0) -> np.ndarray:
    """float64 [item, sample, class, y, x]: blocks of one class each, less sure in some places."""
    rng = np.random.default_rng(seed)
    truth = np.kron(rng.integers(0, C, (items, H // 8, W // 8)), np.ones((8, 8), int))
    sure = np.kron(rng.uniform(0, 4, (items, H // 4, W // 4)), np.ones((4, 4)))
    means = np.eye(C)[truth].transpose(0, 3, 1, 2) * sure[:, None]
    return means[:, None] + rng.normal(0, 1, (items, T, C, H, W))


def probs(items: int = N, seed: int = 0, dtype: str = "f4") -> np.ndarray:
    """Probabilities [item, sample, class, y, x] of `logits`."""
    e = np.exp(logits(items, seed))
    return (e / e.sum(axis=2, keepdims=True)).astype(dtype)


def labels(items: int = N, seed: int = 0) -> np.ndarray:
    """uint8 [item, y, x]: the classes of `logits`' blocks moved by two pixels, a strip of void."""
    rng = np.random.default_rng(seed)
    truth = np.kron(rng.integers(0, C, (items, H // 8, W // 8)), np.ones((8, 8), int))
    truth = np.roll(truth, 2, axis=2)
    truth[:, :3] = VOID
    return truth.astype(np.uint8)


def equal_dice() -> dict[str, np.ndarray]:
    """Four items; the first two have the Dice 7/9, of 3/4, 5/6, 3/4 and of 1, 2/3, 2/3. A map `u`
    ranks the four."""
    pairs = [
        [(0, 0, 3), (1, 1, 5), (2, 2, 3), (0, 1, 1), (1, 2, 1), (2, 0, 1)],
        [(0, 0, 8), (1, 1, 2), (2, 2, 2), (1, 2, 1), (2, 1, 1)],
        [(0, 1, 14)],
        [(0, 0, 14)],
    ]  # label, prediction, pixels
    ids = np.array([np.repeat([own[:2] for own in item], [n for *_, n in item], 0)
                    for item in pairs])  # fmt: skip
    probs = np.moveaxis(np.eye(3, dtype=np.float32)[ids[..., 1]], 2, 1)[:, :, None]
    u = np.array([1, 2, 4, 0], np.float32)[:, None, None] * np.ones((4, 1, 14), np.float32)
    return {"probs": probs, "labels": ids[:, None, :, 0].astype(np.uint8), "u": u}


def save(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any] | None = None,
    together: int = 1,
    form: Any = 3,
    **options: Any,
) -> Path:
    """A Zarr group of `arrays`, a chunk for each so many items `together`, every chunk written."""
    known = dict(attributes or {})
    group = zarr.create_group(str(path), overwrite=True, attributes=known, zarr_format=form)
    options = {"config": {"write_empty_chunks": True}} | options
    for name, values in arrays.items():
        own = {"chunks": (together, *values.shape[1:])} | options
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, **own)
        array[...] = values
    return path


def save_predictions(path: Path, values: np.ndarray | None = None, **attributes: Any) -> Path:
    """`probs` alone, with names."""
    values = probs() if values is None else values
    names = {"names": NAMES} if len(values) == N else {}
    return save(path, {"probs": values}, names | attributes)


def save_complete(path: Path, **attributes: Any) -> Path:
    """`probs` and `labels`, names and class names."""
    known = {"names": NAMES, "class_names": CLASS_NAMES} | attributes
    return save(path, {"probs": probs(), "labels": labels()}, known)


def save_label_folder(
    path: Path, planes: np.ndarray | None = None, names: list[str] | None = None
) -> Path:
    """One PNG of class ids an item."""
    path.mkdir(parents=True)
    planes = labels() if planes is None else planes
    for name, plane in zip(NAMES if names is None else names, planes, strict=True):
        Image.fromarray(plane).save(path / f"{name}.png")
    return path
