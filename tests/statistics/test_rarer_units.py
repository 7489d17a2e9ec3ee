"""Scores that compare two kinds of pixels or patches: the units with the rarer kind count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_statistics as naive
import numpy as np
import pytest

import uqeval
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.statistics.from_states import FromStates

ITEMS, CLASSES = 120, 4


def pixels(folder: Path, seed: int, skill: float) -> tuple[Report, np.ndarray]:
    """Items of one pixel each: no item has a right and a wrong one; and which are right."""
    rng = np.random.default_rng(seed)
    labels = np.random.default_rng(0).integers(0, CLASSES, (ITEMS, 1, 1))
    logits = 2 * rng.normal(size=(ITEMS, CLASSES))
    logits[np.arange(ITEMS), labels[:, 0, 0]] += skill
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    probs = probs.astype(np.float32)[:, None, :, None, None]
    folder.mkdir()
    report = uqeval.evaluate(
        probs, labels.astype(np.uint8), {"failure": {}, "pavpu": {"window": 1}},
        states=folder / "report.states.zip", ci=0.95,
    )  # fmt: skip
    report.save(folder / "report.json")
    return report, probs[:, 0, :, 0, 0].argmax(1) == labels[:, 0, 0]


def test_single_pixels(tmp_path: Path) -> None:
    report, right = pixels(tmp_path / "a", 1, 4.0)
    rarer = min(right.sum(), (~right).sum())
    assert 10 < rarer < ITEMS / 2
    results: Any = report.results
    counts = [results["pavpu"][name] for name in ("n_ac", "n_au", "n_ic", "n_iu")]
    assert counts[2] + counts[3] == (~right).sum()
    for key, scores in {
        "failure": ("auroc", "aurc", "augrc", "aupr_error", "aupr_success"),
        "pavpu": ("surplus", "half_surplus", "phi"),
    }.items():  # fmt: skip
        for name in scores:
            interval = report.intervals[f"{key}.{name}"]
            certain = min(counts[0] + counts[2], counts[1] + counts[3])
            expected = min(rarer, certain) if name == "phi" else rarer
            assert interval["units"]["defined"] == expected, name
            assert interval["low"] < results[key][name] < interval["high"], name


def test_surplus_of_single_pixels_by_hand(tmp_path: Path) -> None:
    report, right = pixels(tmp_path / "a", 2, 4.0)
    certain = np.array([item["pavpu"]["n_ac"] + item["pavpu"]["n_ic"] for item in report.items])

    def surplus(items: list[int]) -> float:
        covariance = np.cov(right[items], certain[items], bias=True)[0, 1]
        return float(2 * covariance / right[items].std())

    interval = report.intervals["pavpu.surplus"]
    rarer = int(min(right.sum(), (~right).sum()))
    expected = naive.jackknife_t(range(ITEMS), surplus, 0.95, False, rarer)
    assert (interval["low"], interval["high"]) == pytest.approx(expected, rel=1e-9)


def test_one_wrong_pixel_is_not_enough(tmp_path: Path) -> None:
    right = np.ones(9, bool)
    right[4] = False
    probs = np.stack([np.linspace(0.6, 0.9, 9), np.linspace(0.4, 0.1, 9)], 1)
    report = uqeval.evaluate(
        probs.astype(np.float32)[:, None, :, None, None],
        (~right).astype(np.uint8)[:, None, None], "failure", ci=0.95,
    )  # fmt: skip
    assert report.results["failure"]["auroc"] == 0.5
    interval = report.intervals["failure.auroc"]
    assert interval["low"] is None
    reason = "1 item has the rarer kind (wrong or right, OUT or IN)"
    assert interval["reason"] == f"{reason}; 2 are needed"


def test_a_difference_counts_units_of_one_kind(tmp_path: Path) -> None:
    """Wrong pixels are the rarer ones of one model, right ones of the other."""
    (_, first), (_, second) = (
        pixels(tmp_path / name, seed, skill) for name, seed, skill in (("a", 1, 4), ("b", 2, 1))
    )
    assert first.mean() > 0.5 > second.mean()
    paths = [tmp_path / name / "report.json" for name in ("a", "b")]
    found = FromStates().change(*paths, Address.parse("failure.auroc"), 0.95, False)
    kinds = [(~first & ~second).sum(), (first & second).sum()]
    assert found.units.defined == min(kinds) > 6


def test_every_score_that_exists_has_units(tmp_path: Path) -> None:
    """Also those of classes, of which few items have all kinds."""
    report, _ = pixels(tmp_path / "a", 3, 4.0)
    per_class = [text for text in report.intervals if ".per_class." in text]
    assert any(text.endswith(".surplus") for text in per_class)
    for text, interval in report.intervals.items():
        assert interval["units"]["defined"] > 0, text
