"""What `resume=True` makes of stores that were finished, damaged by a power loss, or replaced."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval
from written import ABOUT, NAMES, SAMPLES, STACK, fill, stored

import uqeval
from uqeval.disk.publishing import publish_folder
from uqeval.errors import DataError, OutputError
from uqeval.stores.store import open_store
from uqeval.stores.writing.write_lock import WriteLock
from uqeval.stores.zarr import writer as zw
from uqeval.writer import PredictionWriter

LABELS = np.zeros((6, 10), np.uint8)


def unfinished(path: Path, one_by_one: bool = False, **options: object) -> None:
    """A store with items a and b and their labels, left by a job that ended."""
    writer = PredictionWriter(path, **ABOUT | options)
    for name in ("a", "b"):
        for t in range(SAMPLES) if one_by_one else ():
            writer.add(name, STACK[NAMES.index(name), t], sample=t)
        if not one_by_one:
            fill(writer, (name,))
        writer.add_labels(name, LABELS)
    writer._draft.abandon()


def files_of(path: Path, *parts: str) -> list[Path]:
    return sorted(file for file in path.joinpath(*parts).rglob("*") if file.is_file())


def test_a_finished_store_is_resumed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
        assert not writer.complete
    assert writer.complete
    (path / zw.HIDDEN / "parts").mkdir(parents=True)  # killed before it removed this
    before = {file: file.stat().st_mtime_ns for file in files_of(path)}
    with PredictionWriter(path, **ABOUT, resume=True) as writer:
        assert writer.complete and writer.done("a") and writer.missing() == []
        assert not writer.add("a", STACK[1])
        assert not writer.add("b", STACK[1, 0], sample=0)
        assert writer.add_batch(["a", "b"], STACK[:2]) == 0
        says = r"item 'a' cannot be added: .*p.zarr is finished and has no labels\. .* second path"
        with pytest.raises(OutputError, match=says):
            writer.add_labels("a", LABELS)
    assert {file: file.stat().st_mtime_ns for file in files_of(path)} == before
    assert not (path / zw.HIDDEN).exists()
    for other, difference in (
        ({"samples": 5}, "samples: 4 there, 5 here"),
        ({"names": ("a", "b", "d")}, "names: 'c' there, 'd' here"),
        ({"names": ("a", "b")}, "names: 3 there, 2 here"),
        ({"keep": "maps"}, "keep: 'samples' there, 'maps' here"),
        ({"kind": "logits"}, "arrays: probs there, logits here"),
    ):
        refused(
            lambda own=other: PredictionWriter(path, **ABOUT | own, resume=True),
            f"is a finished store with other settings ({difference}",
        )


@pytest.mark.parametrize("samples", [1, SAMPLES])
@pytest.mark.parametrize(
    "options", [{}, {"keep": "maps"}, {"keep": "maps", "mean_probs": True}], ids=str
)
def test_complete_items_stay_and_the_finished_store_is_known(
    tmp_path: Path, samples: int, options: dict[str, object]
) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | options | {"samples": samples, "resume": True}
    with pytest.raises(RuntimeError), PredictionWriter(path, **about) as writer:
        writer.add("a", STACK[0, :samples])
        raise RuntimeError
    with PredictionWriter(path, **about) as writer:
        assert [writer.done(name) for name in NAMES] == [True, False, False]
        for name, stack in zip(NAMES, STACK[:, :samples], strict=True):
            assert writer.add(name, stack) is (name != "a")
    assert PredictionWriter(path, **about).complete


@pytest.mark.parametrize("size", [ABOUT["size"], None])
def test_a_loop_that_skips_done_items_writes_labels_that_a_kill_left_out(
    tmp_path: Path, size: tuple[int, int] | None
) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | {"size": size, "resume": True}

    def loop(killed_at: str = "") -> None:
        with PredictionWriter(path, **about) as writer:
            for name, stack in zip(NAMES, STACK, strict=True):
                if not writer.done(name):
                    writer.add(name, stack)
                    if name == killed_at:
                        raise KeyboardInterrupt
                    writer.add_labels(name, LABELS)

    for name in ("b", "c"):
        with pytest.raises(KeyboardInterrupt):
            loop(killed_at=name)
    loop()
    assert len(stored(path, "labels")) == 3
    shutil.rmtree(path)
    with pytest.raises(KeyboardInterrupt):
        loop(killed_at="a")  # no label says that labels were to follow
    refused(loop, "Only the labels of a are missing", "done() is False", "resume=True")
    loop()
    assert len(stored(path, "labels")) == 3


def test_a_store_that_an_earlier_job_left_without_labels_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    writer = PredictionWriter(path, **ABOUT)
    fill(writer)
    writer._draft.abandon()
    writer = PredictionWriter(path, **ABOUT, resume=True)
    with pytest.warns(UserWarning, match=r"is complete, without labels.*second path.*overwrite=T"):
        writer.close()
    writer = PredictionWriter(path, **ABOUT, overwrite=True)
    fill(writer, ("a",))
    writer._draft.abandon()
    with warnings.catch_warnings():  # nothing was left out where the loop went on
        warnings.simplefilter("error")
        with PredictionWriter(path, **ABOUT, overwrite=True, resume=True) as writer:
            fill(writer, ("b", "c"))


def test_an_item_keeps_its_size(tmp_path: Path) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | {"size": None}
    narrow = STACK[..., :8]
    with pytest.raises(RuntimeError), PredictionWriter(path, **about) as writer:
        fill(writer, ("a",))
        writer.add("b", STACK[1, 0], sample=0)
        for name in ("b", "c"):
            writer.add_labels(name, LABELS)
        raise RuntimeError
    (path / "items" / "c" / "labels" / "zarr.json").write_text("")
    before = files_of(path / "items" / "b")
    with PredictionWriter(path, **about, resume=True) as writer:
        assert not writer.add("a", narrow[0])
        with pytest.raises(DataError, match=r"'b': .*expected \[6, 10\] .* overwrite=True"):
            writer.add("b", narrow[1])
        with pytest.raises(DataError, match=r"'b': .*expected \[6, 10\] .* overwrite=True"):
            writer.add_labels("b", LABELS.T)
        assert files_of(path / "items" / "b") == before
        fill(writer, ("b",))
        with pytest.raises(DataError, match="do not sum to 1"):
            writer.add("c", STACK[2] / 2)  # decides no size
        assert writer.add_labels("c", LABELS[:, :8])  # the damaged ones are gone
        writer.add("c", narrow[2])
        assert not writer.add_labels("b", LABELS)
        assert writer.add_labels("a", LABELS)
    assert [labels.shape for labels in stored(path, "labels")] == [(6, 10), (6, 10), (6, 8)]
    np.testing.assert_array_equal(stored(path)[2], narrow[2].astype("f2"))


@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_labels_have_the_size_of_the_first_sample(tmp_path: Path, keep: str) -> None:
    about = ABOUT | {"size": None, "keep": keep}
    writer = PredictionWriter(tmp_path / "p.zarr", **about)
    writer.add("a", STACK[0, 0], sample=0)
    with pytest.raises(DataError, match=r"expected \[6, 10\]"):
        writer.add_labels("a", LABELS[:, :8])


def test_overwrite_with_resume_replaces_what_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    both = {**ABOUT, "overwrite": True, "resume": True}
    with pytest.raises(RuntimeError), PredictionWriter(path, **both) as writer:
        writer.add("a", STACK[2])
        raise RuntimeError
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))
    with PredictionWriter(path, **both) as writer:  # goes on with the replacement
        assert [writer.done(name) for name in NAMES] == [True, False, False]
        writer.add("b", STACK[1])
        writer.add("c", STACK[0])
    np.testing.assert_array_equal(np.stack(stored(path)), STACK[[2, 1, 0]].astype("f2"))
    assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]


def test_overwrite_with_resume_goes_on_with_what_is_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path)
    with PredictionWriter(path, **ABOUT, overwrite=True, resume=True) as writer:
        assert [writer.done(name) for name in NAMES] == [True, True, False]
        writer.add("c", STACK[2])
        writer.add_labels("c", LABELS)
    assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]


def left_replacement(path: Path) -> None:
    """The first item of a replacement, left by a job that ended."""
    writer = PredictionWriter(path, **ABOUT, overwrite=True)
    writer.add("a", STACK[2])
    writer._draft.abandon()


def test_resume_alone_continues_what_overwrite_began(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    left_replacement(path)
    refused(
        lambda: PredictionWriter(path, **ABOUT),
        ".p.zarr.new is unfinished", "resume=True to continue", "overwrite=True to begin again",
    )  # fmt: skip
    writer = PredictionWriter(path, **ABOUT, resume=True)
    assert [writer.done(name) for name in NAMES] == [True, False, False]
    writer.add("b", STACK[1])
    refused(writer.close, "continue with resume=True. ")
    assert not writer.complete
    with PredictionWriter(path, **ABOUT, resume=True) as writer:
        writer.add("c", STACK[0])
    assert writer.complete
    np.testing.assert_array_equal(np.stack(stored(path)), STACK[[2, 1, 0]].astype("f2"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.zarr"]


@pytest.mark.parametrize("is_finished", [True, False])
def test_resume_alone_does_not_choose_between_a_store_and_its_replacement(
    tmp_path: Path, is_finished: bool
) -> None:
    path, both = tmp_path / "p.zarr", {**ABOUT, "overwrite": True, "resume": True}
    if is_finished:
        with PredictionWriter(path, **ABOUT) as writer:
            fill(writer)
    else:
        unfinished(path)
    left_replacement(path)
    for options in ({"resume": True}, {}):
        refused(
            lambda own=options: PredictionWriter(path, **ABOUT, **own),
            "p.zarr: its replacement .p.zarr.new, in the same folder, is unfinished",
            "resume=True and overwrite=True to continue it",
            "only overwrite=True to begin it again",
            "To keep the older store, remove .p.zarr.new",
        )  # fmt: skip
    writer = PredictionWriter(path, **both)
    assert [writer.done(name) for name in NAMES] == [True, False, False]
    refused(writer.close, "continue with resume=True and overwrite=True. ")
    with PredictionWriter(path, **both) as writer:
        fill(writer, ("b", "c"))
    np.testing.assert_array_equal(np.stack(stored(path)), STACK[[2, 1, 2]].astype("f2"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.zarr"]


@pytest.mark.parametrize("options", [{}, {"overwrite": True}])
def test_another_process_completes_the_store_to_resume_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    path = tmp_path / "p.zarr"
    if options:
        with PredictionWriter(path, **ABOUT) as writer:
            fill(writer)
    writer = PredictionWriter(path, **ABOUT, overwrite=True)
    fill(writer)
    writer._draft.abandon()
    about = ABOUT | options | {"resume": True, "ranks": 2}
    first, join = PredictionWriter(path, **about), WriteLock.join

    def completed_before(self: WriteLock, *own: Any, **settings: Any) -> set[str] | None:
        monkeypatch.undo()
        with pytest.warns(UserWarning, match="without labels"):
            first.close()
        return join(self, *own, **settings)

    monkeypatch.setattr(WriteLock, "join", completed_before)
    second = PredictionWriter(path, **about)
    assert second.complete and all(map(second.done, NAMES))
    second.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.zarr"]


def replaced_but_not_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a store that has replaced an older one, as if its writer was killed before it removed
    the older one."""
    path = folder / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with PredictionWriter(path, **ABOUT, overwrite=True) as writer:
            fill(writer)
    return path


