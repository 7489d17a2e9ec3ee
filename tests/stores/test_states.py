"""States of tallies on disk."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from uqeval.errors import OutputError, StoreError
from uqeval.stores.states import SCHEMA, StatesWriter, read_index, read_state


def written(path: Path, fingerprint: str = "abc") -> Path:
    with StatesWriter(path) as writer:
        for item in range(2):
            for number, id_ in enumerate(("one", "two")):
                writer.add(number, {"id": id_}, item, f"{id_}{item}".encode())
        writer.finish(["a", "b"], fingerprint)
    return path


def test_states_come_back(tmp_path: Path) -> None:
    path = written(tmp_path / "s.zip")
    index = read_index(path)
    assert index["schema"] == SCHEMA
    assert index["items"] == ["a", "b"]
    assert index["fingerprint"] == "abc"
    assert index["tallies"] == [{"id": "one"}, {"id": "two"}]
    assert read_state(path, 1, 0) == b"two0"
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
        writer.add(0, {"id": "one"}, 0, b"x")
        assert path.read_bytes() == before
        writer.finish(["a"], "new")
    assert read_index(path)["fingerprint"] == "new"


def test_what_was_begun_is_removed_on_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "s.zip")
    before = path.read_bytes()
    with pytest.raises(RuntimeError), StatesWriter(path) as writer:
        writer.add(0, {"id": "one"}, 0, b"x")
        raise RuntimeError
    assert [p.name for p in tmp_path.iterdir()] == ["s.zip"]
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot be written"):
        StatesWriter(tmp_path / "none" / "s.zip")


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_what_is_no_states_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.zip"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is no states file"):
        read_index(path)
    with pytest.raises(StoreError, match="has no state 0/0"):
        read_state(path, 0, 0)


@pytest.mark.parametrize("index", [[], {}, {"schema": "uqeval.states/99"}, None])
def test_another_schema(tmp_path: Path, index: object) -> None:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as file:
        if index is not None:
            file.writestr("index.json", json.dumps(index))
    with pytest.raises(StoreError, match=r"schema|no states file"):
        read_index(path)


def test_a_state_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"has no state 5/0"):
        read_state(written(tmp_path / "s.zip"), 5, 0)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        read_index(tmp_path / "none.zip")
