"""Groups to test with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr
from command import refused

from uqeval.errors import StoreError
from uqeval.stores.array import Store
from uqeval.stores.store import open_store

N, T, C, H, W = 3, 2, 4, 6, 5


def probs(*shape: int) -> np.ndarray:
    return np.full(shape or (N, T, C, H, W), 1 / C, "f2")


def ids(*shape: int) -> np.ndarray:
    return np.ones(shape or (N, H, W), "u1")


def group(path: Path, arrays: dict[str, Any], *, form: int = 3, **attributes: Any) -> Path:
    root = zarr.create_group(str(path), zarr_format=form, attributes=attributes)
    for name, value in arrays.items():
        data, options = value if isinstance(value, tuple) else (value, {})
        array = root.create_array(name, shape=data.shape, dtype=data.dtype, **options)
        array[...] = data
    return path


def store_refused(path: Any, *words: str, **options: Any) -> None:
    wanted = {"role": "predictions"} | options
    refused(lambda: open_store(path, **wanted), *words, error=StoreError)


def axes(store: Store, kind: str) -> tuple[str, ...]:
    return store.arrays[kind][0].array.axes


def items(path: Path, sizes: dict[str, tuple[int, int]], **attributes: Any) -> Path:
    root = zarr.create_group(str(path), attributes=attributes)
    for name, (h, w) in sizes.items():
        item = root.create_group(f"items/{name}")
        for kind, data in {"probs": probs(T, C, h, w), "labels": ids(h, w)}.items():
            item.create_array(kind, shape=data.shape, dtype=data.dtype)[...] = data
    return path


SIZES = {"b": (4, 5), "a": (6, 7)}
