"""Files and folders come to their final names whole, and synced before that."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_forked

from uqeval.disk import publishing as p
from uqeval.disk.locks import locked
from uqeval.disk.outputs import write
from uqeval.stores.map_cache import read_checked, write_checked
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import tally_key
from uqeval.stores.states.writer import StatesWriter
from uqeval.stores.zarr import writer as zw


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the calls of sync, rename and remove, in order, by the name of the file or folder."""
    made: list[tuple[str, str]] = []
    replace, rename = Path.replace, Path.rename
    fsync, exchange, remove = os.fsync, p._exchange, p.shutil.rmtree

    def synced(file: int) -> None:
        made.append(("sync", Path(f"/proc/self/fd/{file}").readlink().name))
        fsync(file)

    def noted(kind: str, then: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Path, *rest: Any, **options: Any) -> Any:
            made.append((kind, Path(rest[0] if kind == "rename" else self).name))
            return then(self, *rest, **options)

        return call

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", noted("rename", replace))
    monkeypatch.setattr(Path, "rename", noted("rename", rename))
    monkeypatch.setattr(p, "_exchange", noted("rename", exchange))
    monkeypatch.setattr(p.shutil, "rmtree", noted("remove", remove))
    return made


def _report(path: Path) -> None:
    write(path, "text")


def _array(path: Path) -> None:
    assert write_checked(path, np.ones(3))
    assert read_checked(path, (3,), "f8") is not None


def _states(path: Path) -> None:
    with StatesWriter(path) as states:
        states.add(tally_key({"id": "x"}), 0, PackedItems.of([b"state"]))
        states.finish({"items": ["a"]})


