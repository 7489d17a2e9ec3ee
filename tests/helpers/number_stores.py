"""Small stores of predicted numbers: 3 items of 12×16 pixels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from scenes import zarr_group

NAMES = ["aachen", "bonn", "celle"]
SHAPE = (3, 12, 16)


def numbers(seed: int = 0, members: int = 0) -> dict[str, np.ndarray]:
    """`mean`, `std` (heavy-tailed errors, σ = 0 nowhere), `target` with NaN, `valid`."""
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.2, 2.0, SHAPE)
    target = rng.uniform(1, 40, SHAPE)
    mean = target + sigma * rng.standard_t(4, SHAPE)
    target[rng.random(SHAPE) < 0.1] = np.nan
    valid = rng.random(SHAPE) < 0.9
    if members:
        shift = rng.normal(0, 0.5, (SHAPE[0], members, *SHAPE[1:]))
        mean, sigma = mean[:, None] + shift, sigma[:, None] * rng.uniform(0.5, 1.5, shift.shape)
    return {"mean": mean.astype("f4"), "std": sigma.astype("f4"), "target": target.astype("f4"),
            "valid": valid}  # fmt: skip


def save(path: Path, arrays: dict[str, Any]) -> Path:
    """Save arrays as an .npz; return its path."""
    np.savez(path, **arrays)
    return path


def close(found: float | None, expected: float | None) -> bool:
    """Whether both are None, or equal to 1e-9."""
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)


def evaluated(arrays: dict[str, np.ndarray]) -> Any:
    """The mask of the pixels that are evaluated."""
    return np.isfinite(arrays["target"]) & arrays["valid"]


def with_target(path: Path, target: Any, **attributes: Any) -> Path:
    """A Zarr group of `mean`, `std` and a target with attributes."""
    arrays = {name: numbers()[name] for name in ("mean", "std")}
    return zarr_group(path, arrays | {"target": (target, {"attributes": attributes})})
