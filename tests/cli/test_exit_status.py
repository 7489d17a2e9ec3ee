"""The exit status of commands: interrupts, closed pipes, bugs, help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import (
    EXECUTABLE,
    TIMEOUT,
    environment,
    refused,
    run_script,
    run_unread,
    run_uqeval,
    run_well,
)
from small_stores import labels, probs, save

import uqeval
from uqeval import __version__

ROOT = Path(uqeval.__file__).parents[1]
THE_LAST_GOOD_ONE = '{"schema": "uqeval.report/1"}'


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that takes several seconds, most of them in kernels and files."""
    arrays = {"probs": np.repeat(probs(1), 400, 0), "labels": np.repeat(labels(1), 400, 0)}
    store = save(tmp_path_factory.mktemp("long") / "long.zarr", arrays)
    variants = [f"--window={w}" for w in (3, 4, 5, 6, 7)]
    variants += [f"--uncertainty={u}" for u in ("entropy", "std", "confidence")]
    # So little memory that the maps kept for the second pass go to a temporary folder.
    options = ["--stride=1", "--workers=1", "--memory=1MB"]
    return [str(EXECUTABLE), "pavpu", str(store), "-o", "report.json", *variants, *options]


@pytest.mark.parametrize(
    ("number", "status", "says"),
    [
        (signal.SIGINT, 130, "uqeval: interrupted before the end."),
        (signal.SIGTERM, 143, "uqeval: stopped before the end."),
    ],
)
def test_interrupted(
    tmp_path: Path, long_run: list[str], number: signal.Signals, status: int, says: str
) -> None:
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    left = ".report.states.zip.partial"
    out.mkdir()
    temporary.mkdir()
    (out / "report.json").write_text(THE_LAST_GOOD_ONE)
    with subprocess.Popen(
        long_run, cwd=out, env=environment(TMPDIR=str(temporary)), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            until = time.monotonic() + TIMEOUT
            while process.poll() is None and time.monotonic() < until:
                # States of the first tally are written, and maps are kept for the next pass.
                states = (path.read_bytes() for path in out.glob(left))
                if any(temporary.glob("*/*")) and any(b"tallies/1.json" in data for data in states):
                    break
                time.sleep(0.01)
            assert process.poll() is None, "ended before it could be interrupted"
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
    assert process.returncode == status
    # What was counted stays, to go on from.
    assert (stdout, stderr) == (
        "", f"{says} {left} has the finished items; --resume continues from it.\n"
    )  # fmt: skip
    assert sorted(file.name for file in out.iterdir()) == [left, "report.json"]
    assert (out / "report.json").read_text() == THE_LAST_GOOD_ONE
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_a_destructor(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """Python ignores its exception there; the process ends all the same, without a traceback."""
    script = f"""
import os, time
from uqeval.cli import entry

class Held:
    def __del__(self):
        os.kill(os.getpid(), {int(number)})
        time.sleep(0)

def app(**_):
    try:
        Held()
        time.sleep(20)
    except KeyboardInterrupt as interrupt:  # as Typer does
        raise SystemExit(130) from interrupt

entry.app = app
entry.main()
"""
    done = run_script(script, tmp_path)
    assert (done.status, "Traceback" in done.stderr) == (status, False), done.stderr


#: A command that a signal stops, and that gets others while it removes its files.
CLEANING = """
import signal, time
from pathlib import Path
from uqeval.cli import entry, start
from uqeval.disk.locks import lock, temporary
from uqeval.threads import uninterrupted

def app(**_):
    lock("r.json")
    with temporary("."):
        try:
            with uninterrupted():
                signal.raise_signal(signal.{first})
                signal.raise_signal(signal.SIGTERM)
        finally:
            time.monotonic = lambda: {now}
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            Path("cleaned").touch()

time.monotonic = lambda: 100.0
entry.app = app
start.main()
"""


@pytest.mark.parametrize(("first", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_further_signals_do_not_interrupt_the_cleaning(
    tmp_path: Path, first: str, status: int
) -> None:
    done = run_script(CLEANING.format(first=first, now=101.0), tmp_path)
    assert (done.status, done.stderr.count("before the end.\n")) == (status, 1), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["cleaned"]


def test_a_later_signal_ends_a_cleaning_that_hangs(tmp_path: Path) -> None:
    done = run_script(CLEANING.format(first="SIGTERM", now=110.0), tmp_path)
    assert (done.status, done.stderr) == (130, "uqeval: interrupted before the end.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "stopped"), ("SIGHUP", 129, "stopped")],
)
def test_each_signal_is_said(tmp_path: Path, name: str, status: int, says: str) -> None:
    script = f"""
import signal
from uqeval.cli import entry, start

signal.signal(signal.{name}, signal.SIG_DFL)  # the tests may run under nohup
entry.app = lambda **_: signal.raise_signal(signal.{name})
start.main()
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stderr) == (status, f"uqeval: {says} before the end.\n")


SECOND_SIGNAL = """
def start_of_timer(self):
    os.kill(os.getpid(), signal.SIGTERM)
    start(self)
"""
#: On a busy machine, the signal comes before the destructor has ended.
TOO_EARLY = """
def start_of_timer(self):
    threading.Timer.start = start
    start(self)
    self.join()
"""


@pytest.mark.parametrize("start_of_timer", [SECOND_SIGNAL, TOO_EARLY])
def test_a_signal_that_is_sent_again(tmp_path: Path, start_of_timer: str) -> None:
    script = f"""
import os, signal, threading, time
from uqeval.cli import entry

start = threading.Timer.start
{start_of_timer}
threading.Timer.start = start_of_timer

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)

def app(**_):
    Held()
    time.sleep(20)

entry.app = app
entry.main()
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stderr) == (143, "uqeval: stopped before the end.\n")


@pytest.mark.parametrize(
    ("number", "status", "says"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "stopped")]
)
def test_a_library_that_hides_an_interrupt(
    tmp_path: Path, number: str, status: int, says: str
) -> None:
    """pydantic raises an error of its own in place of the interrupt."""
    script = f"""
import signal
from uqeval.cli import entry

def app(**_):
    try:
        signal.raise_signal(signal.{number})
    except BaseException:
        error = RuntimeError("Error building a validator")
    raise error

entry.app = app
entry.main()
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stderr) == (status, f"uqeval: {says} before the end.\n")


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path: Path, name: str) -> None:
    """Such as SIGHUP under nohup."""
    script = f"""
import signal
from uqeval.cli import entry
from uqeval.threads import uninterrupted

def app(**_):
    signal.raise_signal(signal.{name})
    with uninterrupted():
        signal.raise_signal(signal.{name})
    print("done")

signal.signal(signal.{name}, signal.SIG_IGN)
entry.app = app
try:
    entry.main()
finally:
    signal.raise_signal(signal.{name})
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "done\n", "")