@pytest.mark.parametrize("resume", [True, False])
def test_killed_before_the_older_store_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    path = replaced_but_not_removed(tmp_path, monkeypatch)
    assert sorted(own.name for own in tmp_path.iterdir()) == [".p.zarr.new", "p.zarr"]
    with PredictionWriter(path, **ABOUT, overwrite=True, resume=resume) as writer:
        assert not any(map(writer.done, NAMES))
        fill(writer)
    assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]


@pytest.mark.parametrize("is_file", [True, False])
def test_what_others_have_put_at_the_place_of_the_new_store_stays(
    tmp_path: Path, is_file: bool
) -> None:
    path, other = tmp_path / "p.zarr", tmp_path / ".p.zarr.new"
    notes = other if is_file else other / "notes"
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("mine")
    for options in ({"overwrite": True}, {"overwrite": True, "resume": True}):
        says = ".p.zarr.new is no store of uqeval, so it is not removed", "Move it"
        refused(lambda own=options: PredictionWriter(path, **ABOUT | own), *says)
    assert notes.read_text() == "mine"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    assert notes.read_text() == "mine"


@pytest.mark.parametrize("options", [{"overwrite": True}, {"resume": True}])
def test_leftovers_of_killed_writers_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    """Of one that removed an unfinished store, and of one that removed the older store."""
    path = replaced_but_not_removed(tmp_path, monkeypatch)
    (tmp_path / ".p.zarr.new/zarr.json").unlink()  # it was removed in part
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                           capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    for name in (f"..p.zarr.new.{ended}-0", f".p.zarr.{ended}-1"):
        (tmp_path / name / "probs").mkdir(parents=True)
    with PredictionWriter(path, **ABOUT, **options) as writer:
        if not writer.complete:
            fill(writer)
    assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]


