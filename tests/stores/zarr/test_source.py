"""Zarr groups in folders, zip files and at URLs."""

from __future__ import annotations

import sys
import types
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr
from zarr_files import (
    CHUNKS,
    EVERYTHING,
    SHAPE,
    opened,
    read_refused,
    values,
    write,
)

from uqeval.errors import ChangedError, StoreError
from uqeval.stores.array import ItemArray
from uqeval.stores.store import open_store
from uqeval.stores.watch import Watch
from uqeval.stores.zarr.group import ZarrGroup, open_zarr

_METADATA = {2: ".zgroup", 3: "zarr.json"}


@pytest.mark.parametrize("form", [2, 3])
def test_group(tmp_path: Path, form: int) -> None:
    group = zarr.create_group(str(tmp_path / "g"), zarr_format=form, attributes={"k": [1]})
    group.create_array("a", shape=(4,), chunks=(2,), dtype="u1")[...] = 1
    group.create_group("sub")
    group.create_array("bad", shape=(4,), chunks=(2,), dtype="c8")
    read = open_zarr(str(tmp_path / "g"))
    assert isinstance(read, ZarrGroup)
    assert read.attributes == {"k": [1]}
    assert list(read.arrays) == ["a"]
    assert read.groups == ("sub",)
    assert list(read.unreadable) == ["bad"]
    assert read.arrays["a"].where == f"{tmp_path}/g/a"


def test_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.zip").write_bytes(b"PK\x03\x04 no zip")
    assert open_zarr(str(tmp_path / "empty")) is None
    for name, words in [("file.zip", "readable zip"), ("nothing", "nothing here")]:
        with pytest.raises(StoreError, match=words):
            open_zarr(str(tmp_path / name))


def test_a_member_without_a_name(tmp_path: Path) -> None:
    write(tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in filter(Path.is_file, (tmp_path / "a").rglob("*")):
            archive.write(file, file.relative_to(tmp_path / "a"))
        archive.writestr(zipfile.ZipInfo(""), b"")
    whole, zipped = (open_zarr(str(tmp_path / name)) for name in ("a", "a.zip"))
    assert (zipped.shape, zipped.dtype) == (whole.shape, whole.dtype)


@pytest.mark.parametrize("inside", ["", "g/", "runs/g/", "./"])
@pytest.mark.parametrize("beside", ["__MACOSX/g/._zarr.json", ".DS_Store", "README.txt"])
@pytest.mark.parametrize("form", [2, 3])
def test_files_beside_a_store_in_a_zip(
    tmp_path: Path, inside: str, beside: str, form: Literal[2, 3]
) -> None:
    group = zarr.create_group(str(tmp_path / "g"), zarr_format=form)
    group.create_array("a", shape=(4,), chunks=(2,), dtype="u1")[...] = 1
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(beside, b"\0\5\x16\7")
        for file in filter(Path.is_file, (tmp_path / "g").rglob("*")):
            archive.writestr(f"{inside}{file.relative_to(tmp_path / 'g')}", file.read_bytes())
    found = open_zarr(str(tmp_path / "a.zip"))
    assert isinstance(found, ZarrGroup)
    assert list(found.arrays) == ["a"]
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as archive:
        archive.write(tmp_path / "g" / _METADATA[form], f"h/{_METADATA[form]}")
    other = open_zarr(str(tmp_path / "a.zip"))
    assert other is None if inside else isinstance(other, ZarrGroup)  # which of both?


def test_a_chunk_that_may_not_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a")
    (tmp_path / "a/c/0/0/0").unlink()
    (tmp_path / "a/c/0/0/0").mkdir()  # root may read any file, but no folder
    read_refused(opened(tmp_path / "a"), "c/0/0/0", "it is a folder")


def test_url_without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreError, match=r"pip install obstore"):
        open_zarr("s3://bucket/preds.zarr")


