"""Hashes of files are of the bytes that were used, even if the files are written meanwhile."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import uqeval
from uqeval.cli.entry import app
from uqeval.errors import StoreError
from uqeval.usecases.evidence import collecting
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify import verifying

RULES = "segmentation.miou: {min: 0.01}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("classes.npz", **synthetic_data.classes("meanwhile"))
    for name in ("report", "main"):
        uqeval.evaluate("classes.npz", metrics=["segmentation"], workers=1).save(f"{name}.json")
    Path("rules.yaml").write_text(RULES)
    return tmp_path


def sha256(name: str) -> str:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def written_again(*names: str) -> None:
    for name in names:
        Path(name).write_text(Path(name).read_text() + "\n")


def during(patch: pytest.MonkeyPatch, place: str, *names: str) -> None:
    """Write files again each time that the function at `place` is called."""
    from importlib import import_module

    module, name = place.rsplit(".", 1)
    function = getattr(import_module(module), name)

    def late(*arguments: Any, **options: Any) -> Any:
        written_again(*names)
        return function(*arguments, **options)

    patch.setattr(place, late)


def test_gate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("rules.yaml").write_text("segmentation.miou: {min: 0.01, max_drop: 0.5}\n")
    names = ("report.json", "main.json", "rules.yaml")
    before = [sha256(name) for name in names]
    during(monkeypatch, "uqeval.gate.judge", *names)
    command = typer.main.get_command(app)
    options = ("--baseline", "main.json", "-o", "verdicts.json")
    command(["gate", "report.json", "rules.yaml", *options], standalone_mode=False)
    digests = json.loads(Path("verdicts.json").read_text())["sha256"]
    found = [digests["reports"]["report"], digests["baseline"]["main"], digests["rules"]]
    assert found == before
    assert before != [sha256(name) for name in names]


def test_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("uqeval.yaml").write_text(
        "stores: {report: {predictions: classes.npz}}\nevaluate: {report: {segmentation: }}\n"
        "gate: {segmentation.miou: {min: 0.01, max_drop: 0.5}}\n"
    )
    before = sha256("uqeval.yaml"), sha256("main.json")
    during(monkeypatch, "uqeval.usecases.run.folder.judge", "uqeval.yaml", "main.json")
    outcome = uqeval.run_config("uqeval.yaml", output="out", baseline="main.json")
    digests = json.loads((outcome.folder / "verdicts.json").read_text())["sha256"]
    assert (digests["rules"], *digests["baseline"].values()) == before
    assert digests["reports"] == {"report": sha256("out/report.json")}


def test_verify(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sha256("report.json")
    during(monkeypatch, f"{verifying.__name__}.open_stores", "report.json")
    found = json.loads(verifying.verify("report.json").to_json())
    assert found["report"]["sha256"] == before != sha256("report.json")


def test_evidence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, f"{collecting.__name__}._read", "report.json")
    with pytest.raises(StoreError, match=r"report\.json changed while it was read"):
        collecting.collect(["report.json"])
