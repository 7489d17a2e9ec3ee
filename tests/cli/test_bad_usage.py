"""Options and outputs that cannot be honoured: a clear message, status 2, nothing written."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import EXECUTABLE, environment, pavpu_refused, refused, run_uqeval, run_well
from small_stores import labels

# ---- options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--window 25", ["--window 25 is larger than item aachen", "24×32", "--border partial"]),
        ("--window 0", ["--window 0; expected a whole number of at least 1"]),
        ("--stride 0", ["--stride 0; expected a whole number of at least 1"]),
        ("--top-k 5", ["--top-k 5 of 5 classes"]),
        ("--workers 0", ["--workers 0; expected a whole number of at least 1"]),
        ("--limit 0", ["--limit 0; expected a whole number of at least 1"]),
        ("--classes 4", ["--classes 4, but", "complete.zarr has 5 classes"]),
        ("--label-map nuscenes", ["--label-map nuscenes"]),
        (
            "--uncertainty foo",
            ["complete.zarr has no map 'foo'", "samples give confidence, entropy"],
        ),
        ("--uncertainty label", ["--uncertainty label is not an uncertainty"]),
        ("--uncertainty mean_probs", ["--uncertainty mean_probs is not an uncertainty"]),
        ("--threshold mean --threshold-from x.json", ["exclude each other"]),
        ("--threshold=-1", ["--threshold -1 is out of range: entropy", "lies between 0 and"]),
        ("--threshold 100", ["--threshold 100 is out of range: entropy", "lies between 0 and"]),
        ("--memory lots", ["--memory 'lots'; expected a size such as 512MB"]),
        ("--memory -5MB", ["--memory '-5MB'; expected a size"]),
    ],
)
def test_options_that_cannot_be(
    tmp_path: Path, complete: Path, options: str, says: list[str]
) -> None:
    pavpu_refused(tmp_path, complete, *options.split(), says=says)


@pytest.mark.parametrize("rule", ["p101", "range:2", "nan", "foo", ""])
def test_thresholds_that_cannot_be(tmp_path: Path, complete: Path, rule: str) -> None:
    says = [f"--threshold {rule!r} is not valid; expected mean, median, pNN (p0 … p100), range:T"]
    pavpu_refused(tmp_path, complete, f"--threshold={rule}", says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--bogus", "No such option: --bogus"),
        ("--slice x", "No such option: --slice (Possible options: --slice-by, --slices)"),
        ("--group x", "No such option: --group (Possible options: --group-by)"),
        ("--wokers 2", "No such option: --wokers (Possible options: --workers)"),
        ("--verbose", "No such option: --verbose │"),
        ("--log-base 2 --log-base 2", "'--log-base': given more than once"),
        ("--memory 1GB --workers 1 --memory=2GB", "'--memory': given more than once"),
        ("--deciles --no-deciles", "'--deciles': given more than once"),
        ("--window four", "'--window': 'four'; expected a valid integer."),
        ("--accuracy-threshold high", "'--accuracy-threshold': 'high'; expected a valid number."),
        ("--accuracy-threshold nan", "nan; expected a finite number"),
        ("--sum-tolerance nan", "nan; expected a finite number"),
        ("--format xml", "'--format': 'xml' is not one of 'table', 'json'"),
        ("--missing-chunks fil", "'--missing-chunks': 'fil' is not one of 'error', 'fill'."),
        ("--output", "--output"),
    ],
)
def test_what_the_parser_refuses(tmp_path: Path, complete: Path, options: str, says: str) -> None:
    outcome = run_uqeval("pavpu", complete, *options.split(), cwd=tmp_path)
    refused(outcome, "Error", says)
    assert not list(tmp_path.iterdir())


def test_a_memory_that_is_too_small_says_which_would_do(tmp_path: Path, complete: Path) -> None:
    message = pavpu_refused(
        tmp_path, complete, "--memory", "1500B", says=["--memory 1500B is too small for"]
    )
    assert "one decoded chunk of" in message and "complete.zarr" in message
    needed = re.search(r"Give --memory (\w+)", message)
    assert needed
    run_well("pavpu", complete, "-q", "--memory", needed[1])
    number = int(needed[1].removesuffix("kB"))
    refused(run_uqeval("pavpu", complete, "--memory", f"{number - 2}kB"), needed[1])


@pytest.mark.parametrize("flag", ["--deciles", "--no-deciles"])
def test_a_flag_may_be_repeated(complete: Path, flag: str) -> None:
    run_well("pavpu", complete, flag, flag, "-q")


# ---- what is given as predictions and labels


def test_labels_in_the_wrong_place(tmp_path: Path, stores: Path, complete: Path) -> None:
    predictions, planes = stores / "preds.zarr", stores / "labels"
    cases: list[tuple[list[Path], list[str]]] = [
        ([planes], ["labels holds labels", "give the predictions before them"]),
        ([planes, predictions], ["labels holds labels", "after all predictions"]),
        ([predictions, planes, stores / "labels.zarr"], ["holds labels", "give one"]),
        ([predictions], ["preds.zarr has no labels", "a folder of label PNGs"]),
    ]
    for number, (paths, says) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        pavpu_refused(folder, *paths, says=says)


# ---- thresholds from a report


@pytest.fixture(scope="module")
def report(complete: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("report") / "report.json"
    run_well("pavpu", complete, "-q", "-o", path)
    record = json.loads(path.read_text())
    assert isinstance(record, dict)
    return record


def test_files_that_are_no_report(tmp_path: Path, complete: Path, report: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(report))
    broken["results"]["pavpu"]["uncertainty_threshold"] = "high"
    cases: dict[str, tuple[str | None, list[str]]] = {
        "none": (None, ["none.json: No such file", "expected a report"]),
        "cut": (json.dumps(report)[:900], ["cut.json is not a uqeval report (not JSON)"]),
        "newer": (
            json.dumps(report | {"schema": "uqeval.report/2"}),
            ["newer.json: schema 'uqeval.report/2'; this uqeval reads 'uqeval.report/1'"],
        ),
        "broken": (json.dumps(broken), ["broken.json: its thresholds are not as uqeval writes"]),
        "empty": (
            json.dumps(report | {"results": {}}),
            ["empty.json: it has no threshold for entropy", "it is a report of nothing. Give"],
        ),
    }
    for name, (text, says) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        file = folder / f"{name}.json"
        if text is not None:
            file.write_text(text)
        pavpu_refused(folder, complete, "--threshold-from", file, says=says)


def test_a_report_that_lacks_the_uncertainty(
    tmp_path: Path, complete: Path, report: dict[str, Any]
) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps(report))
    pavpu_refused(
        tmp_path, complete, "--threshold-from", file, "--uncertainty", "std",
        says=["r.json: it has no threshold for std", "it has thresholds for entropy"],
    )  # fmt: skip
    report["results"]["pavpu"] |= {
        "uncertainty_threshold": None,
        "uncertainty_threshold_reason": "fitted for each item separately",
    }  # fmt: skip
    file.write_text(json.dumps(report))
    third = tmp_path / "items"
    third.mkdir()
    pavpu_refused(
        third, complete, "--threshold-from", file,
        says=["pavpu has no single threshold: fitted for each item separately"],
    )  # fmt: skip


# ---- outputs


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-o none/r.json", ["none/r.json: the folder none does not exist"]),
        ("--csv none/r.csv", ["none/r.csv: the folder none does not exist"]),
        ("-o file/r.json", ["file/r.json: the folder file does not exist"]),
        ("-o /proc/r.json", ["/proc/r", "cannot be written"]),
        ("-o /proc/r.json --no-states", ["/proc/r.json cannot be written"]),
        ("-o folder", ["folder is a folder; give the name of a file"]),
        ("-o r.json --csv r.json", ["two outputs go to r.json"]),
        ("-o - --csv -", ["two outputs go to stdout"]),
        ("-o - --states", ["--states saves the states next to a report; give -o FILE"]),
        ("-o ..json", ["..json: its name has only dots before the ending", "report.json"]),
        ("-o ...json", ["...json: its name has only dots before the ending"]),
        ("-o=", ["is given as ''; give the name of a file"]),
        ("-o labels.npy", ["labels.npy is an input; give the output another name"]),
    ],
)
def test_outputs_that_cannot_be(
    tmp_path: Path, stores: Path, options: str, says: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("here")
    np.save(tmp_path / "labels.npy", labels())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    arguments = ["--output", ""] if options == "-o=" else options.split()
    outcome = run_uqeval("pavpu", stores / "preds.zarr", "labels.npy", *arguments, cwd=tmp_path)
    message = refused(outcome, *says)
    assert message.startswith("uqeval: ")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["zarr.json", "probs/zarr.json", "report.json"])
def test_an_output_in_an_input_store(complete: Path, tmp_path: Path, name: str) -> None:
    store = tmp_path / "s.zarr"
    shutil.copytree(complete, store)
    before = sorted((p, p.read_bytes()) for p in store.rglob("*") if p.is_file())
    refused(run_uqeval("pavpu", store, "-o", store / name), f"{name} is inside the input")
    assert sorted((p, p.read_bytes()) for p in store.rglob("*") if p.is_file()) == before


@pytest.mark.parametrize(
    ("kilobytes", "options", "says"),
    [
        (1, "-o r.json", "r.states.zip cannot be written: File too large"),
        (20, "-o r.json --no-states", "r.json cannot be written: File too large"),
    ],
)
def test_a_disk_that_is_full(
    tmp_path: Path, complete: Path, kilobytes: int, options: str, says: str
) -> None:
    # A limit on the size of files is refused in the same way as a full disk, and needs no disk. It
    # is for results: kernels are there before, and Python would leave modules cut short.
    run_well("pavpu", complete, "-q")
    command = f'ulimit -f {kilobytes}; trap "" XFSZ; exec {EXECUTABLE} pavpu {complete} {options}'
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert says in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_a_full_disk_behind_stdout(complete: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(EXECUTABLE), "pavpu", str(complete), "--format", "json"],
            stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "uqeval: stdout cannot be written: No space left on device." in done.stderr


def test_a_good_report_stays_when_the_next_run_fails(tmp_path: Path, complete: Path) -> None:
    store = tmp_path / "s.zarr"
    shutil.copytree(complete, store)
    out = tmp_path / "out"
    out.mkdir()
    wanted = ("pavpu", store, "-o", "report.json", "--csv", "items.csv")
    run_well(*wanted, cwd=out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert sorted(before) == ["items.csv", "report.json", "report.states.zip"]
    chunk = store / "probs/c/2/0/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:50])
    refused(run_uqeval(*wanted, cwd=out), "s.zarr/probs: chunk c/2/0/0/0/0 is damaged")
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("pavpu {} -o a.csv", "writes a report as JSON, not CSV. Give --csv a.csv"),
        ("pavpu {} -o a.HTML", "Give -o a.json, then uqeval report a.json -o a.HTML"),
        ("pavpu {} -o a.md", "Give --format markdown > a.md"),
        ("pavpu {} -o a.tex", "Give --format latex > a.tex"),
        (
            "verify report.json {} -o a.csv",
            "writes a verification as JSON, not CSV. Give -o a.json",
        ),
    ],
)
def test_an_output_has_no_ending_of_another_format(
    tmp_path: Path, complete: Path, command: str, advice: str
) -> None:
    refused(run_uqeval(*command.format(complete).split(), cwd=tmp_path), advice)
    assert not list(tmp_path.iterdir())