class Bucket(types.ModuleType):
    """Stands for obstore: objects in a dict, and the calls that `ObjectSource` makes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("obstore")
        files = (file for file in folder.rglob("*") if file.is_file())
        self.objects = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
        self.tags: dict[str, str | None] = {}
        self.modified = datetime.fromtimestamp(0, UTC)  # obstore's, where a server tells no time
        self.store = types.ModuleType("obstore.store")
        self.store.from_url = lambda url, **options: (url, options)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "obstore", self)
        monkeypatch.setitem(sys.modules, "obstore.store", self.store)

    def get(self, _store: Any, key: str, *, options: dict[str, Any]) -> Any:
        if key not in self.objects:
            raise FileNotFoundError(key)
        data, asked = self.objects[key], options.get("range", (0, None))
        if isinstance(asked, dict):
            asked = (-asked["suffix"] if "suffix" in asked else asked["offset"], None)
        first, last, _ = slice(*asked).indices(len(data))
        meta = self.head(_store, key)
        return types.SimpleNamespace(
            range=(first, last), bytes=lambda: data[first:last], meta=meta, attributes={}
        )

    def head(self, _store: Any, key: str) -> dict[str, Any]:
        if key not in self.objects:
            raise FileNotFoundError(key)
        known = {"path": key, "size": len(self.objects[key])}
        return known | {"e_tag": self.tags.get(key, f"e{key}"), "last_modified": self.modified}

    def list(self, store: Any, prefix: str | None) -> Any:
        assert not store[0].startswith("http")
        names = [name for name in self.objects if name.startswith(prefix or "")]
        return [[self.head(store, name) for name in names]]

    def list_with_delimiter(self, store: Any, prefix: str | None) -> Any:
        assert not store[0].startswith("http")
        start = f"{prefix}/" if prefix else ""
        rests = (name[len(start) :] for name in self.objects if name.startswith(start))
        return {"common_prefixes": sorted({start + r.split("/")[0] for r in rests if "/" in r})}


@pytest.mark.parametrize("shards", [None, (4, 4, 8)])
def test_url_with_obstore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: Any) -> None:
    data = write(tmp_path / "a", shards=shards)
    bucket = Bucket(tmp_path / "a", monkeypatch)
    array = opened("s3://bucket/preds")
    before = array.fingerprint()
    assert np.array_equal(array.read(EVERYTHING), data)
    assert array.missing() == []
    key = next(key for key in bucket.objects if key.startswith("c/"))
    bucket.objects[key] = bucket.objects[key][:9]
    read_refused(opened("s3://bucket/preds"), key, "damaged")
    del bucket.objects[key]
    assert opened("s3://bucket/preds").missing()
    assert opened("s3://bucket/preds").fingerprint() != before


def test_web_servers_are_not_asked_for_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = zarr.create_group(str(tmp_path / "g"))
    group.create_array("probs", shape=SHAPE, chunks=CHUNKS, dtype="f4")[...] = values()
    group.create_array("energy", shape=SHAPE, chunks=CHUNKS, dtype="f4")[...] = values()
    bucket = Bucket(tmp_path / "g", monkeypatch)
    read = open_zarr("http://host/preds")
    assert isinstance(read, ZarrGroup)
    assert set(read.arrays) == {"probs"}  # of names that are not known only the metadata can tell
    assert read.arrays["probs"].missing() == []
    assert len(read.arrays["probs"].fingerprint()) == 64
    assert np.array_equal(read.arrays["probs"].read(EVERYTHING), values())
    del bucket.objects["probs/c/0/0/0"]
    read_refused(read.arrays["probs"], "c/0/0/0", "changed after")
    again = open_zarr("http://host/preds")
    assert isinstance(again, ZarrGroup)
    read_refused(again.arrays["probs"], "c/0/0/0", "not stored")


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_consolidated_metadata_tell_what_web_servers_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr.create_group(str(tmp_path / "g")).create_array("energy", shape=SHAPE, dtype="f4")
    zarr.consolidate_metadata(str(tmp_path / "g"))
    Bucket(tmp_path / "g", monkeypatch)
    read = open_zarr("https://host/preds")
    assert isinstance(read, ZarrGroup)
    assert set(read.arrays) == {"energy"}


@pytest.mark.parametrize("url", ["s3://bucket/preds", "http://host/preds"])
@pytest.mark.parametrize("how", ["tag", "time", "size", "gone"])
def test_objects_that_change_during_a_run(
    url: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a")
    bucket = Bucket(tmp_path / "a", monkeypatch)
    key = next(key for key in bucket.objects if key.startswith("c/"))
    if how == "time":
        bucket.tags = dict.fromkeys(bucket.objects)
        bucket.modified = datetime.fromtimestamp(9, UTC)
    array = opened(url)
    array.fingerprint()
    array.read(EVERYTHING)
    array.read(EVERYTHING)
    watch = Watch(["a"], [[ItemArray(array, None)]])
    watch.check_all()
    if how == "tag":
        bucket.tags[key] = "other"
    elif how == "time":
        bucket.modified = datetime.fromtimestamp(10, UTC)
    elif how == "size":
        bucket.objects[key] += b"x"
    else:
        del bucket.objects[key]
    with pytest.raises(StoreError, match="chang" if how != "gone" or "s3" in url else "again"):
        watch.check_all()
    if how != "gone":
        with pytest.raises(ChangedError, match=f"{url}/.*changed after this run had begun"):
            array.read(EVERYTHING)


def test_a_server_that_does_not_tell_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = zarr.create_group(str(tmp_path / "g"))
    group.create_array("probs", shape=(2, 2, 3, 4, 5), dtype="f4")[...] = 0.5
    bucket = Bucket(tmp_path / "g", monkeypatch)
    assert not open_store("http://host/preds", role="predictions").warnings
    bucket.tags = dict.fromkeys(bucket.objects)
    (warning,) = open_store("http://host/preds", role="predictions").warnings
    assert "neither an ETag nor a time of change" in warning and "Copy the store" in warning


def test_what_goes_wrong_at_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a")
    bucket = Bucket(tmp_path / "a", monkeypatch)
    array = opened("s3://bucket/preds")

    def denied(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Generic S3 error: access denied\n\nDebug source:\n<html>…</html>")

    for call in ("get", "list", "list_with_delimiter"):
        monkeypatch.setattr(bucket, call, denied)
    for ask in (lambda: array.read(EVERYTHING), array.missing, lambda: opened("s3://bucket/preds")):
        says = r"s3://bucket/preds(: .*)? cannot be (read|listed): .*access denied\. Check.*creden"
        with pytest.raises(StoreError, match=says):
            ask()
    monkeypatch.setattr(bucket.store, "from_url", denied)
    with pytest.raises(StoreError, match=r"cannot be opened: .*access denied"):
        opened("s3://bucket/preds")
