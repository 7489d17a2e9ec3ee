"""Small runs with their states, and per-item counts to resample by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.records.report import Report
from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

C, H, W = 4, 16, 20
CLASS_NAMES = ["road", "traffic.light", '<b a="1">x/y</b>', "a@b=c,d"]


def stack(items: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [item, sample, class, y, x] that correlate with the labels [item, y, x]."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, (items, H // 4, W // 4)).repeat(4, 1).repeat(4, 2)
    z = rng.normal(size=(items, 3, C, H, W)) * rng.uniform(0.5, 2, (items, 1, 1, 1, 1))
    p = np.exp(z + 2 * (truth[:, None, None] == np.arange(C)[:, None, None]))
    truth[:, :2] = 255
    return (p / p.sum(2, keepdims=True)).astype("f2"), truth.astype("u1")


def told(report: Report) -> dict[str, Any]:
    """A report as it is written, but for where and how fast it was made."""
    record: dict[str, Any] = json.loads(report.to_json())
    return {k: v for k, v in record.items() if k not in ("timing", "states", "states_digest")}


def run(
    folder: Path, items: int, metrics: Any = "pavpu", data: int = 0, **options: Any
) -> tuple[Report, Path]:
    """A report at `folder/report.json` with its states beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"item_{i}" for i in range(items)]
    report = uqeval.evaluate(
        *stack(items, data), metrics, names=names, states=folder / "report.states.zip", **options
    )
    path = folder / "report.json"
    report.save(path)
    return report, path


def scoring(path: Path) -> Scoring:
    """The states beside a report."""
    return Scoring(SavedStates(path.with_suffix(".states.zip")))


def weights_of(resampling: Resampling, sets: str = "drawn") -> np.ndarray:
    """How often each item is in each set, all sets together."""
    made = getattr(resampling, sets)()
    items = resampling.items
    blocks = made if sets == "drawn" else [made]
    return np.concatenate(
        [resampling.of_items(own, range(items), items).dense(items) for own in blocks]
    )


def table_file(path: Path, rows: dict[str, list[str]]) -> Path:
    """A CSV with a column `name` and others."""
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path
