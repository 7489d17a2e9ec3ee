"""Metadata of Zarr stores that change while a run reads the chunks: the run ends and names them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import object_server
import pytest
import zarr
from command import refused
from small_stores import NAMES, C, T, labels, probs, save, save_complete

import uqeval
from uqeval.errors import ChangedError
from uqeval.stores.watch import Watch
from uqeval.usecases.inspect import inspect


def dense(path: Path) -> None:
    save_complete(path)


def named_by_array(path: Path) -> None:
    save(path, {"probs": probs(), "labels": labels()})
    array = zarr.open_group(str(path)).create_array("names", shape=(3,), dtype=str, chunks=(3,))
    array[...] = np.array(NAMES, dtype=object)


def old(path: Path) -> None:
    group = zarr.create_group(str(path), zarr_format=2, attributes={"names": NAMES})
    for name, values in (("probs", probs()), ("labels", labels())):
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=values.shape, fill_value=77
        )
        array[...] = values


def by_item(path: Path) -> None:
    writer = uqeval.PredictionWriter(path, names=NAMES, samples=T, classes=C, size=None, ranks=1)
    with writer:
        for name, values, ids in zip(NAMES, probs(), labels(), strict=True):
            writer.add(name, values)
            writer.add_labels(name, ids)


def changed(file: Path) -> None:
    """Add a key to a document, or replace another file by one of the same bytes."""
    beside = file.with_name("other")
    data = file.read_bytes() if file.exists() else b"{}"
    if file.name.startswith(("zarr", ".z")):
        document = json.loads(data)
        document.setdefault("attributes", {})["added"] = 1
        data = json.dumps(document).encode()
    beside.write_bytes(data)
    beside.replace(file)


CASES: list[tuple[Callable[[Path], None], str]] = [
    (dense, "zarr.json"), (dense, "probs/zarr.json"), (dense, "labels/zarr.json"),
    (named_by_array, "names/zarr.json"), (named_by_array, "names/c/0"),
    (old, ".zattrs"), (old, ".zgroup"), (old, "probs/.zarray"), (old, "probs/.zattrs"),
    (by_item, "zarr.json"), (by_item, "items/bonn/zarr.json"),
    (by_item, "items/bonn/probs/zarr.json"),
]  # fmt: skip


def changing(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Change something once all items have been read."""
    check_all = Watch.check_all

    def ending(self: Watch) -> None:
        change()
        check_all(self)

    monkeypatch.setattr(Watch, "check_all", ending)


@pytest.mark.parametrize("change", [changed, Path.unlink])
@pytest.mark.parametrize(("store", "file"), CASES)
def test_changed_metadata_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Callable[[Path], None], file: str,
    change: Callable[[Path], None],
) -> None:  # fmt: skip
    store(tmp_path / "p.zarr")
    target = tmp_path / "p.zarr" / file
    if change is Path.unlink and not target.exists():
        pytest.skip("it does not exist")
    uqeval.evaluate(tmp_path / "p.zarr", metrics="segmentation")
    changing(monkeypatch, lambda: change(target))
    act = lambda: uqeval.evaluate(tmp_path / "p.zarr", metrics="segmentation")  # noqa: E731
    word = "was removed" if change is Path.unlink else "changed after this run had begun"
    refused(act, str(target), word, error=ChangedError)


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("store", [dense, old])
@pytest.mark.parametrize("scheme", ["", "s3", "http"])
def test_consolidating_metadata_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Callable[[Path], None], scheme: str
) -> None:
    pytest.importorskip("obstore")
    path = tmp_path / "p.zarr"
    store(path)
    with object_server.object_server(path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        source = {"": str(path), "s3": "s3://bucket/p.zarr", "http": f"{server.url}/bucket/p.zarr"}

        def consolidate() -> None:
            zarr.consolidate_metadata(str(path))
            for file in path.glob("*z*"):
                if file.is_file():
                    server.objects[f"p.zarr/{file.name}"] = file.read_bytes()

        changing(monkeypatch, consolidate)
        uqeval.evaluate(source[scheme], metrics="segmentation")


def zone_and_map(path: Path) -> None:
    maps = {"mine": probs()[:, 0, 0], "zone": labels() % 2, "entropy": probs()[:, 0, 0]}
    save(path, {"probs": probs(), "labels": labels(), **maps}, {"names": NAMES})


def numbers(path: Path) -> None:
    values = probs()[:, 0, 0]
    arrays = {"mean": values, "std": values + 1, "target": values + 0.5, "mine": values + 2}
    save(path, {**arrays, "zone": labels() % 2}, {"names": NAMES})


@pytest.mark.parametrize("file", ["zarr.json", "c/0/0/0"])
@pytest.mark.parametrize("name", ["mine", "zone", "entropy"])
@pytest.mark.parametrize(("store", "family"), [(zone_and_map, "failure"), (numbers, "regression")])
def test_only_arrays_that_the_run_reads_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Callable[[Path], None], family: str,
    name: str, file: str,
) -> None:  # fmt: skip
    store(tmp_path / "p.zarr")
    target = tmp_path / "p.zarr" / name / file
    if not target.exists():
        pytest.skip("numbers have no entropy")
    reading: dict[str, object] = {"metrics": {family: {"uncertainty": "mine"}}}
    if family == "regression":
        reading = {"metrics": {"sparsification": {"uncertainty": "mine"}}}
    changing(monkeypatch, lambda: changed(target))
    reads = lambda: uqeval.evaluate(  # noqa: E731
        tmp_path / "p.zarr", region=["map:zone:1"], **reading
    )
    if name == "entropy":  # it is computed from the samples
        reads()
    else:
        refused(reads, "changed after this run had begun", error=ChangedError)
    uqeval.evaluate(tmp_path / "p.zarr", metrics=family)


@pytest.mark.parametrize("change", [changed, Path.unlink])
def test_inspect_finds_changed_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    save_complete(tmp_path / "p.zarr")
    assert inspect(tmp_path / "p.zarr").problems == []
    changing(monkeypatch, lambda: change(tmp_path / "p.zarr" / "zarr.json"))
    [problem] = inspect(tmp_path / "p.zarr").problems
    assert "p.zarr/zarr.json" in problem and "after this run had begun" in problem


def test_an_array_that_is_added_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_complete(tmp_path / "p.zarr")
    new = tmp_path / "p.zarr" / "mine"
    changing(monkeypatch, lambda: shutil.copytree(tmp_path / "p.zarr" / "labels", new))
    uqeval.evaluate(tmp_path / "p.zarr", metrics="segmentation")


@pytest.mark.parametrize("web", [False, True])
def test_changed_metadata_at_a_server_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: bool
) -> None:
    pytest.importorskip("obstore")
    save_complete(tmp_path / "preds")
    with object_server.object_server(tmp_path / "preds") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        url = f"{server.url}/bucket/preds" if web else "s3://bucket/preds"

        def change() -> None:
            document = json.loads(server.objects["preds/zarr.json"])
            document["attributes"]["added"] = 1
            server.objects["preds/zarr.json"] = json.dumps(document).encode()

        changing(monkeypatch, change)
        act = lambda: uqeval.evaluate(url, metrics="segmentation")  # noqa: E731
        refused(act, "zarr.json: changed after this run had begun", error=ChangedError)
