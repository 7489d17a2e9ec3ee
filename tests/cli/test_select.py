"""`uqeval select`, the real executable: which frames or images to label next."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from small_stores import save
from small_videos import numbered, save_folder, video

import uqeval

NAMES = [*numbered(6, "a", 2), *(f"a_{k:03}" for k in (40, 42, 44)), *numbered(4, "b")]
PAIRS = ["a_002", "a_004", "a_006", "a_008", "a_010", "a_042", "a_044", "b_001", "b_002", "b_003"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two sequences, whose scores the tests set."""
    folder = tmp_path_factory.mktemp("select")
    save_folder(folder / "v", video(NAMES))
    run_well("tc", "v", "-o", "r.json", "--tracks", cwd=folder)
    return folder / "r.json"


def given(report: Path, folder: Path, tc: Mapping[str, float | None], **fields: Any) -> Path:
    """The report with these TC_t, 0.9 elsewhere, and other fields {pair: value}."""
    record = json.loads(report.read_text())
    assert [item["name"] for item in record["items"]] == PAIRS
    for item in record["items"]:
        own = item["temporal"]
        own |= {"tc": tc.get(item["name"], 0.9), "cut": False, "coverage": 1.0}
        for name, values in fields.items():
            if item["name"] in values:
                own[name] = values[item["name"]]
    path = folder / "r.json"
    path.write_text(json.dumps(record))
    return path


def chosen(path: Path, *options: str) -> list[str]:
    text = run_well("select", path, "--format", "csv", *options).stdout
    return [row["name"] for row in csv.DictReader(io.StringIO(text))]


def test_the_worst_comes_first_without_its_neighbours(report: Path, tmp_path: Path) -> None:
    tc = {"a_004": 0.5, "a_006": 0.55, "b_002": 0.3, "a_010": 0.6}
    path = given(report, tmp_path, tc)
    assert chosen(path, "-n", "3") == ["b_002", "a_004", "a_010"]
    assert chosen(path, "-n", "4", "--min-gap", "0") == ["b_002", "a_004", "a_006", "a_010"]
    assert chosen(path, "--min-gap", "2")[:3] == ["b_002", "a_004", "a_010"]
    assert chosen(path, "--min-gap", "3")[:3] == ["b_002", "a_004", "a_042"]


def test_a_gap_in_the_numbers_is_a_distance(report: Path, tmp_path: Path) -> None:
    path = given(report, tmp_path, {"a_010": 0.1, "a_042": 0.2, "a_044": 0.25})
    assert chosen(path, "-n", "2", "--min-gap", "10") == ["a_010", "a_042"]
    assert chosen(path, "-n", "3", "--min-gap", "17")[1:] == ["b_001"]


def test_so_many_of_a_sequence(report: Path, tmp_path: Path) -> None:
    path = given(report, tmp_path, {name: k / 20 for k, name in enumerate(PAIRS)})
    assert chosen(path, "--min-gap", "0", "--per-sequence", "2") == [*PAIRS[:2], "b_001", "b_002"]


def test_cuts_and_failed_flow_are_left_out(report: Path, tmp_path: Path) -> None:
    path = given(
        report, tmp_path, {"a_004": 0.1, "b_001": 0.2, "a_010": 0.3, "b_003": None},
        cut={"a_004": True}, coverage={"b_001": 0.2},
    )  # fmt: skip
    assert chosen(path, "-n", "1") == ["a_010"]
    assert chosen(path, "-n", "1", "--keep-cuts") == ["a_004"]
    assert chosen(path, "-n", "1", "--min-coverage", "0.1") == ["b_001"]
    assert "b_003" not in chosen(path, "--min-gap", "0")
    text = run_well("select", path).stdout
    for words in ("scene cut: 1", "coverage below 0.5: 1", "undefined: 1", "a_010"):
        assert words in text


def test_the_way_of_a_score_is_known(report: Path, tmp_path: Path) -> None:
    path = given(
        report, tmp_path, {}, mse_warp={"b_002": 0.5}, changed={n: k for k, n in enumerate(PAIRS)}
    )
    assert chosen(path, "-n", "1", "--by", "temporal.mse_warp") == ["b_002"]
    assert chosen(path, "-n", "1", "--by", "temporal.changed") == [PAIRS[-1]]


