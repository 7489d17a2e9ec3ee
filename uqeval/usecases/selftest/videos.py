"""Videos whose temporal consistency is known from geometry (flow on frame t's grid, to t-1)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.selftest.record import Checks

Pair = tuple[Any, Any, Any]


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group."""
    for name, work in (
        ("split", _split), ("square", _square), ("zoom", _zoom), ("rounding", _rounding),
        ("still", _still), ("unknown", _unknown), ("classes", _classes),
        ("estimators", _estimators), ("tracks", _tracks),
    ):  # fmt: skip
        checks.run(name, partial(work, checks, folder))


def tc(folder: Path, ids: Any, saved: Any, frames: Any = None, **settings: Any) -> Any:
    """Return the report of `uqeval tc` on ids [t, y, x] with stored or estimated flow."""
    ids = np.asarray(ids, np.uint8)
    images = np.zeros((*ids.shape, 3), np.uint8) if frames is None else frames
    stored = {"frames": images, "predictions": ids}
    for name, values in saved.items():
        stored[name] = np.asarray(values, np.float32)
    path = folder / "known.npz"
    np.savez(path, **stored)
    families = {"tc": {"flow": "file"} | settings}
    return uqeval.evaluate(None, metrics=families, video=str(path), workers=1)


def _flow(shape: tuple[int, ...], dx: float = 0.0, dy: float = 0.0) -> Any:
    flow = np.zeros((1, *shape, 2))
    flow[..., 0], flow[..., 1] = dx, dy
    return flow


def _split(checks: Checks, folder: Path) -> None:
    x = np.broadcast_to(np.arange(100), (10, 100))
    ids = [x >= 50, x >= 55]
    for dx, expected, description in (
        (-5, (1.0, 0.95), "right"), (5, (0.8090909090909091, 0.95), "the wrong way round"),
    ):  # fmt: skip
        results = tc(folder, ids, {"flow": _flow((10, 100), dx)}).results["temporal"]
        values = [results["mtc"], results["coverage"]]
        checks.same(
            f"T1, an edge that moves, flow {description}: mTC, coverage", values, expected, 1e-12
        )
    checks.same("T1, without a warp", results["mtc_no_warp"], (50 / 55 + 45 / 50) / 2, 1e-12)


def _square(checks: Checks, folder: Path) -> None:
    before, current = np.zeros((2, 100, 100), int)
    before[40:60, 40:60], current[40:60, 45:65] = 1, 1
    flow, forward = np.zeros((2, 1, 100, 100, 2))
    flow[0, current == 1, 0], forward[0, before == 1, 0] = -5, 5
    flows = {"flow": flow, "flow_forward": forward}
    results = tc(folder, [before, current], flows, occlusion="fb").results["temporal"]
    checks.same(
        "T2, a square before a background", results["mtc"], (400 / 500 + 9500 / 9600) / 2, 1e-12
    )
    visible = [results["occluded"]["mtc"], results["occluded"]["coverage"]]
    checks.same("T2, without the 100 occluded pixels", visible, [1.0, 0.99], 1e-12)
    checks.same("T2, without a warp", results["mtc_no_warp"], 0.7896907216494846, 1e-12)
    results = tc(folder, [before, current], {"flow": -flow}).results["temporal"]
    checks.same(
        "T2, flow the wrong way round", results["mtc"], (200 / 500 + 9500 / 9800) / 2, 1e-12
    )


def _zoom(checks: Checks, folder: Path) -> None:
    y, x = np.mgrid[:201, :201] - 100
    radius = np.maximum(abs(x), abs(y))
    flow = -np.stack([x, y], axis=-1)[None] * (1 - 1 / 1.25)
    results = tc(folder, [radius <= 40, radius <= 50], {"flow": flow}).results["temporal"]
    checks.same("T3, zoom of 1.25 into a square", results["mtc"], 1.0, 1e-12)
    checks.same("T3, without a warp", results["mtc_no_warp"], 0.7678036, 1e-6)
    ring = [(r <= b) & (r >= a) for r, a, b in ((radius, 60, 64), (radius, 75, 80))]
    results = tc(folder, ring, {"flow": flow}).results["temporal"]
    checks.same("T4, zoom of 1.25 into a thin ring", results["mtc"], 1.0, 1e-12)


