"""Runs that were stopped, in any way and at any time, and go on with `--resume`."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command import EXECUTABLE, environment, refused, run_uqeval, run_watched, run_well
from small_stores import labels, probs, save

pytestmark = pytest.mark.on_disk

ITEMS = 120
RUN = ("calibration", "s.zarr", "-o", "r.json", "-q", "--workers", "1")


@pytest.fixture(scope="module")
def slow(disk: Path) -> Path:
    """A store that takes a while, and a run of it that nobody has stopped."""
    folder = Path(tempfile.mkdtemp(dir=disk))
    arrays = {"probs": probs(ITEMS), "labels": labels(ITEMS)}
    save(folder / "s.zarr", arrays, {"names": [f"i{k}" for k in range(ITEMS)]})
    (folder / "whole").mkdir()
    run_well(*_in(folder, "whole"))
    return folder


def _in(folder: Path, name: str, *more: str) -> list[str]:
    command, _, _, _, *options = RUN
    out = folder / name / "r.json"
    return [command, str(folder / "s.zarr"), "-o", str(out), *options, *more]


def partial(folder: Path) -> Path:
    return folder / ".r.states.zip.partial"


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(EXECUTABLE), *arguments], env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def stop(arguments: list[str], out: Path, size: int, number: int) -> tuple[int, str]:
    """Stop a run when its states are larger than `size`; return its status and messages."""
    process = start(arguments)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            if partial(out).stat().st_size > size:
                process.send_signal(number)
                break
        except FileNotFoundError:
            pass
        time.sleep(0.0005)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


def kill(arguments: list[str], out: Path, size: int) -> tuple[int, str]:
    """Kill a run, as a fork, once its states are larger than `size`; its status and stderr."""

    def watch(pid: int) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(FileNotFoundError):
                if partial(out).stat().st_size > size:
                    break
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return  # it has ended
            time.sleep(0.0005)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    done = run_watched(watch, *arguments)
    return done.status, done.stderr


def same(one: Path, other: Path) -> None:
    """The same report but for its time, and the same states to the byte."""
    reports = []
    for folder in (one, other):
        record: dict[str, Any] = json.loads((folder / "r.json").read_text())
        reports.append(
            {k: v for k, v in record.items() if k not in ("timing", "states", "states_digest")}
        )
    assert reports[0] == reports[1]
    states = [(folder / "r.states.zip").read_bytes() for folder in (one, other)]
    assert states[0] == states[1]
    assert not partial(other).exists()


def test_a_run_killed_ten_times_goes_on(slow: Path, tmp_path: Path) -> None:
    whole = (slow / "whole" / "r.states.zip").stat().st_size
    rng = random.Random(0)
    out = slow / tmp_path.name
    out.mkdir()
    killed = 0
    for size in sorted(rng.uniform(0.02, 0.9) * whole for _ in range(10)):
        status, stderr = kill(_in(slow, out.name, "--resume"), out, int(size))
        assert status in (-signal.SIGKILL, 0), stderr
        killed += status == -signal.SIGKILL
        assert (out / "r.json").exists() == (status == 0)
    assert killed >= 5
    run_well(*_in(slow, out.name, "--resume"))
    same(slow / "whole", out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_go_on(
    number: signal.Signals, slow: Path, tmp_path: Path
) -> None:
    out = slow / tmp_path.name
    out.mkdir()
    whole = (slow / "whole" / "r.states.zip").stat().st_size
    status, stderr = stop(_in(slow, out.name), out, whole // 4, number)
    assert status == (130 if number == signal.SIGINT else 128 + number), stderr
    assert "--resume" in stderr and ".r.states.zip.partial" in stderr
    assert "Traceback" not in stderr
    assert [path.name for path in out.iterdir()] == [partial(out).name]

    other = run_uqeval(*_in(slow, out.name, "--resume", "--bins", "7"))
    refused(other, "of another run")
    assert partial(out).exists()
    run_well(*_in(slow, out.name, "--resume"))
    same(slow / "whole", out)


def test_a_changed_store_or_a_damaged_head_is_not_resumed(tmp_path: Path) -> None:
    arrays = {"probs": probs(40), "labels": labels(40)}
    save(tmp_path / "s.zarr", arrays, {"names": [f"i{k}" for k in range(40)]})
    (tmp_path / "out").mkdir()
    status, _ = kill(_in(tmp_path, "out"), tmp_path / "out", 20_000)
    assert status == -signal.SIGKILL
    left = partial(tmp_path / "out")
    data = left.read_bytes()

    at = data.index(b"run.json.z") + 40
    left.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    # What says of which run it is does not have its checksum any more, and so counts for nothing.
    run_well(*_in(tmp_path, "out", "--resume"))

    left.write_bytes(data)
    files = (p for p in (tmp_path / "s.zarr" / "labels").rglob("0") if p.is_file())
    chunk = next(files)
    chunk.write_bytes(chunk.read_bytes() + b"x")
    refused(run_uqeval(*_in(tmp_path, "out", "--resume")), "of another run")


def test_without_resume_a_run_begins_anew_and_says_so(slow: Path, tmp_path: Path) -> None:
    out = slow / tmp_path.name
    out.mkdir()
    partial(out).write_bytes(b"left")
    done = run_well(*_in(slow, out.name))
    assert "of an interrupted run; give --resume to continue that run" in " ".join(
        done.stderr.split()
    )
    same(slow / "whole", out)


def test_resume_without_a_report(slow: Path) -> None:
    refused(run_uqeval("calibration", slow / "s.zarr", "--resume"), "give -o FILE")
    refused(run_uqeval("tc", slow, "--resume"), "give -o FILE")


def test_a_full_disk_leaves_nothing_broken(slow: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    out = slow / tmp_path.name
    out.mkdir()

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))

    # Python would leave modules cut short.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    outcome = run_uqeval(*_in(slow, out.name), env=env, preexec_fn=limit)
    refused(outcome, "cannot be written")
    assert list(out.iterdir()) == []
