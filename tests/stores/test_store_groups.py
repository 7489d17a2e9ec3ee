"""Groups: which arrays are found, with which axes, names and attributes."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from group_files import C, H, N, T, W, axes, group, ids, probs, store_refused

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.names import read_names_file
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert


@pytest.mark.parametrize("form", [2, 3])
def test_group(tmp_path: Path, form: int) -> None:
    arrays = {"probs": probs(), "labels": ids(), "energy": probs(N, H, W)}
    path = group(tmp_path / "s.zarr", arrays, form=form, names=["a", "b", "c"], sample_kind="x")
    store = open_store(path, role="predictions")
    assert set(store.arrays) == set(arrays)
    assert store.path == str(path)
    assert store.names == ("a", "b", "c")
    assert store.attributes["sample_kind"] == "x"
    assert store.warnings == ()
    assert [part.index for part in store.arrays["probs"]] == [0, 1, 2]
    assert axes(store, "probs") == ("item", "sample", "class", "y", "x")
    assert axes(store, "labels") == axes(store, "energy") == ("item", "y", "x")


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        ("probs", (N, C, H, W), ("item", "class", "y", "x")),
        ("logits", (N, T, C, H, W), ("item", "sample", "class", "y", "x")),
        ("mean_probs", (N, C, H, W), ("item", "class", "y", "x")),
        ("mean", (N, T, H, W), ("item", "sample", "y", "x")),
        ("std", (N, H, W), ("item", "y", "x")),
        ("samples", (N, T, H, W), ("item", "sample", "y", "x")),
        ("frames", (N, H, W, 3), ("item", "y", "x", "class")),
        ("flow", (N, H, W, 2), ("item", "y", "x", "class")),
        ("target", (N, H, W), ("item", "y", "x")),
        ("anything", (N, H, W), ("item", "y", "x")),
    ],
)
def test_rank_stands_for_axes(
    tmp_path: Path, kind: str, shape: tuple[int, ...], expected: tuple[str, ...]
) -> None:
    store = open_store(group(tmp_path / "s", {kind: probs(*shape)}), role="predictions")
    assert axes(store, kind) == expected
    assert len(store.arrays[kind]) == N


def test_arrays_that_are_only_in_groups(tmp_path: Path) -> None:
    group(tmp_path / "s", {})
    zarr.open_group(tmp_path / "s", mode="a").create_array("a/b/probs", data=probs())
    store_refused(tmp_path / "s", "holds no arrays itself", f"{tmp_path / 's'}/a/b.")
    assert set(open_store(tmp_path / "s/a/b", role="predictions").arrays) == {"probs"}


def test_dimension_names_decide(tmp_path: Path) -> None:
    named = (probs(H, W, N, C), {"dimension_names": ["height", "width", "frame", "band"]})
    store = open_store(group(tmp_path / "s", {"probs": named}), role="predictions")
    assert axes(store, "probs") == ("y", "x", "item", "class")
    assert [part.index for part in store.arrays["probs"]] == [0, 1, 2]


def test_named_array_of_one_item(tmp_path: Path) -> None:
    named = (probs(T, C, H, W), {"dimension_names": ["sample", "class", "y", "x"]})
    store = open_store(group(tmp_path / "s", {"probs": named}), role="predictions")
    assert [part.index for part in store.arrays["probs"]] == [None]


@pytest.mark.parametrize("names", [["n", "item", "c", "h", "w"], ["n", "q", "h", "w", "c"]])
def test_dimension_names_that_are_wrong(tmp_path: Path, names: list[str]) -> None:
    named = (probs(), {"dimension_names": names})
    store_refused(group(tmp_path / "s", {"probs": named}), "dimension_names", "probs")


def test_dimension_names_of_another_kind(tmp_path: Path) -> None:
    named = (ids(), {"dimension_names": ["item", "class", "y"]})
    store_refused(
        group(tmp_path / "s", {"labels": named}), "labels", "[item, class, y]", "[item, y, x]"
    )


@pytest.mark.parametrize(
    ("kind", "data"),
    [("probs", probs(H)), ("labels", ids(N, 2, 1, H, W)), ("mean", probs(N, H))],
)
def test_wrong_rank(tmp_path: Path, kind: str, data: np.ndarray) -> None:
    store_refused(group(tmp_path / "s", {kind: data}), kind, str(data.shape), "[item, ", "y, x]")


def test_labels_that_are_no_integers(tmp_path: Path) -> None:
    store_refused(
        group(tmp_path / "s", {"labels": probs(N, H, W)}), "float16", "class ids as integers"
    )


def test_counts_must_agree(tmp_path: Path) -> None:
    path = group(tmp_path / "s", {"probs": probs(), "labels": ids(2, H, W)})
    store_refused(path, "'probs'", "'labels'", " 3", " 2")


def test_a_map_of_other_items_is_left_out(tmp_path: Path) -> None:
    arrays = {"probs": probs(), "labels": ids(), "my_map": probs(N + 2, H, W)}
    path = group(tmp_path / "s", arrays)
    store = open_store(path, role="predictions")
    (warning,) = store.warnings
    assert store.items == N and "my_map" not in store.arrays
    assert re.search(rf"left out: .*my_map has {N + 2} items, but the store has {N}\.", warning)
    with pytest.raises(StoreError, match=f"'my_map' has {N + 2}"):
        open_store(path, role="predictions", maps=["my_map"])


def test_a_map_of_some_items_is_left_out(tmp_path: Path) -> None:
    for i in range(2):
        inside = {"probs": probs()[0], "labels": ids()[0]} | ({"my_map": ids()[0]} if i else {})
        group(tmp_path / f"z/items/{i}", inside)
        (tmp_path / "files").mkdir(exist_ok=True)
        np.savez(tmp_path / f"files/{i}.npz", **inside)
    group(tmp_path / "z", {})
    for path in (tmp_path / "z", tmp_path / "files"):
        store = open_store(path, role="predictions")
        assert set(store.arrays) == {"probs", "labels"}
        assert "only 1 of 2 items have 'my_map'" in store.warnings[0]
        with pytest.raises(StoreError, match="only 1 of 2 items have 'my_map'"):
            open_store(path, role="predictions", maps=["my_map"])


def test_flow_lies_between_items(tmp_path: Path) -> None:
    arrays = {"flow": probs(N - 1, H, W, 2), "predictions": ids()}
    store = open_store(group(tmp_path / "s", arrays), role="predictions")
    assert len(store.arrays["flow"]) == N - 1


def test_no_items(tmp_path: Path) -> None:
    store_refused(group(tmp_path / "s", {"labels": ids(0, H, W)}), "no items")


@pytest.mark.parametrize("arrays", [{}, {"lat": np.ones(4)}])
def test_groups_with_nothing_to_evaluate(tmp_path: Path, arrays: dict[str, Any]) -> None:
    store_refused(group(tmp_path / "s", arrays), *(arrays or ["no arrays"]), "expected probs")


def test_arrays_that_nobody_needs_do_not_matter(tmp_path: Path) -> None:
    arrays = {
        "probs": probs(),
        "time": np.ones(N),
        "camera": np.ones((N, 3, 4, 5)),
        "phase": np.ones((N, H, W), "c8"),
    }
    store = open_store(group(tmp_path / "s", arrays), role="predictions")
    assert set(store.arrays) == {"probs"}
    assert len(store.warnings) == 2
    assert any("camera" in warning for warning in store.warnings)
    assert any("phase" in warning for warning in store.warnings)


def test_arrays_that_are_needed_must_be_sound(tmp_path: Path) -> None:
    arrays = {"probs": probs(), "labels": np.ones((N, H, W), "c8")}
    store_refused(group(tmp_path / "s", arrays), "s/labels", "neither numbers nor text")


def test_zip(tmp_path: Path) -> None:
    folder = group(tmp_path / "s", {"probs": probs()}, names=["a", "b", "c"])
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for file in folder.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    store = open_store(tmp_path / "s.zip", role="predictions")
    assert store.names == ("a", "b", "c")
    assert store.arrays["probs"][2].array.read((slice(None),) * 5).shape == (N, T, C, H, W)


def test_zip_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr("a.txt", "x")
    store_refused(tmp_path / "s.zip", "no Zarr metadata")


def test_missing_chunks(tmp_path: Path) -> None:
    path = group(tmp_path / "s", {"labels": (ids(), {"fill_value": 7})})
    for chunk in (path / "labels/c").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
    region = (slice(None),) * 3
    strict = open_store(path, role="labels").arrays["labels"][0].array
    filled = open_store(path, role="labels", fill_missing=True).arrays["labels"][0].array
    with pytest.raises(StoreError, match="not stored"):
        strict.read(region)
    assert (filled.read(region) == 7).all()


@pytest.mark.filterwarnings("ignore:The data type")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("dtype", ["U4", "string"])
def test_names_as_an_array(tmp_path: Path, form: int, dtype: str) -> None:
    path = group(tmp_path / "s", {"labels": ids()}, form=form)
    root = zarr.open_group(str(path), mode="a")
    spelled = str if dtype == "string" else dtype
    array = root.create_array("names", shape=(3,), chunks=(2,), dtype=spelled)
    array[...] = np.array(["a", "ß", "c"], dtype=object if dtype == "string" else dtype)
    assert open_store(path, role="labels").names == ("a", "ß", "c")


def test_no_names(tmp_path: Path) -> None:
    assert open_store(group(tmp_path / "s", {"labels": ids()}), role="labels").names is None


@pytest.mark.filterwarnings("ignore:The data type")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("as_array", [False, True])
def test_names_beside_one_array(tmp_path: Path, form: int, as_array: bool) -> None:
    """Also of a format whose attributes are in a file of their own, and as an array."""
    names = ["c", "a", "b"]
    arrays = {"probs": probs(), "labels": ids(), "flow": probs(N - 1, H, W, 2)}
    arrays |= {"names": np.array(names)} if as_array else {}
    path = group(tmp_path / "s", arrays, form=form, **({} if as_array else {"names": names}))
    assert open_store(f"{path}/probs", role="predictions").names == ("c", "a", "b")
    assert open_store(f"{path}/labels", role="labels").names == ("c", "a", "b")
    assert open_store(f"{path}/flow", role="flow").names is None  # they are those of the frames


@pytest.mark.parametrize("form", ["zarr 2", "zarr 3", "arrays in zarr", "h5", "arrays in h5"])
def test_attributes_beside_one_array(tmp_path: Path, form: str) -> None:
    """The scores are those of the whole store; without the void id they are others."""
    about = {"class_names": [f"c{i}" for i in range(C)], "ignore_index": 2}
    path, arrays = tmp_path / f"s.{form[-2:]}", {"probs": probs(), "labels": ids()}
    arrays["labels"][:, 0] = 2
    if form.endswith("h5"):
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values
            (file if form != "h5" else file.attrs).update(about)
            file["labels"].attrs["long_name"] = "ids"
    elif form == "arrays in zarr":
        group(path, arrays | {"ignore_index": np.array(2)}, class_names=about["class_names"])
    else:
        group(path, arrays, form=int(form[-1]), **about)
    inside = "::/" if form.endswith("h5") else "/"
    for name, role in (("probs", "predictions"), ("labels", "labels")):
        attributes = open_store(f"{path}{inside}{name}", role=role).attributes
        assert {key: attributes[key] for key in about} == about
    assert attributes.get("long_name", "ids") == "ids"
    options: Any = {"metrics": "calibration"}
    one = uqeval.evaluate(f"{path}{inside}probs", f"{path}{inside}labels", **options).results
    assert one == uqeval.evaluate(path, **options).results
    assert one != uqeval.evaluate(arrays, **options).results
    convert(path, tmp_path / "out.zarr", key="labels")
    assert open_store(tmp_path / "out.zarr", role="labels").attributes["ignore_index"] == 2


def test_a_void_id_of_0_beside_one_array_is_a_missing_chunk(tmp_path: Path) -> None:
    """Zarr does not store chunks of the fill value."""
    path = group(tmp_path / "s", {"labels": ids()})
    zarr.open_group(path, mode="a").create_array("ignore_index", data=np.array(0))
    store_refused(f"{path}/labels", "is not stored", "--missing-chunks fill", role="labels")
    for inside in ("", "/labels"):
        store = open_store(f"{path}{inside}", role="labels", fill_missing=True)
        assert store.attributes["ignore_index"] == 0


def test_attributes_beside_one_array_that_are_wrong(tmp_path: Path) -> None:
    path = group(tmp_path / "s", {"probs": probs()}, class_names="road")
    store_refused(f"{path}/probs", "class_names must be a list of texts")
    path = group(tmp_path / "t", {"probs": probs()}, uqeval={"complete": False})
    store_refused(f"{path}/probs", "is unfinished")
    labels = np.full((N, H, W), 255, "u1")
    path = group(tmp_path / "u", {"labels": labels}, ignore_index=0)
    zarr.open_array(f"{path}/labels").attrs["ignore_index"] = 255
    with pytest.raises(StoreError, match="ignore_index is 255, but the void id is 0"):
        uqeval.evaluate(probs(), f"{path}/labels", metrics="segmentation")


def test_names_beside_one_array_that_are_wrong(tmp_path: Path) -> None:
    group(tmp_path / "s", {"probs": probs(), "names": np.arange(N)})
    store_refused(tmp_path / "s/probs", "names holds int64", "expected one text per item")
    group(tmp_path / "t", {"probs": probs()}, names=["a", "b"])
    store_refused(tmp_path / "t/probs", f"2 names for {N} items")


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", ["names", "ignore_index"])
def test_a_group_in_place_of_what_describes_the_arrays(
    tmp_path: Path, form: Any, name: str
) -> None:
    path = group(tmp_path / "s", {"probs": probs()}, form=form)
    zarr.open_group(path, mode="a").create_group(name)
    for place in (path, f"{path}/probs"):
        store_refused(place, f"s/{name} is a group, expected", "remove it")


@pytest.mark.parametrize("form", [2, 3])
def test_a_group_in_place_of_the_mask(tmp_path: Path, form: Any) -> None:
    path = group(tmp_path / "s", {"probs": probs()}, form=form)
    zarr.open_group(path, mode="a").create_group("valid")
    store_refused(path, "s/valid is a group, expected true and false", "remove it")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("name", ["valid", "labels", "names"])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_an_array_without_its_metadata(
    tmp_path: Path, name: str, form: Any, consolidated: bool, packed: bool
) -> None:
    path = group(tmp_path / "s", {"probs": probs(), name: np.ones((N, 8, 8), "u1")}, form=form)
    if consolidated:
        zarr.consolidate_metadata(path)
    (Path(path) / name / ("zarr.json" if form == 3 else ".zarray")).unlink()
    if packed:
        path = shutil.make_archive(path, "zip", path)
    store_refused(path, f"{name} has neither zarr.json nor .zarray", "Write the array again")


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("chunk", [1000, 10**12])
def test_more_names_than_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Any, chunk: int
) -> None:
    """They are refused before their chunks are listed, which the system ended."""
    path = group(tmp_path / "s", {"probs": probs()}, form=form)
    about: Any = {"shape": (10**12,), "chunks": (chunk,), "dtype": "U4" if form == 2 else str}
    zarr.open_group(path, mode="a").create_array("names", **about)
    monkeypatch.delattr("uqeval.stores.zarr.array.ZarrArray.watch_with")
    for place in (path, f"{path}/probs"):
        store_refused(place, "s/names claims 1,000,000,000,000 names", "than names need")


def test_given_names_stand_before_the_stored(tmp_path: Path) -> None:
    path = group(tmp_path / "s", {"labels": ids()}, names=["a", "b", "c"])
    assert open_store(path, role="labels", names=["x", "y", "z"]).names == ("x", "y", "z")
    store_refused(path, "--names: 2 names for 3 items", names=["x", "y"])
    words = "another order; item 1 is 'b' in the store and 'c' in --names"
    store_refused(path, words, names=["a", "c", "b"])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b"], "2 names for 3 items"),
        (["a", "b", "a"], "appears more than once: a"),
        (["a", "b", 3], "list of texts"),
        ("abc", "list of texts"),
        (["a", "", "c"], "empty"),
    ],
)
def test_names_that_are_wrong(tmp_path: Path, names: Any, words: str) -> None:
    store_refused(group(tmp_path / "s", {"labels": ids()}, names=names), words)


def test_names_that_are_numbers(tmp_path: Path) -> None:
    store_refused(
        group(tmp_path / "s", {"labels": ids(), "names": np.arange(3)}), "s/names", "text"
    )


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"uqeval": {"format": "predictions", "version": 2}}, "version 2"),
        ({"uqeval": {"version": "1.0"}}, "version '1.0'"),
        ({"uqeval": {"version": 1, "complete": False}}, "unfinished"),
        ({"uqeval": "predictions"}, "attribute uqeval"),
        ({"class_names": ["road", 2]}, "class_names"),
        ({"class_names": "road"}, "class_names"),
        ({"ignore_index": "255"}, "ignore_index is '255'"),
        ({"ignore_index": True}, "ignore_index is True"),
    ],
)
def test_attributes_that_are_wrong(tmp_path: Path, attributes: Any, words: str) -> None:
    store_refused(
        group(tmp_path / "s", {"labels": ids()}, **attributes), words, str(tmp_path / "s")
    )


def test_attributes_that_are_right(tmp_path: Path) -> None:
    attributes = {
        "uqeval": {"format": "predictions", "version": 1, "complete": True},
        "class_names": ["road", "car"],
        "ignore_index": 255,
    }
    path = group(tmp_path / "s", {"labels": ids()}, **attributes)
    assert open_store(path, role="labels").attributes == attributes


@pytest.mark.parametrize("text", ['["b", "a"]', "b\na\n", "\ufeffb\r\na\r\n", " b \n\n a"])
def test_names_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "names").write_bytes(text.encode())
    assert read_names_file(tmp_path / "names") == ("b", "a")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'["a",', "not valid JSON"),
        (b"[1]", "texts"),
        (b"a\na", "more than once"),
        (b"\xff", "UTF-8"),
    ],
)
def test_names_files_that_are_wrong(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "names").write_bytes(data)
    with pytest.raises(StoreError, match=words):
        read_names_file(tmp_path / "names")


def test_names_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_names_file(tmp_path / "names")
