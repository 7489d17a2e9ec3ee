"""A small report of every family, as `uqeval.evaluate` writes it of arrays in memory."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from scenes import labels, softmax

import uqeval
from uqeval.records.report import Report


@functools.cache
def of_classes(*, family: str = "pavpu", seed: int = 1) -> Report:
    """Four items of three classes; of pavpu two variants."""
    probs = softmax(seed, 4, 3, 3, 24, 32)
    options: dict[str, Any] = (
        {"uncertainty": ["entropy", "mutual_information"]} if family == "pavpu" else {}
    )
    return uqeval.evaluate(probs, labels(seed, 4, 24, 32, classes=3), {family: options})


def with_states(folder: Path, **options: Any) -> Path:
    """A report of twelve items with intervals and slices, its states beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "items.csv"
    lights = [f"{i},{'day' if i else 'night'}" for i in range(12)]
    table.write_text("\n".join(["name,light", *lights]), "utf-8")
    report = uqeval.evaluate(
        softmax(4, 12, 2, 3, 16, 16), labels(4, 12, 16, 16, classes=3),
        {"pavpu": {"uncertainty": ["entropy", "mutual_information"]}, "calibration": {"bins": 5}},
        names=[str(i) for i in range(12)], ci=0.9, draws=100,
        slices=table, slice_by=["light"], states=folder / "report.states.zip",
        **options,
    )  # fmt: skip
    report.save(folder / "report.json")
    return folder / "report.json"


@functools.cache
def of_numbers(folder: Path, family: str) -> Report:
    """Two items of numbers between 1 and 60, with a σ that correlates with the error."""
    rng = np.random.default_rng(3)
    target = rng.uniform(1, 60, (2, 20, 30)).astype("f4")
    sigma = rng.uniform(0.5, 3, target.shape).astype("f4")
    mean = (target + sigma * rng.normal(size=target.shape)).astype("f4")
    path = folder / "numbers.npz"
    np.savez(path, mean=mean, std=sigma, target=target)
    options = {"depth_step": 20} if family == "nmerci" else {}
    return uqeval.evaluate(path, None, {family: options})


@functools.cache
def of_sweep() -> Report:
    """Metrics over M = 1, 2, 4."""
    truth = labels(2, 2, 16, 16, classes=3)
    return uqeval.sweep(softmax(2, 2, 4, 3, 16, 16), truth, repeats=2)


def of_video() -> Report:
    """As `uqeval tc` writes it: six pairs of two sequences, one pair without a TC."""
    scores: list[dict[str, Any]] = [
        {"tc": 0.9 - 0.02 * i, "miou": 0.7 + 0.01 * i, "sequence": "a" if i < 3 else "b"}
        for i in range(6)
    ]
    scores[4] |= {"tc": None, "tc_reason": "no pixel is left", "miou": None}
    temporal = {
        "flow": "farneback", "mtc": 0.85, "mse_warp": 3.0, "miou_mean": 0.72,
        "per_class": [{"class": 0, "name": "road", "iou": 0.9, "pixels": 5}],
        "correlation": {"r": -0.9, "pairs": 5, "against": "labels"},
    }  # fmt: skip
    return Report(
        uqeval_version="0", inputs={"predictions": [{"path": "video/"}]}, settings={},
        results={"temporal": temporal},
        items=[{"name": f"{i:03d}", "temporal": score} for i, score in enumerate(scores)],
    )  # fmt: skip
