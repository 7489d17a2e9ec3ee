"""`uqeval sparsification` through the real executable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from small_stores import NAMES

import uqeval


def sparsification(*arguments: str | Path, **options: Any) -> dict[str, Any]:
    """The report that `uqeval sparsification` prints as JSON."""
    outcome = run_well("sparsification", *arguments, "--format", "json", **options)
    report = json.loads(outcome.stdout)
    assert isinstance(report, dict)
    return report


@pytest.fixture(scope="module")
def expected(complete: Path) -> dict[str, Any]:
    return sparsification(complete, "--error", "brier", "--error", "zero-one")


def evaluated(store: Path, **options: Any) -> dict[str, Any]:
    """The report of the same evaluation in this process."""
    workers = options.pop("workers", None)
    report = uqeval.evaluate(store, metrics={"sparsification": options}, workers=workers)
    return report.record()


def test_what_a_report_says(expected: dict[str, Any]) -> None:
    settings = expected["settings"]["sparsification"]
    assert (settings["uncertainty"], settings["error"]) == ("entropy", "brier")
    assert settings["definition"] == "paper" and settings["keep"] == "floor"
    assert expected["metrics"]["sparsification.ause"]["direction"] == "lower"
    assert [item["name"] for item in expected["items"]] == NAMES
    assert all(item["sparsification"]["ause"] > 0 for item in expected["items"])


def test_definitions_and_scope(complete: Path, expected: dict[str, Any]) -> None:
    report = sparsification(
        complete, "--definition", "mono-uncertainty", "--uncertainty", "mutual_information"
    )
    settings, results = report["settings"]["sparsification"], report["results"]["sparsification"]
    assert (settings["scope"], settings["steps"], settings["ties"]) == ("item", 50, "together")
    assert results["fractions"][-1] == 1.0 and results["curve"][-1] == 0.0
    torch = evaluated(complete, definition="torch-uncertainty-0.13")
    assert torch["results"]["sparsification"]["ause_bound"] >= 0
    code = evaluated(complete, definition="gustafsson-code")["results"]["sparsification"]
    assert code["ause"] == pytest.approx(expected["results"]["sparsification"]["ause"], rel=0.01)
    by_item = evaluated(complete, scope="item")
    each = [item["sparsification"]["ause"] for item in by_item["items"]]
    assert by_item["results"]["sparsification"]["ause"] == pytest.approx(np.mean(each), rel=1e-12)


def test_the_table_and_files(complete: Path, tmp_path: Path) -> None:
    shown = run_well("sparsification", complete, "-o", "r.json", "--csv", "i.csv", cwd=tmp_path)
    for word in ("Sparsification", "AUSE", "AURG", "oracle", "50% removed"):
        assert word in shown.stdout
    assert "sparsification.ause" in (tmp_path / "i.csv").read_text().splitlines()[0]
    assert (tmp_path / "r.states.zip").exists()


def test_refusals(complete: Path) -> None:
    refused(run_uqeval("sparsification", complete, "--error", "rmse"), "rmse", "brier, zero-one")
    for options, words in (
        ({"steps": 1}, "steps=1"), ({"steps": 9.5}, "steps=9.5; expected a whole number"),
        ({"uncertainty": "brier"}, "uncertainty"),
    ):  # fmt: skip
        with pytest.raises(uqeval.UqevalError, match=words):
            evaluated(complete, **options)
