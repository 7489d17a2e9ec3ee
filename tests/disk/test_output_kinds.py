"""Outputs over files of another kind, of every function of Python that writes a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_report import report
from small_stores import labels, probs

import uqeval
from uqeval.disk.outputs import refuse_other_kind
from uqeval.errors import UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    report().save(folder / "r.json")
    np.savez(folder / "x.npz", probs=probs())
    (folder / "notes.txt").write_text("notes")
    (folder / "empty").touch()
    (folder / "torn.states.zip").write_bytes(b"PK\3\4 torn")
    (folder / "uqeval.yaml").write_text("stores: {r: {predictions: x.npz}}\nevaluate: {r: {}}\n")
    (folder / "out").mkdir()
    (folder / "out" / "r.json").write_text('{"schema": "uqeval.comparison/1"}')
    uqeval.evaluate(probs(), labels(), "segmentation", states=folder / "s.states.zip")
    return folder


def _evaluator_report(states: str) -> None:
    with uqeval.Evaluator("segmentation") as evaluator:
        evaluator.update(probs(), labels(), list("abc"))
        evaluator.report(states=states)


def _evaluate(states: str) -> None:
    uqeval.evaluate(probs(), labels(), "segmentation", states=states)


def _sweep(states: str) -> None:
    uqeval.sweep(probs(), labels(), "segmentation", part="1/2", states=states)


CALLS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "evaluate": (_evaluate, "r.json", "r.json is a report, which states= would overwrite"),
    "text": (_evaluate, "notes.txt", "notes.txt is not a states file, which states= would"),
    "store": (_evaluate, "x.npz", "x.npz is not a states file, which states= would overwrite"),
    "sweep": (_sweep, "r.json", "r.json is a report, which states= would overwrite"),
    "evaluator": (_evaluator_report, "r.json", "r.json is a report, which states= would"),
    "merge": (
        lambda path: uqeval.merge("s.states.zip", states=path),
        "r.json", "r.json is a report, which states= would overwrite",
    ),
    "fit_shards": (
        lambda path: uqeval.fit_shards("s.states.zip", path),
        "r.json", "r.json is a report, which output= would overwrite",
    ),
    "save": (
        lambda path: report().save(path),
        "s.states.zip", "s.states.zip is the states of a report, which path= would overwrite",
    ),
    "save over a store": (
        lambda path: report().save(path),
        "x.npz", "x.npz is a binary file, which path= would overwrite",
    ),
    "save over a text": (
        lambda path: report().save(path),
        "notes.txt", "notes.txt is a file that is not a report, which path= would overwrite",
    ),
    "fit_shards over a text": (
        lambda path: uqeval.fit_shards("s.states.zip", path),
        "uqeval.yaml", "uqeval.yaml is a file that is not the sums of shards, which output= would",
    ),
    "run_config": (
        lambda path: uqeval.run_config(output="out"),
        "out/r.json", "out/r.json is a comparison, which output= would overwrite",
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_file_of_another_kind_stays(
    call: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, name, says = CALLS[call]
    monkeypatch.chdir(folder)
    before = (folder / name).read_bytes()
    with pytest.raises(UsageError) as caught:
        function(name)
    assert str(caught.value).startswith(says)
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("empty", "states"), ("gone.zip", "states"), ("s.states.zip", "states"), ("empty", None),
        ("torn.states.zip", "states"), ("r.json", "report"), ("notes.txt", None),
        ("/dev/zero", "report"),
    ],
)  # fmt: skip
def test_what_an_output_may_replace(name: str, kind: str | None, folder: Path) -> None:
    refuse_other_kind(folder / name, "-o", kind)


def test_states_at_a_folder(tmp_path: Path) -> None:
    with pytest.raises(uqeval.OutputError, match="is a folder; give the name of a file"):
        _evaluate(str(tmp_path))