def test_what_it_writes(report: Path, tmp_path: Path) -> None:
    path = given(report, tmp_path, {"a_004": 1 / 3})
    run = run_well("select", path, "-n", "2", "-o", "list.csv", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "list.csv").read_text())))
    assert rows[0]["name"] == "a_004" and float(rows[0]["temporal.tc"]) == 1 / 3
    assert rows[0]["rank"] == "1" and rows[0]["sequence"] == "a"
    assert rows[0]["reason"].startswith("after a_002: ")
    assert "a_004" in run.stdout
    told = run_well("select", path, "-n", "2", "-o", "-", cwd=tmp_path).stdout
    assert told == (tmp_path / "list.csv").read_text()
    record = as_json("select", path, "-n", "2")
    assert record["field"] == "temporal.tc" and record["chosen"][0]["value"] == 1 / 3
    assert "| a_004 |" in run_well("select", path, "--format", "markdown").stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["list.csv", "r.json"]


def test_classes_without_names_are_called_classes(report: Path, tmp_path: Path) -> None:
    iou = {"0": 0.25, "1": 1.0}
    path = given(report, tmp_path, {"a_004": 0.1}, iou={"a_004": iou})
    (row,) = csv.DictReader(io.StringIO(run_well("select", path, "-n1", "--format", "csv").stdout))
    assert row["reason"].startswith("after a_002: class 0: 0.25 (usually 0.")


def test_other_reports(stores: Path, tmp_path: Path) -> None:
    made = run_well("pavpu", stores / "complete.zarr", "-o", "p.json", cwd=tmp_path)
    assert made.status == 0
    path = tmp_path / "p.json"
    items = json.loads(path.read_text())["items"]
    worst = sorted(items, key=lambda item: item["pavpu"]["pavpu"])
    assert chosen(path, "--by", "pavpu.pavpu") == [item["name"] for item in worst]
    worst = sorted(items, key=lambda item: -item["pavpu"]["n_ic"])
    assert chosen(path, "--by", "pavpu.n_ic") == [item["name"] for item in worst]
    refused(run_uqeval("select", path, "--by", "pavpu.n_au"), "pavpu.n_au: neither", "pavpu.n_ic")
    assert "sequence" not in run_well("select", path, "--by", "pavpu.pavpu").stdout
    assert chosen(path) == chosen(path, "--by", chosen_field(path))


def chosen_field(path: Path) -> str:
    found: str = as_json("select", path)["field"]
    return found


