"""A sweep that fails after the other metrics of its store were counted costs these nothing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scenes

import uqeval
from uqeval.errors import DataError
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.statistics import resampler

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store whose metrics, sweep and rule are asked for; an older report of it lies there."""
    rng = np.random.default_rng(0)
    p = rng.random((4, 3, 3, 16, 16)).astype("f4")
    np.savez(tmp_path / "p.npz", probs=p / p.sum(2, keepdims=True),
             labels=scenes.labels(0, 4, 16, 16, classes=3))  # fmt: skip
    (tmp_path / "uqeval.yaml").write_text(
        "stores: {city: {predictions: p.npz}}\n"
        "evaluate: {city: {pavpu: , sweep: {samples: [1, 3], repeats: 2}}}\n"
        "output: out\ngate: {pavpu.pavpu: {min: 0.001}}\n"
    )
    assert uqeval.run_config(tmp_path / "uqeval.yaml").status == 0
    return tmp_path / "uqeval.yaml"


def left(file: Path) -> Report:
    """The report that is there: whole but for the sweep, and of the states beside it."""
    out = file.parent / "out"
    report = Report.load(out / "city.json")
    assert set(report.results) == {"segmentation", "pavpu"}
    found = resampler().interval(out / "city.json", Address.parse("pavpu.pavpu"), 0.9)
    assert found.low <= report.results["pavpu"]["pavpu"] <= found.high
    assert not list(out.glob("city*.old")) and not list(out.glob(".*"))
    assert "pavpu" in (out / "city.csv").read_text().splitlines()[0]
    assert "no sweep: " in (out / "city.html").read_text()
    return report


def test_the_report_of_what_was_done_is_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **options: object) -> None:
        raise DataError("p.npz is damaged.")

    monkeypatch.setattr("uqeval.usecases.sweep.sweeping.run_sweep", fails)
    outcome = uqeval.run_config(file)
    assert outcome.status == 2 and outcome.failed == {"city": "p.npz is damaged."}
    assert left(file) == outcome.reports["city"]
    assert outcome.reports["city"].warnings[-1] == "no sweep: p.npz is damaged."
    assert outcome.judgement is not None and outcome.judgement.passed  # no rule is of the sweep
    assert (file.parent / "out/verdicts.json").exists()
    page = (file.parent / "out/index.html").read_text()
    assert "p.npz is damaged." in page and 'href="city.html"' in page


def test_of_an_interrupted_sweep_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uqeval.usecases.sweep.sweeping.run_sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uqeval.run_config(file)
    assert left(file).warnings[-1] == "no sweep: it was interrupted."


def test_a_sweep_alone_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **options: object) -> None:
        raise DataError("p.npz is damaged.")

    file.write_text(file.read_text().replace("pavpu: , ", ""))
    monkeypatch.setattr("uqeval.usecases.sweep.sweeping.run_sweep", fails)
    outcome = uqeval.run_config(file, gate=False)
    assert outcome.status == 2 and not outcome.reports
    out = file.parent / "out"
    assert not (out / "city.json").exists()
    assert "sweep" in json.loads((out / "city.json.old").read_text())["results"]


def test_older_files_without_hard_links(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed run has put aside is a report with its states, also where links fail."""

    def unsupported(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    out = file.parent / "out"
    older = (out / "city.json").read_bytes(), (out / "city.states.zip").read_bytes()
    monkeypatch.setattr(os, "link", unsupported)
    monkeypatch.setattr("uqeval.usecases.run.folder.write", unsupported)
    file.write_text(file.read_text().replace("pavpu: ,", "pavpu: {window: 4},"))
    with pytest.raises(OSError, match="not permitted"):
        uqeval.run_config(file, gate=False)
    left = [(out / f"city.{ending}.old").read_bytes() for ending in ("json", "states.zip")]
    assert tuple(left) == older
