"""A path in a report or in saved states is never followed unchecked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forged
import numpy as np
import pytest
from command import refused, run_forked, run_uqeval, run_well

NAMES = [f"image{i}" for i in range(8)]
FILES = ("fit.txt", "table.csv")
YAML = """\
stores: {a: {predictions: a.npz}}
evaluate:
  a:
    calibration: {temperature: true, fit_on: fit.txt}
    conformal: {alpha: 0.3, fit_on: fit.txt}
    image_failure: {risk: "column:risk", item_table: table.csv}
workers: 1
"""


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole run in `whole/`, and its two shards; the files that its options name are gone."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (8, 12, 16)).transpose(0, 3, 1, 2).astype("f4")
    labels = rng.integers(0, 3, (8, 12, 16)).astype("u1")
    np.savez(folder / "a.npz", probs=probs, labels=labels, names=np.array(NAMES))
    (folder / "fit.txt").write_text("\n".join(NAMES[1:5]) + "\n")
    rows = "".join(f"{name},{i / 8},x\n" for i, name in enumerate(NAMES))
    (folder / "table.csv").write_text(f"name,risk,other\n{rows}")
    (folder / "uqeval.yaml").write_text(YAML)
    run_well("run", "-o", "whole", "-q", cwd=folder)
    fitted: list[str] = []
    for turn in range(5):
        for k in (1, 2):
            run_well("run", "--part", f"{k}/2", *fitted, "-o", f"p{k}", "-q", cwd=folder)
        fitted = ["--fitted", f"f{turn}.json"]
        run_well("merge", "--fit", "p1/a.json", "p2/a.json", "-o", fitted[1], cwd=folder)
        if not json.loads((folder / fitted[1]).read_text())["unfinished"]:
            break
    for name in FILES:
        (folder / name).unlink()
    return folder


def test_shards_are_joined_without_the_files_that_options_name(shards: Path) -> None:
    run_well("merge", "p1/a.json", "p2/a.json", "-o", "joined.json", cwd=shards)
    whole, joined = (
        json.loads((shards / name).read_text()) for name in ("whole/a.json", "joined.json")
    )
    assert joined["results"] == whole["results"]
    assert joined["items"] == whole["items"]


@pytest.mark.parametrize("option", ["--fit-on", "--item-table"])
@pytest.mark.parametrize("form", ["absolute", "above", "url", "device", "nul", "long"])
def test_no_path_in_states_is_opened(option: str, form: str, shards: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("name,risk\nhunter2,1\n")
    path = {
        "absolute": str(secret), "above": "../secret.txt", "url": "s3://bucket/secret.txt",
        "device": "/dev/zero", "nul": "a\0b", "long": "a" * 5000,
    }[form]  # fmt: skip
    work = tmp_path / "work"
    work.mkdir()
    name = FILES[option == "--item-table"]
    for k in (1, 2):
        _copy(shards / f"p{k}/a.states.zip", work / f"{k}.states.zip", {f'"{name}"': path})
    outcome = run_uqeval("merge", "1.states.zip", "2.states.zip", "-o", "m.json", cwd=work)
    is_none = form == "nul" and option == "--item-table"
    words = [option, "does not open such a path from states", "again"]
    if is_none:
        words = ["states.zip: settings.image_failure: item_table='a", "expected a path"]
    message = refused(outcome, *words)
    assert "hunter2" not in message
    assert sorted(file.name for file in work.iterdir()) == ["1.states.zip", "2.states.zip"]


def _copy(source: Path, target: Path, changes: dict[str, str]) -> None:
    """Copy states, and change texts of the settings."""
    entries = forged.entries_of(source)
    index: dict[str, Any] = json.loads(entries["index.json"])
    settings = json.dumps(index["settings"])
    for before, after in changes.items():
        assert before in settings
        settings = settings.replace(before, json.dumps(after))
    entries["index.json"] = json.dumps(index | {"settings": json.loads(settings)}).encode()
    forged.write_entries(target, entries)


def test_shards_fitted_on_other_items_are_not_joined(shards: Path, tmp_path: Path) -> None:
    for k in (1, 2):
        entries = forged.entries_of(shards / f"p{k}/a.states.zip")
        index = json.loads(entries["index.json"])
        index["facts"]["fit_names"]["fit.txt"] = NAMES[k:5]
        entries["index.json"] = json.dumps(index).encode()
        forged.write_entries(tmp_path / f"{k}.states.zip", entries)
    outcome = run_uqeval("merge", "1.states.zip", "2.states.zip", cwd=tmp_path)
    refused(outcome, "differ in --fit-on of")


@pytest.mark.parametrize("out", ["b.npz+../secret.npz", "b.npz+/secret.npz", "~/b.npz"])
def test_members_in_a_report_stay_in_the_working_folder(out: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    rng = np.random.default_rng(0)
    for n, path in enumerate((work / "a.npz", work / "b.npz", tmp_path / "secret.npz")):
        probs = rng.dirichlet(np.ones(3), (2, 8, 8)).transpose(0, 3, 1, 2).astype("f4")
        np.savez(path, probs=probs, names=np.array([f"{n}{i}" for i in range(2)]))
    run_well("ood", "a.npz", "b.npz", "-o", "r.json", "-q", cwd=work)
    report = json.loads((work / "r.json").read_text())
    report["inputs"]["predictions"][1]["path"] = out
    (work / "r.json").write_text(json.dumps(report))
    outcome = run_forked("verify", "r.json", cwd=work)
    refused(outcome, "r.json", out, "outside the working folder")
