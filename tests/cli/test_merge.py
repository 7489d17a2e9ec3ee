"""`uqeval merge` and `--part`: parts of a run in processes of their own, joined by another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_uqeval, run_well
from small_stores import N, labels, probs, save

import uqeval

ITEMS = 2 * N


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `s.zarr`, `whole.json`, and `1.json` … `3.json` with their states."""
    folder = tmp_path_factory.mktemp("parts")
    names = [f"i{k}" for k in range(ITEMS)]
    arrays = {"probs": probs(ITEMS), "labels": labels(ITEMS)}
    save(folder / "s.zarr", arrays, {"names": names})
    run = ("pavpu", "s.zarr", "--threshold", "0.9", "--curve-range", "0:1.6", "--no-deciles", "-q")
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
    assert "PAvPU" in done.stdout
    merged, whole = report(out), report(parts / "whole.json")
    for key in ("results", "items", "inputs", "settings", "numerics", "partial"):
        assert merged[key] == whole[key], key
    assert (tmp_path / "merged.states.zip").exists()
    run_well("merge", out, "-o", tmp_path / "cut.json", "--ci", "0.9", "-q", cwd=parts)
    assert report(tmp_path / "cut.json")["intervals"]["pavpu.pavpu"]["level"] == 0.9
    run_well("report", out, "-o", tmp_path / "page.html", cwd=parts)
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.1}\n")
    run_well("gate", out, rules, cwd=parts)


@pytest.mark.parametrize("is_there", [False, True])
def test_an_error_leaves_report_and_states_as_they_were(
    is_there: bool, parts: Path, tmp_path: Path
) -> None:
    out = ("-o", tmp_path / "m.json")
    if is_there:
        run_well("merge", "whole.json", "--threshold", "0.8", *out, "-q", cwd=parts)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 2 * is_there
    table = tmp_path / "items.csv"
    table.write_text("name,weather\ni0,rain\n")
    failing = run_uqeval("merge", "whole.json", "--slices", table, *out, cwd=parts)
    refused(failing, "items have no row")
    table.unlink()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_part_says_what_it_is(parts: Path, tmp_path: Path) -> None:
    own = report(parts / "2.json")
    assert own["partial"]
    assert own["inputs"]["part"] == {"number": 2, "of": 3, "first": 2}
    assert [item["name"] for item in own["items"]] == ["i2", "i3"]
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.1}\n")
    outcome = run_uqeval("gate", "2.json", rules, cwd=parts)
    refused(outcome, "shard 2 of 3", "uqeval merge")


def test_missing_parts(parts: Path, tmp_path: Path) -> None:
    refused(run_uqeval("merge", "1.json", "3.json", cwd=parts), "of 3 shards, number 2 is missing")
    out = tmp_path / "some.json"
    run_well("merge", "1.json", "3.json", "--allow-missing", "-o", out, "-q", cwd=parts)
    assert report(out)["partial"]


def test_rounds_of_processes_are_the_whole(parts: Path, tmp_path: Path) -> None:
    """Default settings need several passes: the same command, and a file of fits, for each."""
    run = ("pavpu", parts / "s.zarr", "-q")
    run_well(*run, "-o", "whole.json", "--ci", "0.9", cwd=tmp_path)
    (tmp_path / "parts").mkdir()
    fitted: tuple[str, ...] = ()
    lines = []
    while not lines or lines[-1] != "done\n":
        for k in (1, 2):
            shard = ("--part", f"{k}/2", "-o", f"parts/{k}.json", *fitted)
            run_well(*run, *shard, cwd=tmp_path)
        if not fitted:
            outcome = run_uqeval("merge", "parts", "-o", "merged.json", cwd=tmp_path)
            refused(outcome, "have counted 1 pass, and need another", "uqeval merge --fit")
            assert "--threshold NUMBER --curve-range LOW:HIGH --no-deciles" in outcome.stderr
        lines.append(run_well("merge", "--fit", "parts", "-o", "f.json", cwd=tmp_path).stdout)
        fitted = ("--fitted", "f.json")
    assert lines == [
        "next: pavpu, pavpu/accuracy_by_uncertainty\n", "next: pavpu/accuracy_by_uncertainty\n",
        "done\n",
    ]  # fmt: skip
    refused(
        run_uqeval(*run, "--part", "1/2", "-o", "parts/1.json", *fitted, cwd=tmp_path),
        "all passes are counted",
    )
    run_well("merge", "parts", "-o", "merged.json", "--ci", "0.9", "-q", cwd=tmp_path)
    merged, whole = report(tmp_path / "merged.json"), report(tmp_path / "whole.json")
    for key in ("results", "items", "inputs", "settings", "numerics", "intervals", "warnings"):
        assert merged[key] == whole[key], key


