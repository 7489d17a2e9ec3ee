"""Reports with states of small made-up networks: 14 items of 8×8 pixels, 3 classes."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval import Report

N, C, SIDE = 14, 3, 8
NAMES = [f"item{i:02}" for i in range(N)]


@cache
def labels() -> np.ndarray:
    """uint8 [item, y, x]; some items are harder for all networks."""
    return np.random.default_rng(7).integers(0, C, (N, SIDE, SIDE)).astype(np.uint8)


@cache
def probs(seed: int, skill: float) -> np.ndarray:
    """float32 [item, class, y, x] of a network."""
    rng = np.random.default_rng(seed)
    hard = np.random.default_rng(8).uniform(0.2, 1.5, (N, 1, 1, 1))
    truth = np.eye(C)[labels()].transpose(0, 3, 1, 2)
    e = np.exp(rng.normal(size=(N, C, SIDE, SIDE)) + truth * skill * hard)
    return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)


def save(
    path: Path, seed: int = 0, skill: float = 1.0, items: slice = slice(None),
    metrics: Any = ("pavpu", "calibration"), truth: np.ndarray | None = None, **options: Any,
) -> Path:  # fmt: skip
    """Evaluate a network and write its report with its states."""
    path.parent.mkdir(parents=True, exist_ok=True)
    saved: dict[str, Any] = {"states": path.with_suffix(".states.zip"), "names": NAMES[items]}
    own = (labels() if truth is None else truth)[items]
    report = uqeval.evaluate(probs(seed, skill)[items], own, metrics, **saved | options)
    report.save(path)
    return path


def change(path: Path, **fields: Any) -> Path:
    """Write a report with other fields beside it, of the same states."""
    report = dataclasses.replace(Report.load(path), **fields)
    report.save(path)
    return path
