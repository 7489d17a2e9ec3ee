"""`--region` and `region:` through the executable, from the read to the gate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import refused, run_uqeval, run_well


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `preds.npy`, `labels.npy` and a `uqeval.yaml`."""
    place = tmp_path_factory.mktemp("regions")
    rng = np.random.default_rng(0)
    label = np.kron(rng.integers(0, 3, (3, 3, 4)), np.ones((8, 8), int)).astype("u1")
    hit = label[:, None] == np.arange(3)[:, None, None]
    probs = np.exp(rng.normal(size=(3, 2, *hit.shape[1:])) + 2 * hit[:, None])
    np.save(place / "preds.npy", (probs / probs.sum(2, keepdims=True)).astype("f4"))
    np.save(place / "labels.npy", label)
    (place / "uqeval.yaml").write_text(
        "stores:\n  city: {predictions: preds.npy, labels: labels.npy, region: [boundary:2]}\n"
        "evaluate: {city: {calibration: {}}}\n"
    )
    return place


def test_a_command(folder: Path) -> None:
    found = run_well(
        "calibration", "preds.npy", "labels.npy", "--region", "boundary:2", "--region",
        "interior:2", "-o", "r.json", cwd=folder,
    )  # fmt: skip
    assert "calibration@boundary:2" in found.stdout
    assert "segmentation@interior:2" in found.stdout
    results = json.loads((folder / "r.json").read_text())["results"]
    assert [key for key in results if "@" in key] == [
        "segmentation@boundary:2", "segmentation@interior:2",
        "calibration@boundary:2", "calibration@interior:2",
    ]  # fmt: skip
    (folder / "rules.yaml").write_text('"calibration@boundary:2.ece": {max: 0.99}\n')
    found = run_well("gate", "r.json", "rules.yaml", cwd=folder)
    assert "calibration@boundary:2.ece" in found.stdout


def test_a_file(folder: Path) -> None:
    run_well("run", "-o", "out", cwd=folder)
    report = json.loads((folder / "out" / "city.json").read_text())
    assert report["results"]["calibration@boundary:2"]["ece"] is not None


@pytest.mark.parametrize("text", ["edge:3", "boundary:-1", "boundary"])
def test_bad_regions(folder: Path, text: str) -> None:
    found = run_uqeval(
        "failure", "preds.npy", "labels.npy", "--region", text, "-o", "no.json", cwd=folder
    )
    refused(found, "expected boundary:R, interior:R")
    assert not (folder / "no.json").exists()
