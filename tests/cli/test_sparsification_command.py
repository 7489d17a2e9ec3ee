"""`uqeval sparsification` through the real executable."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import naive_ranked as naive
import numpy as np
import pytest
from command import as_json, options_by_key, refused, run_uqeval, run_well
from scenes import read_maps
from small_stores import NAMES

import uqeval

sparsification = partial(as_json, "sparsification")


@pytest.fixture(scope="module")
def expected(complete: Path) -> dict[str, Any]:
    return sparsification(complete, "--error", "brier", "--error", "zero-one")


def evaluated(store: Path, **options: Any) -> dict[str, Any]:
    """The report of the same evaluation in this process."""
    workers = options.pop("workers", None)
    report = uqeval.evaluate(store, metrics={"sparsification": options}, workers=workers)
    return report.record()


def test_numbers_are_the_oracles(expected: dict[str, Any], complete: Path) -> None:
    wanted = ("entropy", "brier", "prediction", "label")
    found = read_maps(str(complete), None, wanted)
    u, brier, prediction, label = (np.stack([maps[name] for maps in found]) for name in wanted)
    known = label != 255
    u = u[known]
    errors = {
        "sparsification": brier[known].astype("f8"),
        "sparsification[zero-one]": (prediction != label)[known],
    }
    for key, error in errors.items():
        found = expected["results"][key]
        own = naive.sparsification(u, error)
        for field, value in own.items():
            assert found[field] == pytest.approx(value, rel=1e-9, abs=1e-12), (key, field)
        assert found["normalisation"] == pytest.approx(error.mean(), rel=1e-9)
        assert len(found["fractions"]) == len(found["error_curve"]) == 100


def test_what_a_report_says(expected: dict[str, Any]) -> None:
    settings = expected["settings"]["sparsification"]
    assert (settings["uncertainty"], settings["error"]) == ("entropy", "brier")
    assert settings["definition"] == "paper" and settings["keep"] == "floor"
    assert expected["metrics"]["sparsification.ause"]["direction"] == "lower"
    assert [item["name"] for item in expected["items"]] == NAMES
    assert all(item["sparsification"]["ause"] > 0 for item in expected["items"])


def test_the_same_bits_for_any_number_of_workers(expected: dict[str, Any], complete: Path) -> None:
    for workers in (1, 3):
        report = evaluated(complete, error=["brier", "zero-one"], workers=workers)
        assert report["results"] == expected["results"]


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


def test_several_values_of_a_choice_make_variants(complete: Path) -> None:
    found = sparsification(
        complete, "--definition", "paper", "--definition", "gustafsson-code", "--scope", "set",
        "--scope", "item",
    )  # fmt: skip
    assert options_by_key(found, "keep", "scope") == {
        "sparsification": ("floor", "set"),
        "sparsification[scope=item]": ("floor", "item"),
        "sparsification[definition=gustafsson-code]": ("truncate", "set"),
        "sparsification[scope=item,definition=gustafsson-code]": ("truncate", "item"),
    }


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
