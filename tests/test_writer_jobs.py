"""Jobs that end early, begin again, or are several: half a store is never taken for a whole one."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from command import run_script
from written import ABOUT, CLASSES, NAMES, SAMPLES, SIZE, STACK, fill, probs, stored

import uqeval
from uqeval.errors import DataError, OutputError, StoreError, UqevalError, UsageError
from uqeval.stores.store import open_store
from uqeval.stores.zarr import writer as zw
from uqeval.writer import PredictionWriter


def test_missing_labels_are_named(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    for name, stack in zip(NAMES[:2], STACK, strict=False):
        writer.add(name, stack)
    writer.add_labels("a", np.zeros(SIZE, np.uint8))
    assert writer.missing() == ["b", "c"]
    words = r"incomplete items \(2 of 3\): b, c\. Only the labels of b are missing: write them"
    with pytest.raises(OutputError, match=words):
        writer.close()


def test_missing_items_leave_the_store_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    writer = PredictionWriter(path, **ABOUT)
    writer.add("b", STACK[1])
    with pytest.raises(OutputError, match=r"incomplete items \(2 of 3\): a, c\."):
        writer.close()
    with pytest.raises(StoreError, match="unfinished"):
        open_store(path, role="predictions")
    with pytest.raises(UsageError, match="closed"):
        writer.add("a", STACK[0])


def test_an_error_inside_leaves_it_unfinished_and_resume_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    with pytest.raises(RuntimeError), PredictionWriter(path, **ABOUT) as writer:
        fill(writer, ("a", "b"))
        raise RuntimeError
    with pytest.raises(OutputError, match=r"ended early.*resume=True"):
        PredictionWriter(path, **ABOUT)
    with pytest.raises(OutputError, match=r"with other settings \(samples: 4 there, 5 here\)"):
        PredictionWriter(path, **{**ABOUT, "samples": 5}, resume=True)
    with PredictionWriter(path, **ABOUT, resume=True) as writer:
        assert [writer.done(name) for name in NAMES] == [True, True, False]
        assert not writer.add("a", STACK[1])  # kept as it was
        assert writer.add("c", STACK[2])
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


def test_a_finished_store_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    with pytest.raises(OutputError, match="finished store"):
        PredictionWriter(path, **ABOUT)
    with pytest.raises(RuntimeError), PredictionWriter(path, **ABOUT, overwrite=True) as writer:
        writer.add("a", STACK[1])
        raise RuntimeError
    np.testing.assert_array_equal(stored(path)[0], STACK[0].astype("f2"))
    with PredictionWriter(path, **ABOUT, overwrite=True) as writer:  # begins again
        for name in NAMES:
            writer.add(name, STACK[2])
    np.testing.assert_array_equal(stored(path)[0], STACK[2].astype("f2"))
    assert [p.name for p in tmp_path.iterdir()] == ["p.zarr"]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    with pytest.raises(OutputError, match="not a Zarr store"):
        PredictionWriter(tmp_path / "home", **ABOUT, overwrite=True)


@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_repeated_items(tmp_path: Path, keep: Any) -> None:
    with PredictionWriter(tmp_path / "p.zarr", **ABOUT, keep=keep) as writer:
        fill(writer)
        with pytest.raises(DataError, match=r"item 'a': this was written already.*repeated='skip'"):
            writer.add("a", STACK[1])
    with PredictionWriter(tmp_path / "q.zarr", **ABOUT, keep=keep, repeated="skip") as writer:
        fill(writer)
        assert not writer.add("a", STACK[1])
    kind = "probs" if keep == "samples" else "entropy"
    first, second = (stored(tmp_path / name, kind)[0] for name in ("p.zarr", "q.zarr"))
    np.testing.assert_array_equal(first, second)


def _rank(path: str, rank: int, barrier: Any, answers: Any) -> None:
    """One of two processes: each writes one half, the second a padded item too."""
    try:
        barrier.wait(30)
        with PredictionWriter(path, **ABOUT, ranks=2, repeated="skip") as writer:
            barrier.wait(30)
            for name in (("a", "c"), ("b", "a"))[rank]:
                writer.add(name, STACK[NAMES.index(name)])
            barrier.wait(30)
            refused = ""
            try:
                PredictionWriter(path, **{**ABOUT, "classes": 4}, ranks=2)
            except OutputError as error:
                refused = str(error)
            barrier.wait(30)
        answers.put(refused)
    except BaseException as error:
        answers.put(repr(error))
        raise


def _killed(path: str) -> None:
    """Dies with item a written, and the second sample of item b claimed and not written."""
    writer = PredictionWriter(path, **ABOUT)
    for t in range(SAMPLES):
        writer.add("a", STACK[0, t], sample=t)
    writer.add("b", STACK[2, 0], sample=0)
    zw.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    writer.add("b", STACK[1, 1], sample=1)


def _full(path: str, answers: Any) -> None:
    """Runs into a limit of the size of files as into a full disk."""
    sys.dont_write_bytecode = True  # Python would leave modules cut short
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        with PredictionWriter(path, **{**ABOUT, "size": (96, 64)}) as writer:
            writer.add("a", probs(SAMPLES, CLASSES, 96, 64))
    except UqevalError as error:
        answers.put(f"{type(error).__name__}: {error}")


SPAWN = multiprocessing.get_context("spawn")


def test_two_processes_write_one_store(tmp_path: Path) -> None:
    path = str(tmp_path / "p.zarr")
    barrier, answers = SPAWN.Barrier(2), SPAWN.Queue()
    ranks = [SPAWN.Process(target=_rank, args=(path, i, barrier, answers)) for i in range(2)]
    for process in ranks:
        process.start()
    found = [answers.get(timeout=60) for _ in ranks]
    for process in ranks:
        process.join(60)
    assert all("other settings" in answer for answer in found), found
    np.testing.assert_array_equal(np.stack(stored(Path(path))), STACK.astype("f2"))
    assert [p.name for p in tmp_path.iterdir()] == ["p.zarr"]
    assert not (Path(path) / zw.HIDDEN).exists()


def writers(path: Path, **options: Any) -> list[PredictionWriter]:
    return [PredictionWriter(path, **ABOUT | options, ranks=3) for _ in NAMES]


@pytest.mark.parametrize("repeated", ["error", "skip"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_that_is_done_leaves_the_labels_to_others(
    tmp_path: Path, repeated: Any, overwrite: bool
) -> None:
    path, labels = tmp_path / "p.zarr", np.zeros(SIZE, np.uint8)
    first, second, killed = writers(path, repeated=repeated, overwrite=overwrite)
    fill(first)
    with pytest.warns(UserWarning, match="complete when the other writers close"):
        second.close()
    assert all(first.add_labels(name, labels) for name in NAMES[:2])
    killed.add_labels("c", labels)
    killed._draft.abandon()
    first.close()
    assert len(stored(path, "labels")) == len(NAMES)


def test_the_last_process_completes_a_store_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    first, last, killed = writers(path)
    fill(last, ("a",))
    fill(killed, ("b", "c"))
    killed._draft.abandon()
    with pytest.warns(UserWarning, match="complete when the other writers close"):
        first.close()
    with pytest.raises(StoreError, match="unfinished"):
        open_store(path, role="predictions")
    last.close()
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


def test_processes_that_have_written_nothing_hold_up_no_store(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    first, *_idle = writers(path)
    fill(first)
    first.close()
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_without_system_locks_two_may_leave_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    path = tmp_path / "p.zarr"
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    first, second = (
        PredictionWriter(path, **ABOUT, ranks=2, overwrite=overwrite) for _ in range(2)
    )
    fill(first, ("a", "b"))
    fill(second, ("c",))
    written = second._draft._claims.written

    def while_the_second_closes() -> set[str]:
        first.close()
        return written()

    monkeypatch.setattr(second._draft._claims, "written", while_the_second_closes)
    second.close()
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


def test_a_process_without_work_does_not_wait_for_labels_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    first, second, open_writer = writers(path, overwrite=True)
    fill(first)
    for name in NAMES:
        second.add_labels(name, np.zeros(SIZE, np.uint8))
    first.close()
    assert len(stored(path, "labels")) == len(NAMES)
    with pytest.raises(DataError, match="'a': this was written already"):
        open_writer.add("a", STACK[0])
    for writer in (second, open_writer):
        writer.close()


def test_the_first_labels_of_any_process_give_the_number_of_annotators(tmp_path: Path) -> None:
    first, second, third = writers(tmp_path / "p.zarr")
    labels = np.zeros((2, *SIZE), np.uint8)
    assert first.add_labels("a", labels)
    with pytest.raises(
        DataError, match=r"'b' have the shape .* of 0 annotators; labels before have 2.*\(255\)"
    ):
        second.add_labels("b", labels[0])
    assert third.add_labels("b", labels)


def test_labels_that_are_not_stored_give_no_number_of_annotators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, labels = tmp_path / "p.zarr", np.zeros((2, *SIZE), np.uint8)
    first, second, third = writers(path, size=None)
    with monkeypatch.context() as patch:
        patch.setattr(zw, "create_array", Mock(side_effect=OutputError("disk full")))
        with pytest.raises(OutputError, match="disk full"):
            first.add_labels("a", labels[0])
    assert first.add_labels("a", labels)
    with pytest.raises(DataError, match="labels before have 2"):
        second.add_labels("b", labels[0])
    for writer in (first, second, third):
        writer._draft.abandon()
    (path / "items" / "a" / "labels" / "zarr.json").write_text("")
    resumed = PredictionWriter(path, **ABOUT | {"size": None}, ranks=3, resume=True)
    assert resumed.add_labels("b", labels[0])


def test_a_killed_job_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    process = SPAWN.Process(target=_killed, args=(str(path),))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(StoreError, match="unfinished"):
        open_store(path, role="predictions")
    with PredictionWriter(path, **ABOUT, resume=True) as writer:
        assert [writer.done(name) for name in NAMES] == [True, False, False]
        assert writer.done("b", 0) and not writer.done("b", 1)
        for name in NAMES:
            if not writer.done(name):
                for t in range(SAMPLES):
                    assert writer.add(name, STACK[NAMES.index(name), t], sample=t)
        with pytest.raises(DataError, match="'b', sample 0: this was written already"):
            writer.add("b", STACK[1, 0], sample=0)
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    answers = SPAWN.Queue()
    process = SPAWN.Process(target=_full, args=(str(tmp_path / "p.zarr"), answers))
    process.start()
    answer = answers.get(timeout=60)
    process.join(60)
    assert answer.startswith("OutputError") and os.strerror(errno.EFBIG) in answer
    with pytest.raises(StoreError, match="unfinished"):
        open_store(tmp_path / "p.zarr", role="predictions")


def test_a_fork_that_ends_early_leaves_its_parent_a_living_writer(tmp_path: Path) -> None:
    """Otherwise a second job takes the store for one of a killed job."""
    script = """
