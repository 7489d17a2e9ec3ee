"""`uqeval calibration`, the real executable."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from small_stores import CLASS_NAMES, NAMES, labels, probs

calibration = partial(as_json, "calibration")


@pytest.fixture(scope="module")
def report(complete: Path) -> dict[str, Any]:
    return calibration(complete)


def test_numbers(report: dict[str, Any]) -> None:
    p, y = naive.flatten(probs().mean(axis=1, dtype="f8").astype("f4"), labels())
    conf, hit = naive.top(p, y)
    found = report["results"]["calibration"]
    ece, mce = naive.equal_width(conf, hit, 15)
    assert found["ece"] == pytest.approx(ece, rel=1e-9)
    assert found["mce"] == pytest.approx(mce, rel=1e-9)
    assert found["adaptive_ece"] == pytest.approx(naive.adaptive_ece(conf, hit, 15), rel=1e-9)
    assert found["classwise_ece"] == pytest.approx(np.mean(naive.classwise_ece(p, y, 15)), rel=1e-9)
    assert found["nll"] == pytest.approx(naive.nll(p[y, np.arange(y.size)]), rel=1e-9)
    assert found["brier"] == pytest.approx(naive.brier(p, y), rel=1e-6)
    assert [row["name"] for row in found["per_class"]] == CLASS_NAMES
    after = naive.tempered(p, found["temperature"]["value"])
    assert found["temperature"]["nll"] == pytest.approx(
        naive.nll(after[y, np.arange(y.size)]), rel=1e-9
    )
    assert found["temperature"]["nll"] <= found["nll"]


def test_what_a_report_says(report: dict[str, Any]) -> None:
    assert list(report["results"]) == ["segmentation", "calibration"]
    settings = report["settings"]["calibration"]
    assert settings["definition"] == "paper" and settings["bins"] == 15
    assert set(report["numerics"]["calibration"]) >= {"confidence_one", "clipped"}
    assert report["metrics"]["calibration.ece"]["direction"] == "lower"
    assert "calibration.temperature.value" in report["metrics"]
    assert [item["name"] for item in report["items"]] == NAMES
    assert all(0 <= item["calibration"]["ece"] <= 1 for item in report["items"])
    assert any("--fit-on" in text for text in report["warnings"])


def test_table_and_csv(complete: Path, tmp_path: Path) -> None:
    several = ("--bins", "15", "--bins", "10")
    outcome = run_well("calibration", complete, *several, "--csv", "items.csv", cwd=tmp_path)
    assert "class-wise ECE" in outcome.stdout and "calibration[bins=10]" in outcome.stdout
    assert "Reliability (calibration)" in outcome.stdout and "at T =" in outcome.stdout
    with (tmp_path / "items.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(NAMES)
    assert any(name.endswith("ece") for name in rows[0])


def test_a_maps_store_gives_the_same(
    complete: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    run_well("reduce", complete, "-o", "maps.zarr", "-q", cwd=tmp_path)
    found = calibration(tmp_path / "maps.zarr")
    assert found["results"] == report["results"]
    assert found["items"] == report["items"]


def test_fit_on(complete: Path, tmp_path: Path) -> None:
    (tmp_path / "fit.txt").write_text("bonn\n")
    found = calibration(complete, "--fit-on", "fit.txt", cwd=tmp_path)
    scaled = found["results"]["calibration"]["temperature"]
    assert scaled["fitted_on"] == "fit.txt"
    assert scaled["held_out"]["items"] == 2
    assert not any("--fit-on" in text for text in found["warnings"])


def test_held_out_scores_are_in_the_table(complete: Path, tmp_path: Path) -> None:
    (tmp_path / "fit.txt").write_text("bonn\n")
    fits = ("--isotonic", "--vector", "--fit-on", "fit.txt")
    outcome = run_well("calibration", complete, *fits, "-o", "r.json", cwd=tmp_path)
    lines = [line.strip() for line in outcome.stdout.splitlines() if "held out, " in line]
    rows = {line.partition("  ")[0]: line.split() for line in lines}
    record = json.loads((tmp_path / "r.json").read_text())["results"]["calibration"]
    temperature = record["temperature"]["value"]
    expected = {
        "held out, before": record["vector"]["held_out"]["before"],
        f"held out, at T = {temperature:.4f}": record["temperature"]["held_out"]["after"],
        "held out, after isotonic regression": record["isotonic"]["held_out"]["after"],
        "held out, after vector scaling": record["vector"]["held_out"]["after"],
    }
    assert list(rows) == list(expected)
    for heading, scores in expected.items():
        assert f"{scores['nll']:.4f}" in rows[heading], heading
    outcome = run_well("calibration", complete)
    assert "held out" not in outcome.stdout


def test_without_temperature(complete: Path) -> None:
    found = calibration(complete, "--no-temperature", "--definition", "gustafsson-code")
    assert "temperature" not in found["results"]["calibration"]
    assert found["settings"]["calibration"]["at_one"] == "drop"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bins", "0"), "--bins 0"),
        (("--clip", "2"), "--clip 2"),
        (("--at-one", "drop"), "--edge upper"),
        (("--fit-on", "missing.txt"), "missing.txt"),
    ],
)
def test_what_cannot_be(complete: Path, options: tuple[str, ...], words: str) -> None:
    refused(run_uqeval("calibration", complete, *options), words)


def test_no_labels(stores: Path) -> None:
    refused(run_uqeval("calibration", stores / "preds.zarr"), "has no labels")


def test_the_samples_are_scaled(complete: Path, tmp_path: Path) -> None:
    report = calibration(complete, "--temperature-of", "mean", "--temperature-of", "samples")
    key = "calibration[temperature_of=samples]"
    assert report["settings"][key]["temperature_of"] == "samples"
    found, mean = (report["results"][k]["temperature"] for k in (key, "calibration"))
    wide = probs().astype(float) ** (1 / found["value"])
    after = (wide / wide.sum(axis=2, keepdims=True)).mean(axis=1)
    p, y = naive.flatten(after, labels())
    assert found["nll"] == pytest.approx(naive.nll(p[y, np.arange(y.size)]), rel=1e-6)
    assert found["value"] != mean["value"] and found["nll"] <= report["results"][key]["nll"]
    maps = tmp_path / "maps.zarr"
    run_well("reduce", complete, "-o", maps)
    message = refused(
        run_uqeval("calibration", maps, "--temperature-of", "samples"), "--temperature-of samples"
    )
    assert "maps.zarr is a maps store, which has no samples" in message