def test_intervals_of_merged_shards_have_the_draws_of_the_shards(
    parts: Path, tmp_path: Path
) -> None:
    """So that they are those of one run; options of the merge count first."""
    run = ("calibration", parts / "s.zarr", "--no-adaptive", "--no-temperature", "-q")
    drawn = ("--ci", "0.9", "--draws", "150", "--seed", "3", "--interval-method", "percentile")
    run_well(*run, *drawn, "-o", "whole.json", cwd=tmp_path)
    (tmp_path / "parts").mkdir()
    for k in (1, 2):
        run_well(*run, *drawn, "--part", f"{k}/2", "-o", f"parts/{k}.json", cwd=tmp_path)
    run_well("merge", "parts", "-o", "m.json", "--ci", "0.9", "-q", cwd=tmp_path)
    merged, whole = report(tmp_path / "m.json"), report(tmp_path / "whole.json")
    assert whole["results"]["calibration"]["ece_debiased"] is not None
    for key in ("results", "settings", "intervals"):
        assert merged[key] == whole[key], key
    found = uqeval.merge(tmp_path / "parts", ci=0.9, draws=2000)
    own = found.settings["intervals"]
    assert (own["draws"], own["seed"], own["method"]) == (2000, 3, "percentile")
    options = ("--draws", "2000", "--seed", "0", "--interval-method", "auto")
    run_well("merge", "parts", "-o", "d.json", "--ci", "0.9", *options, "-q", cwd=tmp_path)
    own = report(tmp_path / "d.json")["settings"]["intervals"]
    assert (own["draws"], own["seed"], own["method"]) == (2000, 0, "auto")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("merge", "--fit", "1.json", "2.json", "3.json"), "-o FITTED.json"),
        (("merge", "--fit", "1.json", "2.json", "-o", "f.json"), "shards, number 3 is missing"),
        (("merge", "--fit", "whole.json", "-o", "f.json"), "is for the shards of a run"),
        (("merge", "--fit", "1.json", "-o", "f.json", "--ci", "0.9"), "--ci has no effect"),
        (("merge", "--fit", "1.json", "2.json", "3.json", "-o", "2.json"), "is an input"),
        (("pavpu", "s.zarr", "--fitted", "f.json", "-o", "x.json"), "give --part K/N"),
        (("pavpu", "s.zarr", "--part", "1/2"), "give -o FILE"),
        (("pavpu", "s.zarr", "--part", "1/3", "--fitted", "whole.json", "-o", "x.json"),
         "its schema is 'uqeval.report/1'"),
        (("pavpu", "s.zarr", "--part", "1/3", "--fitted", "no.json", "-o", "x.json"),
         "No such file"),
    ],
)  # fmt: skip
def test_what_is_no_round(arguments: tuple[str, ...], says: str, parts: Path) -> None:
    before = sorted(parts.iterdir())
    refused(run_uqeval(*arguments, cwd=parts), says)
    assert sorted(parts.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1.json", "1.json"), "is given twice"),
        (("whole.json", "1.json"), "join the shards first"),
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