@pytest.mark.parametrize("options", [{"resume": True}, {"resume": True, "overwrite": True}, {}])
def test_an_unfinished_store_that_was_replaced_is_not_taken_for_the_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]
) -> None:
    """The writer is killed while it removes the older store, which has the name of the new one."""
    path = tmp_path / "p.zarr"
    unfinished(path)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with PredictionWriter(path, **ABOUT, overwrite=True) as writer:
            for name in NAMES:
                writer.add(name, STACK[0])
    new = np.stack([STACK[0]] * len(NAMES)).astype("f2")
    assert (tmp_path / ".p.zarr.new" / zw.HIDDEN).is_dir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_store(str(path), role="predictions")  # nothing is said of an unfinished replacement
    if not options:
        with pytest.raises(OutputError, match="is a finished store"):
            PredictionWriter(path, **ABOUT)
    else:
        with PredictionWriter(path, **ABOUT, **options) as writer:
            assert writer.complete == ("overwrite" not in options)
            assert all(map(writer.done, NAMES)) == writer.complete
            for name in NAMES:
                writer.add(name, STACK[0])
        assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]
    np.testing.assert_array_equal(np.stack(stored(path)), new)


@pytest.mark.parametrize(
    ("part", "resume"),
    [("lock", True), ("lock", False), ("writers", True), ("writers", False), ("parts", True)],
)
def test_an_unfinished_store_without_its_lock_is_no_endless_loop(
    tmp_path: Path, resume: bool, part: str
) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path)
    if part == "lock":
        (path / zw.HIDDEN / part).unlink()  # by a killed process that removed the store
    else:
        shutil.rmtree(path / zw.HIDDEN / part)  # left out by a copy, as it was empty
    with pytest.raises(OutputError, match=r"without its lock.* Give only overwrite=True"):
        PredictionWriter(path, **ABOUT, resume=resume)
    with PredictionWriter(path, **ABOUT, overwrite=True) as writer:
        assert not any(map(writer.done, NAMES))
        fill(writer)
    unfinished(path, overwrite=True)
    (tmp_path / ".p.zarr.new" / zw.HIDDEN / "lock").unlink()
    with PredictionWriter(path, **ABOUT, overwrite=True) as writer:
        assert not any(map(writer.done, NAMES))
        fill(writer)


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize(
    ("victim", "kept"),
    [("zarr.json", "ab"), ("items/zarr.json", "ab"), ("items/a/zarr.json", "b"),
     ("items/a/probs/zarr.json", "b"), ("probs/zarr.json", "")],
)  # fmt: skip
@pytest.mark.parametrize("data", [b"", b'{"zarr_format": 3, "node', b"[]", None])
def test_damaged_metadata_are_mended(
    tmp_path: Path, victim: str, kept: str, data: bytes | None, overwrite: bool
) -> None:
    """A power loss has damaged them. It was called a finished store, or ended with a traceback."""
    path, about = tmp_path / "p.zarr", ABOUT | {"ignore_index": 7, "class_names": ["a", "b", "c"]}
    about["size"] = None if "items" in victim else ABOUT["size"]
    if overwrite:
        with PredictionWriter(path, **about) as writer:
            fill(writer)
    unfinished(path, **about, overwrite=overwrite)
    root = tmp_path / ".p.zarr.new" if overwrite else path
    attributes = zw.attributes_of(root)
    if data is None:
        (root / victim).unlink()
    else:
        (root / victim).write_bytes(data)
    options = {"ignore_index": None, "resume": True, "overwrite": overwrite}
    if not overwrite:
        refused(lambda: PredictionWriter(path, **about), "is unfinished", "resume=True")
    if victim == "zarr.json" and data is not None:
        refused(lambda: open_store(root, role="predictions"), "is unfinished", "resume=True")
    with PredictionWriter(path, **about | options) as writer:
        assert "".join(filter(writer.done, NAMES)) == kept
        for name in writer.missing():
            fill(writer, (name,))
            writer.add_labels(name, LABELS)
    assert len(stored(path)) == len(stored(path, "labels")) == 3
    attributes["uqeval"]["complete"] = True
    found = zw.attributes_of(path)
    found["uqeval"].pop("arrays", None)
    assert found == attributes
    assert [own.name for own in tmp_path.iterdir()] == ["p.zarr"]


