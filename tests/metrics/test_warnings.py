"""Warnings about signs do not fire on noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.metrics._warnings import sign_warnings, with_intervals

METRICS: dict[str, Any] = {"pavpu": {}, "failure": {}, "sparsification": {"error": "zero-one"}}
WORDS = ("AUROC is", "Surplus is", "AURG is")


def store(sign: float, items: int = 8) -> dict[str, Any]:
    """Return maps whose uncertainty is right (1), unrelated (0) or wrong (-1) about the errors."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 3, (items, 16, 16))
    blocks = np.kron(rng.random((items, 4, 4)) < 0.4, np.ones((4, 4), bool))
    shown = np.where(blocks, (label + 1) % 3, label)
    sure = rng.uniform(2, 6, label.shape) - sign * 2 * blocks
    p = np.exp(sure[:, None] * (shown[:, None] == np.arange(3)[:, None, None]))
    p = (p / p.sum(axis=1, keepdims=True)).astype("f4")
    return {"predictions": p[:, None], "labels": label.astype("u1")}


def warned(sign: float, **options: Any) -> list[str]:
    report = uqeval.evaluate(**store(sign), metrics=METRICS, **options)
    return [text for text in report.warnings if any(word in text for word in WORDS)]


def test_noise_is_no_warning_with_an_interval() -> None:
    assert warned(0, ci=0.95, draws=200) == []
    assert warned(1, ci=0.95, draws=200) == []


def test_what_is_worse_than_chance_is_a_warning() -> None:
    assert len(told := warned(-1, ci=0.95, draws=200)) == 3, told
    assert all("95 % interval" in text for text in told)
    assert len(told := warned(-1)) == 3, told
    assert all("ci=0.95" in text for text in told)


@pytest.mark.parametrize(
    ("family", "results", "word"),
    [
        ("failure", {"auroc": 0.4996}, "close to chance"),
        ("failure", {"auroc": 0.505}, "close to chance"),
        ("failure", {"auroc": 0.48}, "more certain"),
        ("failure", {"auroc": 0.6}, ""),
        ("pavpu", {"surplus": -0.0026}, "close to chance"),
        ("pavpu", {"surplus": -0.1}, "worse than chance"),
        ("pavpu", {"surplus": None}, ""),
        ("sparsification", {"aurg": -0.00001, "curve": [1.0]}, "close to chance"),
        ("sparsification", {"aurg": -0.5, "curve": [100.0]}, "close to chance"),
        ("sparsification", {"aurg": -0.5, "curve": [1.0]}, "removing random ones"),
        ("nmerci", {"nmerci": -0.001}, ""),
        ("nmerci", {"nmerci": -0.2}, "below 0"),
        ("regression", {"auce": 0.1}, ""),
    ],
)
def test_without_an_interval(family: str, results: dict[str, Any], word: str) -> None:
    found = sign_warnings(family, results)
    assert (word in found[0]) if word else not found


def test_an_interval_decides() -> None:
    wide = {"low": 0.3, "high": 0.6, "level": 0.95}
    assert sign_warnings("failure", {"auroc": 0.45}, wide) == []
    (told,) = sign_warnings("failure", {"auroc": 0.4}, wide | {"high": 0.49})
    assert "0.3000 to 0.4900" in told and "more certain than right ones" in told


@pytest.mark.parametrize(("family", "results", "is_chance"), [
    ("failure", {"auroc": 0.46}, True),
    ("failure", {"auroc": 0.44}, False),
    ("sparsification", {"aurg": -0.04, "curve": [1.0, 0.9]}, True),
    ("sparsification", {"aurg": -0.04, "curve": [0.5, 0.4]}, False),
    ("nmerci", {"nmerci": -0.01}, False),
])  # fmt: skip
def test_little_below_chance_is_close_to_it(
    family: str, results: dict[str, Any], is_chance: bool
) -> None:
    """As in the findings, also if a narrow interval excludes chance: random noise has such."""
    (value,) = (own for own in results.values() if isinstance(own, float))
    ends = {"low": value - 0.001, "high": value + 0.001, "level": 0.95}
    (told,) = sign_warnings(family, results, ends)
    assert ("close to chance" in told) == is_chance


def test_an_interval_decides_in_a_region_whose_name_has_dots() -> None:
    place = "box:0:0.9,0:1"
    report = uqeval.evaluate(
        **store(-1), metrics="failure", region=place, ci=0.95, draws=200, workers=1
    )
    of_region = [text for text in report.warnings if text.startswith(f"failure@{place}: ")]
    assert len(of_region) == 1 and "95 % interval" in of_region[0]


def test_an_interval_decides_for_each_key_of_a_joined_warning() -> None:
    results = {key: {"auroc": 0.3} for key in ("failure", "failure[std]", "failure@box:0:1,0:1")}
    (text,) = sign_warnings("failure", results["failure"])
    joined = f"{', '.join(results)}: {text}"
    low = {"level": 0.95, "low": 0.2, "high": 0.4}
    intervals = {"failure.auroc": low, 'failure@"box:0:1,0:1".auroc': low | {"high": 0.6}}
    first, second = with_intervals([joined], results, intervals)
    assert first == f"failure[std]: {text}"
    assert second.startswith("failure: the AUROC is 0.3000 (95 % interval 0.2000 to 0.4000), below")
