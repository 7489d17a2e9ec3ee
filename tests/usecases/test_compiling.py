"""Other processes compile on a cold cache only, and end with the evaluation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.kernels import _jit, _saved, ahead
from uqeval.usecases import compiling
from uqeval.usecases.compiling import compiling_ahead
from uqeval.usecases.demo.making import EVALUATIONS as EVALUATIONS_OF_DEMO

EVALUATIONS = ["pavpu of probs float16"]


class Process:
    """A process that tells how it was started and ended."""

    all: list[Process]

    def __init__(self, arguments: list[str], **options: Any) -> None:
        self.arguments, self.options, self.calls = arguments, options, ["started"]
        Process.all.append(self)

    def terminate(self) -> None:
        self.calls.append("terminated")

    def wait(self) -> None:
        self.calls.append("waited")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let these tests start processes, which only note what they are asked for."""
    Process.all = []
    compiling._IS_ACTIVE.release()  # `conftest` holds it
    monkeypatch.setattr(compiling.subprocess, "Popen", Process)
    monkeypatch.setattr(compiling, "_is_needed", lambda evaluations: True)
    yield
    assert compiling._IS_ACTIVE.acquire(blocking=False)


@pytest.mark.parametrize("fails", [False, True])
def test_processes_run_meanwhile_and_are_ended(fails: bool) -> None:
    with compiling_ahead(EVALUATIONS, 1):
        assert not Process.all  # one thread was asked for
    try:
        with compiling_ahead(EVALUATIONS, 3):
            assert [process.calls for process in Process.all] == [["started"]] * 2
            with compiling_ahead(EVALUATIONS, 3):
                assert len(Process.all) == 2
            if fails:
                raise OSError("of the evaluation")
    except OSError as error:
        assert fails and str(error) == "of the evaluation"
    else:
        assert not fails
    for part, process in enumerate(Process.all):
        assert process.arguments[1:4] == ["-P", "-m", ahead.__name__]
        assert process.arguments[5:] == [str(part), "2", *EVALUATIONS]
        assert not Path(process.arguments[4]).exists()
        assert process.calls == ["started", "terminated", "waited"]


def test_many_cores_start_few_processes() -> None:
    with compiling_ahead(EVALUATIONS, 64):
        assert len(Process.all) == 3


def test_a_process_that_cannot_start_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*arguments: Any, **options: Any) -> Process:
        raise BlockingIOError

    monkeypatch.setattr(compiling.subprocess, "Popen", start)
    with compiling_ahead(EVALUATIONS, 2):
        done = True
    assert done


def test_a_frozen_application_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with compiling_ahead(EVALUATIONS, 2):
        assert not Process.all


@pytest.mark.parametrize("evaluation", EVALUATIONS_OF_DEMO)
def test_what_the_demo_evaluates_is_known(evaluation: str) -> None:
    assert ahead.needed([evaluation])


def test_an_evaluation_names_its_families_and_dtype() -> None:
    probs = np.full((2, 3, 2, 4, 4), 0.5, np.float16)
    labels = np.zeros((2, 4, 4), np.uint8)
    uqeval.evaluate({"probs": probs, "labels": labels}, None, ["pavpu", "failure"], workers=2)
    assert Process.all[0].arguments[7:] == [*EVALUATIONS, "failure of probs float16"]
    uqeval.evaluate({"probs": probs, "labels": labels}, None, ["pavpu"], workers=1)
    assert len(Process.all) == 1


@pytest.mark.skipif(_jit.IS_INTERPRETED, reason="nothing is compiled")
def test_only_missing_kernels_need_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    missing = {"measure_items", "patch_table"}
    monkeypatch.setattr(_saved, "is_cached", lambda kernel: kernel.__name__ not in missing)
    assert not compiling._is_needed(EVALUATIONS)
    missing.add("count_patches")
    assert compiling._is_needed(EVALUATIONS)
    assert not compiling._is_needed(["pavpu of strange float16"])
    monkeypatch.setattr(_saved, "is_saved", lambda kernel: False)
    assert not compiling._is_needed(EVALUATIONS)


@pytest.mark.skipif(_jit.IS_INTERPRETED, reason="nothing is compiled")
def test_a_process_saves_its_part_for_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The real process, in a folder with a module of the same name as one of Python's."""
    monkeypatch.undo()
    (tmp_path / "json.py").write_text("raise SystemExit('the folder of the user is not imported')")
    evaluation = "segmentation of probs float16"
    package = Path(uqeval.__file__).parent
    # Kernels that the package has saved beside itself would be loaded, and not saved again.
    copy = shutil.copytree(
        package, tmp_path / "copy" / package.name, ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(copy.parent)
    }  # fmt: skip
    run = [sys.executable, "-P", "-m", "uqeval.kernels.ahead", str(tmp_path), "0", "3"]
    subprocess.run([*run, evaluation], cwd=tmp_path, env=environment, check=True)
    saved = {path.name.partition("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert saved == {"samples.add_samples"}  # the largest
