"""Which tallies of two runs are swapped: those that the same score reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from saved_runs import run, scoring

import uqeval
from uqeval.statistics.draws import Resampling
from uqeval.statistics.same_model import is_same_model
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.swap_partners import partners_of
from uqeval.statistics.swaps import NoTest, SwapTest, swap_tests

N = 6
PLAIN = {"temperature": False}
NO_ADAPTIVE = {"adaptive": False, "temperature": False}


def saved(folder: Path, data: int, **settings: Any) -> Scoring:
    return scoring(run(folder, N, {"calibration": settings}, data=data)[1])


def test_bins_of_equal_mass_are_paired_by_their_purpose(tmp_path: Path) -> None:
    """Those of the estimator are the second ones of one run, and the only ones of the other."""
    first = saved(tmp_path / "a", 0, **PLAIN, estimator="kumar-l1", bins=11)
    second = saved(tmp_path / "b", 1, **NO_ADAPTIVE, estimator="kumar-l1", bins=11)
    partners = partners_of(first, second, ["calibration.brier", "calibration.kumar_l1"])
    (*_, ours), (*_, theirs) = (own.tallies_of("calibration.kumar_l1") for own in (first, second))
    assert partners[ours] == theirs and ours != theirs
    assert first.tallies_of("calibration.adaptive_ece")[-1] not in partners


def test_only_scores_of_other_shapes_have_no_test(tmp_path: Path) -> None:
    """The sweep finds another number of bins for each model; other scores do not read them."""
    first, second = (
        saved(tmp_path / str(k), k, **PLAIN, estimator="roelofs-sweep") for k in range(2)
    )
    bins = [own.index["results"]["calibration"]["sweep_bins"] for own in (first, second)]
    assert bins[0] != bins[1]
    units, every = Resampling(first.names, 100, 1), range(N)
    addresses = [f"calibration.{name}" for name in ("brier", "sweep_l1", "adaptive_ece")]
    for runs in ((first, second), (second, first)):
        tests = swap_tests(*runs, [every, every], units, addresses)
        brier, sweep, adaptive = (tests[address] for address in addresses)
        assert isinstance(brier, SwapTest) and isinstance(adaptive, SwapTest)
        assert isinstance(sweep, NoTest) and "saved states of the same shape" in sweep.reason


def test_a_tally_of_an_option_does_not_make_another_model(tmp_path: Path) -> None:
    runs = [saved(tmp_path / name, 0, **own) for name, own in (("a", PLAIN), ("b", NO_ADAPTIVE))]
    for pair in (runs, runs[::-1]):
        assert is_same_model(pair, "calibration.brier")
    assert not is_same_model(runs, "calibration.adaptive_ece")


def test_variants_that_share_a_tally_in_one_run_only(tmp_path: Path) -> None:
    """The median of one model is 0.5, so two of its thresholds have the same counts."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (N, 8, 8)).astype(np.uint8)
    energy = rng.permuted(np.linspace(0, 1, labels.size)).reshape(labels.shape).astype(np.float32)
    runs = []
    for name, skill, own in (("a", 0.9, energy**2), ("b", 0.7, energy)):
        own.flat[np.argsort(own, axis=None)[own.size // 2 - 1 : own.size // 2 + 1]] = np.median(own)
        wrong = rng.integers(0, 3, labels.shape).astype(np.uint8)
        arrays = {
            "predictions": np.where(rng.random(labels.shape) < skill, labels, wrong),
            "energy": own, "labels": labels,
        }  # fmt: skip
        settings = {"uncertainty": "energy", "window": 1, "threshold": ["0.5", "median"]}
        report = uqeval.evaluate(
            arrays, None, {"pavpu": settings}, classes=3, states=tmp_path / f"{name}.states.zip"
        )
        report.save(tmp_path / f"{name}.json")
        runs.append(scoring(tmp_path / f"{name}.json"))
    addresses = ["pavpu.surplus", "pavpu[threshold=median].surplus"]
    both = [own.tallies_of(address) for own in runs for address in addresses]
    assert both[0] != both[1] and both[2] == both[3]
    units, every = Resampling(runs[0].names, 100, 1), range(N)
    for pair in (runs, runs[::-1]):
        together = swap_tests(*pair, [every, every], units, addresses)
        alone = [swap_tests(*pair, [every, every], units, [own]) for own in addresses]
        assert together == alone[0] | alone[1]
        assert all(isinstance(own, SwapTest) for own in together.values())
