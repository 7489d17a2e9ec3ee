"""States of tallies on disk."""

from __future__ import annotations

import errno
import json
import signal
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import forged
import pytest

from uqeval.errors import OutputError, StoreError, UsageError
from uqeval.stores.states import saved
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import json_pieces, pack_text, tally_key, unpack_text
from uqeval.stores.states.saved import SCHEMA, SavedStates
from uqeval.stores.states.writer import StatesWriter, partial_path

pytestmark = pytest.mark.on_disk

RUN = {"fingerprint": "abc", "items": ["a", "b", "c"]}
ONE = tally_key({"id": "one"})
#: A text of a hundred million zeros.
BOMB = zlib.compress(bytes(10**8), 1)
#: Bytes that a state has at most.
MOST = 100


def written(path: Path, fingerprint: str = "abc") -> Path:
    with StatesWriter(path) as writer:
        for item in range(2):
            for id_ in ("one", "two"):
                writer.add(tally_key({"id": id_}), item, PackedItems.of([f"{id_}{item}".encode()]))
        writer.finish({"items": ["a", "b"], "fingerprint": fingerprint})
    return path


def test_states_come_back(tmp_path: Path) -> None:
    saved = SavedStates(written(tmp_path / "s.zip"))
    assert saved.index["schema"] == SCHEMA
    assert saved.index["items"] == ["a", "b"]
    assert saved.index["fingerprint"] == "abc"
    assert saved.parameters() == [{"id": "one"}, {"id": "two"}]
    assert list(saved.states({"id": "two"}, MOST)) == [b"two0", b"two1"]
    with pytest.raises(StoreError, match="no states of three"):
        list(saved.states({"id": "three"}, MOST))
    assert [p.name for p in tmp_path.iterdir()] == ["s.zip"]


def test_the_same_states_give_the_same_file(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a.zip"), written(tmp_path / "b.zip")
    assert a.read_bytes() == b.read_bytes()


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    assert written(tmp_path / "s.zip").stat().st_mode == plain.stat().st_mode


def test_an_earlier_file_is_replaced_at_the_end(tmp_path: Path) -> None:
    path = written(tmp_path / "s.zip")
    before = path.read_bytes()
    with StatesWriter(path) as writer:
        writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"x"]))
        assert path.read_bytes() == before
        writer.finish({"items": ["a"], "fingerprint": "new"})
    assert SavedStates(path).index["fingerprint"] == "new"


def test_what_was_begun_is_removed_on_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "s.zip")
    before = path.read_bytes()
    with pytest.raises(RuntimeError), StatesWriter(path) as writer:
        writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"x"]))
        raise RuntimeError
    assert [p.name for p in tmp_path.iterdir()] == ["s.zip"]
    assert path.read_bytes() == before


