"""`uqeval merge` and `--part`: parts of a run in processes of their own, joined by another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_uqeval, run_well
from small_stores import N, labels, probs, save

ITEMS = 2 * N


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `s.zarr`, `whole.json`, and `1.json` … `3.json` with their states."""
    folder = tmp_path_factory.mktemp("parts")
    names = [f"i{k}" for k in range(ITEMS)]
    arrays = {"probs": probs(ITEMS), "labels": labels(ITEMS)}
    save(folder / "s.zarr", arrays, {"names": names})
    run = ("pavpu", "s.zarr", "--threshold", "0.9", "--curve-range", "0:1.6", "-q")
    run_well(*run, "-o", "whole.json", cwd=folder)
    for k in (1, 2, 3):
        run_well(*run, "--part", f"{k}/3", "-o", f"{k}.json", cwd=folder)
    return folder


def report(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def test_parts_of_three_processes_are_the_whole(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "merged.json"
    done = run_well("merge", "3.json", "1.states.zip", "2.json", "-o", out, cwd=parts)
    assert "accuracy_by_uncertainty without" in " ".join(done.stderr.split())
    assert "PAvPU" in done.stdout
    merged, whole = report(out), report(parts / "whole.json")
    for record in (merged, whole):
        del record["results"]["pavpu"]["accuracy_by_uncertainty"]
    for key in ("results", "items", "inputs", "settings", "numerics", "partial"):
        assert merged[key] == whole[key], key
    assert (tmp_path / "merged.states.zip").exists()
    run_well("merge", out, "-o", tmp_path / "cut.json", "--ci", "0.9", "-q", cwd=parts)
    assert report(tmp_path / "cut.json")["intervals"]["pavpu.pavpu"]["level"] == 0.9
    run_well("report", out, "-o", tmp_path / "page.html", cwd=parts)
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.1}\n")
    run_well("gate", out, rules, cwd=parts)


def test_a_part_says_what_it_is(parts: Path, tmp_path: Path) -> None:
    own = report(parts / "2.json")
    assert own["partial"]
    assert own["inputs"]["part"] == {"number": 2, "of": 3, "first": 2}
    assert [item["name"] for item in own["items"]] == ["i2", "i3"]
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.1}\n")
    outcome = run_uqeval("gate", "2.json", rules, cwd=parts)
    refused(outcome, "part 2 of 3", "uqeval merge")


def test_missing_parts(parts: Path, tmp_path: Path) -> None:
    refused(run_uqeval("merge", "1.json", "3.json", cwd=parts), "of 3 parts, 2 is missing")
    out = tmp_path / "some.json"
    run_well("merge", "1.json", "3.json", "--allow-missing", "-o", out, "-q", cwd=parts)
    assert report(out)["partial"]


def test_other_thresholds(parts: Path, tmp_path: Path) -> None:
    for k in (1, 2):
        out = tmp_path / f"{k}.json"
        run_well("pavpu", "s.zarr", "--part", f"{k}/2", "-q", "-o", out, cwd=parts)
    outcome = run_uqeval("merge", tmp_path, "-o", tmp_path / "merged.json")
    refused(outcome, "fitted on their own items", "--threshold", "--curve-range")
    assert not (tmp_path / "merged.json").exists()
    assert not list(tmp_path.glob("*merged*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1.json", "1.json"), "is given twice"),
        (("whole.json", "1.json"), "join the parts first"),
        (("none.json",), "No such file"),
        (("none.states.zip",), "none.states.zip: No such file or directory; expected the states"),
        (("s.zarr",), "holds no states files"),
        (("1.json", "2.json", "3.json", "--ci", "7"), "--ci 7"),
        (("1.json", "2.json", "3.json", "-o", "1.json"), "is an input"),
        (("whole.json", "--slice-by", "light"), "--slices FILE.csv"),
    ],
)
def test_what_cannot_be_merged(arguments: tuple[str, ...], says: str, parts: Path) -> None:
    refused(run_uqeval("merge", *arguments, cwd=parts), says)


@pytest.mark.parametrize("part", ["0/3", "x", "9/9", "1/3/3"])
def test_what_is_no_part(part: str, parts: Path) -> None:
    refused(run_uqeval("pavpu", "s.zarr", "--part", part, cwd=parts), "--part")
