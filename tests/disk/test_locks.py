"""Of two processes that write to one output the second is refused, with the id of the first."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_script, run_uqeval, run_well
from small_stores import save_complete

from uqeval import PredictionWriter
from uqeval.disk import locks
from uqeval.disk.files import noted_digest
from uqeval.disk.locks import lock, locked, release, release_all
from uqeval.disk.publishing import (
    drop_older,
    hidden_path,
    repair_states,
    restore_older,
    settle_states,
)
from uqeval.errors import OutputError
from uqeval.records.folder import foreign_states
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import tally_key
from uqeval.stores.states.writer import StatesWriter
from uqeval.usecases.convert import convert
from uqeval.usecases.reduce import reduce as write_maps

_HOLDER = """
import sys, time
from uqeval.disk.files import noted_digest
from uqeval.disk.locks import lock
for path in sys.argv[1:]:
    lock(path)
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def holder(*paths: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the locks of these outputs."""
    command = [sys.executable, "-c", _HOLDER, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def test_the_second_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with holder(path) as process:
        with pytest.raises(OutputError, match=f"process {process.pid} of uqeval writes to it"):
            lock(path)
        with locked(tmp_path / "other.json"):
            pass
    assert [own.name for own in tmp_path.iterdir()] == [".r.json.lock"]
    with locked(path), locked(path):
        assert lock(path) is None
    assert not list(tmp_path.iterdir())
    lock(path)
    release_all()
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says who holds it: a process of this id and start, on this machine."""

    def without(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    path, file = tmp_path / "r.json", tmp_path / ".r.json.lock"
    here, now = os.uname().nodename, int(time.time())
    with holder(path) as process, pytest.raises(OutputError, match=f"process {process.pid}"):
        lock(path)
    file.write_text(f"{process.pid} {now} {here}\n")
    with locked(path):
        pass
    for text in (f"1 {now - 10**7} {here}\n", f"{os.getpid()} {now - 10**6} {here}\n", "x", ""):
        file.write_text(text)  # processes that began later, and no process at all
        with locked(path):
            pass
    file.write_text(f"{process.pid} {now} elsewhere\n")
    with pytest.raises(OutputError, match="on elsewhere"):
        lock(path)


@pytest.mark.parametrize(("module", "call"), [(os, "open"), (fcntl, "flock"), (os, "pwrite")])
def test_an_interrupt_while_a_lock_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, call: str
) -> None:
    """It comes right after a call of the system: nothing stays, and no descriptor is lost."""
    real = getattr(module, call)

    def interrupted(*given: Any) -> None:
        monkeypatch.undo()
        result = real(*given)
        raise KeyboardInterrupt(result)

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    monkeypatch.setattr(module, call, interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        lock(tmp_path / "r.json")
    if call == "open":  # Python has lost it
        os.close(raised.value.args[0])
    assert not list(tmp_path.iterdir())
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("name", ["r.json", "r" * 251 + ".json"])
def test_leftovers_go_with_the_next_lock(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f".{name[:200]}.{dead.pid}-0").write_text("half a report")
    (tmp_path / f".{name[:200]}.{dead.pid}-1").mkdir()
    (tmp_path / f".{name[:200]}.{dead.pid}-1" / "zarr.json").touch()
    alive = hidden_path(path)
    alive.touch()
    reused = tmp_path / f".{name[:200]}.{os.getpid()}-9999"
    reused.touch()
    os.utime(reused, (1, 1))  # written before this process began: by another of its id
    strange = tmp_path / f".{name[:200]}.backup"
    strange.touch()
    with locked(path):
        left = {own for own in tmp_path.iterdir() if not own.name.endswith(".lock")}
    assert left == {alive, strange}


def test_scratch_folders_of_killed_runs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f"uqeval-{dead.pid}-x", f"uqeval-{dead.pid}-held", f"other-{dead.pid}-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / locks.OWNER).touch()
    with (tmp_path / f"uqeval-{dead.pid}-held" / locks.OWNER).open() as file:
        locks.hold(file.fileno())  # a process of another container, whose ids are unknown here
        made, owner = locks.temporary_folder()
        again, other = locks.temporary_folder()
    assert not (tmp_path / f"uqeval-{dead.pid}-x").exists() and made.exists()
    assert {f"uqeval-{dead.pid}-held", f"other-{dead.pid}-x"} < {p.name for p in tmp_path.iterdir()}
    for folder, descriptor in ((made, owner), (again, other)):
        os.close(descriptor)
        shutil.rmtree(folder)


#: Leaves the contexts of its parent, as a forked worker that ends with `sys.exit` does.
_FORK = """
import os
def in_fork(leave):
    if (child := os.fork()) == 0:
        try:
            leave()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def test_a_fork_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    script = f"""{_FORK}
from contextlib import ExitStack
from uqeval.disk import locks

with ExitStack() as stack:
    folder = stack.enter_context(locks.temporary({str(tmp_path)!r}))
    stack.enter_context(locks.locked({str(tmp_path / "r.json")!r}))
    in_fork(stack.close)
    other = locks.temporary_folder({str(tmp_path)!r})[0]
    lock = next(iter(locks._held))
    print(folder.is_dir(), lock.exists(), locks._is_free(os.open(lock, os.O_RDWR)))
    other.joinpath(locks.OWNER).unlink()
    other.rmdir()
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "True True False\n", "")
    assert not list(tmp_path.iterdir())


def test_every_command_asks_first(tmp_path: Path) -> None:
    store = save_complete(tmp_path / "p.zarr")
    run_well("pavpu", store, "-o", tmp_path / "r.json", "-q")
    outputs = [tmp_path / name for name in ("new.json", "m.zarr", "c.zarr", "v.json")]
    (tmp_path / "rules.yaml").write_text("pavpu.pavpu: {min: 0.001}\n")
    (tmp_path / "out").mkdir()
    with holder(*outputs, tmp_path / "out" / "index.html") as process:
        for arguments in (
            ["pavpu", "nothing.zarr", "-o", outputs[0]],  # before anything is opened
            ["sweep", "nothing.zarr", "-o", outputs[0]],
            ["reduce", "nothing.zarr", "-o", outputs[1]],
            ["convert", "nothing.zarr", outputs[2]],
            ["gate", tmp_path / "r.json", tmp_path / "rules.yaml", "-o", outputs[3]],
            ["run", store, "-o", tmp_path / "out"],
        ):
            refused(
                run_uqeval(*arguments), f"process {process.pid} of uqeval writes to it now",
                "or name another output.",  # `convert` and `demo` have no -o
            )  # fmt: skip
    assert not any(path.exists() for path in outputs)
    run_well("pavpu", store, "-o", outputs[0], "-q")
    assert not list(tmp_path.glob(".new*"))


def test_the_functions_ask_too(tmp_path: Path) -> None:
    from uqeval.inputs import InputOptions, open_inputs

    store, states = save_complete(tmp_path / "p.zarr"), tmp_path / "r.states.zip"
    with holder(tmp_path / "m.zarr", states):
        with pytest.raises(OutputError, match="writes to it now"):
            write_maps(open_inputs(store, None, InputOptions()), tmp_path / "m.zarr")
        with pytest.raises(OutputError, match="writes to it now"):
            convert(store, tmp_path / "m.zarr")
        with pytest.raises(OutputError, match="writes to it now"):
            StatesWriter(states, {"run": 1})


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"names": ["a"], "samples": 1, "classes": 2, "size": (2, 2)}
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **given) as writer:
        with pytest.raises(OutputError, match=f"written by process {os.getpid()}"):
            PredictionWriter(path, **given, resume=True)
        writer.add("a", np.full((2, 2, 2), 0.5, "f4"))
        (path / "probs/c/0/0.0123.partial").touch()  # a chunk that a killed writer had begun
    assert not list(path.rglob("*.partial")) and not list(tmp_path.glob(".*"))


