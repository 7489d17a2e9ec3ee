"""Uncertainties that only rounding tells apart: right reports pass, wrong ones do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import differences

import uqeval
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.verifying import verify

UNCERTAINTIES = ["entropy", "mutual_information", "expected_entropy", "std", "variation_ratio"]
VARIANTS = {"uncertainty": UNCERTAINTIES}


def _store(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Probabilities of few values, or logits of great differences, with labels of which more are
    wrong in one class; most mean uncertainties occur hundreds of times."""
    shape = (3, 3, 40, 40)
    quarters = rng.multinomial(4, np.ones(4) / 4, shape).transpose(0, 1, 4, 2, 3) / 4
    logits = np.round(rng.normal(size=(3, 3, 4, 40, 40))) * 40
    best = (quarters.mean(axis=1) if kind == "probs" else logits.mean(axis=1)).argmax(axis=1)
    is_wrong = rng.random(best.shape) < np.array([0.05, 0.5, 0.2, 0.3])[best]
    labels = np.where(is_wrong, rng.integers(0, 4, best.shape), best).astype(np.uint8)
    return {kind: (quarters if kind == "probs" else logits).astype(np.float32), "labels": labels}


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> dict[str, Any]:
    """A report of such data with slices, in the working folder."""
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", **_store(request.param, np.random.default_rng(0)))
    metrics = {"failure": VARIANTS, "sparsification": VARIANTS}
    Path("slices.csv").write_text("name,drive\n0,a\n1,b\n2,b\n")
    uqeval.evaluate(
        "a.npz", metrics=metrics, workers=1, ci=0.9, draws=200, slices="slices.csv"
    ).save("r.json")
    record: dict[str, Any] = json.loads(Path("r.json").read_text())
    return record


@pytest.mark.parametrize("report", ["probs", "logits"], indirect=True)
def test_a_right_report_of_few_values_passes_and_a_wrong_one_does_not(
    report: dict[str, Any],
) -> None:
    """Errors of rounding excuse small differences alone, and none of counts of votes."""
    found = verify("r.json", everything=True)
    assert found.passed, found.problems()
    for key, results in report["results"].items():
        for name in ("auroc", "aurg"):
            if results.get(name) is not None:
                results[name] += 1e-4 if "variation_ratio" in key else 0.1
    fields = {own.field for own in differences(report)}
    for key in report["results"]:
        if key.startswith("failure"):
            assert f"{key}.auroc" in fields
        if key.startswith("sparsification"):
            assert f"{key}.aurg" in fields


#: Two pixels one step of float32 apart, on both sides of the edge of a bin, and eight rounding
#: errors that all move them away from it.
_NEAR = np.array([np.nextafter(np.float32(1), np.float32(0)), 1.0])
_AWAY = np.array([[-1.0] * 8, [1.0] * 8])


def test_errors_of_both_signs_move_a_pixel_across_the_edge_of_its_bin() -> None:
    draws = [*ranks.rounded(_NEAR, _AWAY, ranks.noise(_NEAR))]
    first, second = np.array([ranks.bins_of(draw, ranks.INTERVAL_BITS) for draw in draws]).T
    assert len(np.unique(first)) == len(np.unique(second)) == 2


def test_near_uncertainties_are_ties_in_bins_but_not_exact_ones() -> None:
    def is_tied(rounding: Any) -> bool:
        draws = ranks.draws_of(_NEAR, rounding)
        bins = (ranks.bins_of(draw, ranks.INTERVAL_BITS) for draw in draws)
        return any(first == second for first, second in bins)

    assert is_tied(_AWAY)
    assert not is_tied(np.zeros((2, 8)))


def test_errors_of_both_signs_swap_near_pixels_in_a_ranking() -> None:
    slack = ranks.slack_of_order(ranks.failure_of_groups, _NEAR, np.array([False, True]), _AWAY)
    assert slack["auroc"] == ranks.RANGES  # from 1 to 0


@pytest.mark.parametrize(("step", "least", "most"), [(1e-3, 1, 1), (2e-8, 2, 19)])
def test_rankings_with_the_same_groups_are_scored_once(step: float, least: int, most: int) -> None:
    """Far values have one order under all errors, near ones several; the ranges are those of all
    rankings, whatever the order of the pixels."""
    rng = np.random.default_rng(0)
    score, wrong = 0.5 + step * rng.permutation(30), rng.random(30) < 0.3
    rounding, scored = rng.normal(size=(30, 8)), []

    def scores(n: Any, e: Any) -> dict[str, Any]:
        scored.append(n)
        return ranks.failure_of_groups(n, e)

    slack = ranks.slack_of_order(scores, score, wrong, rounding)
    assert least <= len(scored) <= most
    unit = ranks.noise(score)
    rankings = [score, *ranks.near_as_ties(score, unit), *ranks.rounded(score, rounding, unit)]
    areas = [ranks.failure(ranking, wrong)["auroc"] for ranking in rankings]
    assert slack["auroc"] == ranks.RANGES * (max(areas) - min(areas))


@pytest.mark.parametrize("scale", [1 / 255, float(np.float32(1 / 255)), round(1 / 255, 8)])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_sums_of_integers_tie(
    channels: int, scale: float, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    if channels < 3:
        foreground = rng.integers(0, 256, (3, 4, 1, 24, 24))
        foreground[:, 1::2] = 255 - foreground[:, ::2]  # with these, every sum is a half
        probs = foreground if channels == 1 else np.concatenate([255 - foreground, foreground], 2)
    else:
        probs = rng.multinomial(255, np.ones(3) / 3, (3, 4, 24, 24)).transpose(0, 1, 4, 2, 3)
        probs[:, 1] = probs[:, 0, [1, 0, 2]]
    labels = rng.integers(0, max(channels, 2), (3, 24, 24)).astype(np.uint8)
    np.savez("a.npz", probs=probs.astype(np.uint8), labels=labels, scale=scale)
    metrics = {"failure": VARIANTS, "pavpu": {}, "calibration": {}}
    uqeval.evaluate("a.npz", metrics=metrics).save("r.json")
    found = verify("r.json", everything=True)
    assert found.passed, found.problems()
