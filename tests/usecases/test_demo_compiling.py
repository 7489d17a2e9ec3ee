"""The second process of the demo starts on a cold cache only, and compiles what the run needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from uqeval.kernels import _jit, ratios
from uqeval.usecases.demo import compiling
from uqeval.usecases.demo.streets import save_depth, save_film


class Process:
    """A process that tells how it was started and ended."""

    def __init__(self, arguments: list[str], **streams: Any) -> None:
        self.arguments, self.calls = arguments, ["started"]

    def terminate(self) -> None:
        self.calls.append("terminated")

    def wait(self) -> None:
        self.calls.append("waited")


@pytest.mark.parametrize("fails", [False, True])
def test_it_runs_meanwhile_and_is_ended(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[Process] = []

    def start(*arguments: Any, **streams: Any) -> Process:
        processes.append(Process(*arguments, **streams))
        return processes[0]

    monkeypatch.setattr(compiling, "_is_needed", lambda: True)
    monkeypatch.setattr(compiling.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compiling.subprocess, "Popen", start)
    with compiling.compiling_ahead(tmp_path, 1):
        assert not processes  # one worker was asked for
    try:
        with compiling.compiling_ahead(tmp_path, None):
            assert processes[0].calls == ["started"]
            if fails:
                raise OSError("of the demo itself")
    except OSError as error:
        assert fails and str(error) == "of the demo itself"
    else:
        assert not fails
    assert processes[0].arguments[1:] == ["-m", "uqeval.usecases.demo.compiling", str(tmp_path)]
    assert processes[0].calls == ["started", "terminated", "waited"]


def test_a_process_that_cannot_start_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*arguments: Any, **streams: Any) -> Process:
        raise BlockingIOError

    monkeypatch.setattr(compiling, "_is_needed", lambda: True)
    monkeypatch.setattr(compiling.subprocess, "Popen", start)
    with compiling.compiling_ahead(tmp_path, 2):
        done = True
    assert done


@pytest.mark.skipif(_jit.IS_INTERPRETED, reason="nothing is compiled")
def test_it_evaluates_what_compiles_the_loops(tmp_path: Path) -> None:
    save_film(tmp_path / "film", 2, (32, 48), 0)
    save_depth(tmp_path / "depth.npz", 2, (32, 48), 0)
    compiling.evaluate_stores(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"film", "depth.npz"}
    assert _jit.is_cached(ratios.look_at_item)
    assert not compiling._is_needed()