def _counted(report: Path, states: Path, *, written: bool) -> None:
    """Replace the states of a report, and, unless killed before, the report."""
    lock(report)
    with StatesWriter(states) as writer:
        writer.add(tally_key({"id": "x"}), 0, PackedItems.of([b"a state"]))
        digest = writer.finish({"items": ["a"], "now": written})
    if written:
        report.write_text(json.dumps({"states_digest": digest}))
        drop_older(states)
    release_all()


@pytest.mark.parametrize("linked", [True, False])
def test_a_killed_run_leaves_the_older_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """Killed between states and report: the older states are kept, named, and put back."""
    report, states = tmp_path / "r.json", tmp_path / "r.states.zip"

    def unsupported(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if not linked:
        monkeypatch.setattr(os, "link", unsupported)
    _counted(report, states, written=True)
    assert {own.name for own in tmp_path.iterdir()} == {"r.json", "r.states.zip"}
    older = states.read_bytes()
    _counted(report, states, written=False)
    kept = tmp_path / ".r.states.zip.old"
    assert states.read_bytes() != older and kept.read_bytes() == older
    digest = json.loads(report.read_text())["states_digest"]
    assert f"mv {kept} {states}" in str(foreign_states(states, report, digest))
    lock(report)
    with StatesWriter(states):  # which fails before it is finished
        pass
    release_all()
    assert states.read_bytes() == older and not kept.exists()
    _counted(report, states, written=False)
    states.unlink()  # killed between two renames, where there are no hard links
    lock(report)
    with StatesWriter(states) as writer:
        assert states.read_bytes() == older
        writer.finish({"items": []})
    restore_older(states)  # its report could not be written
    release_all()
    assert states.read_bytes() == older and not kept.exists()


def test_a_run_killed_at_its_end_leaves_the_new_pair(tmp_path: Path) -> None:
    """Killed between the report and the removal of the older states."""
    report, states = tmp_path / "r.json", tmp_path / "r.states.zip"
    _counted(report, states, written=True)
    (tmp_path / ".r.states.zip.old").write_bytes(b"older states")
    newer = states.read_bytes()
    repair_states(states, [])  # without a report nobody says which are right
    assert (tmp_path / ".r.states.zip.old").exists()
    repair_states(states, [report])
    assert states.read_bytes() == newer
    assert {own.name for own in tmp_path.iterdir()} == {"r.json", "r.states.zip"}


@pytest.mark.parametrize("written", [True, False])
def test_an_interrupt_while_a_report_is_written(tmp_path: Path, written: bool) -> None:
    """It comes before the report is replaced, or after: both are the older ones, or the new."""
    report, states = tmp_path / "r.json", tmp_path / "r.states.zip"
    _counted(report, states, written=True)
    older = states.read_bytes()
    _counted(report, states, written=False)
    newer = states.read_bytes()
    if written:
        report.write_text(json.dumps({"states_digest": noted_digest(states)}))
    settle_states(states, report)
    assert states.read_bytes() == (newer if written else older) != (older if written else newer)
    assert {own.name for own in tmp_path.iterdir()} == {"r.json", "r.states.zip"}


def test_states_alone_leave_a_report_alone(tmp_path: Path) -> None:
    report, states = tmp_path / "r.json", tmp_path / "r.states.zip"
    report.write_text("older")
    for _ in range(2):
        with StatesWriter(states) as writer:
            writer.finish({"items": []})
    assert report.read_text() == "older"
    assert {own.name for own in tmp_path.iterdir()} == {"r.json", "r.states.zip"}


def test_a_full_disk_does_not_stop_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's name cannot be written: the lock holds all the same, and nothing is repeated."""
    calls = []

    def full(*_: object) -> int:
        calls.append(1)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    taken = lock(tmp_path / "r.json")
    assert taken is not None and taken.exists() and len(calls) == 1
    release(taken)
    assert not taken.exists()


def test_a_file_that_is_another_each_time_is_no_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems give a file another number each time: there are no locks."""
    monkeypatch.setattr(locks, "_is_same_file", lambda *_: False)
    with locked(tmp_path / "r.json"):
        assert lock(tmp_path / "r.json") is None