def test_an_interrupted_reduce(tmp_path: Path, long_run: list[str]) -> None:
    command = [str(EXECUTABLE), "reduce", long_run[2], "-o", "maps.zarr", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            until = time.monotonic() + TIMEOUT
            while not any(tmp_path.glob(".maps.zarr.*/entropy/c/*")):
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
    assert (process.returncode, stderr) == (130, "uqeval: interrupted before the end.\n")
    assert not list(tmp_path.iterdir())


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True,
        check=False, timeout=TIMEOUT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def judged(complete: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report and rules that it does not pass."""
    folder = tmp_path_factory.mktemp("judged")
    run_well("pavpu", complete, "-o", "r.json", "-q", cwd=folder)
    (folder / "s.json").write_bytes((folder / "r.json").read_bytes())
    (folder / "rules.yaml").write_text("pavpu.pavpu: {min: 0.999}\n")
    (folder / "good.yaml").write_text("pavpu.pavpu: {min: 0.001}\n")
    return folder


@pytest.mark.parametrize("streams", ["| true", "| head -c 1", ">&-", "2>/dev/full"])
def test_a_failed_gate_fails_whoever_looks(judged: Path, streams: str) -> None:
    command = f"{EXECUTABLE} gate r.json rules.yaml {streams}"
    done = shell(f"{command}; exit ${{PIPESTATUS[0]}}", judged)
    assert done.returncode == 1 and "Traceback" not in done.stderr


@pytest.mark.parametrize("reader", ["stdout gone", "stdout none", "stdout full", "stderr full"])
@pytest.mark.parametrize("shown", ["table", "json", "markdown"])
def test_a_failed_gate_fails_in_every_format(judged: Path, reader: str, shown: str) -> None:
    done = run_unread(reader, "gate", "r.json", "rules.yaml", "--format", shown, cwd=judged)
    assert done.status == 1 and "Traceback" not in done.stderr
    assert ("uqeval: stdout " in done.stderr) == (reader in ("stdout none", "stdout full"))


#: Commands that print to stdout, in the forms that they print.
PRINTING = (
    "pavpu {complete}", "pavpu {complete} --format json", "pavpu {complete} -o -",
    "gate r.json good.yaml", "gate r.json good.yaml -o -", "merge r.json --format csv",
    "select r.json --format markdown", "report r.json -o -", "inspect {complete}",
    "inspect {complete} --format json", "compare r.json s.json --no-intervals", "schema",
    "--version", "gate --help", "run {complete} -o out",
)  # fmt: skip


@pytest.mark.parametrize("arguments", PRINTING)
def test_lost_output_is_no_success(judged: Path, complete: Path, arguments: str) -> None:
    given = arguments.format(complete=complete).split()
    gone, closed, full = (
        run_unread(f"stdout {how}", *given, cwd=judged) for how in ("gone", "none", "full")
    )
    assert (gone.status, closed.status, full.status) == (141, 2, 2), (gone, closed, full)
    assert not [line for line in gone.stderr.splitlines() if not line.startswith("warning: ")]
    assert closed.stderr.splitlines()[-1].startswith(
        "uqeval: stdout is closed, so the result cannot be printed. Leave it open, redirect it"
    )
    lines = [line for line in full.stderr.splitlines() if line.startswith("uqeval: stdout")]
    assert len(lines) == 1 and "stdout cannot be written: No space" in lines[0]
    if arguments.endswith("-o out"):
        written = {file.name for file in (judged / "out").iterdir()}
        assert {"complete.json", "complete.html", "index.html"} <= written


def test_a_closed_stderr_changes_no_file(judged: Path, complete: Path) -> None:
    done = shell(f"{EXECUTABLE} pavpu {complete} -o own.json 2>&- >&- <&-; echo $?", judged)
    assert done.stdout == "2\n"  # the table
    done = shell(f"{EXECUTABLE} gate own.json good.yaml 2>&- >table", judged)
    assert done.returncode == 0 and "passed" in (judged / "table").read_text()


@pytest.mark.parametrize("stream", [">&-", ">/dev/full", "> >(exec true)"])
def test_what_is_wrong_is_no_failed_gate_where_nobody_is_told(judged: Path, stream: str) -> None:
    assert shell(f"{EXECUTABLE} gate r.json none.yaml 2{stream}", judged).returncode == 2


@pytest.mark.parametrize("reader", ["stderr none", "stderr full", "stderr gone"])
@pytest.mark.parametrize("arguments", ["pavpu no.zarr", "pavpu --nope", "gate r.json none.yaml"])
def test_the_status_needs_no_stderr(judged: Path, arguments: str, reader: str) -> None:
    assert run_unread(reader, *arguments.split(), cwd=judged).status == 2


FAILING = """
def fail(*arguments, **options):
    raise {error}
uqeval.usecases.evaluate.evaluate_store = fail
"""


def test_a_bug_shows_its_traceback(tmp_path: Path, complete: Path) -> None:
    script = FAILING.format(error="RuntimeError('deep inside')")
    main = f"import uqeval.cli.start, uqeval.usecases.evaluate\n{script}\nuqeval.cli.start.main()\n"
    done = subprocess.run(
        [sys.executable, "-c", main, "pavpu", str(complete)],
        env=environment(), capture_output=True, text=True, check=False, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback (most recent call last)" in done.stderr
    assert "RuntimeError: deep inside" in done.stderr
    assert f"uqeval {__version__}: this is a bug; please report it" in done.stderr


@pytest.mark.parametrize(
    "error", ["BaseException('odd')", "EOFError('odd')", "SystemExit('odd')", "SystemExit(1)"]
)
def test_no_error_has_the_status_of_a_failed_gate(
    tmp_path: Path, complete: Path, error: str
) -> None:
    script = f"import sys, uqeval.cli, uqeval.usecases.evaluate\n{FAILING.format(error=error)}"
    begin = f"sys.argv = {['uqeval', 'pavpu', str(complete)]}\nuqeval.cli.start.main()"
    done = run_script(f"{script}\n{begin}", tmp_path)
    assert (done.status, done.stdout) == (3, "")
    assert error.partition("(")[0] in done.stderr and "this is a bug" in done.stderr


def test_a_broken_installation_is_no_failed_gate(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('broken')\n")
    done = subprocess.run(
        [sys.executable, "-m", "uqeval", "gate", "r.json"],
        env=environment(PYTHONPATH=str(tmp_path)), capture_output=True, text=True, check=False,
        timeout=TIMEOUT, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "ImportError: broken" in done.stderr


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        ("MemoryError", 2, "uqeval: out of memory; give a lower --memory or fewer --workers.\n"),
        ("KeyboardInterrupt", 130, "uqeval: interrupted before the end.\n"),
        ("BrokenPipeError(32, 'gone')", 141, ""),
        ("uqeval.errors.UqevalError('what is wrong')", 2, "uqeval: what is wrong\n"),
    ],
)
def test_what_is_no_bug(tmp_path: Path, complete: Path, error: str, status: int, says: str) -> None:
    script = f"import sys, uqeval.cli, uqeval.usecases.evaluate\n{FAILING.format(error=error)}"
    begin = f"sys.argv = {['uqeval', 'pavpu', str(complete)]}\nuqeval.cli.start.main()"
    done = run_script(f"{script}\n{begin}", tmp_path)
    assert (done.status, done.stdout, done.stderr) == (status, "", says)


#: Interrupts the process when it imports a module, as Ctrl+C may.
INTERRUPTING = """
import os, signal, sys

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            {interrupt}

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("module", "interrupt"),
    [
        ("uqeval.cli.entry", "os.kill(os.getpid(), signal.SIGINT)"),
        ("uqeval.cli.options", "os.kill(os.getpid(), signal.SIGINT)"),
        ("numba", "os.kill(os.getpid(), signal.SIGINT)"),
        ("typer", "Held()"),  # Python ignores an exception there
    ],
)
def test_interrupted_during_imports(
    tmp_path: Path, complete: Path, module: str, interrupt: str
) -> None:
    script = INTERRUPTING.format(module=module, interrupt=interrupt)
    (tmp_path / "sitecustomize.py").write_text(script)
    done = subprocess.run(
        [str(EXECUTABLE), "pavpu", str(complete)],
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
        capture_output=True, text=True, check=False, timeout=TIMEOUT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "uqeval: interrupted before the end.\n"


def test_version_and_help() -> None:
    assert run_well("--version").stdout == f"uqeval {__version__}\n"
    whole = run_well("--help")
    assert whole.stdout == run_well("-h").stdout and whole.stderr == ""
    assert "<bool>" not in whole.stdout
    commands = [line.split()[1] for line in whole.stdout.splitlines() if line.startswith("│ ")]
    commands = [name for name in commands if name.isidentifier()]
    assert {"pavpu", "reduce", "inspect", "convert", "demo"} <= set(commands)
    for name in sorted({"pavpu", "reduce", "inspect", "convert", "demo"}):
        outcome = run_well(name, "--help")
        assert f"Usage: uqeval {name} " in outcome.stdout
        assert "Example" in outcome.stdout and outcome.stderr == ""


def test_no_arguments() -> None:
    nothing = run_uqeval()
    assert nothing.status == 2 and "Usage: uqeval" in nothing.stdout + nothing.stderr
    refused(run_uqeval("inspect"), "no PREDS [LABELS] given, and no uqeval.yaml in this folder")
    refused(run_uqeval("reduce"), "Missing option '-o'")
    refused(run_uqeval("pawpu"), "No such command 'pawpu'; did you mean 'pavpu'?")
    refused(run_uqeval("inspct", "a.zarr"), "No such command 'inspct'; did you mean 'inspect'?")
    refused(run_uqeval("zzz"), "No such command 'zzz'.")


def test_python_m_is_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uqeval", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"uqeval {__version__}\n"


@pytest.mark.parametrize("command", ["pavpu", "reduce"])
def test_a_limit_of_threads(tmp_path: Path, command: str) -> None:
    """No system starts a thread with a stack of this size, and reports the limit of threads."""
    save(tmp_path / "s.zarr", {"probs": probs(1), "labels": labels(1)})
    script = f"""
import sys, threading
from uqeval.cli.start import main

threading.stack_size(1 << 46)
sys.argv = ["uqeval", "{command}", "s.zarr", "-o", "out.{"json" if command == "pavpu" else "zarr"}"]
main()
"""
    message = refused(run_script(script, tmp_path), "a limit of processes or of memory is reached")
    assert message.startswith("uqeval: the system starts no further thread")
    assert message.endswith("those of the container).")
    assert [file.name for file in tmp_path.iterdir()] == ["s.zarr"]


@pytest.mark.parametrize(
    "error",
    [
        "ImportError('Original error: libopenblas.so: failed to map segment from shared object')",
        "OSError('/env/libllvmlite.so: failed to map segment from shared object')",
        "MemoryError()",
    ],
)
def test_libraries_that_cannot_be_loaded_where_memory_is_short(tmp_path: Path, error: str) -> None:
    script = f"""
from uqeval.cli import entry

def app(**_):
    try:
        raise {error}
    except Exception as cause:
        raise {error.partition("(")[0]}("PLEASE READ THIS") from cause

entry.app = app
entry.main()
"""
    done = run_script(script, tmp_path)
    says = "uqeval: out of memory; give a lower --memory or fewer --workers.\n"
    assert (done.status, done.stdout, done.stderr) == (2, "", says)
