"""Files of killed processes are removed; files of living processes stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import obey_modes

from uqeval.disk.locks import OWNER, clear, hold, own_name, temporary
from uqeval.disk.outputs import write
from uqeval.errors import OutputError
from uqeval.stores.states.writer import StatesWriter

#: Copies states beside their place for ever.
_WRITER = """
import sys, time
from uqeval.stores.states.writer import StatesWriter
class Earlier:
    def states(self):
        print("ready", flush=True)
        time.sleep(60)
StatesWriter(sys.argv[1], {"run": 1}, before=Earlier())
"""


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_killed_run_leaves_nothing_for_long(tmp_path: Path) -> None:
    path = tmp_path / "r[1].states.zip"  # a name that means something to a glob
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        left = tmp_path / f".r[1].states.zip.partial.{process.pid}"
        assert left in tmp_path.iterdir()
        with pytest.raises(OutputError, match=f"process {process.pid} of uqeval writes to it now"):
            StatesWriter(path)
        assert left.exists()
        process.send_signal(signal.SIGKILL)
    with StatesWriter(path):
        assert not left.exists()
    assert not list(tmp_path.iterdir())


def test_only_what_is_nobodys_goes(tmp_path: Path, gone: int) -> None:
    path = tmp_path / ".r.partial"
    names = [
        f".r.partial.{end}" for end in (gone, os.getpid(), 1, 0, -1, "x", "", 10**30, "\u0661")
    ]
    names += [".r.partial", f".other.partial.{gone}", f"r.partial.{gone}"]
    for name in names:
        (tmp_path / name).touch()
    clear(path)
    assert {own.name for own in tmp_path.iterdir()} == set(names[1:])
    assert own_name(path).name == f".r.partial.{os.getpid()}"


def test_a_file_of_another_machine_is_locked(tmp_path: Path, gone: int) -> None:
    """Its process is unknown here, but at work."""
    left = tmp_path / f".r.partial.{gone}"
    with left.open("w+b") as file:
        hold(file.fileno())
        clear(tmp_path / ".r.partial")
        assert left.exists()
    clear(tmp_path / ".r.partial")
    assert not left.exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    clear(tmp_path / "none" / ".r.partial")
    assert not list(tmp_path.iterdir())


def test_an_output_removes_what_a_killed_run_left_beside_it(tmp_path: Path, gone: int) -> None:
    for name in (f".a.csv.{gone}-3", f".b.csv.{gone}-3", f".a.csv.{os.getpid()}-3"):
        (tmp_path / name).touch()
    write(tmp_path / "a.csv", "new")
    left = {f".b.csv.{gone}-3", f".a.csv.{os.getpid()}-3", "a.csv"}
    assert {own.name for own in tmp_path.iterdir()} == left


def test_temporary_folders_of_killed_runs_go(
    tmp_path: Path, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (f"uqeval-{gone}-whole", f"uqeval-{gone}-half-removed", f"uqeval-{os.getpid()}-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "states").touch()
    (tmp_path / f"uqeval-{gone}-whole" / OWNER).touch()
    with temporary() as folder:
        assert {own.name for own in tmp_path.iterdir()} == {folder.name, f"uqeval-{os.getpid()}-x"}
    assert not folder.exists()


def test_temporary_folders_of_other_users_stay(tmp_path: Path, gone: int) -> None:
    """They cannot be read, so nobody knows whether they are abandoned; no call fails for them."""
    script = f"""
from uqeval.disk.locks import temporary

with temporary({str(tmp_path)!r}) as folder:
    print(folder.is_dir())
"""
    private = tmp_path / f"uqeval-{gone}-private"
    private.mkdir()
    (private / OWNER).touch()
    private.chmod(0)
    ended = subprocess.run(
        [sys.executable, "-c", script], preexec_fn=obey_modes, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    left = list(tmp_path.iterdir())
    private.chmod(0o700)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
    assert left == [private] and (private / OWNER).exists()


def test_an_owner_that_is_a_pipe_is_not_waited_for(tmp_path: Path, gone: int) -> None:
    strange = tmp_path / f"uqeval-{gone}-strange"
    strange.mkdir()
    os.mkfifo(strange / OWNER)
    os.mkfifo(tmp_path / f".r.partial.{gone}")
    script = f"""
from pathlib import Path
from uqeval.disk.locks import clear, temporary_folder

temporary_folder({str(tmp_path)!r})
clear(Path({str(tmp_path / ".r.partial")!r}))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=20)
    assert (strange / OWNER).is_fifo()