def test_a_signal_waits_for_the_end_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that is half written when its archive goes away prints a traceback."""
    write = zipfile.ZipFile.writestr
    whole = []

    def signalled(archive: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        signal.raise_signal(signal.SIGINT)
        write(archive, info, data)
        whole.append(info.filename)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(zipfile.ZipFile, "writestr", signalled)
    try:
        with pytest.raises(KeyboardInterrupt):
            StatesWriter(tmp_path / "a.states.zip")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(whole) == 1


def interrupted(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), StatesWriter(path, RUN) as writer:
        writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"first"]))
        writer.add(tally_key({"id": "one"}), 1, PackedItems.of([b"second"]))
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["s.zip", "s" * 251 + ".zip"])
def test_an_interrupted_run_is_resumed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    interrupted(path)
    assert partial_path(path).exists()
    assert not path.exists()
    with StatesWriter(path, RUN, resume=True) as writer:
        found = writer.known(ONE, MOST)
        assert found == {0: b"first", 1: b"second"}
        writer.add(tally_key({"id": "one"}), 2, PackedItems.of([b"third"]))
        writer.finish({"items": ["a", "b", "c"]})
    assert list(SavedStates(path).states({"id": "one"}, MOST)) == [b"first", b"second", b"third"]
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_resume_counts_items_without_a_stamp_again(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    run = RUN | {"stamps": ["a", None, None]}
    with pytest.raises(KeyboardInterrupt), StatesWriter(path, run) as writer:
        writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"first"]))
        writer.add(tally_key({"id": "one"}), 1, PackedItems.of([b"old data"]))
        writer.add_total(tally_key({"id": "large"}), b"of old data")
        raise KeyboardInterrupt
    run = RUN | {"stamps": ["a", "b", None]}
    with pytest.raises(KeyboardInterrupt), StatesWriter(path, run, resume=True) as writer:
        found = writer.known(ONE, MOST)
        assert found == {0: b"first"}
        assert writer.recounted == {1}
        assert writer.total(tally_key({"id": "large"}), MOST) is None
        writer.add(tally_key({"id": "one"}), 1, PackedItems.of([b"new data"]))
        raise KeyboardInterrupt
    with StatesWriter(path, run, resume=True) as writer:  # now the second has the stamp of its data
        assert writer.known(ONE, MOST) == {0: b"first", 1: b"new data"}
        assert not writer.recounted
        assert writer.stamps == ["a", "b", None]
    for stamps in (["x", "b", None], ["a", "b"], ["a", None, None]):
        with pytest.raises(KeyboardInterrupt), StatesWriter(path, run) as writer:
            writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"first"]))
            raise KeyboardInterrupt
        with pytest.raises(UsageError, match="of another run"):
            StatesWriter(path, RUN | {"stamps": stamps}, resume=True)


def test_a_file_cut_at_any_byte_is_resumed_from_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    interrupted(path)
    whole = partial_path(path).read_bytes()
    wanted = [b"first", b"second"]
    seen = set()
    for size in range(len(whole) + 1):
        partial_path(path).write_bytes(whole[:size])
        with StatesWriter(path, RUN, resume=True) as writer:
            found = list(writer.known(ONE, MOST).values())
            assert found == wanted[: len(found)]
            seen.add(len(found))
            for item in range(len(found), 2):
                writer.add(tally_key({"id": "one"}), item, PackedItems.of([wanted[item]]))
            writer.finish({"items": ["a", "b"]})
        assert list(SavedStates(path).states({"id": "one"}, MOST)) == wanted
    assert seen == {0, 1, 2}


def test_an_entry_whose_header_was_not_finished_is_not_taken_for_an_empty_one(
    tmp_path: Path,
) -> None:
    # A zip's header has CRC and size 0 until the data behind it are written.
    path = tmp_path / "s.zip"
    interrupted(path)
    whole = partial_path(path).read_bytes()
    last = whole.rindex(b"PK\x03\x04")
    begun = whole[:last] + whole[last : last + 14] + bytes(8) + whole[last + 22 :]
    for size in range(last, len(begun) + 1):
        partial_path(path).write_bytes(begun[:size])
        with StatesWriter(path, RUN, resume=True) as writer:
            found = writer.known(ONE, MOST)
            assert found == {0: b"first"}


def test_the_first_of_two_runs_leaves_the_other_its_states(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    first = StatesWriter(path, RUN)
    with StatesWriter(path, RUN) as second:
        with pytest.raises(OutputError, match="another run writes to it"), first:
            first.add(tally_key({"id": "one"}), 0, PackedItems.of([b"first"]))
            first.finish({"items": ["a"]})
        second.add(tally_key({"id": "one"}), 0, PackedItems.of([b"second"]))
        second.finish({"items": ["a"]})
    assert list(SavedStates(path).states({"id": "one"}, MOST)) == [b"second"]
    assert [p.name for p in tmp_path.iterdir()] == ["s.zip"]


def test_without_resume_a_run_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    interrupted(path)
    with StatesWriter(path, RUN) as writer:
        assert not writer.known(ONE, MOST)
        writer.finish({"items": []})


def test_an_interrupt_at_the_very_beginning_leaves_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.zip"
    interrupted(path)
    before = partial_path(path).read_bytes()

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(StatesWriter, "_take", stop)
    with pytest.raises(KeyboardInterrupt):
        StatesWriter(path, RUN, resume=True)
    assert [p.name for p in tmp_path.iterdir()] == [partial_path(path).name]
    assert partial_path(path).read_bytes() == before


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    interrupted(path)
    with pytest.raises(UsageError, match="is of another run"):
        StatesWriter(path, {"fingerprint": "other"}, resume=True)
    assert partial_path(path).exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot be written"):
        StatesWriter(tmp_path / "none" / "s.zip")


def test_a_states_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(saved, "open_file", refuse)
    with pytest.raises(StoreError, match=r"s\.zip cannot be read: Permission denied\. Check the"):
        SavedStates(tmp_path / "s.zip")


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_what_is_no_states_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.zip"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a states file"):
        SavedStates(path)


@pytest.mark.parametrize("index", [[], {}, {"schema": "uqeval.states/99"}, None])
def test_another_schema(tmp_path: Path, index: object) -> None:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as file:
        if index is not None:
            file.writestr("index.json", json.dumps(index))
    with pytest.raises(StoreError, match=r"schema|not a states file"):
        SavedStates(path)


def test_a_compressed_text_comes_back() -> None:
    for text in (b"", b"{}", b"ab" * 10**5, bytes(10**6), bytes(range(256)) * 999):
        packed = pack_text(lambda text=text: [text])
        assert unpack_text(packed) == text and packed == pack_text(lambda text=text: [text])
        assert len(text) <= 64 * len(packed) + 2**16


def test_json_in_pieces_is_json() -> None:
    many = [{"a": None, "é": [1.5, "x, y"]}] * 3000
    for record in ({}, {"a": []}, {"a": [], "b": {"c": [1]}, "d": many, "e": many[:1024], "f": 1}):
        assert b"".join(json_pieces(record)).decode() == json.dumps(record)
    with pytest.raises(ValueError):
        list(json_pieces({"a": [float("nan")]}))


@pytest.mark.parametrize(
    ("size", "data"),
    [
        (10**8, BOMB),  # tells its size
        (100, BOMB),  # does not
        (2**63, zlib.compress(b"{}")), (3, zlib.compress(b"{}")), (1, zlib.compress(b"{}")),
        (2, zlib.compress(b"{}")[:-3]), (2, b"nonsense"), (0, b""),
    ],
)  # fmt: skip
def test_a_damaged_text_is_refused(size: int, data: bytes, tmp_path: Path) -> None:
    packed = struct.pack("<Q", size) + data
    tracemalloc.start()
    with pytest.raises(ValueError):
        unpack_text(packed)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as file:
        file.writestr("index.json.z", packed)
    with pytest.raises(StoreError, match="is not a states file"):
        SavedStates(tmp_path / "s.zip")


def test_an_index_that_is_not_compressed_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "s.zip")
    expected = SavedStates(path).index
    entries = forged.entries_of(path)
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    forged.reseal(path)
    saved = SavedStates(path)
    assert saved.index == expected and list(saved.states({"id": "two"}, MOST)) == [b"two0", b"two1"]


def test_a_state_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with StatesWriter(path) as writer:
        writer.add(tally_key({"id": "one"}), 0, PackedItems.of([b"x"]))
        writer.finish({"items": ["a", "b"]})
    with pytest.raises(StoreError, match="does not have the states 0 of each of its 2 items"):
        list(SavedStates(path).states({"id": "one"}, MOST))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        SavedStates(tmp_path / "none.zip")


@pytest.mark.parametrize("key", ["items", "records", "settings", "fitted", "facts", "metrics"])
def test_an_index_of_wrong_types_is_damaged(tmp_path: Path, key: str) -> None:
    path = tmp_path / "s.zip"
    with StatesWriter(path) as writer:
        writer.finish({"items": [], key: 5})
    with pytest.raises(StoreError, match=f"is damaged: `{key}` is 5"):
        SavedStates(path)