def _rounding(checks: Checks, folder: Path) -> None:
    ramp = np.arange(8)[None]
    for dx, current, description, share in (
        (0.5, [[1, 2, 3, 4, 5, 6, 7, 7]], "up", 7 / 8),
        (-0.5, ramp, "down", 1),
    ):
        results = tc(folder, [ramp, current], {"flow": _flow((1, 8), dx)}).results["temporal"]
        values = [results["mtc"], results["coverage"]]
        checks.same(
            f"T5, halves are rounded by floor(x + ½), {description}", values, [1.0, share], 1e-12
        )
    edge = np.where(np.arange(12) < 6, 0, 18)[None].repeat(4, axis=0)
    results = tc(folder, [edge, edge], {"flow": _flow((4, 12), 0.5)}).items[0]["temporal"]
    checks.same("T7, no third id appears between two", sorted(results["iou"]), ["0", "18"])


def _still(checks: Checks, folder: Path) -> None:
    for height, width in ((8, 12), (9, 7)):
        ids = synthetic_data.integers("still", (height, width), 3)
        results = tc(folder, [ids, ids], {"flow": _flow((height, width))}).results["temporal"]
        values = [results["mtc"], results["coverage"], results["pixel_agreement"]]
        checks.same(f"T6, nothing moves, {height}×{width}", values, [1.0, 1.0, 1.0])
    results = tc(folder, np.zeros((5, 8, 8)), {"flow": np.zeros((4, 8, 8, 2))}).results["temporal"]
    checks.same("T11, one class everywhere", results["mtc"], 1.0)


def _unknown(checks: Checks, folder: Path) -> None:
    ids = synthetic_data.integers("unknown", (10, 10), 3)
    flow = _flow((10, 10))
    flow[0, 0, :5], flow[0, 1, :5] = np.nan, 2e9
    results = tc(folder, [ids, ids], {"flow": flow}).results["temporal"]
    checks.same(
        "T8, pixels of unknown flow leave the counts",
        [results["mtc"], results["coverage"]],
        [1.0, 0.9],
        1e-12,
    )


def _classes(checks: Checks, folder: Path) -> None:
    before, current = np.zeros((2, 10, 10), int)
    before[0] = 2
    results = tc(folder, [before, current], {"flow": _flow((10, 10))}).items[0]["temporal"]
    checks.same(
        "T10, a class of one map only counts as 0",
        [results["tc"], results["classes"]],
        [0.9 / 2, 2],
        1e-12,
    )


def _estimators(checks: Checks, folder: Path) -> None:
    import cv2

    noise = synthetic_data.integers("texture", (160, 200), 256).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 2.0)
    span = smooth.max() - smooth.min()
    image = ((smooth - smooth.min()) / span * 255).astype(np.uint8)
    ids = (
        synthetic_data.integers("areas", (10, 13), 4)
        .repeat(16, axis=0)
        .repeat(16, axis=1)[:160, :200]
    )
    # The scene moves by (+7, +3): what is at p now was at p - (7, 3).
    views = [(slice(13, 141), slice(17, 177)), (slice(10, 138), slice(10, 170))]
    frames = np.stack([np.repeat(image[view][..., None], 3, axis=-1) for view in views])
    for method in ("dis", "farneback"):
        results = tc(folder, [ids[view] for view in views], {}, frames, flow=method).results[
            "temporal"
        ]
        good = results["mtc"] > 0.95 and results["mse_warp"] < results["mse_identity"]
        checks.add(f"T9, {method} finds a shift of (7, 3)", good, f"mTC {results['mtc']}", 2)


def _tracks(checks: Checks, folder: Path) -> None:
    ids = np.zeros((5, 64, 64), int)
    zero = np.zeros((4, 64, 64, 2))
    options = {"tracks": True, "track_everywhere": True}
    for block, expected in ((False, 1.0), (True, 45 / 49)):
        if block:
            ids[2, 16:32, 16:32] = 1
        results = tc(folder, ids, {"flow": zero, "flow_forward": zero}, **options).results[
            "temporal"
        ]
        values = [results["tracks"]["tracks"], results["tracks"]["consistency"]]
        description = "a block that flickers" if block else "constant ids"
        checks.same(f"C26 of {description}: 49 tracks", values, [49, expected], 1e-12)