@pytest.mark.parametrize("make", [_report, _array, _states])
def test_a_file_is_synced_then_renamed_then_its_folder_synced(
    tmp_path: Path, calls: list[tuple[str, str]], make: Callable[[Path], None]
) -> None:
    make(tmp_path / "out")
    (synced, name), *rest = calls[-3:]
    assert synced == "sync" and name.startswith(".out.")
    assert rest == [("rename", "out"), ("sync", tmp_path.name)]
    assert [own.name for own in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("exchange", [True, False])
def test_an_older_store_goes_last(
    tmp_path: Path, calls: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    new, path = tmp_path / ".s.new", tmp_path / "s"
    for folder, what in ((path, "old"), (new, "new")):
        zw.create_group(folder, zw.group_attributes("predictions", which=what))
    if not exchange:
        monkeypatch.setattr(p, "_renameat2", lambda: None)
    calls.clear()
    zw.mark_complete(new)
    zw.publish(new, path)
    kinds = [kind for kind, _ in calls]
    assert ("sync", "zarr.json") in calls[: kinds.index("rename")]  # of what is in it
    last = [call for call in calls[-4:] if call[0] != "rename"]
    assert last[-2:] == [
        ("sync", tmp_path.name),
        ("remove", ".s.new" if exchange else ".s.uqeval-old"),
    ]
    assert '"complete": true' in (path / "zarr.json").read_text()
    assert [own.name for own in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_that_cannot_be_synced_leaves_the_older_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    new, path = tmp_path / "new", tmp_path / "s"
    for folder in (new, path):
        folder.mkdir()
        (folder / folder.name).touch()
    if not exchange:
        monkeypatch.setattr(p, "_renameat2", lambda: None)

    def fails(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(p, "sync_folder", fails)
    with pytest.raises(OSError, match="Input/output"):
        p.publish_folder(new, path)
    assert (path / "s").exists() and (new / "new").exists()


@pytest.mark.parametrize("linked", [True, False])
def test_a_file_whose_folder_cannot_be_synced_is_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(p, "sync_folder", fails)
    if not linked:
        monkeypatch.setattr(os, "link", fails)
    (tmp_path / "old").write_text("old")
    for name in ("old", "new", "folder"):
        with pytest.raises(OSError, match="Input/output"):
            if name == "folder":
                (tmp_path / ".folder").mkdir()
                p.publish_folder(tmp_path / ".folder", tmp_path / name)
            else:
                p.write_file(tmp_path / name, b"text")
    # Without hard links there is nothing to go back to.
    assert (tmp_path / "old").read_text() == ("old" if linked else "text")
    assert {own.name for own in tmp_path.iterdir()} == {"old", ".folder"}


def test_a_second_name_that_cannot_be_removed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise OSError(5, "Input/output error")

    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(Path, "unlink", fails)
    with pytest.raises(OSError, match="Input/output"):
        p.write_file(tmp_path / "old", b"text")
    assert (tmp_path / "old").read_text() == "old"
    assert {own.name for own in tmp_path.iterdir()} == {"old"}


def test_a_store_moved_aside_by_a_killed_process_is_put_back(tmp_path: Path) -> None:
    zw.create_group(tmp_path / ".s.uqeval-old", {})
    (tmp_path / ".s.old").mkdir()  # of the user
    zw.check_replaceable(tmp_path / "s")
    assert {own.name for own in tmp_path.iterdir()} == {"s", ".s.old"}


def test_nothing_is_left_of_a_file_that_fails(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    (tmp_path / "link").symlink_to("out")
    with pytest.raises(RuntimeError), p.new_file(tmp_path / "link") as file:
        file.write(b"half")
        raise RuntimeError
    assert (tmp_path / "out").read_text() == "old"
    p.write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "out").read_text() == "new"
    p.write_file(tmp_path / ("x" * 255), b"a long name")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_replaces_no_device(tmp_path: Path) -> None:
    """Root could replace `/dev/zero` by a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            p.write_file(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_demo_begins_again_where_one_was_killed(tmp_path: Path) -> None:
    from uqeval.errors import OutputError
    from uqeval.usecases.demo.making import _begin

    home = tmp_path / "demo"
    _begin(home)
    (home / "labels").mkdir()
    (home / "uqeval.yaml").touch()
    (home / "mine.txt").touch()
    _begin(home)
    assert sorted(own.name for own in home.iterdir()) == [".uqeval-demo", "mine.txt"]
    (home / ".uqeval-demo").unlink()
    with pytest.raises(OutputError, match="not empty"):
        _begin(home)


def test_two_demos_in_one_folder(tmp_path: Path) -> None:
    """The second is refused, and removes nothing that the first has written."""
    (tmp_path / "d").mkdir()
    with locked(tmp_path / "d" / ".uqeval-demo"):
        for name in (".uqeval-demo", "depth.npz"):
            (tmp_path / "d" / name).write_text("x")
        refused(run_forked("demo", "d", cwd=tmp_path), "writes to it now")
        assert (tmp_path / "d" / "depth.npz").read_text() == "x"


def test_a_demo_that_could_not_evaluate_everything_may_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uqeval.usecases.demo.making as module

    class Unfinished:
        status = 2

    monkeypatch.setattr(module, "run_config", lambda *_, **__: Unfinished())
    for _ in range(2):  # the second one would be refused
        outcome = module.demo(tmp_path / "demo", items=1, samples=1, size=(16, 16))
        assert outcome.status == 2 and (tmp_path / "demo" / ".uqeval-demo").exists()


def test_what_the_system_refuses_names_the_file(tmp_path: Path) -> None:
    from uqeval.errors import OutputError

    says = r"gone cannot be written: No such file.*Check the disk"
    with pytest.raises(OutputError, match=says), p.writing(tmp_path):
        (tmp_path / "gone").unlink()


def test_what_the_system_refuses_names_the_output_and_what_to_do(tmp_path: Path) -> None:
    from uqeval.errors import OutputError

    new = p.hidden_path(tmp_path / "maps.zarr")
    for error, says in (
        (errno.ENOSPC, r"/maps\.zarr/std/c cannot be written: No space .*\. Free some space there"),
        (errno.EMFILE, r"/maps\.zarr/std/c cannot be written: Too many open files\. Raise"),
    ):
        with pytest.raises(OutputError, match=says) as refusal, p.writing(new / "std"):
            raise OSError(error, os.strerror(error), str(new / "std" / "c"))
        assert f".{os.getpid()}-" not in str(refusal.value)
