"""Only regular files are read: pipes, devices, sockets, folders and loops of links are refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from uqeval.config.yaml12 import read_yaml
from uqeval.disk import files
from uqeval.errors import StoreError, UqevalError
from uqeval.gate.saved_verdicts import load_verdicts
from uqeval.records.report import Report
from uqeval.stores.files.numpy_files import open_npy, open_npz
from uqeval.stores.files.pfm_array import PfmArray
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.item_table import names_in
from uqeval.stores.map_cache import read_checked
from uqeval.stores.names import read_names_file
from uqeval.stores.states.entries import entries_of
from uqeval.stores.states.saved import SavedStates
from uqeval.stores.store import open_store
from uqeval.stores.video.flow_files import FloArray, KittiFlow
from uqeval.stores.video.image_folder import ImageFolder
from uqeval.stores.video.video_file import VideoFile, stream

KINDS = {
    "pipe": "named pipe", "socket": "socket", "device": "character device", "folder": "folder",
    "loop": "symbolic links", "endless": "character device",
}  # fmt: skip

#: Whatever opens one file, by the ending that it goes by.
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "npy": (".npy", lambda p: open_npy(str(p))),
    "npz": (".npz", lambda p: open_npz(str(p))),
    "png": (".png", PngArray),
    "pfm": (".pfm", PfmArray),
    "flo": (".flo", FloArray),
    "kitti": (".png", KittiFlow),
    "frame": (".png", lambda p: ImageFolder(p.parent).read(0)),
    "video": (".mp4", VideoFile),
    "stream": (".mp4", lambda p: stream(str(p))),
    "names": (".txt", read_names_file),
    "slices": (".csv", names_in),
    "report": (".json", Report.load),
    "verdicts": (".json", load_verdicts),
    "states": (".zip", SavedStates),
    "interrupted states": (".partial", lambda p: list(entries_of(p))),
    "settings": (".yaml", read_yaml),
    "bytes": (".bin", files.read_bytes),
}


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """A reader that waits ends the test after a minute."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def special(path: Path, kind: str) -> Path:
    """A file of another kind than regular at `path`."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            here = Path.cwd()
            os.chdir(path.parent)  # the name of a socket is short
            bound.bind(path.name)
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    else:
        target = {"device": "/dev/null", "endless": "/dev/zero", "loop": path.name}[kind]
        path.symlink_to(target)
    return path


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_no_regular_file(tmp_path: Path, reader: str) -> None:
    ending, read = READERS[reader]
    for kind, word in KINDS.items():
        (tmp_path / kind).mkdir()
        path = special(tmp_path / kind / f"0{ending}", kind)
        if reader == "frame" and kind == "folder":
            continue  # a folder of frames may lie in another
        with pytest.raises((UqevalError, OSError)) as caught:
            read(path)
        assert word in str(caught.value), (kind, str(caught.value))


@pytest.mark.parametrize("kind", KINDS)
def test_kept_maps_that_are_no_file_are_not_there(tmp_path: Path, kind: str) -> None:
    assert read_checked(special(tmp_path / "a.npy", kind), (2,), "f4") is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["zarr.json", "probs/zarr.json", "probs/c/0/0/0/0", ".zattrs"])
def test_a_store_with_a_file_of_another_kind(tmp_path: Path, kind: str, key: str) -> None:
    import zarr

    group = zarr.open_group(tmp_path / "a", mode="w")
    array = group.create_array("probs", shape=(1, 2, 2, 2), chunks=(1, 2, 2, 2), dtype="f4")
    array[...] = 0.5
    if key == ".zattrs":
        (tmp_path / "a/zarr.json").unlink()
        (tmp_path / "a/.zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / "a" / key).unlink(missing_ok=True)
    special(tmp_path / "a" / key, kind)
    with pytest.raises(StoreError) as caught:
        store = open_store(tmp_path / "a", role="predictions")
        for part in store.arrays["probs"]:
            part.array.missing()
            part.array.read(tuple(map(slice, part.array.shape)))
    if key != "zarr.json":  # without it the folder is no store at all
        assert KINDS[kind] in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_a_store_that_is_no_file(tmp_path: Path, kind: str) -> None:
    for ending in (".zip", ".npy", ".npz", ".zarr", ""):
        with pytest.raises(StoreError) as caught:
            open_store(special(tmp_path / f"a{ending}", kind), role="predictions")
        assert KINDS[kind] in str(caught.value), ending


def test_a_loop_of_links_is_no_bug(tmp_path: Path) -> None:
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.inputs.common import open_predictions
    from uqeval.inputs.options import InputOptions

    loop = special(tmp_path / "a.zarr", "loop")
    assert files.resolved(loop) == loop
    with pytest.raises(UqevalError):
        open_predictions([str(loop), str(tmp_path / "b.zarr")], InputOptions())
    check_outputs(Output(str(tmp_path / "r.json")), inputs=[str(loop)])


def test_what_is_larger_than_expected_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # it takes no room
    with pytest.raises(OSError, match="larger than 256 MiB"):
        files.read_bytes(tmp_path / "a")
    with pytest.raises(OSError, match="larger than 3 bytes"):
        files.read_bytes("/proc/self/status", 3)  # its size is said to be 0
    with pytest.raises(StoreError, match="larger than"):
        Report.load(tmp_path / "a")


PROGRAM = """
import sys
from uqeval.disk.outputs import check_writable, write
check_writable(sys.argv[1])
print("before")
write(sys.argv[1], "the report\\n")
print("after")
"""


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_by_its_name_is_written_where_it_stands(tmp_path: Path, path: str) -> None:
    out = tmp_path / "out.txt"
    out.write_text("earlier\n")
    with out.open("a") as file:
        subprocess.run([sys.executable, "-c", PROGRAM, path], stdout=file, check=True, timeout=60)
    assert out.read_text() == "earlier\nbefore\nthe report\nafter\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_command_writes_its_report_to_stdout_in_a_file(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", probs=np.full((1, 2, 2, 8, 8), 0.5, "f4"),
        labels=np.zeros((1, 8, 8), "u1"),
    )  # fmt: skip
    executable = Path(sys.executable).parent / "uqeval"
    with (tmp_path / "out.json").open("w") as out:
        subprocess.run(
            [str(executable), "failure", "a.npz", "-o", "/dev/stdout", "--quiet"],
            cwd=tmp_path, stdout=out, check=True, timeout=100,
        )  # fmt: skip
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == "uqeval.report/1"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "out.json"]
