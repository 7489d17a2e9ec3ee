"""`uqeval nmerci` through the real executable."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from number_stores import NAMES, close, numbers
from small_stores import save


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arrays = numbers(1) | {"energy": numbers(1)["std"] * 4}
    return save(tmp_path_factory.mktemp("numbers") / "r.zarr", arrays, {"names": NAMES})


def test_report(store: Path, tmp_path: Path) -> None:
    done = run_well(
        "nmerci", store, "--alpha", "90", "--alpha", "85", "--depth-step", "10", "-o",
        tmp_path / "r.json", "--csv", tmp_path / "r.csv",
    )  # fmt: skip
    assert "n-MeRCI" in done.stdout and "By interval of the target (nmerci)" in done.stdout
    report = json.loads((tmp_path / "r.json").read_text())
    arrays = numbers(1)
    found = naive.pixels(*(arrays[k] for k in ("mean", "std", "target", "valid")))
    for key, alpha in (("nmerci", 90), ("nmerci[alpha=85]", 85)):
        for name, value in naive.nmerci(found, alpha).items():
            assert close(report["results"][key][name], value), name
        assert report["results"][key]["alpha"] == alpha
        rows = report["results"][key]["by_depth"]
        expected = naive.by_depth(found, 10.0, alpha=alpha)
        assert [row["lower"] for row in rows] == [lower for lower, _ in expected]
        assert all(
            close(r["nmerci"], e["nmerci"]) for r, (_, e) in zip(rows, expected, strict=True)
        )
    assert report["results"]["nmerci"]["curve"]["alpha"] == list(range(1, 101))
    assert report["metrics"]["nmerci.nmerci"]["direction"] == "lower"
    assert report["settings"]["nmerci"]["definition"] == "paper"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert [row["name"] for row in rows] == NAMES
    assert float(rows[0]["nmerci.nmerci"]) == report["items"][0]["nmerci"]["nmerci"]
    assert (tmp_path / "r.states.zip").exists()


def test_uncertainty_and_definition(store: Path) -> None:
    report = as_json(
        "nmerci", store, "--uncertainty", "sigma", "--uncertainty", "energy", "--definition",
        "public-code",
    )  # fmt: skip
    first, second = (report["results"][k] for k in ("nmerci", "nmerci[energy]"))
    assert first["nmerci"] == second["nmerci"] and first["lambda"] == 4 * second["lambda"]
    assert report["settings"]["nmerci"]["over"] == "kept"
    assert report["settings"]["nmerci"]["interpolation"] == "truncated"


def test_several_values_of_a_choice_make_variants(store: Path) -> None:
    found = as_json("nmerci", store, "--definition", "paper", "--definition", "public-code")
    assert list(found["results"]) == ["nmerci", "nmerci[definition=public-code]"]
    assert found["settings"]["nmerci[definition=public-code]"]["over"] == "kept"
    assert found["settings"]["nmerci"]["over"] == "all"


def test_paths_are_needed(tmp_path: Path) -> None:
    says = "no PREDS [TARGET] given, and no uqeval.yaml in this folder; give PREDS [TARGET]."
    refused(run_uqeval("nmerci", cwd=tmp_path), says)


def test_an_alpha_that_looks_like_a_fraction(store: Path) -> None:
    said = "--alpha 0.95 is 0.95 %; did you mean 95?"
    assert said in run_well("nmerci", store, "--alpha", "0.95").stderr
    assert "did you mean" not in run_well("nmerci", store, "--alpha", "1").stderr


def test_what_cannot_be(store: Path, tmp_path: Path) -> None:
    bad: list[tuple[list[Any], str]] = [
        (["--alpha", "0"], "--alpha 0; expected a number above 0"),
        (["--alpha", "101"], "--alpha 101"),
        (["--depth-step", "0.001"], "at most 256 are evaluated. Give --depth-step 0.16 or more"),
        (["--depth-step", "-1"], "--depth-step -1"),
        (["--uncertainty", "nobody"], "has no map 'nobody'; it has energy, sigma"),
    ]
    for options, words in bad:
        refused(run_uqeval("nmerci", store, *options, "-o", tmp_path / "r.json"), words)
    assert not list(tmp_path.iterdir())
    probs = tmp_path / "probs.npy"
    np.save(probs, np.full((1, 2, 4, 4), 0.5, "f4"))
    refused(
        run_uqeval("nmerci", probs),
        "holds class predictions; nmerci evaluates predicted numbers only",
        "Class predictions are for",
        "pavpu, calibration, failure",
        f"Try uqeval pavpu {probs}",
    )
