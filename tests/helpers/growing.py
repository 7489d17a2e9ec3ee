"""A store that grows or changes on disk, and the values of its report."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from small_stores import labels, probs, save

ITEMS, MORE = 4, 7


def names(count: int) -> list[str]:
    return [f"i{k}" for k in range(count)]


def arrays(kind: str, count: int) -> dict[str, np.ndarray]:
    if kind == "classes":
        return {"probs": probs(MORE)[:count], "labels": labels(MORE)[:count]}
    rng = np.random.default_rng(0)
    mean = rng.normal(10, 2, (MORE, 20, 30)).astype("f4")
    target = mean + rng.normal(0, 1, mean.shape).astype("f4")
    std = rng.uniform(0.5, 2, mean.shape).astype("f4")
    return {"mean": mean[:count], "std": std[:count], "target": target[:count]}


def store(path: Path, kind: str = "classes", count: int = ITEMS, **options: Any) -> Path:
    """Uncompressed chunks without a checksum: only the times of a file show a change."""
    raw = {"compressors": None, **options}
    return save(path, arrays(kind, count), {"names": names(count)}, **raw)


def grow(path: Path, kind: str = "classes", count: int = MORE) -> None:
    group = zarr.open_group(str(path), mode="r+")
    for name, values in arrays(kind, count).items():
        array: Any = group[name]
        before = array.shape[0]
        array.resize(values.shape)
        array[before:] = values[before:]
    group.attrs["names"] = names(count)


def change(path: Path) -> None:
    """Reverse the bytes of a file and restore its time, as `cp -p` does."""
    time.sleep(0.03)
    stat = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def reused(report: Any) -> int:
    found: int = report.timing["items_reused"]
    return found
