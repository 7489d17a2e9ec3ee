"""`uqeval sweep` through the real executable: classes, numbers, and a reference."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from number_stores import NAMES, numbers
from small_stores import T, save, save_predictions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mixture.zarr`, `gaussian.zarr` (the same items, one member), `samples.zarr` with NaN."""
    at = tmp_path_factory.mktemp("numbers")
    arrays = numbers(1, 4)
    save(at / "mixture.zarr", arrays, {"names": NAMES})
    gaussian = {k: v for k, v in numbers(2).items() if k in ("mean", "std")}
    save(at / "gaussian.zarr", gaussian, {"names": NAMES})
    samples = arrays.pop("mean")
    samples[0, 1, :3] = np.nan
    own = {"samples": samples, "target": arrays["target"]}
    save(at / "samples.zarr", own, {"names": NAMES})
    return at


def rows(text: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_of_numbers(folder: Path, tmp_path: Path) -> None:
    done = run_well(
        "sweep", folder / "mixture.zarr", "--samples", "1,2,4", "--repeats", "4,2,1",
        "--error", "mae", "--csv", "out.csv", "-o", "out.json", cwd=tmp_path,
    )  # fmt: skip
    assert "M = 2" in done.stdout and "nmerci.nmerci" in done.stdout
    text = (tmp_path / "out.csv").read_text()
    assert text.splitlines()[0] == "name,m,draw,index,value"
    found = rows(text)
    rmse = [(r["m"], r["draw"]) for r in found if r["name"] == "regression.rmse"]
    assert rmse == [("1", "0"), ("1", "1"), ("1", "2"), ("1", "3"), ("2", "0"), ("2", "1"),
                    ("4", "0")]  # fmt: skip
    curve = [r for r in found if r["name"] == "sparsification.curve" and r["m"] == "4"]
    assert [r["index"] for r in curve] == [str(k) for k in range(100)]
    report = json.loads((tmp_path / "out.json").read_text())
    values = report["results"]["sweep"]["sparsification.curve"]["values"][2][0]
    assert [float(r["value"]) for r in curve] == values
    assert report["settings"]["sparsification"]["error"] == "mae"
    assert report["settings"]["sweep"]["repeats"] == [4, 2, 1]


def test_samples_with_nan(folder: Path) -> None:
    path = folder / "samples.zarr"
    refused(run_uqeval("sweep", path), "of member 1", "--nan-samples skip")
    done = run_well("sweep", path, "--nan-samples", "skip", "--format", "csv")
    assert "a pixel is left out if no sample of the subset is a number" in done.stderr
    found = rows(done.stdout)
    empty = {r["m"] for r in found if r["name"] == "nmerci.nmerci" and not r["value"]}
    assert "1" in empty and "4" not in empty
    errors = [r["value"] for r in found if r["name"] == "regression.mae" and r["m"] == "1"]
    assert len(errors) == 4 and all(errors)


def test_reference_alone(folder: Path, stores: Path, tmp_path: Path) -> None:
    save_predictions(tmp_path / "other.zarr")
    done = run_well(
        "sweep", stores / "preds.zarr", "--reference", tmp_path / "other.zarr", "--format", "csv"
    )
    found = rows(done.stdout)
    assert {r["name"] for r in found} == {
        "divergence.kl", "divergence.pixels", "divergence.infinite",
    }  # fmt: skip
    kl = [[float(r["value"]) for r in found if r["name"] == "divergence.kl" and r["m"] == m]
          for m in ("1", "2", "4")]  # fmt: skip
    assert [len(one) for one in kl] == [4, 6, 1]
    assert math.fsum(kl[0]) / 4 > math.fsum(kl[1]) / 6 > kl[2][0] == 0
    done = run_well(
        "sweep", folder / "mixture.zarr", "--reference", folder / "gaussian.zarr", "--metric",
        "regression",
    )  # fmt: skip
    assert "divergence.kl" in done.stdout and "nmerci" not in done.stdout


def test_class_labels_and_clip(stores: Path) -> None:
    report = as_json(
        "sweep", stores / "complete.zarr", "--reference", stores / "preds.zarr", "--clip", "1e-3",
        "--samples", "4",
    )  # fmt: skip
    assert report["settings"]["divergence"]["clip"] == 1e-3
    assert report["results"]["sweep"]["divergence.kl"]["mean"] == [0]
    assert report["inputs"]["reference"]["path"] == str(stores / "preds.zarr")


def test_help_says_what_csv_has() -> None:
    text = " ".join(run_well("sweep", "--help").stdout.replace("│", " ").split())
    assert "one row per metric, M and draw" in text and "one row per item" not in text


def test_what_cannot_be(folder: Path, stores: Path, tmp_path: Path) -> None:
    mixture, preds = folder / "mixture.zarr", stores / "preds.zarr"
    refused(run_uqeval("sweep", mixture, "--samples", "5"), "holds 4 samples")
    refused(run_uqeval("sweep", mixture, "--repeats", "0"), "--repeats")
    refused(run_uqeval("sweep", mixture, "--metric", "pavpu"), "holds predicted numbers")
    refused(run_uqeval("sweep", mixture, "--reference", preds), "holds class predictions")
    refused(run_uqeval("sweep", mixture, "--clip", "0.1"), "--clip", "divergence")
    refused(run_uqeval("sweep", preds, "--samples", str(T + 1)), f"holds {T} samples")
    refused(run_uqeval("sweep", preds), "has no labels")
    said = refused(
        run_uqeval("sweep", mixture, "--metric", "rmse"),
        "--metric rmse; 'rmse' is a score of regression. Give --metric regression.",
    )
    assert "metrics" not in said
    other = save(tmp_path / "other.zarr", {"mean": np.zeros((2, 12, 16), "f4")})
    refused(run_uqeval("sweep", mixture, "--reference", other), "items")
    refused(run_uqeval("sweep", mixture, "--reference", tmp_path / "none.zarr"), "none.zarr")
    np.savez(tmp_path / "other.npz", mean=np.zeros((3, 12, 16)))
    given = ("--reference", tmp_path / "other.npz", "-o", tmp_path / "other.npz")
    refused(run_uqeval("sweep", mixture, *given), "is an input")


def test_a_sweep_has_no_worst_items(stores: Path, tmp_path: Path) -> None:
    run_well("sweep", stores / "complete.zarr", "-q", "-o", tmp_path / "s.json")
    for more in ((), ("--predictions", stores / "complete.zarr")):
        done = run_uqeval("report", tmp_path / "s.json", "--gallery", "2", *more)
        refused(done, "--gallery", "has no scores of items", "--item NAME")
    assert not (tmp_path / "s.html").exists()
