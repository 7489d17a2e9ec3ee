"""The threshold of another report: of the same family if it has one, else of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import C, stack

import uqeval
from uqeval.errors import UsageError

PROBS, LABELS = stack(6)


def evaluated(**metrics: Any) -> uqeval.Report:
    return uqeval.evaluate(PROBS, LABELS, metrics)


@pytest.fixture
def fitted(tmp_path: Path) -> Path:
    """A report of PAvPU and failure detection with different thresholds."""
    report = evaluated(
        pavpu={"threshold": "p30", "window": [4, 2]}, failure={"threshold": "p80"},
        segmentation={},
    )  # fmt: skip
    report.save(tmp_path / "fitted.json")
    return tmp_path / "fitted.json"


def test_failure_takes_that_of_failure(fitted: Path) -> None:
    of_report = uqeval.Report.load(fitted).results
    found = evaluated(failure={"threshold_from": fitted}, pavpu={"threshold_from": fitted})
    for family in ("failure", "pavpu"):
        wanted = of_report[family]["uncertainty_threshold"]
        assert found.results[family]["uncertainty_threshold"] == wanted
        assert found.settings[family]["threshold"] == repr(wanted)
        assert found.settings[family]["threshold_from"] == str(fitted)
    rate = "undetected_error_rate"
    assert found.results["failure"][rate] == of_report["failure"][rate] > 0


@pytest.mark.parametrize(("fits", "takes"), [("pavpu", "failure"), ("failure", "pavpu")])
def test_one_family_takes_that_of_the_other(fits: str, takes: str, tmp_path: Path) -> None:
    fitted = evaluated(**{fits: {"threshold": "p60"}})
    fitted.save(tmp_path / "f.json")
    found = evaluated(**{takes: {"threshold_from": tmp_path / "f.json"}}).results[takes]
    wanted = fitted.results[fits]["uncertainty_threshold"]
    assert found["uncertainty_threshold"] == wanted
    if takes == "failure":
        p = PROBS.astype("f8").mean(axis=1) if PROBS.ndim == 5 else PROBS.astype("f8")
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1).astype("f4")
        hidden = (p.argmax(axis=1) != LABELS) & (entropy <= np.float32(wanted)) & (LABELS < 255)
        assert found["undetected_error_rate"] == hidden.sum() / (LABELS < 255).sum()


def test_failure_of_images_takes_it(fitted: Path) -> None:
    of_report = uqeval.Report.load(fitted).results["failure"]["uncertainty_threshold"]
    share = {"confidence": "share"}
    found = evaluated(image_failure={**share, "threshold_from": fitted}).results["image_failure"]
    assert (
        found == evaluated(image_failure={**share, "threshold": of_report}).results["image_failure"]
    )
    assert found != evaluated(image_failure=share).results["image_failure"]
    with pytest.raises(UsageError, match="threshold_from has no effect: it is for"):
        evaluated(image_failure={"threshold_from": fitted})


def test_thresholds_of_other_numbers_of_classes_and_samples(tmp_path: Path) -> None:
    """Only an uncertainty that is the spread of the samples depends much on their number."""

    def threshold(probs: Any, **options: Any) -> Any:
        metrics = {"pavpu": {"uncertainty": ["entropy", "std"], **options}}
        report = uqeval.evaluate(probs, LABELS, metrics)
        report.save(tmp_path / "last.json")
        return report.results["pavpu[std]"]["uncertainty_threshold"]

    fitted = tmp_path / "fitted.json"
    expected = threshold(PROBS)
    (tmp_path / "last.json").rename(fitted)
    assert threshold(PROBS, threshold_from=fitted) == expected
    with pytest.raises(UsageError, match=r"of 3 samples, but .* has 2, so std has another"):
        threshold(PROBS[:, :2], threshold_from=fitted)
    evaluated_fewer = uqeval.evaluate(
        PROBS[:, 0], LABELS, {"pavpu": {"uncertainty": "entropy", "threshold_from": fitted}}
    )
    assert evaluated_fewer.settings["pavpu"]["threshold_from"] == str(fitted)
    more = np.concatenate([PROBS, np.zeros_like(PROBS[:, :, :1])], axis=2)
    for family in ("pavpu", "failure"):
        with pytest.raises(UsageError, match=rf"of {C} classes, but .* has {C + 1}, so"):
            uqeval.evaluate(more, LABELS, {family: {"threshold_from": fitted}})


def test_what_failure_refuses(fitted: Path) -> None:
    with pytest.raises(UsageError, match="no threshold for mutual_information with log base"):
        evaluated(failure={"threshold_from": fitted, "uncertainty": "mutual_information"})
    message = "for entropy with log base 2; it has thresholds for entropy with log base e. Give"
    with pytest.raises(UsageError, match=message):
        evaluated(failure={"threshold_from": fitted, "log_base": 2})
    with pytest.raises(UsageError, match="exclude each other"):
        evaluated(failure={"threshold_from": fitted, "threshold": "mean"})


def test_the_base_of_entropies_is_that_of_entropies_only(tmp_path: Path) -> None:
    uncertainties = {"uncertainty": ["entropy", "confidence"], "log_base": 2}
    fitted = evaluated(failure=uncertainties)
    fitted.save(tmp_path / "f.json")
    options = {"uncertainty": "confidence", "threshold_from": tmp_path / "f.json"}
    found = evaluated(failure=options).results["failure"]
    assert found == fitted.results["failure[confidence]"]