@pytest.mark.parametrize("options, words", [
    (("--by", "temporal.nope"), ("temporal.tc", "temporal.mse_warp and ")),
    (("--by", "temporal.mse_wrap"), ("did you mean 'temporal.mse_warp'?",)),
    (("--by", "temporal.sequence"), ("temporal.tc",)),
    (("--by", "temporal.iou"), ("temporal.tc",)),
    (("--by", "temporal.cut"), ("temporal.tc",)),
    (("--by", "name"), ("temporal.tc",)),
    (("--by", "pavpu.pavpu"), ("temporal.tc",)),
    (("--by", "temporal.mse_identity"), ("temporal.mse_identity: neither", "temporal.tc")),
    (("--by", "temporal.out_of_frame"), ("temporal.out_of_frame: neither", "temporal.tc")),
    (("--by", "temporal.flow_p99"), ("temporal.flow_p99: neither", "temporal.mse_warp")),
    (("-n", "0"), ("--count 0",)),
    (("--min-gap", "-1"), ("--min-gap -1",)),
    (("--per-sequence", "0"), ("--per-sequence 0",)),
    (("--min-coverage", "1.5"), ("--min-coverage 1.5",)),
    (("--min-coverage", "1"), ("no item can be chosen", "coverage below 1")),
    (("-o", "r.json"), ("r.json is an input",)),
    (("-o", "none/list.csv"), ("does not exist",)),
])  # fmt: skip
def test_it_says_what_is_wrong(
    report: Path, tmp_path: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    low = dict.fromkeys(PAIRS, 0.99)
    given(report, tmp_path, {}, coverage=low)
    refused(run_uqeval("select", "r.json", *options, cwd=tmp_path), *words)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_slice_cannot_rank_items(report: Path) -> None:
    done = run_uqeval("select", report, "--by", "temporal.tc@weather=night")
    message = refused(
        done, "'temporal.tc@weather=night' is a score of a slice, which cannot rank items.",
        "--by temporal.tc ranks all items.", "filters its items by slice",
    )  # fmt: skip
    assert "expected one of" not in message
    refused(run_uqeval("select", report, "--by", "temporal.tc@night"), "no item has this score")


def test_scores_that_do_not_rank_items_by_default_are_named(tmp_path: Path) -> None:
    probs = np.full((3, 2, 4, 4), 0.5, np.float32)
    probs[1, 0], probs[1, 1] = 0.9, 0.1
    save(tmp_path / "s.zarr", {"probs": probs, "labels": np.zeros((3, 4, 4), np.uint8)}, {})
    run_well("failure", "s.zarr", "--images", "-o", "r.json", cwd=tmp_path)
    words = ("choose one with --by", "segmentation.miou", "image_failure.risk")
    refused(run_uqeval("select", "r.json", cwd=tmp_path), *words)
    assert len(chosen(tmp_path / "r.json", "--by", "segmentation.miou")) == 3


def test_the_default_score_is_one_that_an_item_has(tmp_path: Path) -> None:
    """n-MeRCI of items without errors is undefined, and MeRCI is not."""
    target = np.arange(32, dtype=np.float32).reshape(2, 4, 4)
    arrays = {"mean": target, "std": np.ones_like(target), "target": target}
    save(tmp_path / "s.zarr", arrays, {})
    run_well("nmerci", "s.zarr", "-o", "r.json", cwd=tmp_path)
    text = run_well("select", "r.json", "--format", "csv", cwd=tmp_path).stdout
    assert "nmerci.nmerci" not in text and len(text.splitlines()) == 3


def test_what_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "y.json").write_text("no JSON")
    for name in ("x.json", "y.json", "none.json"):
        refused(run_uqeval("select", name, cwd=tmp_path), name)


def test_names_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    own = video(numbered(3))
    odd = [f"=cmd_{k}" for k in range(3)]
    save_folder(tmp_path / "v", own.renamed(odd))
    run_well("tc", "v", "-o", "r.json", cwd=tmp_path)
    assert all(name.startswith("'=cmd_") for name in chosen(tmp_path / "r.json"))


def test_a_suggested_command_can_be_pasted(tmp_path: Path) -> None:
    """One class is always wrong: a command suggests to look at its items, on a page. `uqeval run`
    has written this page."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (40, 8, 8)).astype(np.uint8)
    likely = np.where(truth == 2, 0.5, 0.8)[:, None]  # wrong pixels are uncertain
    chances = np.repeat((1 - likely) / 2, 3, axis=1).astype(np.float32)
    np.put_along_axis(chances, np.where(truth == 2, 0, truth)[:, None], likely, axis=1)
    save(tmp_path / "s.zarr", {"probs": chances, "labels": truth}, {})
    out = tmp_path / "reports of $HOME"
    out.mkdir()
    arguments = ("s.zarr", "--ci", "0.9", "--draws", "200")
    alone = run_well("failure", *arguments, "-o", out / "r.json", cwd=tmp_path)
    run = run_well("run", *arguments, "-o", out / "run", cwd=tmp_path)
    (command,) = (line for line in alone.stdout.splitlines() if line.startswith("  uqeval "))
    assert shlex.split(command) == ["uqeval", "report", str(out / "r.json")]
    run_well(*shlex.split(command)[1:], cwd=tmp_path)
    page = out / "run" / "s.html"
    assert "  uqeval " not in run.stdout and f"Open {page}: it filters" in run.stdout
    assert page.is_file()


def test_images_have_no_reason_besides_their_score(tmp_path: Path) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (3, 8, 8)).transpose(0, 3, 1, 2)
    labels = np.zeros((3, 8, 8), np.uint8)
    uqeval.evaluate(probs, labels, "pavpu").save(tmp_path / "r.json")
    table = run_well("select", "r.json", cwd=tmp_path).stdout
    assert "pavpu.p_accurate" in table and "reason" not in table and "sequence" not in table
    assert "| rank |" in run_well("select", "r.json", "--format", "markdown", cwd=tmp_path).stdout
