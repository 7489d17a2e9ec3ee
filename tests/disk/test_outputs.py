"""Files of results: whole or not at all, and said before the work begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import obey_modes

from uqeval.disk import outputs
from uqeval.disk.outputs import check_writable, links_found_once, refuse_overlap, write
from uqeval.errors import OutputError, UsageError


def test_replaces_whole_files(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    write(file, "first\n")
    write(str(file), b"second\n")
    assert file.read_bytes() == b"second\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there/r.json", tmp_path / "r.json"
    target.write_text("old")
    link.symlink_to(target)
    write(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_half_a_character_is_spelled_out(tmp_path: Path) -> None:
    write(tmp_path / "r.csv", "name\n\ud800\n")
    assert (tmp_path / "r.csv").read_text() == "name\n\\ud800\n"


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "r.json"
    write(file, "good")
    monkeypatch.setattr(*((os, "fsync") if fails == "fsync" else (Path, "replace")), full)
    with pytest.raises(
        OutputError, match=r"r\.json cannot be written: No space left on device"
    ) as caught:
        write(file, "bad")
    assert "Free some space there, or write elsewhere" in str(caught.value)
    assert file.read_text() == "good"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_named_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_what_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_writable(tmp_path / "new.json")
    check_writable(tmp_path / "file")
    for path, says in (
        (tmp_path, "is a folder"),
        (tmp_path / "none/r.json", "does not exist"),
        (tmp_path / "file/r.json", "does not exist"),
        ("", "given as ''"),
        (tmp_path / ("r" * 256), "File name too long. Give shorter names"),
    ):
        with pytest.raises(OutputError, match=says):
            check_writable(path)


def checked(path: Path) -> str:
    """Return the error of `check_writable` for a user who is not root; empty for none."""
    script = f"from uqeval.disk.outputs import check_writable; check_writable({str(path)!r})"
    ended = subprocess.run(
        [sys.executable, "-c", script], preexec_fn=obey_modes, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return ended.stderr


def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "closed", mode=0o400)
    (folder / "file").touch()
    (folder / "link").symlink_to(tmp_path / "r")
    (tmp_path / "link").symlink_to(folder / "r")
    folder.chmod(0o500)
    for name in ("r", "file"):
        error = checked(folder / name)
        assert "OutputError" in error and f"the folder {folder} cannot be written to" in error
    # Nothing is made in the folder of a pipe or device, nor in that of a link.
    assert checked(folder / "pipe") == checked(folder / "link") == ""
    assert f"{folder}/closed cannot be written to" in checked(folder / "closed")
    assert f"the folder {folder} cannot be written to" in checked(tmp_path / "link")


def test_a_device_in_a_folder_of_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as for all users but root."""
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != "/dev")
    check_writable(os.devnull)


def test_links_of_an_input_are_found_once_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[Path] = []
    entries = outputs._entries

    def walking(folder: Path) -> Any:
        walked.append(folder)
        return entries(folder)

    monkeypatch.setattr(outputs, "_entries", walking)
    store, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    (store / "a").mkdir(parents=True)
    elsewhere.mkdir()
    output = elsewhere / "report.json"
    with links_found_once():
        refuse_overlap([output], [store])
        refuse_overlap([output], [store])
    assert walked == [store]
    link = store / "a" / "link"
    link.symlink_to(elsewhere)
    with links_found_once(), pytest.raises(UsageError, match="is inside the input"):
        refuse_overlap([output], [store])
    refuse_overlap([tmp_path / "report.json"], [store])
    assert walked == [store, store, link, store, link]
