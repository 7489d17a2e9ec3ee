"""Opening stores: the kind of each form of store, and messages about other files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from group_files import SIZES, C, H, N, T, W, axes, group, ids, items, probs, store_refused
from PIL import Image

from uqeval.stores.store import contents_of, open_store


def test_items_of_different_sizes(tmp_path: Path) -> None:
    store = open_store(items(tmp_path / "s", SIZES), role="predictions")
    assert store.names == ("a", "b")
    assert [part.index for part in store.arrays["probs"]] == [None, None]
    assert [part.array.shape for part in store.arrays["probs"]] == [(T, C, 6, 7), (T, C, 4, 5)]
    assert axes(store, "probs") == ("sample", "class", "y", "x")
    assert axes(store, "labels") == ("y", "x")


def test_order_of_items_is_that_of_the_names(tmp_path: Path) -> None:
    path = items(tmp_path / "s", SIZES, names=["b", "a"])
    assert open_store(path, role="predictions").names == ("b", "a")
    assert open_store(path, role="predictions", names=["a", "b"]).names == ("a", "b")
    store_refused(path, "items/c", names=["a", "c"])
    store_refused(path, "1 names for 2 items", names=["a"])


def test_an_item_without_an_array(tmp_path: Path) -> None:
    path = items(tmp_path / "s", SIZES)
    root = zarr.open_group(str(path), mode="a")
    del root["items/a/labels"]
    store_refused(path, "only 1 of 2 items have 'labels'")
    del root["items/a/probs"]
    store_refused(path, "items/a holds no arrays")


def test_an_item_of_the_wrong_rank(tmp_path: Path) -> None:
    path = items(tmp_path / "s", SIZES)
    zarr.open_group(str(path), mode="a").create_array("items/a/mean", shape=(3,), dtype="f4")
    store_refused(path, "items/a/mean", "(3,)")


def test_no_items_at_all(tmp_path: Path) -> None:
    zarr.create_group(str(tmp_path / "s")).create_group("items")
    store_refused(tmp_path / "s", "items/ is empty")


@pytest.mark.parametrize("form", ["zarr", "npy", "npz", "memory"])
@pytest.mark.parametrize(
    ("data", "role", "kind"),
    [
        (probs(), "predictions", "probs"),
        (probs(N, C, H, W), "predictions", "probs"),
        (ids(), "predictions", "predictions"),
        (ids(), "labels", "labels"),
    ],
)
def test_bare_arrays(tmp_path: Path, form: str, data: np.ndarray, role: Any, kind: str) -> None:
    given: Any = tmp_path / f"a.{form}"
    if form == "zarr":
        zarr.create_array(str(given), shape=data.shape, dtype=data.dtype)[...] = data
    elif form == "npy":
        np.save(given, data)
    elif form == "npz":
        np.savez(given, data)
    else:
        given = data
    store = open_store(given, role=role, names=["a", "b", "c"])
    assert list(store.arrays) == [kind]
    assert store.names == ("a", "b", "c")
    assert len(store.arrays[kind]) == N
    assert store.path == ("array in memory" if form == "memory" else str(given))
    read = store.arrays[kind][0].array.read((slice(None),) * data.ndim)
    assert np.array_equal(read, data)


@pytest.mark.parametrize(
    ("data", "role"),
    [
        (probs(H), "predictions"),
        (ids(H, W), "labels"),
        (ids(H, W), "predictions"),
        (ids(N, 2, 1, H, W), "labels"),
    ],
)
def test_bare_arrays_of_the_wrong_rank(tmp_path: Path, data: np.ndarray, role: Any) -> None:
    np.save(tmp_path / "a.npy", data)
    store_refused(tmp_path / "a.npy", str(data.shape), "expected [N", role=role)


@pytest.mark.parametrize("shape", [(N, H, W), (N, 4, H, W)])
def test_bare_labels_that_are_floats(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape, "f4"))
    store_refused(
        tmp_path / "a.npy", "holds float32, expected class ids as integers",
        "labels.astype(np.uint8)", role="labels",
    )  # fmt: skip


@pytest.mark.parametrize("key", ["probs", "softmax", "probabilities", "pred"])
def test_npz_members_by_name(tmp_path: Path, key: str) -> None:
    names = np.array(["a", "b", "c"])
    np.savez(tmp_path / "a.npz", **{key: probs(), "labels": ids(), "names": names})
    store = open_store(tmp_path / "a.npz", role="predictions")
    assert set(store.arrays) == {"probs", "labels"}
    assert store.names == ("a", "b", "c")


def test_a_map_of_other_items_is_left_out(tmp_path: Path) -> None:
    arrays = {"probs": probs(), "raw": np.zeros((N + 2, H, W), "f4")}
    path = group(tmp_path / "s", arrays)
    store = open_store(path, role="predictions")
    assert set(store.arrays) == {"probs"} and store.items == N
    assert any(f"s/raw has {N + 2} items, but the store has {N}." in w for w in store.warnings)
    store_refused(path, "'raw' has 5", maps={"raw"})
    store_refused(group(tmp_path / "e", arrays | {"entropy": arrays["raw"]}), "'entropy' has 5")


def test_npz_with_the_same_thing_twice(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=probs(), softmax=probs())
    store_refused(tmp_path / "a.npz", "'probs' twice", "'softmax'")


def test_npz_with_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz")
    store_refused(tmp_path / "a.npz", "holds no arrays")


def test_label_folder(tmp_path: Path) -> None:
    Image.fromarray(ids(H, W)).save(tmp_path / "a.png")
    store = open_store(tmp_path, role="labels", names=["a"])
    assert store.arrays["labels"][0].array.read((slice(None),) * 2).tolist() == ids(H, W).tolist()
    store_refused(tmp_path, "--names", role="labels")
    predicted = open_store(tmp_path, role="predictions")
    assert predicted.names == ("a",) and list(predicted.arrays) == ["predictions"]


def test_what_is_no_store(tmp_path: Path) -> None:
    store_refused(tmp_path / "nothing", "nothing here", "expected a Zarr store")
    (tmp_path / "preds.txt").write_text("x")
    store_refused(tmp_path / "preds.txt", ".txt file", "expected a Zarr store")
    (tmp_path / "empty").mkdir()
    store_refused(tmp_path / "empty", "nothing in it")
    for name in "abc":
        (tmp_path / f"empty/{name}.jpg").write_text("x")
    store_refused(tmp_path / "empty", "3 .jpg files", "JPEG changes ids: save PNG")


def test_which_contents_are_labels(tmp_path: Path) -> None:
    (tmp_path / "png/sub").mkdir(parents=True)
    Image.fromarray(ids(H, W)).save(tmp_path / "png/sub/a.png")
    assert contents_of(tmp_path / "png").is_labels()
    assert contents_of(group(tmp_path / "l", {"labels": ids()})).is_labels()
    assert not contents_of(group(tmp_path / "p", {"labels": ids(), "probs": probs()})).is_labels()
    ids_too = {"labels": ids(), "predictions": ids()}
    assert not contents_of(group(tmp_path / "m", ids_too)).is_labels()
    assert not contents_of(items(tmp_path / "i", SIZES)).is_labels()
    (tmp_path / "empty").mkdir()
    assert not contents_of(tmp_path / "empty").is_labels()
    np.save(tmp_path / "l.npy", ids())
    np.save(tmp_path / "p.npy", probs())
    np.savez(tmp_path / "l.npz", ids())
    np.savez(tmp_path / "m.npz", labels=ids())
    np.savez(tmp_path / "p.npz", labels=ids(), softmax=probs())
    zarr.create_array(str(tmp_path / "z"), shape=(N, H, W), dtype="u1")
    for name, expected in [
        ("l.npy", True), ("p.npy", False), ("l.npz", True), ("m.npz", True), ("p.npz", False),
        ("z", True),
    ]:  # fmt: skip
        assert contents_of(tmp_path / name).is_labels() is expected


def test_a_folder_of_pngs_with_zarr_metadata_is_a_zarr_store(tmp_path: Path) -> None:
    path = group(tmp_path / "s", {"probs": probs()})
    Image.fromarray(ids(H, W)).save(path / "preview.png")
    assert not contents_of(path).is_labels()
    assert set(open_store(path, role="predictions").arrays) == {"probs"}


def test_items_of_labels_look_like_labels(tmp_path: Path) -> None:
    path = items(tmp_path / "s", SIZES)
    for name in SIZES:
        del zarr.open_group(str(path), mode="a")[f"items/{name}/probs"]
    assert contents_of(path).is_labels()


def test_files_of_numpy_are_opened_without_zarr(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", probs())
    code = (
        "import sys; from uqeval.stores.store import open_store\n"
        f"open_store({str(tmp_path / 'p.npy')!r}, role='predictions')\n"
        "print([m for m in ('zarr', 'numcodecs', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