import os, sys
from uqeval.errors import OutputError
from uqeval.writer import PredictionWriter

about = {"names": ("a",), "samples": 1, "classes": 2, "size": (2, 2)}
writer = PredictionWriter("p.zarr", **about)
if (child := os.fork()) == 0:
    try:
        with writer:
            sys.exit(1)
    finally:
        os._exit(0)
os.waitpid(child, 0)
try:
    PredictionWriter("p.zarr", **about, resume=True)
except OutputError as error:
    print(error)
"""
    done = run_script(script, tmp_path)
    assert "p.zarr is being written by process" in done.stdout, done


DAEMON = """
import os, warnings
import numpy as np
import uqeval

warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of forks beside threads

def opened(**options):
    return uqeval.PredictionWriter(
        "p.zarr", names=["a", "b"], samples=1, classes=3, size=(4, 4), ranks=2, **options
    )

stack = np.full((1, 1, 3, 4, 4), 1 / 3, np.float32)
if os.fork() == 0:
    writer, opener = opened(), os.getpid()
    if os.fork() == 0:
        while True:
            try:
                os.kill(opener, 0)
            except ProcessLookupError:
                break
        writer.add_batch(["a"], stack)
        writer.close()
        second = opened()
        second.add_batch(["b"], stack)
        second.close()
        print("done", flush=True)
    os._exit(0)
os.wait()
"""


def test_a_fork_leaves_the_store_if_its_parent_has_ended(tmp_path: Path) -> None:
    """As a process does that opens the store and then becomes a daemon."""
    done = subprocess.run(
        [sys.executable, "-c", DAEMON],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(uqeval.__file__).parents[1])},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert {path.name for path in (tmp_path / "p.zarr").iterdir()} == {"probs", "zarr.json"}
