"""Coordinates that are in another order: they are compared wherever arrays are paired."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import small_videos
import zarr
from command import refused, run_well
from small_videos import save_store
from tensors import Labelled, LabelledSet

import uqeval
from uqeval.errors import StoreError
from uqeval.inputs.live import Live, Patience
from uqeval.inputs.options import InputOptions
from uqeval.stores.coordinates import INDEX, Coordinate
from uqeval.stores.store import open_store
from uqeval.stores.writing.new_store import NewStore
from uqeval.usecases.convert import convert

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(4), (3, 6, 6)).transpose(0, 3, 1, 2).astype(np.float32)
LABELS = PROBS.argmax(1).astype(np.uint8)
AXES = ("time", "class", "y", "x")
ALONG = {"time": np.arange(3), "y": np.arange(6)}
TURNED = [("time", "the items are in another order"), ("y", "the rows are in another order")]
evaluate = partial(uqeval.evaluate, workers=1)


def probs(**coords: Any) -> Labelled:
    return Labelled(PROBS, AXES, coords=ALONG | coords)


def labels(**coords: Any) -> Labelled:
    return Labelled(LABELS, ("time", "y", "x"), coords=ALONG | coords)


@pytest.mark.parametrize(("name", "says"), TURNED)
def test_where_arrays_are_paired(name: str, says: str) -> None:
    turned = {name: ALONG[name][::-1]}
    evaluate(probs(), None, "divergence", reference=probs())
    refused(
        lambda: evaluate(probs(), None, "divergence", reference=probs(**turned)), says,
        error=StoreError,
    )  # fmt: skip
    refused(lambda: evaluate([PROBS.copy(), probs()], labels(**turned), "segmentation"), says)
    one = {"probs": probs(), "labels": labels(**turned)}
    refused(lambda: evaluate(one, None, "segmentation"), says, error=StoreError)
    with uqeval.Evaluator("segmentation") as evaluator:
        evaluator.update(probs(), labels(), ["a", "b", "c"])
        refused(lambda: evaluator.update(probs(), labels(**turned), [*"def"]), says)
        assert len(evaluator) == 3


def test_attributes_of_updates() -> None:
    ignored = Labelled(LABELS, ("item", "y", "x"), {"scale_factor": 2})
    with uqeval.Evaluator("segmentation") as evaluator:
        refused(lambda: evaluator.update(PROBS, ignored, [*"abc"]), "scale_factor 2")


@pytest.mark.parametrize("turned", ["predictions", "labels"])
@pytest.mark.parametrize(("name", "says"), TURNED)
def test_videos(tmp_path: Path, turned: str, name: str, says: str) -> None:
    own = small_videos.video()
    flow = np.zeros((len(own.names) - 1, 36, 48, 2), np.float32) + 1
    along = {"time": np.arange(1, 6), "y": np.arange(36)}
    video = save_store(tmp_path / "v.zarr", frames=own.stack("frames"), flow=flow, **along)
    stores = {
        key: save_store(
            tmp_path / f"{key}-{is_turned}.zarr", **{key: own.stack(key)},
            **(along | ({name: along[name][::-1]} if is_turned else {})),
        )
        for key in ("predictions", "labels") for is_turned in (key == turned, False)
    }  # fmt: skip
    bad = tmp_path / f"{turned}-True.zarr"
    given: dict[str, Any] = {"metrics": {"tc": {"flow": "file"}}, "video": video}
    evaluate(stores["predictions"], stores["labels"], **given)
    refused(lambda: evaluate(*(stores | {turned: bad}).values(), **given), says, error=StoreError)
    if turned == "predictions":
        live = Live(str(bad), InputOptions(video=str(video)), Patience(), warn=print)
        refused(lambda: list(live), says, error=StoreError)
    else:
        region = [f"map:{bad}"]
        refused(lambda: evaluate(*stores.values(), region=region, **given), says, error=StoreError)
    if turned == "predictions" and name == "y":
        other = save_store(tmp_path / "f.zarr", flow=flow, y=along["y"][::-1])
        alone = save_store(tmp_path / "a.zarr", frames=own.stack("frames"), **along)
        given |= {"video": alone, "flow_path": other}
        refused(lambda: evaluate(stores["predictions"], None, **given), "f.zarr: the rows are")


COUNT = np.arange(6)
ALONG_Y = partial(Labelled, dims=("y",))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"row": COUNT}, {"y": COUNT[::-1]}),
        (
            {"row": ALONG_Y(COUNT), "lat": ALONG_Y(COUNT[::-1])},
            {"lat": ALONG_Y(COUNT[::-1]), "row": ALONG_Y(COUNT)},
        ),
        ({"time": Labelled(COUNT[:3], ("sample",))}, {"time": COUNT[2::-1]}),
        ({"x": ALONG_Y(COUNT)}, {"x": COUNT[::-1]}),
    ],
)
def test_coordinates_that_are_not_the_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    given = Labelled(PROBS, AXES, coords=first), Labelled(LABELS, ("time", "y", "x"), coords=second)
    report = evaluate(*given, "segmentation")
    assert report.results["segmentation"]["pixel_accuracy"] == 1


def test_columns_of_tables(tmp_path: Path) -> None:
    numbers = np.arange(1.0, 7)
    np.savez(tmp_path / "p.npz", mean=numbers, std=numbers, x=COUNT[::-1], item=COUNT)
    for name, more in (("t", {"x": COUNT}), ("u", {"item": COUNT[::-1]})):
        np.savez(tmp_path / f"{name}.npz", target=numbers + 1, **more)
    report = evaluate(tmp_path / "p.npz", tmp_path / "t.npz", "regression")
    assert report.results["regression"]["rmse"] == 1
    says = "the items are in another order"
    refused(lambda: evaluate(tmp_path / "p.npz", tmp_path / "u.npz", "regression"), says)
    table = LabelledSet({"probs": PROBS[:, :, 0, 0], "x": COUNT[:3]})
    turned = {"labels": LABELS[:, 0, 0], "x": COUNT[2::-1]}
    assert evaluate(table, turned, "segmentation").results["segmentation"]["miou"] == 1


def times(unit: str, step: int = 1) -> Labelled:
    return Labelled(ALONG["time"][::step], ("time",), {"units": unit})


@pytest.mark.parametrize(
    ("unit", "turned"),
    [
        ("h since 2026-01-01", "hours since 2026-01-01"),
        ("months since 2000-01-01", "months since 2000-01-01"),
        ("days since 1850-1-1", "days since 1850-1-1"),
    ],
)
def test_units_of_times(unit: str, turned: str) -> None:
    own, other = probs(time=times(unit)), labels(time=times(turned, -1))
    evaluate(own, labels(time=times(unit)), "segmentation")
    says = "the items are in another order"
    refused(lambda: evaluate(own, other, "segmentation"), says, error=StoreError)


def test_units_of_times_that_are_not_read() -> None:
    """They are compared only with themselves."""
    own, other = (f"{unit} since 2000-01-01" for unit in ("months", "weeks"))
    evaluate(probs(time=times(own)), labels(time=times(other, -1)), "segmentation")


def test_coordinates_that_are_rounded() -> None:
    """float32 rounds these by half a metre."""
    metres = 5400000.37 + 10 * np.arange(6)
    rounded = metres.astype(np.float32)
    evaluate(probs(y=metres), labels(y=rounded), "segmentation")
    says = "the rows are in another order"
    turned = labels(y=rounded[::-1])
    refused(lambda: evaluate(probs(y=metres), turned, "segmentation"), says, error=StoreError)


NUMBERS = np.arange(1.0, 7)


def rmse(predictions: Any, target: Any) -> Any:
    return evaluate(predictions, target, "regression").results["regression"]["rmse"]


def of_dimension(name: str, shape: tuple[int, ...], along: Any) -> dict[str, Labelled]:
    """A mean with its σ, and a target, of items whose dimension has this name."""
    dims = (name, "a", "b")[: len(shape)]
    values = {"mean": NUMBERS, "std": NUMBERS, "target": NUMBERS + 1}
    return {
        kind: Labelled(own.reshape(shape), dims, coords={name: along})
        for kind, own in values.items()
    }


@pytest.mark.parametrize("name", ["obs", "index", "time", "sample", "class"])
@pytest.mark.parametrize("shape", [(6,), (6, 1, 1)])
def test_the_coordinate_of_a_dimension_has_any_name(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) > 1 and name in ("sample", "class"):
        return  # the names of other axes
    own, turned = (of_dimension(name, shape, along) for along in (COUNT, COUNT[::-1]))
    predictions = {kind: own[kind] for kind in ("mean", "std")}
    assert rmse(predictions, own["target"]) == 1
    says = "the items are in another order"
    refused(lambda: rmse(predictions, turned["target"]), says)
    refused(lambda: rmse(predictions, {"target": turned["target"]}), says)
    refused(lambda: rmse(predictions | {"target": turned["target"]}, None), says)
    other = of_dimension("station", shape, COUNT[::-1])
    assert rmse(predictions, other["target"]) == 1  # nothing says that these are the same


def test_the_coordinate_of_a_dimension_of_a_table() -> None:
    for name in ("obs", "x"):
        table = Labelled(PROBS[:, :, 0, 0], (name, "class"), coords={name: ALONG["time"]})
        same, turned = (
            Labelled(LABELS[:, 0, 0], (name,), coords={name: along})
            for along in (ALONG["time"], ALONG["time"][::-1])
        )
        assert evaluate(table, same, "segmentation").results["segmentation"]["miou"] == 1
        says = "the items are in another order"
        refused(lambda: evaluate(table, turned, "segmentation"), says)  # noqa: B023
        with uqeval.Evaluator("segmentation") as evaluator:
            refused(lambda: evaluator.update(table, turned, [*"abc"]), says)  # noqa: B023


@pytest.mark.parametrize("ending", [".zarr", ".h5"])
def test_the_coordinate_of_a_dimension_in_stores(tmp_path: Path, ending: str) -> None:
    says = "the items are in another order"
    for turned in (False, True):
        path = tmp_path / f"{turned}{ending}"
        own = of_dimension("obs", (6, 1, 1), COUNT[::-1] if turned else COUNT)
        own |= {"obs": own["mean"].coords["obs"]}
        if ending == ".zarr":
            root = zarr.create_group(str(path))
            for kind, array in own.items():
                root.create_array(kind, data=array.values, dimension_names=array.dims)
            continue
        with h5py.File(path, "w") as file:
            for kind, array in own.items():
                file[kind] = array.values
            file["obs"].make_scale("obs")
            for kind in ("mean", "std", "target"):
                file[kind].dims[0].attach_scale(file["obs"])
    own, turned = (tmp_path / f"{turned}{ending}" for turned in (False, True))
    inside = "/target" if ending == ".zarr" else "::/target"
    convert(own, tmp_path / "copy.zarr", key=None)
    for predictions in (own, tmp_path / "copy.zarr"):
        assert rmse(predictions, f"{own}{inside}") == 1
        refused(lambda: rmse(predictions, turned), says)  # noqa: B023
        refused(lambda: rmse(predictions, f"{turned}{inside}"), says)  # noqa: B023


def saved(path: Path, turned: bool = False, **arrays: Any) -> Path:
    """A store with coordinates, in Zarr or HDF5."""
    along = {"time": ALONG["time"], "lat": COUNT[::-1] if turned else COUNT}
    if path.suffix == ".zarr":
        return save_store(path, **arrays, **along)
    with h5py.File(path, "w") as file:
        for name, values in (arrays | along).items():
            file[name] = values
    return path


@pytest.mark.parametrize("ending", [".zarr", ".h5"])
def test_one_array_of_a_store_has_its_coordinates(tmp_path: Path, ending: str) -> None:
    inside = "" if ending == ".zarr" else "::"
    own = f"{saved(tmp_path / f'p{ending}', probs=PROBS)}{inside}/probs"
    good, bad = (
        f"{saved(tmp_path / f'{turned}{ending}', turned, labels=LABELS)}{inside}/labels"
        for turned in (False, True)
    )
    assert evaluate(own, good, "segmentation").results["segmentation"]["pixel_accuracy"] == 1
    refused(lambda: evaluate(own, bad, "segmentation"), "the rows are in another order")


def test_new_stores_have_the_coordinates(tmp_path: Path) -> None:
    old = saved(tmp_path / "p.zarr", probs=PROBS)
    bad = saved(tmp_path / "l.zarr", True, labels=LABELS)
    convert(old, tmp_path / "c.zarr")
    convert(saved(tmp_path / "p.h5", probs=PROBS), tmp_path / "d.zarr", key="probs")
    run_well("reduce", old, "-o", tmp_path / "m.zarr", "--quiet")
    for new in ("c.zarr", "d.zarr", "m.zarr"):
        coordinates = open_store(tmp_path / new, role="predictions").coordinates
        axes = {own.name: own.axis for own in coordinates.values()}
        assert axes == {"time": "item", "lat": "y"}
        refused(lambda: evaluate(tmp_path / new, bad, "segmentation"), "the rows are in")  # noqa: B023


def indexed(path: Path, kind: str, name: str, along: np.ndarray, **more: Any) -> Path:
    """A store of an array with this index of items, and with more coordinates of items."""
    values, axes = (PROBS, AXES) if kind == "probs" else (LABELS, ("time", "y", "x"))
    dims = (name, *axes[1:])
    if path.suffix == ".zarr":
        root = zarr.create_group(str(path))
        root.create_array(kind, data=values, dimension_names=dims)
        for own, of_items in {name: along, **more}.items():
            root.create_array(own, data=of_items, dimension_names=(name,))
        return path
    with h5py.File(path, "w") as file:
        file[kind] = values
        text = h5py.string_dtype() if along.dtype.kind == "U" else None
        file.create_dataset(name, data=along.tolist(), dtype=text).make_scale(name)
        file[kind].dims[0].attach_scale(file[name])
        for axis, dim in enumerate(dims[1:], 1):
            file[kind].dims[axis].label = dim
    return path


STATIONS = np.array(["oslo", "bern", "rome"])


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
@pytest.mark.parametrize("ending", [".zarr", ".h5"])
@pytest.mark.parametrize(
    ("name", "along"),
    [
        ("image", np.array([7.0, 7.5, 8.0])),
        ("n", np.array([3, 4, 6])),
        ("obs", np.array([3, 4, 6])),
        ("image", STATIONS),
        ("station id", STATIONS),
        ("station id", np.array([3, 4, 6])),
    ],
)
def test_new_stores_have_the_index_of_items(
    tmp_path: Path, ending: str, name: str, along: np.ndarray
) -> None:
    """Labels whose index has another name and order are refused as with the old store."""
    source = indexed(tmp_path / f"p{ending}", "probs", name, along)
    turned = indexed(tmp_path / "l.h5", "labels", "frame", along[::-1])
    named = indexed(tmp_path / "k.h5", "labels", name, along[::-1])
    same = indexed(tmp_path / "s.h5", "labels", "frame", along)
    convert(source, tmp_path / "c.zarr")
    convert(tmp_path / "c.zarr", tmp_path / "d.zarr")
    run_well("reduce", source, "-o", tmp_path / "m.zarr", "--quiet")
    copies = [tmp_path / f"{new}.zarr" for new in "cdm"]
    for predictions in (source, *copies, f"{tmp_path}/c.zarr/probs"):
        for bad in (turned, named):
            says = "the items are in another order"
            refused(lambda: evaluate(predictions, bad, "segmentation"), says)  # noqa: B023
        report = evaluate(predictions, same, "segmentation")
        assert report.results["segmentation"]["pixel_accuracy"] == 1


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
def test_metadata_of_new_stores_are_json(tmp_path: Path) -> None:
    """JSON has no NaN. Coordinates with NaN are not compared, so they can be left out."""
    along = np.array([3.0, np.nan, 6.0])
    convert(indexed(tmp_path / "p.h5", "probs", "time (UTC)", along), tmp_path / "c.zarr")
    assert "NaN" not in (tmp_path / "c.zarr/zarr.json").read_text()


def test_new_stores_have_no_other_index(tmp_path: Path) -> None:
    """A coordinate that is no index in the old store is none in the new one, whose dimension has
    its name."""
    along = np.array([3, 4, 6])
    source = indexed(tmp_path / "p.zarr", "probs", "image", along, item=along + 10)
    other = indexed(tmp_path / "l.h5", "labels", "frame", along[::-1] + 10)
    convert(source, tmp_path / "c.zarr")
    for predictions in (source, tmp_path / "c.zarr"):
        report = evaluate(predictions, other, "segmentation")
        assert report.results["segmentation"]["pixel_accuracy"] == 1


@pytest.mark.parametrize(
    "coordinates", [[], {"a": {}}, {"a": {"values": [[1]], "uqeval_axis": "item"}}]
)
def test_coordinates_of_another_form_in_attributes(tmp_path: Path, coordinates: Any) -> None:
    path = save_store(tmp_path / "p.zarr", probs=PROBS)
    zarr.open_group(str(path)).attrs["uqeval"] = {"coordinates": coordinates}
    refused(lambda: open_store(path, role="predictions"), "coordinates in a form")


def test_times_and_texts_are_stored() -> None:
    days = np.array(["2026-01-01", "2026-02-01"], "M8[D]")
    values, attributes = Coordinate("a", lambda: days).stored() or ((), {})
    own, same = (
        Coordinate("a", load, about).values
        for load, about in ((lambda: days, {}), (lambda: np.asarray(values), attributes))
    )
    assert own is not None and same is not None and (own == same).all()
    texts, _ = Coordinate("a", lambda: np.array(["b"], object)).stored() or ((), {})
    assert texts == ["b"]
    assert Coordinate("a", lambda: np.array([np.nan], object)).stored() == (["nan"], {INDEX: False})


def test_a_name_of_a_dimension_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    along = {
        name: Coordinate("a", lambda: COUNT, axis="item", name=name)
        for name in ("obs-1", "../a", "a b")
    }
    NewStore(tmp_path / "new", 6, None, dense=True).create({}, along)
    names = {path.name for path in (*tmp_path.iterdir(), *(tmp_path / "new").iterdir())}
    assert names == {"new", "obs-1", "zarr.json"}


THREE = {"probs": PROBS[:, :3] / PROBS[:, :3].sum(1, keepdims=True), "labels": LABELS % 3}


@pytest.mark.parametrize("classes", [[2, 0, 1], ["2", "0", "1"], [*"abc"], [*"aab"]])
def test_a_class_of_each_item_is_no_coordinate_of_classes(
    tmp_path: Path, classes: list[Any]
) -> None:
    np.savez(tmp_path / "a.npz", **THREE, **{"class": np.array(classes)})
    report = evaluate(tmp_path / "a.npz", None, "segmentation")
    assert [own["name"] for own in report.results["segmentation"]["per_class"]] == [*"012"]
    assert not report.warnings


def test_a_class_of_another_length_is_a_coordinate_of_classes(tmp_path: Path) -> None:
    two = {name: values[:2] for name, values in THREE.items()}
    says = "the classes are in another order than their ids"
    np.savez(tmp_path / "a.npz", **two, **{"class": np.array([2, 1, 0])})
    refused(lambda: evaluate(tmp_path / "a.npz", None, "segmentation"), says)
    np.savez(tmp_path / "b.npz", **two, **{"class": np.array([0, 1, 2])})
    assert evaluate(tmp_path / "b.npz", None, "segmentation")


@pytest.mark.parametrize("named", [("probs",), ("labels",), ("probs", "labels")])
def test_arrays_without_names_have_the_coordinates(tmp_path: Path, named: tuple[str, ...]) -> None:
    """Another array with names does not make them those of another array."""
    axes = {"probs": ("sid", "class", "y", "x"), "labels": ("sid", "y", "x")}
    along = {"class": [2, 1, 0], "time": [0, 1, 2]}
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    for name, values in THREE.items():
        names = axes[name] if name in named else None
        group.create_array(name, data=values, dimension_names=names)
    for name, own in along.items():
        group.create_array(name, data=np.array(own), dimension_names=(name,))
    says = "the classes are in another order than their ids"
    refused(lambda: evaluate(tmp_path / "a.zarr", None, "segmentation"), says)
    del group["class"]
    turned = {"labels": THREE["labels"], "time": np.array([2, 1, 0])}
    predictions = tmp_path / "a.zarr"
    if len(named) == len(axes):
        assert evaluate(predictions, turned, "segmentation")
    else:
        says = "the items are in another order"
        refused(lambda: evaluate(predictions, turned, "segmentation"), says)


def test_the_coordinate_of_another_dimension_is_none_of_items(tmp_path: Path) -> None:
    good = Labelled(PROBS, ("sid", "class", "y", "x"))
    other = {"time": Labelled(np.array([2, 1, 0]), ("time",))}
    given = LabelledSet({"probs": good, "labels": Labelled(LABELS, ("sid", "y", "x"))}, {}, other)
    turned = {"labels": LABELS, "time": np.arange(3)}
    assert evaluate(LabelledSet({"probs": good}, {}, other), turned, "segmentation")
    assert evaluate(given, None, "segmentation")


def test_two_dimensions_of_items_in_a_store(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    group.create_array("probs", data=PROBS, dimension_names=("sid", *AXES[1:]))
    group.create_array("labels", data=LABELS, dimension_names=("image", *AXES[2:]))
    for name, along in {"sid": [3, 1, 2], "image": [1, 2, 3]}.items():
        group.create_array(name, data=np.array(along), dimension_names=(name,))
    says = "the items are in another order than those of other arrays"
    refused(lambda: evaluate(tmp_path / "a.zarr", None, "segmentation"), says)


def _saved(path: Path, ids: Any, **arrays: Any) -> Path:
    """Save arrays without names of dimensions, with `ids` under the name of the file."""
    name = path.stem
    if path.suffix == ".npz":
        np.savez(path, **arrays, **{name: ids})
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for key, values in {**arrays, name: ids}.items():
                file[key] = values
    else:
        group = zarr.create_group(str(path))
        for key, values in {**arrays, name: ids}.items():
            group.create_array(key, data=values)
    return path


@pytest.mark.parametrize("name", ["image_id", "ids", "index", "Frame_Number"])
@pytest.mark.parametrize("ending", [".npz", ".h5", ".zarr"])
def test_ids_of_items_are_compared(tmp_path: Path, name: str, ending: str) -> None:
    ids, folders = np.array([30, 7, 12]), [tmp_path / each for each in "abc"]
    for folder in folders:
        folder.mkdir()
    predictions = _saved(folders[0] / f"{name}{ending}", ids, probs=PROBS)
    same = _saved(folders[1] / f"{name}{ending}", ids, labels=LABELS)
    assert evaluate(predictions, same, "segmentation").results["segmentation"]["miou"] == 1
    turned = _saved(folders[2] / f"{name}{ending}", ids[::-1], labels=LABELS)
    error = refused(
        lambda: evaluate(predictions, turned, "segmentation"), "the items are in another order",
        error=StoreError,
    )  # fmt: skip
    assert f"probs[numpy.argsort({name.lower()})]" in error
    others = {"labels": LABELS, name: np.array([30, 7, 13])}
    assert evaluate(predictions, others, "segmentation").results["segmentation"]["miou"] == 1


@pytest.mark.parametrize("values", [
    np.array([True, False, False]), np.array([0.5, 0.25, 1]), np.array([4, 4, 9]),
    np.array([0, 42]), np.array(["a", "a", "b"]), np.arange(4), np.array([]),
])  # fmt: skip
@pytest.mark.parametrize("ending", [".npz", ".h5"])
def test_arrays_that_are_no_ids(tmp_path: Path, values: np.ndarray, ending: str) -> None:
    """Flags, scores, scenes of several items and keys of generators are in any order."""
    is_text = values.dtype.kind == "U"
    stored = values.astype("S1") if is_text and ending == ".h5" else values
    predictions = _saved(tmp_path / f"key{ending}", stored, probs=PROBS)
    turned = {"labels": LABELS, "key": values[::-1]}
    assert evaluate(predictions, turned, "segmentation").results["segmentation"]["miou"] == 1
    convert(predictions, tmp_path / "copy.zarr")
    assert evaluate(tmp_path / "copy.zarr", turned, "segmentation")


def test_ids_that_are_not_stored_are_left_out(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "a.zarr"), zarr_format=2)
    for name, values in (("probs", PROBS), ("labels", LABELS), ("scene_id", np.zeros(3, int))):
        group.create_array(name, data=values, config={"write_empty_chunks": False})
    convert(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert not (tmp_path / "copy.zarr" / "scene_id").exists()


def test_stores_of_earlier_versions_keep_the_names_in_coordinates(tmp_path: Path) -> None:
    own = {"filename": {"uqeval_axis": "item", "uqeval_index": False, "values": [*"cab"]}}
    group = zarr.create_group(str(tmp_path / "a.zarr"), attributes={"uqeval": {"coordinates": own}})
    group.create_array("probs", data=PROBS)
    (coordinate,) = open_store(tmp_path / "a.zarr", role="predictions").coordinates.values()
    assert coordinate.is_extra


def test_texts_that_are_ids(tmp_path: Path) -> None:
    """They are compared, also of a store that is written from them, but are no names of items."""
    paths, says = np.array(["x/b.png", "x/a.png", "y/a.png"]), "the items are in another order"
    first = _saved(tmp_path / "filenames.npz", paths, probs=PROBS)
    convert(first, tmp_path / "copy.zarr")
    for predictions in (first, tmp_path / "copy.zarr"):
        turned = {"labels": LABELS, "filenames": paths[::-1]}
        refused(lambda p=predictions, t=turned: evaluate(p, t, "segmentation"), says)
        assert evaluate(predictions, {"labels": LABELS, "names": [*"abc"]}, "segmentation")
    assert open_store(tmp_path / "copy.zarr", role="predictions").names is None
