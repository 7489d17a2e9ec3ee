"""`uqeval verify --all` of intervals: each end follows from the predictions, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import stack

import uqeval
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.verifying import verify

#: By name: the store, metrics and options of a report.
RUNS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "rows": ("classes.npz", {"segmentation": {}, "pavpu": {}, "calibration": {}}, {}),
    "failure": ("classes.npz", {"failure": {}}, {"region": ["box:0:0.6,0:1"]}),
    "sparsification": (
        "classes.npz", {"sparsification": {"error": ["brier", "zero-one"], "steps": 10}}, {},
    ),
    "numbers": (
        "numbers.npz", {"regression": {}, "sparsification": {"error": ["rmse", "mae"]}}, {},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores and the reports of `RUNS`."""
    folder = tmp_path_factory.mktemp("intervals")
    probs, labels = stack(9)
    np.savez(folder / "classes.npz", probs=probs, labels=labels)
    np.savez(folder / "numbers.npz", **synthetic_data.numbers("intervals", items=9))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, (store, metrics, options) in RUNS.items():
            report = uqeval.evaluate(
                store, metrics=metrics, workers=1, ci=0.9, draws=300, **options
            )
            report.save(f"{name}.json")
    return folder


#: Run, and the addresses of scores with an interval.
SCORES: list[tuple[str, str]] = [
    ("rows", "segmentation.per_class.1.iou"), ("rows", "segmentation.per_class.2.accuracy"),
    ("rows", "pavpu.per_class.1.pavpu"), ("rows", "pavpu.per_class.2.pavpu_chance"),
    ("rows", "calibration.per_class.0.ece"),
    *(("failure", f"failure.{name}") for name in (
        "auroc", "aupr_error", "aupr_success", "aurc", "e_aurc", "augrc",
        "risk_at_coverage.80",
        "undetected_error_rate", "per_class.1.undetected_error_rate")),
    ("failure", 'failure@"box:0:0.6,0:1".auroc'),
    ("sparsification", "sparsification.ause"), ("sparsification", "sparsification[zero-one].aurg"),
    ("numbers", "sparsification.ause"), ("numbers", "sparsification[mae].aurg"),
    *(("numbers", f"regression.{name}") for name in (
        "rmse", "mae", "nmse", "auce", "nll", "crps", "sharpness")),
]  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_intervals_follow_from_the_predictions(name: str, folder: Path) -> None:
    found = verify(f"{name}.json", everything=True)
    assert found.passed, found.problems()
    record = json.loads(Path(f"{name}.json").read_text())
    ends = sum(2 for own in record["intervals"].values() if own["low"] is not None)
    assert found.compared["intervals"] > 0.5 * ends


@pytest.mark.parametrize(("name", "address"), SCORES)
def test_a_changed_end_is_found(name: str, address: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    record["intervals"][address]["high"] *= 1.001
    Path("changed.json").write_text(json.dumps(record))
    found = verify("changed.json", everything=True)
    assert [own.where for own in found.differences] == [f"interval of {address}"]


#: Run, and an address whose interval is recomputed, or not.
UNITS = [("rows", "segmentation.miou"), ("failure", "failure.auroc"), ("failure", "failure.e_aurc")]


@pytest.mark.parametrize(("name", "address"), UNITS)
@pytest.mark.parametrize("field", ["level", "name", "drawn", "defined"])
def test_a_changed_level_or_unit_is_found(
    name: str, address: str, field: str, folder: Path
) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    own = record["intervals"][address]
    place = own if field == "level" else own["units"]
    place[field] = "pair" if field == "name" else place[field] + (1 if field != "level" else 0.04)
    Path("changed.json").write_text(json.dumps(record))
    found = verify("changed.json", everything=True)
    where = f"interval of {address}"
    dotted = field if field == "level" else f"units.{field}"
    assert (where, f"{name if name == 'failure' else 'segmentation'}.{dotted}") in [
        (own.where, own.field) for own in found.differences
    ]
    assert {own.where for own in found.differences} == {where}


def test_other_fields_of_intervals_are_named(folder: Path) -> None:
    found = verify("rows.json", everything=True)
    assert any("standard_error is not recomputed" in text for text in found.not_verified)
    record = json.loads(Path("rows.json").read_text())
    (sentence,) = (text for text in found.not_verified if text.startswith("units.defined of"))
    assert sentence.endswith(f"of {len(record['intervals'])} is not recomputed.")


def test_a_changed_level_of_a_slice_and_units_of_groups_are_found(folder: Path) -> None:
    rows = [f"{i},{'wet' if i % 2 else 'dry'},{i // 2}" for i in range(9)]
    Path("items.csv").write_text("\n".join(["name,weather,drive", *rows]))
    np.savez("named.npz", **np.load("classes.npz"), names=np.array([str(i) for i in range(9)]))
    uqeval.evaluate(
        "named.npz", metrics=["segmentation"], workers=1, ci=0.9, draws=300,
        slices="items.csv", slice_by=["weather"], group_by="drive", states="s.zip",
    ).save("sliced.json")  # fmt: skip
    found = verify("sliced.json", everything=True)
    assert found.passed, found.problems()
    record = json.loads(Path("sliced.json").read_text())
    of_slice = record["slices"]["weather=wet"]["intervals"]["segmentation.miou"]
    assert of_slice["units"] == {"name": "group", "drawn": 4, "defined": 4}
    of_slice["level"], of_slice["units"]["drawn"] = 0.95, 5
    record["intervals"]["segmentation.miou"]["units"]["drawn"] = 9
    Path("sliced.json").write_text(json.dumps(record))
    fields = [own.field for own in verify("sliced.json", everything=True).differences]
    drawn = "segmentation.units.drawn"
    assert sorted(fields) == ["segmentation.level", drawn, drawn]
