"""`uqeval verify --all` of intervals: each end follows from the predictions, or is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import assert_found, differences, read
from saved_runs import stack

import uqeval
from uqeval.statistics import methods, no_interval
from uqeval.statistics.methods import FEW_EVENTS
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.comparing import Tally, compare
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


#: By run, the keys and fields of scores with an interval.
SCORES: dict[str, list[tuple[str, str]]] = {
    "rows": [
        ("segmentation", "per_class.1.iou"), ("segmentation", "per_class.2.accuracy"),
        ("pavpu", "per_class.1.pavpu"), ("pavpu", "per_class.2.pavpu_chance"),
        ("calibration", "per_class.0.ece"),
    ],
    "failure": [
        *(("failure", name) for name in (
            "auroc", "aupr_error", "aupr_success", "aurc", "e_aurc", "augrc",
            "risk_at_coverage.80", "undetected_error_rate", "per_class.1.undetected_error_rate")),
        ("failure@box:0:0.6,0:1", "auroc"),
    ],
    "sparsification": [("sparsification", "ause"), ("sparsification[zero-one]", "aurg")],
    "numbers": [
        ("sparsification", "ause"), ("sparsification[mae]", "aurg"),
        *(("regression", name) for name in (
            "rmse", "mae", "nmse", "auce", "nll", "crps", "sharpness")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_intervals_follow_from_the_predictions(name: str, folder: Path) -> None:
    found = verify(f"{name}.json", everything=True)
    assert found.passed, found.problems()
    record = json.loads(Path(f"{name}.json").read_text())
    ends = sum(2 for own in record["intervals"].values() if own["low"] is not None)
    assert found.compared["intervals"] > 0.5 * ends


@pytest.mark.parametrize("name", RUNS)
def test_changed_ends_are_found(name: str, folder: Path) -> None:
    record, expected = read(f"{name}.json"), []
    for key, field in SCORES[name]:
        # A region has dots, so its name is quoted.
        family, at, region = key.partition("@")
        address = f'{family}@"{region}".{field}' if at else f"{key}.{field}"
        record["intervals"][address]["high"] *= 1.001
        expected.append((f"interval of {address}", f"{key}.high"))
    assert_found(differences(record), expected)


@pytest.mark.parametrize("name", RUNS)
def test_another_method_does_not_spare_the_ends(name: str, folder: Path) -> None:
    record, expected = read(f"{name}.json"), []
    for address, own in record["intervals"].items():
        if own["low"] is not None:
            own["method"] = "forged"
            expected.append(f"interval of {address}")
    key, field = SCORES[name][0]
    record["intervals"][f"{key}.{field}"]["high"] += 0.1
    found = [(one.where, one.field.rpartition(".")[2]) for one in differences(record)]
    ends = (f"interval of {key}.{field}", "high")
    assert sorted(found) == sorted([ends, *((where, "method") for where in expected)])


def test_percentiles_follow_from_the_predictions(folder: Path) -> None:
    report = uqeval.evaluate(
        "classes.npz", metrics="segmentation", workers=1, ci=0.9, draws=300,
        interval_method="percentile",
    )  # fmt: skip
    record = json.loads(report.to_json())
    assert differences(record) == []
    record["intervals"]["segmentation.miou"]["low"] -= 0.01
    assert [str(one.field) for one in differences(record)] == ["segmentation.low"]


def test_shares_by_the_rule_of_an_earlier_version_are_no_differences(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All images with errors counted alike there, also if two have most of the errors."""
    monkeypatch.setattr(methods, "few_events", lambda share, own: (own < 1).sum() < FEW_EVENTS)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (20, 16, 16)).astype("u1")
    wrong = rng.random(labels.shape) < np.where(np.arange(20) < 2, 0.9, 0.02)[:, None, None]
    np.savez("bad.npz", predictions=labels ^ wrong, labels=labels)
    report = uqeval.evaluate("bad.npz", metrics="segmentation", workers=1, classes=2, ci=0.9)
    report.save("bad.json")
    found = verify("bad.json", everything=True)
    assert found.passed, found.problems()
    expected = "not of this one: interval of segmentation.pixel_accuracy."
    assert any(text.endswith(expected) for text in found.not_verified), found.not_verified
    record = read("bad.json")
    record["intervals"]["segmentation.pixel_accuracy"]["low"] += 0.01
    assert [str(one.field) for one in differences(record)] == [
        "segmentation.low", "segmentation.high",
    ]  # fmt: skip


