"""`uqeval verify --all` of intervals of OOD scores, whose items are drawn within their sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import add, assert_found, differences, read

import uqeval
from uqeval.errors import UqevalError
from uqeval.usecases.verify.verifying import verify

#: By name, the options of a report. The names of groups are in two sets.
RUNS: dict[str, Mapping[str, Any]] = {
    "one": {"out": ["out.npz"]},
    "two": {"out": ["out.npz", "other.npz"]},
    "grouped": {"out": ["out.npz"], "slices": "items.csv", "group_by": "drive"},
    "mask": {"ood_mask": "mask.npz"},
    # FPR95 needs 59 items.
    "many": {"predictions": "many.npz", "ood_mask": "masks.npz"},
}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores and the reports of `RUNS`."""
    folder = tmp_path_factory.mktemp("ood")
    rng = np.random.default_rng(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, items, alpha in (
            ("in", 9, 0.5), ("out", 8, 1.0), ("other", 7, 0.8), ("many", 60, 0.5)
        ):  # fmt: skip
            size = (6, 6) if name == "many" else (20, 20)
            probs = rng.dirichlet(np.full(4, alpha), (items, 1, *size)).transpose(0, 1, 4, 2, 3)
            np.savez(f"{name}.npz", probs=probs.astype(np.float32))
        np.savez("mask.npz", labels=(rng.random((9, 20, 20)) < 0.3).astype(np.uint8))
        np.savez("masks.npz", labels=(rng.random((60, 6, 6)) < 0.5).astype(np.uint8))
        names = [*(f"in/{i}" for i in range(9)), *(f"out/{i}" for i in range(8))]
        rows = "".join(f"{name},d{i % 9 // 2}\n" for i, name in enumerate(names))
        Path("items.csv").write_text("name,drive\n" + rows)
        for name, options in RUNS.items():
            options = {"predictions": "in.npz", **options}
            report = uqeval.evaluate(metrics={"ood": {}}, workers=1, ci=0.9, draws=200, **options)
            report.save(f"{name}.json")
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_intervals_follow_from_the_predictions(name: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    found = verify(f"{name}.json", everything=True)
    assert found.passed, found.problems()
    defined = {score for score, own in record["intervals"].items() if own["low"] is not None}
    of_pixels = {f"ood.{score}" for score in ("auroc", "aupr_out", "aupr_in", "fpr95")} & defined
    assert found.compared["intervals"] == 2 * len(of_pixels) >= 6


@pytest.mark.parametrize("name", RUNS)
def test_changed_ends_are_found(name: str, folder: Path) -> None:
    record, expected = read(f"{name}.json"), []
    for score in ("auroc", "aupr_out", "aupr_in", "fpr95"):
        address = f"ood.{score}"
        if record["intervals"][address]["low"] is None:
            assert name != "many" and score == "fpr95"
            continue
        add(record["intervals"], [(address, "low"), (address, "high")])
        expected += [(f"interval of {address}", f"ood.{end}") for end in ("low", "high")]
    assert_found(differences(record), expected)


@pytest.mark.parametrize("items", [200_000_000_000, -1, "9", 8])
def test_sets_that_do_not_have_the_items(items: Any, folder: Path) -> None:
    """A report may claim any number of items: none is believed before memory is allocated."""
    record = json.loads(Path("one.json").read_text())
    record["inputs"]["sets"][1]["items"] = items
    Path("claims.json").write_text(json.dumps(record))
    if items == 8:
        assert verify("claims.json", everything=True).passed
        return
    with pytest.raises(UqevalError, match="items in the sets of the report"):
        verify("claims.json", everything=True)
