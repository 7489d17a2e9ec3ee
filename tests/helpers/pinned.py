"""Pin all numbers of reports of many cases on small data.

`python tests/helpers/pinned.py` writes `pins.json.xz`; do that only when a definition was changed
on purpose. The data come from integers and divisions alone: they have the same bits everywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from small_stores import save

import uqeval

PINS = Path(__file__).parents[1] / "golden" / "pins.json.xz"
NAMES = ["aachen_0", "aachen_1", "bonn_0", "bonn_1", "celle_0", "celle_1", "daun_0"]
CLASSES = ["road", "car", "person", "sky"]
N, T, C, H, W = len(NAMES), 4, len(CLASSES), 16, 24
SLICES = "name,city,light\n" + "".join(
    f"{name},{name.split('_')[0]},{'day' if k % 3 else 'night'}\n" for k, name in enumerate(NAMES)
)
#: Keys whose values are no numbers of a definition.
UNPINNED = {"timing", "uqeval_version", "states_digest", "fingerprint", "numpy", "versions",
            "checksum"}  # fmt: skip
#: Lists of numbers longer than this are pinned by their ends, their sum and a digest.
LONG = 12


def probabilities(seed: int = 0, samples: int = T, classes: int = C) -> Any:
    """float32 [item, sample, class, y, x]: integers over their sum, surer in some blocks."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 40, (N, samples, classes, H, W))
    truth = labels(classes, void=False)
    sure = np.kron(rng.integers(0, 9, (N, H // 4, W // 4)) ** 2, np.ones((4, 4), np.int64))
    weights += (np.arange(classes)[:, None, None] == truth[:, None])[:, None] * sure[:, None, None]
    return (weights / weights.sum(axis=2, keepdims=True)).astype(np.float32)


def labels(classes: int = C, void: bool = True) -> Any:
    """uint8 [item, y, x]: blocks of 8×8, a strip of void, an item without the last class."""
    rng = np.random.default_rng(9)
    ids = rng.integers(0, classes, (N, H // 8, W // 8)).astype(np.uint8)
    ids[0][ids[0] == classes - 1] = 0
    ids = np.kron(ids, np.ones((8, 8), np.uint8))
    if void:
        ids = np.roll(ids, 2, axis=2)
        ids[:, :2] = 255
    return ids


def ratings() -> Any:
    """uint8 [item, annotator, y, x]: the labels, moved; the second annotator has not seen two
    items."""
    own = np.stack([np.roll(labels(), k, axis=(1, 2)) for k in range(3)], axis=1)
    own[2:4, 1] = 255
    return own


def numbers(members: int = 0) -> dict[str, Any]:
    """`mean`, `std`, `target` with NaN, `valid`; float32."""
    rng = np.random.default_rng(5)
    target = rng.integers(64, 4000, (N, H, W)) / 64
    std = rng.integers(1, 130, (N, H, W)) / 64
    mean = target + std * rng.integers(-160, 160, (N, H, W)) / 64
    target[rng.integers(0, 10, (N, H, W)) == 0] = np.nan
    if members:
        shift = rng.integers(-40, 40, (N, members, H, W)) / 64
        mean = mean[:, None] + shift
        std = std[:, None] * rng.integers(32, 96, shift.shape) / 64
    found = {"mean": mean, "std": std, "target": target}
    valid = rng.integers(0, 12, (N, H, W)) > 0
    return {name: values.astype(np.float32) for name, values in found.items()} | {"valid": valid}


def video(frames: int = 24) -> dict[str, Any]:
    """Ids and labels that move by whole pixels, with their flow, over grey noise."""
    rng = np.random.default_rng(3)
    wide = np.kron(rng.integers(0, C, (6, 24)), np.ones((6, 6), int)).astype(np.uint8)
    grey = rng.integers(0, 256, wide.shape).astype(np.uint8)
    moves = rng.integers(0, 4, frames)
    at = np.cumsum(moves)
    cut = [np.s_[0:30, x : x + 48] for x in at]
    truth = np.stack([wide[box] for box in cut])
    ids = truth.copy()
    wrong = rng.integers(0, 40, ids.shape) < rng.integers(0, 9, (frames, 1, 1))
    ids[wrong] = rng.integers(0, C, int(wrong.sum()))
    flow = np.zeros((frames - 1, 30, 48, 2), np.float32)
    flow[..., 0] = moves[1:, None, None]
    images = np.repeat(np.stack([grey[box] for box in cut])[..., None], 3, axis=3)
    return {"predictions": ids, "labels": truth, "frames": images, "flow": flow,
            "flow_forward": -flow}  # fmt: skip


def pairs() -> list[str]:
    """Names of two sequences of frames."""
    return [f"north_{k:03}" for k in range(16)] + [f"south_{k:03}" for k in range(8)]


def stores(folder: Path) -> None:
    """Write all stores and tables that the cases read."""
    known = {"names": NAMES, "class_names": CLASSES}
    save(folder / "p.zarr", {"probs": probabilities(), "labels": labels()}, known)
    save(folder / "q.zarr", {"probs": probabilities(1), "labels": labels()}, known)
    two = {"probs": probabilities(2, classes=2), "labels": labels(2)}
    save(folder / "two.zarr", two, {"names": NAMES})
    save(folder / "raters.zarr", {"probs": probabilities(), "labels": ratings()}, known)
    half = probabilities().astype(np.float16)
    save(folder / "half.zarr", {"probs": half, "labels": labels()}, known)
    save(folder / "n.zarr", numbers(), {"names": NAMES})
    save(folder / "members.zarr", numbers(3), {"names": NAMES})
    save(folder / "v.zarr", video(), {"names": pairs(), "class_names": CLASSES})
    (folder / "slices.csv").write_text(SLICES)
    groups = [",".join(line.split(",")[:2]) for line in SLICES.splitlines()]
    (folder / "groups.csv").write_text("\n".join(groups))
    (folder / "fit.txt").write_text("aachen_0\nbonn_1\n")


CUT = {"ci": 0.9, "draws": 100, "slices": "slices.csv", "slice_by": ["city", "light"]}
UNCERTAINTIES = ["entropy", "mutual_information", "confidence", "variation_ratio", "std"]
#: Arguments of `uqeval.evaluate`, paths of the folder of `stores`.
CASES: dict[str, dict[str, Any]] = {
    "classes": {"predictions": "p.zarr", "metrics": "all", **CUT},
    "classes of groups": {"predictions": "p.zarr", "metrics": "all", "ci": 0.9, "draws": 100,
                          "slices": "groups.csv", "group_by": "city"},
    "two classes": {"predictions": "two.zarr", "metrics": "all"},
    "float16": {"predictions": "half.zarr", "metrics": ["pavpu", "calibration", "failure"]},
    "ensemble": {"predictions": ["p.zarr", "q.zarr"], "metrics": ["segmentation", "pavpu"]},
    "a part": {"predictions": "p.zarr", "part": "2/3", "states": "part.states.zip", "metrics": {
        "pavpu": {"threshold": 0.6, "curve_range": "0:1.4", "deciles": False},
        "calibration": {"adaptive": False, "temperature": False}}},
    "uncertainties": {"predictions": "p.zarr", "metrics": {
        "pavpu": {"uncertainty": UNCERTAINTIES}, "failure": {"uncertainty": UNCERTAINTIES},
        "sparsification": {"uncertainty": ["entropy", "std"], "error": ["brier", "zero-one"]}}},
    "patches": {"predictions": "p.zarr", "metrics": {
        "pavpu": {"window": [3, 4], "threshold": ["mean", "median", "p80", "range:0.3", "0.5",
                                                  "max-surplus"]}}},
    "patches by class": {"predictions": "p.zarr", "metrics": {"pavpu": {
        "threshold_scope": ["class", "item"], "accuracy_threshold": 0.75}}},
    "patches that slide": {"predictions": "p.zarr", "metrics": {"pavpu": {
        "stride": 1, "border": ["drop", "partial", "pad"]}}},
    "patches of a preset": {"predictions": "p.zarr", "metrics": {"pavpu": {"definition": "ma"}}},
    "the best two": {"predictions": "p.zarr", "metrics": {"pavpu": {"top_k": 2}}},
    "calibrations": {"predictions": "p.zarr", "metrics": {"calibration": {
        "bins": [10, 15], "temperature_of": ["mean", "samples"], "fit_on": "fit.txt"}}},
    "annotators": {"predictions": "raters.zarr", "metrics": {"annotators": {
        "distance": ["iou", "dice"]}}, **CUT},
    "numbers": {"predictions": "n.zarr", "metrics": "all", **CUT},
    "members": {"predictions": "members.zarr", "metrics": "all"},
    "regressions": {"predictions": "n.zarr", "metrics": {
        "regression": {"distribution": ["gaussian", "laplace"], "grid": ["open", "closed"]}}},
    "n-mercis": {"predictions": "n.zarr", "metrics": {"nmerci": {
        "alpha": [95, 50], "interpolation": ["linear", "inverted_cdf"], "depth_step": 10}}},
    "sparsifications": {"predictions": "n.zarr", "metrics": {"sparsification": {
        "error": ["rmse", "mae"], "scope": ["set", "item"]}}},
    "divergence": {"predictions": "p.zarr", "reference": "q.zarr", "metrics": {
        "divergence": {"clip": [0.0, 0.001]}}},
    "divergence of numbers": {"predictions": "n.zarr", "reference": "n.zarr",
                              "metrics": "divergence"},
    "video": {"video": "v.zarr", "metrics": {"tc": {
        "flow": "file", "average": ["pairs", "pooled"]}}, "ci": 0.9, "draws": 100},
    "tracks": {"video": "v.zarr", "metrics": {"tc": {
        "flow": "file", "tracks": True, "track_everywhere": True}}},
}  # fmt: skip


def _evaluated(name: str) -> dict[str, Any]:
    given = dict(CASES[name])
    first = given.pop("predictions", None)
    return _plain(uqeval.evaluate(first, None, **given))


def _plain(report: Any) -> Any:
    return json.loads(report.to_json())


def _merged() -> dict[str, Any]:
    fixed = {"threshold": 0.6}
    metrics: dict[str, Any] = {
        "pavpu": fixed | {"curve_range": "0:1.4"}, "failure": fixed, "sparsification": {},
        "calibration": {"temperature": False},
    }  # fmt: skip
    parts = [f"part{k}.json" for k in (1, 2)]
    for part, rows in zip(parts, (slice(N // 2), slice(N // 2, N)), strict=True):
        own, states = part.replace("json", "zarr"), part.replace("json", "states.zip")
        known = {"names": NAMES[rows], "class_names": CLASSES}
        if not Path(own).exists():
            save(Path(own), {"probs": probabilities()[rows], "labels": labels()[rows]}, known)
        report = uqeval.evaluate(own, None, metrics, states=states)
        report.save(part)
    return _plain(uqeval.merge(parts, ci=0.9, draws=100, slices="slices.csv", slice_by=["city"]))


def _swept() -> dict[str, Any]:
    metrics = ["pavpu", "calibration", "failure"]
    return _plain(uqeval.sweep("p.zarr", None, metrics, samples=[1, 2, 4], repeats=3))


def _swept_numbers() -> dict[str, Any]:
    return _plain(uqeval.sweep("members.zarr", None, ["regression"], samples=[1, 3], repeats=2))


RULES = """
segmentation.miou: {min: 0.5, confidence: 0.9}
pavpu.pavpu: {min: 0.5, confidence: 0.9}
calibration.ece: {max: 0.2, confidence: 0.9}
failure.auroc: {min: 0.9, confidence: 0.95}
sparsification.ause: {max: 0.9, max_rise: 0.01}
pavpu.per_class.person.pavpu: {min: 0.2}
"""


def _judged_and_compared() -> dict[str, Any]:
    for name in "pq":
        report = uqeval.evaluate(f"{name}.zarr", None, "all", states=f"{name}.states.zip")
        report.save(f"{name}.json")
    Path("gate.yaml").write_text(RULES)
    gate = ["gate", "p.json", "gate.yaml", "--baseline", "q.json", "-o", "verdicts.json"]
    compare = ["compare", "p.json", "q.json", "--draws", "100", "-o", "compared.json"]
    for command in (gate, compare):
        own = [sys.executable, "-m", "uqeval", *command, "-q"]
        ended = subprocess.run(own, capture_output=True, text=True)
        if ended.returncode not in (0, 1):
            raise AssertionError(ended.stderr)
    return {name: json.loads(Path(f"{name}.json").read_text()) for name in ("verdicts", "compared")}


OTHERS: dict[str, Callable[[], dict[str, Any]]] = {
    "merged parts": _merged,
    "sweep": _swept,
    "sweep of numbers": _swept_numbers,
    "verdicts and comparison": _judged_and_compared,
}


def found(name: str) -> dict[str, Any]:
    """The report of a case, its numbers alone, in a folder that holds `stores`."""
    return pinned(OTHERS[name]() if name in OTHERS else _evaluated(name))


def pinned(value: Any) -> Any:
    """A report without its words: numbers, null, true and false, and lists of them."""
    if isinstance(value, dict):
        kept = {k: pinned(v) for k, v in value.items() if k not in UNPINNED}
        return {k: v for k, v in kept.items() if v is not None or value[k] is None}
    if isinstance(value, list):
        own = [pinned(one) for one in value if not isinstance(one, str)]
        return _long(own) if len(own) > LONG and _flat(own) else own
    return None if isinstance(value, str) else value


def _flat(values: list[Any]) -> bool:
    return all(one is None or isinstance(one, int | float) for one in values)


def _long(values: list[Any]) -> dict[str, Any]:
    known = [float(one) for one in values if one is not None]
    digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
    return {"numbers": len(values), "first": values[0], "last": values[-1], "sum": sum(known),
            "digest": digest}  # fmt: skip


def machine() -> dict[str, str]:
    """What the last bits of a logarithm or of a quantile may depend on."""
    libraries = {name: version(name) for name in ("numpy", "numba", "scipy")}
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    libc = "-".join(platform.libc_ver())
    return libraries | {"machine": platform.machine(), "simd": " ".join(features), "libc": libc}


@contextlib.contextmanager
def folder_of_stores() -> Iterator[Path]:
    """The current folder, for a while: a new one with all stores."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        stores(Path(folder))
        yield Path(folder)


def main() -> None:
    """Write the pins of the code as it is."""
    with folder_of_stores():
        reports = {name: found(name) for name in [*CASES, *OTHERS]}
    text = json.dumps({"machine": machine(), "reports": reports}, separators=(",", ":"))
    PINS.write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{PINS}: {len(reports)} reports, {PINS.stat().st_size / 1000:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