def clumped(share: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Maps of 20 items, of which 4 have a clump of wrong pixels, and their labels; a share of the
    wrong pixels is certain."""
    rng = np.random.default_rng(3)
    wrong = np.zeros((20, 8, 8), bool)
    wrong[:4, :3, :6] = True
    is_raised = wrong & (rng.random(wrong.shape) >= share)
    energy = (rng.random(wrong.shape) + 2 * is_raised).astype("f4")
    return {"predictions": wrong.astype("u1"), "energy": energy}, np.zeros(wrong.shape, "u1")


@pytest.mark.parametrize("share", [0.0, 0.06, 0.5])
def test_intervals_of_few_events_or_without_width_are_of_an_earlier_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Both versions' reports are verified; the ends of the earlier one only if they follow."""
    maps, labels = clumped(share)
    np.savez("clumps.npz", **maps, labels=labels)

    def evaluated() -> None:
        uqeval.evaluate(
            "clumps.npz", metrics={"failure": {"uncertainty": "energy"}}, workers=1, classes=2,
            ci=0.95, draws=300,
        ).save("clumps.json")  # fmt: skip

    evaluated()
    found = verify("clumps.json", everything=True)
    assert found.passed and "earlier version" not in str(found.not_verified), found.problems()
    own = read("clumps.json")["intervals"]["failure.risk_at_coverage.80"]
    assert (own["low"] is None) == (share < 0.5)
    monkeypatch.setattr(no_interval, "_too_few_events", lambda *given: None)
    monkeypatch.setattr(methods, "unless_same", lambda bounds, *given: bounds)
    evaluated()
    found = verify("clumps.json", everything=True)
    assert found.passed, found.problems()
    named = "interval of failure.risk_at_coverage.80" in str(found.not_verified)
    assert named == (share < 0.5), found.not_verified


def test_undefined_ends_are_none() -> None:
    """JSON has no NaN, so the record of the verification could not be written."""
    tally, ends = Tally(0, []), {"low": math.nan, "high": math.inf}
    compare("interval of pavpu.phi", "pavpu", {"low": 0.5, "high": None}, ends, {}, tally)
    compare("interval of pavpu.phi", "pavpu", {}, {"low": math.nan}, {}, tally)
    assert [(one.reported, one.recomputed) for one in tally.differences] == [
        (0.5, None),
        (None, None),
    ]


#: By run, addresses whose interval is recomputed, or not.
UNITS = {"rows": ("segmentation.miou",), "failure": ("failure.auroc", "failure.e_aurc")}


@pytest.mark.parametrize("name", UNITS)
def test_changed_levels_and_units_are_found(name: str, folder: Path) -> None:
    record, expected, follow = read(f"{name}.json"), [], []
    for address in UNITS[name]:
        own, family = record["intervals"][address], address.partition(".")[0]
        own["level"] += 0.04
        own["units"] |= {
            "name": "pair", "drawn": own["units"]["drawn"] + 1,
            "defined": own["units"]["defined"] + 1,
        }  # fmt: skip
        where = f"interval of {address}"
        fields = ("level", "units.name", "units.drawn", "units.defined")
        expected += [(where, f"{family}.{field}") for field in fields]
        follow += [(where, f"{family}.{end}") for end in ("low", "high")]  # from the level
    assert_found(differences(record), expected, follow)


def test_other_fields_of_intervals_are_named(folder: Path) -> None:
    found = verify("rows.json", everything=True)
    assert any("standard_error is not recomputed" in text for text in found.not_verified)
    record = json.loads(Path("rows.json").read_text())
    (sentence,) = (text for text in found.not_verified if text.startswith("units.defined is"))
    assert sentence.endswith(f"of {len(record['intervals'])} intervals.")


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