def test_metadata_that_are_damaged_while_a_writer_is_open(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    writer = PredictionWriter(path, **ABOUT)
    fill(writer)
    (path / "zarr.json").write_bytes(b"{")
    refused(writer.close, "p.zarr/zarr.json is damaged", "open it again with resume=True")
    with pytest.warns(UserWarning, match="is complete, without labels"):
        PredictionWriter(path, **ABOUT, resume=True).close()
    assert len(stored(path)) == 3


def test_an_array_without_a_written_part_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path)
    (path / "probs/zarr.json").write_bytes(b"{")
    for part in (path / zw.HIDDEN / "parts").iterdir():
        part.unlink()
    with PredictionWriter(path, **ABOUT, resume=True) as writer:
        fill(writer)
    assert len(stored(path)) == 3


def test_a_damaged_array_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path)
    (path / "probs/zarr.json").write_bytes(b"{")

    def fails(folder: Path, *_: object, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    monkeypatch.setattr("shutil.rmtree", fails)
    with pytest.raises(OutputError, match=r"p\.zarr/probs cannot be written: Permission denied"):
        PredictionWriter(path, **ABOUT, resume=True)


def test_an_empty_folder_that_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an endless loop for a link, and a mount point was called a finished store."""
    path, empty, rename = tmp_path / "p.zarr", tmp_path / "empty", Path.rename
    empty.mkdir()
    (tmp_path / ".p.zarr.new").symlink_to(empty)
    with pytest.raises(OutputError, match="cannot be written: Not a directory"):
        PredictionWriter(path, **ABOUT, overwrite=True)

    def is_busy(self: Path, target: Path) -> Path:
        if target == path:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(self))
        return rename(self, target)

    path.mkdir()
    monkeypatch.setattr(Path, "rename", is_busy)
    with pytest.raises(OutputError, match=r"p\.zarr cannot be written: Device or resource busy"):
        PredictionWriter(path, **ABOUT)
    assert not any(path.iterdir())


def test_a_store_that_changes_for_ever_is_no_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path)
    monkeypatch.setattr("uqeval.stores.writing.write_lock._MOMENT", 0)
    monkeypatch.setattr(os.path, "samestat", lambda *_: False)
    with pytest.raises(OutputError, match="gives a file another number each time"):
        PredictionWriter(path, **ABOUT, resume=True)


@pytest.mark.parametrize("has_lock", [True, False])
def test_an_unfinished_store_that_cannot_be_removed_is_no_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_lock: bool
) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    unfinished(path, overwrite=True)
    new = tmp_path / ".p.zarr.new"
    if not has_lock:
        (new / zw.HIDDEN / "lock").unlink()

    def fails(self: Path, target: Path) -> None:
        raise PermissionError(13, os.strerror(13), str(self))

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OutputError, match=r"\.p\.zarr\.new cannot be written: Permission denied"):
        PredictionWriter(path, **ABOUT, overwrite=True)
    assert (new / zw.HIDDEN / "parts").is_dir()


def test_a_finished_store_of_another_size_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)
    height, width = ABOUT["size"]
    with pytest.raises(OutputError, match=rf"size: \[{height}, {width}\] there, \[3, 3\] here"):
        PredictionWriter(path, **ABOUT | {"size": (3, 3)}, resume=True)


@pytest.mark.parametrize("size", [ABOUT["size"], None])
def test_another_dtype_is_refused_and_another_compression_only_of_an_unfinished_store(
    tmp_path: Path, size: tuple[int, int] | None
) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | {"size": size}
    dtype = {"dtype": "float32", "resume": True}
    compression = {"compression": "none", "resume": True}
    unfinished(path, size=size)
    for own, says in (
        (dtype, "dtype: 'float16' there, 'float32' here"),
        (compression, "compression: 'lz4' there, 'none' here"),
    ):
        refused(lambda own=own: PredictionWriter(path, **about | own), says)
    with PredictionWriter(path, **about, overwrite=True) as writer:
        fill(writer)
    refused(
        lambda: PredictionWriter(path, **about | dtype),
        "finished store with other settings (dtype: 'float16' there, 'float32' here)",
    )
    assert PredictionWriter(path, **about | compression).complete
    for dtypes in (["float32", "float16"], ["float16", "float32"]):  # maps are float32 anyway
        for own in dtypes:
            maps = about | {"keep": "maps", "dtype": own, "resume": True}
            with PredictionWriter(tmp_path / f"{dtypes[0]}.zarr", **maps) as writer:
                fill(writer)


def test_killed_before_the_replacement_was_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT) as writer:
        fill(writer)

    def fails(new: Path, path: Path) -> None:
        raise OSError(5, os.strerror(5))

    with monkeypatch.context() as patch:
        patch.setattr("uqeval.stores.zarr.writer.publish_folder", fails)
        with pytest.raises(OutputError), PredictionWriter(path, **ABOUT, overwrite=True) as writer:
            for name in NAMES:
                writer.add(name, STACK[0])
    assert publish_folder is not fails
    with PredictionWriter(path, **ABOUT, overwrite=True, resume=True) as writer:
        assert writer.missing() == []
    np.testing.assert_array_equal(np.stack(stored(path)), STACK[[0, 0, 0]].astype("f2"))


def test_unfinished_and_of_no_writer_is_no_endless_loop(tmp_path: Path) -> None:
    zw.create_group(tmp_path / "p.zarr", zw.group_attributes("predictions"))
    for resume in (True, False):
        with pytest.raises(OutputError, match="of another kind of writer"):
            PredictionWriter(tmp_path / "p.zarr", **ABOUT, resume=resume)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def _zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.parametrize("damage", [_empty, _short, _zeros, Path.unlink])
@pytest.mark.parametrize("compression", ["lz4", "none"])
def test_a_damaged_chunk_is_written_again(
    tmp_path: Path, damage: Callable[[Path], None], compression: str
) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path, compression=compression)
    damage(path / "probs" / "c" / "1" / "0" / "0" / "0" / "0")
    damage(path / "labels" / "c" / "0" / "0" / "0")
    with PredictionWriter(path, **ABOUT, compression=compression, resume=True) as writer:
        assert [writer.done(name) for name in NAMES] == [False, False, False]
        assert not writer.add("a", STACK[0])
        assert writer.add("b", STACK[1]) and writer.add("c", STACK[2])
        assert writer.add_labels("a", LABELS) and writer.add_labels("c", LABELS)
        assert not writer.add_labels("b", LABELS)
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype("f2"))


def test_one_damaged_sample_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    unfinished(path, one_by_one=True)
    _empty(path / "probs" / "c" / "1" / "2" / "0" / "0" / "0")
    writer = PredictionWriter(path, **ABOUT, resume=True)
    assert [writer.done("b", t) for t in range(SAMPLES)] == [True, True, False, True]


@pytest.mark.parametrize("size", [(6, 10), None])
@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_damaged_metadata_are_written_again(
    tmp_path: Path, size: tuple[int, int] | None, keep: str
) -> None:
    about = ABOUT | {"size": size, "keep": keep}
    whole, path = tmp_path / "whole.zarr", tmp_path / "p.zarr"
    with PredictionWriter(whole, **about) as writer:
        fill(writer)
        for name in NAMES:
            writer.add_labels(name, LABELS)
    unfinished(path, size=size, keep=keep)
    shutil.copytree(path, tmp_path / "copy")
    metadata = [file for file in files_of(path) if file.name == "zarr.json"]
    for file in metadata:
        where = file.relative_to(path).parts
        if len(where) == 1 or where[:-1] == ("items",):  # synced when the store is begun
            continue
        if "a" in where:  # as those of b
            continue
        shutil.rmtree(path)
        shutil.copytree(tmp_path / "copy", path)
        _empty(file)
        with PredictionWriter(path, **about, resume=True) as writer:
            assert not all(map(writer.done, ("a", "b")))
            for name in NAMES:
                writer.add(name, STACK[NAMES.index(name)])
                writer.add_labels(name, LABELS)
        there = {str(own.relative_to(path)): own.read_bytes() for own in files_of(path)}
        assert there == {str(own.relative_to(whole)): own.read_bytes() for own in files_of(whole)}


@pytest.mark.parametrize("size", [ABOUT["size"], None])
def test_readers_name_the_unfinished_store_that_would_replace(tmp_path: Path, size: object) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | {"size": size}
    unfinished(path, overwrite=True, size=size)
    missing = "there is nothing here", ".p.zarr.new", "is unfinished", "again with resume=True,"
    refused(lambda: open_store(path, role="predictions"), *missing)
    refused(run_uqeval("inspect", path), *missing)
    words = ".p.zarr.new", "is unfinished", "resume=True and overwrite=True"
    with PredictionWriter(path, **about, overwrite=True, resume=True) as writer:
        assert writer.done("a")
        fill(writer, ("c",))
        writer.add_labels("c", LABELS)
    assert open_store(path, role="predictions").warnings == ()
    unfinished(path, overwrite=True, size=size)
    (warning,) = open_store(path, role="predictions").warnings
    assert all(word in warning for word in ("p.zarr: these are the old predictions", *words))
    report = uqeval.evaluate(path)
    assert warning in report.warnings
    shown = " ".join(run_uqeval("inspect", path).stderr.split())
    assert shown.count("these are the old predictions") == 1


def test_a_store_is_read_whatever_lies_beside_it(tmp_path: Path) -> None:
    """Its name with `.new` is too long for a file."""
    path = tmp_path / ("p" * 246 + ".zarr")
    with PredictionWriter(tmp_path / "p.zarr", **ABOUT) as writer:
        fill(writer, NAMES)
    (tmp_path / "p.zarr").rename(path)
    assert open_store(path, role="predictions").warnings == ()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("classes", [ABOUT["classes"], 300])
def test_the_void_id_is_that_of_the_earlier_job(
    tmp_path: Path, classes: int, overwrite: bool
) -> None:
    path, about = tmp_path / "p.zarr", ABOUT | {"classes": classes, "samples": 1}
    void = min(classes - 1, 255)
    values = np.full((classes, 6, 10), 1 / classes, "f4")
    labels = np.where(np.eye(6, 10) == 1, void, LABELS).astype("u2")
    writer = PredictionWriter(path, **about, ignore_index=void)
    writer.add("a", values)
    writer._draft.abandon()
    with PredictionWriter(path, **about, resume=True, overwrite=overwrite) as writer:
        for name in NAMES:
            writer.add(name, values)
            writer.add_labels(name, labels)
    with PredictionWriter(path, **about, resume=True) as writer:
        assert writer.complete
    assert open_store(path, role="predictions").attributes["ignore_index"] == void
    with pytest.raises(OutputError, match="other settings"):
        PredictionWriter(path, **about, resume=True, ignore_index=0)
