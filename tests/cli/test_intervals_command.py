"""Intervals and slices from the command line, and the gate that reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_uqeval, run_well
from gate_units import checked, miou, verdict
from small_stores import labels, probs, save

N = 12
NAMES = [f"frame_{i}" for i in range(N)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`preds.zarr` and `other.zarr`, `meta.csv`, and a report of each with its states."""
    folder = tmp_path_factory.mktemp("cuts")
    for seed, name in enumerate(("preds", "other")):
        truth = labels(N, 0)
        save(folder / f"{name}.zarr", {"probs": probs(N, seed), "labels": truth}, {"names": NAMES})
    rows = [f"{name},{'night' if i % 2 else 'day'},{i // 3}" for i, name in enumerate(NAMES)]
    (folder / "meta.csv").write_text("\ufeffname,light,drive\n" + "\n".join(rows) + "\n", "utf-8")
    cut = ("--ci", "0.95", "--draws", "400", "--slices", "meta.csv", "--group-by", "drive")
    run_well("pavpu", "preds.zarr", *cut, "--slice-by", "light", "-o", "new.json", cwd=folder)
    run_well("pavpu", "other.zarr", "-o", "old.json", cwd=folder)
    return folder


def report(folder: Path, name: str = "new.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return found


def test_a_report(made: Path) -> None:
    found = report(made)
    assert list(found["slices"]) == ["light=day", "light=night"]
    assert found["settings"]["intervals"]["units"] == 4
    own = found["intervals"]["pavpu.pavpu"]
    assert own["low"] < found["results"]["pavpu"]["pavpu"] < own["high"]
    assert any("intervals come from 4 groups" in text for text in found["warnings"])


@pytest.mark.parametrize("by_file", [False, True])
def test_groups_leave_the_slices_of_other_columns(
    made: Path, tmp_path: Path, by_file: bool
) -> None:
    if by_file:
        (tmp_path / "uqeval.yaml").write_text(
            f"stores: {{city: {{predictions: {made}/preds.zarr}}}}\n"
            "evaluate: {city: {pavpu: {}}}\n"
            f"slices: {made}/meta.csv\ngroup_by: drive\nci: 0.9\noutput: {tmp_path}\n"
        )
        run_well("run", tmp_path / "uqeval.yaml")
    else:
        run_well("merge", "new.json", "--ci", "0.9", "--slices", "meta.csv", "--group-by", "drive",
                 "-o", tmp_path / "city.json", cwd=made)  # fmt: skip
    found = report(tmp_path, "city.json")
    assert list(found["slices"]) == ["light=day", "light=night"]
    assert found["settings"]["intervals"]["group_by"] == "drive"


def test_the_same_seed_gives_the_same_report(made: Path, tmp_path: Path) -> None:
    run_well("pavpu", made / "preds.zarr", "--ci", "0.95", "--draws", "400",
             "--slices", made / "meta.csv", "--group-by", "drive", "--slice-by", "light",
             "-o", tmp_path / "again.json", "--workers", "2")  # fmt: skip
    found = report(tmp_path, "again.json")
    assert all(found[key] == report(made)[key] for key in ("intervals", "slices", "results"))


def test_another_method_for_all_scores(made: Path, tmp_path: Path) -> None:
    run_well("merge", "new.json", "--ci", "0.9", "--interval-method", "jackknife-t",
             "-o", tmp_path / "other.json", cwd=made)  # fmt: skip
    found = report(tmp_path, "other.json")
    assert found["settings"]["intervals"]["method"] == "jackknife-t"
    used = {own["method"] for own in found["intervals"].values()}
    assert "jackknife-t" in used and not used & {"expanded", "percentile"}
    assert {own["method"] for own in report(made)["intervals"].values()} > {"korn-graubard"}
    words = ("--interval-method", "give --ci LEVEL")
    refused(run_uqeval("merge", "new.json", "--interval-method", "percentile", cwd=made), *words)
    refused(run_uqeval("merge", "new.json", "--ci", "0.9", "--interval-method", "bca", cwd=made),
            "bca", "korn-graubard")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "seed", "units"),
    [("new", 0, [i // 3 for i in range(N)]), ("old", 1, list(range(N)))],
    ids=["groups", "items"],
)
def test_movers_and_more_units(
    made: Path, tmp_path: Path, name: str, seed: int, units: list[int]
) -> None:
    """Those of the groups of a report, or of its items, against plain loops over predictions."""
    score = miou(labels(N, 0), probs(N, seed))
    limit = round(score(range(N)) - 0.01, 6)
    rule = f"segmentation.miou: {{min: {limit}, confidence: 0.95}}"
    found = verdict(made / f"{name}.json", tmp_path, rule)
    count = len(set(units))
    assert found["units"]["drawn"] == found["units"]["defined"] == count
    assert found["units"]["name"] == found["more_units"]["unit"]
    checked(found, count, score, NAMES, units, limit)


def test_a_gate_with_confidence(made: Path, tmp_path: Path) -> None:
    low, high = (report(made)["intervals"]["pavpu.pavpu"][end] for end in ("low", "high"))
    night = report(made)["slices"]["light=night"]["intervals"]["segmentation.miou"]
    rules = f"""
        pavpu.pavpu: {{min: {low - 1e-6}, confidence: 0.95}}
        pavpu.p_certain: {{min: 0.0001, confidence: 0.9}}
        segmentation.miou@light=night: {{min: {night["low"] - 1e-6}, confidence: 0.95}}
        segmentation.per_class.car.iou: {{min: 0.001, confidence: 0.95, inconclusive: pass}}
    """.replace("car", "1")
    (tmp_path / "gate.yaml").write_text(rules)
    done = run_uqeval("gate", "new.json", tmp_path / "gate.yaml", "--format", "json", cwd=made)
    assert done.status == 0, done.stderr
    assert [v["status"] for v in json.loads(done.stdout)["verdicts"]] == ["pass"] * 4
    (tmp_path / "gate.yaml").write_text(
        f"pavpu.pavpu: {{min: {(low + high) / 2}, confidence: 0.95}}\n"
        "segmentation.miou: {max_drop: 0.9, confidence: 0.95}\n"
        "segmentation.pixel_accuracy: {max_drop: -0.9, confidence: 0.95}\n"
    )
    done = run_uqeval("gate", "new.json", tmp_path / "gate.yaml", "--baseline", "old.json",
                      "--format", "json", cwd=made)  # fmt: skip
    assert done.status == 1, done.stderr
    verdicts = json.loads(done.stdout)["verdicts"]
    assert [v["status"] for v in verdicts] == ["inconclusive", "pass", "fail"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--ci", "95"),
            ["--ci 95", "expected a number from 0.5 to below 1. For 95 %, write 0.95."],
        ),
        (("--ci", "0,95"), ["A decimal number", "write 0.95"]),
        (("--ci", "0.95", "--draws", "5"), ["--draws 5"]),
        (("--group-by", "drive"), ["--slices FILE.csv"]),
        (("--slices", "meta.csv", "--group-by", "drive"), ["--ci LEVEL"]),
        (("--slices", "absent.csv"), ["absent.csv cannot be read: No such file"]),
        (("--slices", "meta.csv", "--slice-by", "city"), ["no column 'city'", "light, drive"]),
        (("--slices", "meta.csv", "--slice-by", "light,light"), ["a column twice"]),
        (("--slices", "preds.zarr"), ["cannot be read as CSV"]),
    ],
)
def test_refused(made: Path, arguments: tuple[str, ...], words: list[str]) -> None:
    refused(run_uqeval("pavpu", "preds.zarr", *arguments, cwd=made), *words)


def test_a_gate_without_states(made: Path, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text((made / "new.json").read_text())
    (tmp_path / "gate.yaml").write_text("pavpu.pavpu: {min: 0.1, confidence: 0.5}")
    done = run_uqeval("gate", "new.json", "gate.yaml", cwd=tmp_path)
    refused(done, "new.states.zip", "does not exist")
