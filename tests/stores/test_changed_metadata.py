"""Metadata of Zarr stores that change while a run reads the chunks: the run ends and names them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import object_server
import pytest
import zarr
from command import refused
from small_stores import NAMES, C, T, labels, probs, save, save_complete
from small_videos import save_store, video

import uqeval
from uqeval.errors import ChangedError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.report.page import html
from uqeval.stores.watch import Watch
from uqeval.usecases.inspect import inspect
from uqeval.usecases.reduce import reduce as write_maps


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


def samples_of_numbers(path: Path) -> None:
    values = probs()[:, :, 0]
    arrays = {"samples": values, "target": values[:, 0] + 0.5, "mine": values[:, 0] + 2}
    save(path, arrays, {"names": NAMES})


def film(path: Path) -> None:
    own = video()
    kinds = {kind: own.stack(kind) for kind in ("frames", "predictions")}
    flow = np.zeros((len(own.names) - 1, 36, 48, 2), "f4")
    save_store(path, own.names, **kinds, labels=own.stack("predictions"), flow=flow)


def two_stores(path: Path) -> None:
    zone_and_map(path)
    zone_and_map(path.with_name("r.zarr"))


def sweep(path: Path) -> Any:
    return uqeval.sweep(path, samples=[2], repeats=2)


def divergence(path: Path) -> Any:
    return uqeval.evaluate(path, metrics="divergence", reference=path.with_name("r.zarr"))


def masked_by_labels(path: Path) -> Any:
    return uqeval.evaluate(path, metrics="ood", ood_mask=2)


def temporal(path: Path, **flow: str) -> Any:
    return uqeval.evaluate(video=path, metrics={"tc": flow})


#: A store, a run, the arrays that it reads, and others of its stores.
RUNS: list[tuple[Callable[[Path], None], Callable[[Path], Any], str, str]] = [
    (zone_and_map, sweep, "p/probs p/labels", "p/mine p/entropy"),
    (samples_of_numbers, sweep, "p/samples p/target", "p/mine"),
    (two_stores, divergence, "p/probs r/probs", "p/labels p/mine r/labels r/entropy"),
    (zone_and_map, masked_by_labels, "p/probs p/labels", "p/mine p/entropy"),
    (film, temporal, "p/frames p/predictions p/labels", "p/flow"),
    (film, partial(temporal, flow="file"), "p/frames p/flow", ""),
]  # fmt: skip


@pytest.mark.parametrize(("store", "run", "read", "others"), RUNS)
def test_every_kind_of_run_ends_only_for_arrays_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Callable[[Path], None],
    run: Callable[[Path], Any], read: str, others: str,
) -> None:  # fmt: skip
    store(tmp_path / "p.zarr")

    def file(array: str) -> Path:
        chunks = (tmp_path / array.replace("/", ".zarr/") / "c").rglob("*")
        return next(chunk for chunk in sorted(chunks) if chunk.is_file())

    for array in others.split():
        with monkeypatch.context() as patch:
            changing(patch, lambda: changed(file(array)))  # noqa: B023
            run(tmp_path / "p.zarr")
    for array in read.split():
        with monkeypatch.context() as patch:
            changing(patch, lambda: changed(file(array)))  # noqa: B023
            refused(lambda: run(tmp_path / "p.zarr"), array.split("/")[1], error=ChangedError)


def test_a_map_that_only_a_metric_read_ends_a_run_with_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_complete(tmp_path / "p.zarr")
    write_maps(open_inputs(tmp_path / "p.zarr", None, InputOptions()), tmp_path / "m.zarr")
    (tmp_path / "uqeval.yaml").write_text(
        "stores: {city: {predictions: m.zarr}}\noutput: out\n"
        "evaluate: {city: {sparsification: {error: brier, uncertainty: entropy}}}\n"
    )
    draw = html.to_html

    def late(*given: Any, **options: Any) -> Any:
        changed(tmp_path / "m.zarr/brier/c/1/0/0")
        return draw(*given, **options)

    monkeypatch.setattr(html, "to_html", late)
    outcome = uqeval.run_config(tmp_path / "uqeval.yaml")
    assert outcome.status == 2
    assert "brier/c/1/0/0 (item bonn) changed after this run" in outcome.failed["city"]
    assert not list((tmp_path / "out").glob("city*"))


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
        refused(act, "zarr.json changed after this run had begun", error=ChangedError)
