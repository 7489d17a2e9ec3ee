"""`uqeval failure` through the real executable."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import naive_ranked as naive
import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from scenes import read_maps
from sklearn.metrics import average_precision_score, roc_auc_score
from small_stores import CLASS_NAMES, NAMES, labels, probs, save

import uqeval

failure = partial(as_json, "failure")


@pytest.fixture(scope="module")
def expected(complete: Path) -> dict[str, Any]:
    return failure(complete)


def arrays(store: Path) -> tuple[Any, Any, Any]:
    """Uncertainty, wrong pixels and label of all evaluated pixels."""
    wanted = ("entropy", "prediction", "label")
    found = read_maps(str(store), None, wanted)
    u, prediction, label = (np.stack([maps[name] for maps in found]) for name in wanted)
    known = label != 255
    return u[known], (prediction != label)[known].astype(int), label[known]


def test_numbers_are_the_oracles(expected: dict[str, Any], complete: Path) -> None:
    results = expected["results"]["failure"]
    u, wrong, label = arrays(complete)
    assert (results["pixels"], results["errors"]) == (wrong.size, wrong.sum())
    for field, value in naive.failure(u, wrong).items():
        assert results[field] == pytest.approx(value, rel=1e-9), field
    assert results["auroc"] == pytest.approx(roc_auc_score(wrong, u), abs=1e-9)
    assert results["aupr_error"] == pytest.approx(average_precision_score(wrong, u), abs=1e-9)
    limit = np.float32(results["uncertainty_threshold"])
    assert results["undetected_error_rate"] == (wrong & (u <= limit)).mean()
    assert [row["name"] for row in results["per_class"]] == CLASS_NAMES
    for c, row in enumerate(results["per_class"]):
        own = naive.failure(u[label == c], wrong[label == c])
        assert row["auroc"] == pytest.approx(own["auroc"], rel=1e-9)
        assert row["risk_at_coverage"] == pytest.approx(own["risk_at_coverage"], rel=1e-9)


def test_what_a_report_says(expected: dict[str, Any]) -> None:
    settings = expected["settings"]["failure"]
    assert settings == {
        "uncertainty": "entropy", "threshold": "mean", "threshold_from": None, "log_base": math.e,
        "definition": "paper",
    }  # fmt: skip
    assert expected["metrics"]["failure.auroc"]["direction"] == "higher"
    assert expected["metrics"]["failure.aurc"]["direction"] == "lower"
    assert [item["name"] for item in expected["items"]] == NAMES
    assert (
        sum(item["failure"]["errors"] for item in expected["items"])
        == (expected["results"]["failure"]["errors"])
    )
    assert expected["results"]["failure"]["auroc_bound"] >= 0


def test_the_same_bits_from_maps_parts_and_workers(
    expected: dict[str, Any], complete: Path, stores: Path, tmp_path: Path
) -> None:
    maps = tmp_path / "maps.zarr"
    run_well("reduce", complete, "-o", maps, "-q")
    chunked = save(
        tmp_path / "chunked.zarr", {"probs": probs(), "labels": labels()},
        {"names": NAMES, "class_names": CLASS_NAMES}, together=2,
    )  # fmt: skip
    report = failure(chunked, "--workers", "3")
    assert report["results"]["failure"] == expected["results"]["failure"]
    for given, workers in (((maps, stores / "labels.zarr"), 2), ((complete,), 1)):
        report = uqeval.evaluate(*given, metrics=["failure"], workers=workers).record()
        assert report["results"]["failure"] == expected["results"]["failure"]
        for one, other in zip(report["items"], expected["items"], strict=True):
            assert one["failure"] == other["failure"]
    report = uqeval.evaluate(probs(), labels(), ["failure"])
    assert report.results["failure"]["auroc"] == expected["results"]["failure"]["auroc"]


def test_variants_thresholds_and_files(complete: Path, tmp_path: Path) -> None:
    run_well(
        "failure", complete, "--uncertainty", "confidence", "--uncertainty", "mutual_information",
        "--threshold", "mean", "--threshold", "median", "-o", "r.json", "--csv", "i.csv", "-q",
        cwd=tmp_path,
    )  # fmt: skip
    results = json.loads((tmp_path / "r.json").read_text())["results"]
    assert set(results) == {
        "segmentation",
        "failure",
        "failure[mutual_information]",
        "failure[threshold=median]",
        "failure[mutual_information,threshold=median]",
    }
    assert results["failure"]["uncertainty"] == "confidence"
    assert results["failure"]["auroc"] == results["failure[threshold=median]"]["auroc"]
    assert (tmp_path / "r.states.zip").exists()
    assert "failure.auroc" in (tmp_path / "i.csv").read_text().splitlines()[0]


def test_the_table(complete: Path) -> None:
    shown = run_well("failure", complete).stdout
    for word in ("AUROC", "AUPR error", "undetected", "By ground-truth class", "person", "risk"):
        assert word in shown


def test_no_errors_are_null_with_reasons(tmp_path: Path) -> None:
    right = np.zeros((1, 8, 8), "u1")
    p = np.full((1, 2, 2, 8, 8), 0.25, "f4")
    p[:, :, 0] = 0.75
    store = save(tmp_path / "right.zarr", {"probs": p, "labels": right})
    results = uqeval.evaluate(store, metrics=["failure"]).results["failure"]
    for field in ("auroc", "aupr_error", "fpr95"):
        assert results[field] is None and results[f"{field}_reason"]
    assert results["aurc"] == 0.0
    assert results["per_class"][1]["aurc"] is None


def test_refusals(complete: Path, stores: Path) -> None:
    refused(run_uqeval("failure", complete, "--threshold", "middle"), "middle", "median")
    refused(run_uqeval("failure", stores / "preds.zarr"), "labels")
    with pytest.raises(uqeval.UqevalError, match="brier is not an uncertainty"):
        uqeval.evaluate(complete, metrics={"failure": {"uncertainty": "brier"}})


def test_the_base_of_entropies(complete: Path, expected: dict[str, Any]) -> None:
    report = failure(complete, "--log-base", "2")
    assert report["settings"]["failure"]["log_base"] == 2
    found, nats = (r["results"]["failure"] for r in (report, expected))
    bits = nats["uncertainty_threshold"] / np.log(2)
    assert found["uncertainty_threshold"] == pytest.approx(bits, rel=1e-6)
    refused(run_uqeval("failure", complete, "--log-base", "1"), "--log-base 1")


def test_whole_items(complete: Path, tmp_path: Path) -> None:
    report = failure(complete, "--images", "--confidence", "max", "-o", tmp_path / "r.json")
    record = report["results"]["image_failure"]
    items = [item["image_failure"] for item in report["items"]]
    assert record["curve"]["risk"][-1] == pytest.approx(np.mean([own["risk"] for own in items]))
    assert report["settings"]["image_failure"]["confidence"] == "max"
    shown = run_well("failure", complete, "--images").stdout
    assert "Failure detection of whole items" in shown and "Kendall's τ" in shown
    failure(complete, "-o", tmp_path / "pixels.json")
    later = failure(tmp_path / "pixels.json", "--images", "--confidence", "max")
    assert later["results"]["image_failure"] == record
    assert later["results"]["failure"]["auroc"] > 0


def test_options_of_items_and_of_pixels(complete: Path, tmp_path: Path) -> None:
    refused(run_uqeval("failure", complete, "--risk", "dice"), "--risk", "--images")
    (tmp_path / "r.json").write_text("{}")
    report = tmp_path / "r.json"
    refused(run_uqeval("failure", report, complete, "--images"), "is not a report")
    refused(run_uqeval("failure", report, "--images", "--region", "boundary:3"), "--region")
    refused(run_uqeval("failure", report, "--images"), "r.json")
