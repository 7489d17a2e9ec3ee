"""Arrays in memory with names of axes, attributes and coordinates: they count as in a store."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from command import refused
from tensors import Labelled, LabelledSet

import uqeval
from uqeval.errors import StoreError

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(4), (2, 5, 5)).transpose(0, 3, 1, 2).astype(np.float32)
LABELS = PROBS.argmax(1).astype(np.uint8)
AXES = ("item", "class", "y", "x")


def accuracy(*given: Any, **options: Any) -> float:
    results = uqeval.evaluate(*given, metrics="segmentation", workers=1, **options).results
    found: float = results["segmentation"]["pixel_accuracy"]
    return found


def transposed(values: Any, names: tuple[str, ...], *order: int, **more: Any) -> Labelled:
    return Labelled(values.transpose(order), tuple(names[k] for k in order), **more)


def test_axes_in_any_order(tmp_path: Path) -> None:
    probs = transposed(PROBS, AXES, 3, 0, 2, 1)
    labels = transposed(LABELS, ("time", "lat", "lon"), 2, 1, 0)
    assert accuracy(probs, labels) == 1
    assert accuracy(LabelledSet({"probs": probs, "labels": labels}), None) == 1
    stored = zarr.create_array(
        str(tmp_path / "p"), data=PROBS.transpose(0, 1, 3, 2), dimension_names=("n", "c", "w", "h")
    )
    assert accuracy(stored, LABELS) == 1
    with uqeval.Evaluator("segmentation") as evaluator:
        evaluator.update(probs, labels, ["a", "b"])
        assert evaluator.report().results["segmentation"]["pixel_accuracy"] == 1
    about: dict[str, Any] = {"names": ["a", "b"], "samples": 1, "classes": 4, "size": (5, 5)}
    with uqeval.PredictionWriter(tmp_path / "w", **about) as writer:
        writer.add_batch(["a", "b"], probs)
        for name, own in zip("ab", LABELS, strict=True):
            writer.add_labels(name, transposed(own, ("y", "x"), 1, 0))
        says = "item 'a' has 2 items on its axis `item`"
        refused(lambda: writer.add("a", Labelled(PROBS, AXES)), says)
    assert accuracy(tmp_path / "w", None) == 1


@pytest.mark.parametrize(
    "dims",
    [
        4, lambda: 4, (1, 2, 3, 4), "NCWH", ("x", "y"), (None,) * 4, None, np.arange(4),
        ("dim_0", "dim_1", "dim_2", "dim_3"), ("scene", "class", "y", "x"),
    ],
)  # fmt: skip
def test_what_names_no_axes(dims: Any) -> None:
    assert accuracy(Labelled(PROBS, dims), LABELS) == 1


def test_names_that_are_not_known_at_odd_places() -> None:
    says = "dimension_names are ['scene', 'class', 'x', 'y']"
    refused(lambda: accuracy(Labelled(PROBS, ("scene", "class", "x", "y")), LABELS), says)
    several = Labelled(LABELS[:, None].repeat(2, 1), ("scene", "band", "lat", "lon"))
    refused(lambda: accuracy(PROBS, several), "dimension_names are ['scene', 'band', 'lat', 'lon']")


def test_t_of_frames_means_items() -> None:
    colours = RNG.integers(0, 255, (3, 16, 16, 3), dtype=np.uint8)
    probs = RNG.dirichlet(np.ones(4), (3, 16, 16)).transpose(0, 3, 1, 2)
    named = transposed(colours, ("t", "y", "x", "rgb"), 3, 0, 2, 1)
    plain, own = (
        uqeval.evaluate(probs, None, "temporal", video=frames).results
        for frames in (colours, named)
    )
    assert own == plain


def test_attributes_of_arrays_and_of_the_set() -> None:
    numbers = {"mean": np.full((2, 5, 5), 9.0), "std": np.ones((2, 5, 5))}
    target = numbers["mean"] + 1
    target[:, 0] = -1
    named = Labelled(target, ("item", "y", "x"), {"_FillValue": np.float64(-1)})
    report = uqeval.evaluate({**numbers, "target": named}, None, "regression")
    assert report.results["regression"]["rmse"] == 1
    packed = Labelled(target, ("item", "y", "x"), {"scale_factor": 0.1})
    refused(lambda: uqeval.evaluate({**numbers, "target": packed}, None), "scale_factor 0.1")
    ignored = Labelled(LABELS, ("item", "y", "x"), {"ignore_index": 3})
    report = uqeval.evaluate(PROBS, ignored, "segmentation")
    assert report.results["segmentation"]["pixels"] == np.count_nonzero(LABELS != 3)
    refused(lambda: accuracy({"probs": PROBS, "labels": ignored}, None), "ignore_index is 3")
    own = LabelledSet(
        {"probs": PROBS, "labels": LABELS}, {"ignore_index": np.int64(3)},
        {"names": Labelled(np.array(["q", "r"]), ("item",))},
    )  # fmt: skip
    report = uqeval.evaluate(own, None, "segmentation")
    assert report.results["segmentation"]["pixels"] == np.count_nonzero(LABELS != 3)
    assert [item["name"] for item in report.items] == ["q", "r"]


def test_tables_of_members() -> None:
    members = RNG.random((3, 5))
    arrays = {"mean": members, "std": members * 0 + 1}
    names = ("member", "item")
    target = Labelled(members.mean(0), ("item",))
    expected = uqeval.evaluate({**arrays, "target": members.mean(0)}, None, "regression").results
    own = {name: Labelled(values, names) for name, values in arrays.items()}
    assert uqeval.evaluate({**own, "target": target}, None, "regression").results == expected
    turned = {name: transposed(values, names, 1, 0) for name, values in arrays.items()}
    refused(lambda: uqeval.evaluate({**turned, "target": target}, None), "the axes [item, sample]")


def test_labels_and_scales_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        probs = file.create_dataset("probs", data=PROBS.transpose(0, 1, 3, 2))
        labels = file.create_dataset("labels", data=LABELS.transpose(0, 2, 1))
        for place, name in enumerate(("item", "class", "x", "y")):
            scale = file.create_dataset(name, data=np.arange(probs.shape[place]))
            scale.make_scale(f"This is a netCDF dimension but not a netCDF variable {name}")
            probs.dims[place].attach_scale(scale)
        for place, name in enumerate(("item", "x", "y")):
            labels.dims[place].label = name
    assert accuracy(tmp_path / "a.h5", None) == 1
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        assert accuracy(file["probs"], file["labels"]) == 1
        some = file.create_dataset("some/probs", data=PROBS)
        some.dims[0].label = "item"
    assert accuracy(f"{tmp_path / 'a.h5'}::/some/probs", LABELS) == 1


@pytest.mark.parametrize(
    ("names", "names_of_labels"),
    [
        (("valid_time", "class", "latitude", "longitude"), ("valid_time", "latitude", "longitude")),
        (("z", "c", "y", "x"), ("z", "y", "x")),
        (("item", None, None, None), ("item", None, None)),
    ],
)
def test_names_of_a_domain_in_zarr(tmp_path: Path, names: Any, names_of_labels: Any) -> None:
    zarr.create_array(str(tmp_path / "p"), data=PROBS, dimension_names=names)
    zarr.create_array(str(tmp_path / "l"), data=LABELS, dimension_names=names_of_labels)
    assert accuracy(tmp_path / "p", tmp_path / "l") == 1
    data, odd = PROBS.swapaxes(-1, -2), ("scene", "class", "x", "y")
    zarr.create_array(str(tmp_path / "odd"), data=data, dimension_names=odd)
    refused(lambda: accuracy(tmp_path / "odd", LABELS), "dimension_names are ['scene', 'class'")


@pytest.mark.parametrize("name", ["sample", "t", "x", "y", "station"])
def test_tables_of_any_axis(name: str) -> None:
    """One axis has no order, and the axis beside classes or members is that of items."""
    numbers = RNG.random(5)
    table = {"mean": numbers, "std": numbers + 1, "target": numbers + 2}
    expected = uqeval.evaluate(table, None, "regression", workers=1).results
    own = {key: Labelled(values, (name,)) for key, values in table.items()}
    assert uqeval.evaluate(own, None, "regression", workers=1).results == expected
    target = own.pop("target")
    assert uqeval.evaluate(own, target, "regression", workers=1).results == expected
    probs, labels = PROBS[:, :, 0, 0], Labelled(LABELS[:, 0, 0], (name,))
    assert accuracy(Labelled(probs, (name, "class")), labels) == 1
    assert accuracy({"probs": Labelled(probs, (name, "class")), "labels": labels}, None) == 1
    if name == "station":
        members = Labelled(np.stack([numbers, numbers]), ("member", name))
        arrays = {"mean": members, "std": members, "target": numbers}
        assert uqeval.evaluate(arrays, None, "regression", workers=1).results
        turned = Labelled(np.stack([numbers] * 5), (name, "member"))
        arrays = {"mean": turned, "std": turned, "target": numbers}
        refused(lambda: uqeval.evaluate(arrays, None), "has the axes [station, sample]")
    else:
        turned = Labelled(probs.T, ("class", name))
        assert accuracy(turned, labels) == 1
        with uqeval.Evaluator("segmentation") as evaluator:
            evaluator.update(turned, labels, ["a", "b"])
            assert evaluator.report().results["segmentation"]["pixel_accuracy"] == 1
    if name in ("x", "y"):
        several = Labelled(np.stack([probs] * 3), ("sample", name, "class"))
        assert accuracy(several, labels) == 1


def test_axes_that_can_only_be_items() -> None:
    """`t` of ids and ground truth, and one band."""
    for names in (("t", "y", "x"), ("y", "x", "t")):
        order = [("t", "y", "x").index(name) for name in names]
        labels = Labelled(LABELS.transpose(order), names)
        assert accuracy(PROBS, labels) == accuracy(labels, LABELS, classes=4) == 1
    band, axes = ("band", "y", "x"), ("sample", "class", "y", "x")
    for own in (Labelled(LABELS[:1], band), Labelled(LABELS[0], ("y", "x"))):
        assert accuracy(Labelled(PROBS[:1], axes), own) == 1
        assert accuracy({"probs": Labelled(PROBS[:1], axes), "labels": own}, None) == 1
    assert accuracy(PROBS[:1], Labelled(LABELS[:1], band)) == 1
    assert accuracy(Labelled(LABELS[:1], band), LABELS[:1], classes=4) == 1
    refused(lambda: accuracy(PROBS, Labelled(LABELS, band)), "has the axes [class, y, x]")
    numbers = {name: Labelled(PROBS[:1, 0] + 1, band) for name in ("mean", "std")}
    report = uqeval.evaluate(numbers, Labelled(PROBS[:1, 0], band), "regression", workers=1)
    assert report.results["regression"]["rmse"] == pytest.approx(1)


class Variable:
    """An array with names and attributes as those of netCDF4, which unpacks numbers itself."""

    def __init__(self, values: Any, dimensions: Any, scale: bool = True, **attributes: Any) -> None:
        self.values, self.dimensions, self.scale = values, dimensions, scale
        self.attributes, self.mask = attributes, False

    def ncattrs(self) -> list[str]:
        return list(self.attributes)

    def getncattr(self, name: str) -> Any:
        return self.attributes[name]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values)

    def __getitem__(self, region: Any) -> Any:
        return self.values[region]


def test_variables_of_netcdf() -> None:
    turned, names = PROBS.swapaxes(-1, -2), ("item", "class", "x", "y")
    assert accuracy(Variable(turned, names), LABELS) == 1
    assert accuracy(Variable(PROBS, 4), Variable(LABELS, ["x", "y", "item"])) == 1
    ignored = Variable(LABELS, ("item", "y", "x"), ignore_index=np.uint8(3))
    report = uqeval.evaluate(PROBS, ignored, "segmentation", workers=1)
    assert report.results["segmentation"]["pixels"] == np.count_nonzero(LABELS != 3)
    assert accuracy(Variable(PROBS, AXES, scale_factor=0.1), LABELS) == 1
    packed = Variable(PROBS, AXES, scale=False, scale_factor=0.1)
    refused(partial(accuracy, packed, LABELS), "packed (attribute scale_factor 0.1)")
    for fill in ("_FillValue", "missing_value"):
        own = Variable(PROBS, AXES, scale_factor=0.1, **{fill: 9})
        says = "unpacks the numbers of this variable (scale_factor 0.1), and does not mask its "
        refused(partial(accuracy, own, LABELS), f"{says}fill values ({fill} 9)")
        assert accuracy(Variable(PROBS, AXES, scale_factor=1, **{fill: 9}), LABELS) == 1
    masking = Variable(
        np.ma.masked_equal(LABELS, 9), AXES[:1] + AXES[2:], _FillValue=9, scale_factor=0.1
    )
    masking.mask = True
    assert accuracy(PROBS, masking) == 1
    masking.values = np.ma.masked_equal(LABELS, 3)
    refused(partial(accuracy, PROBS, masking), "masked")


DAYS = np.datetime64("2026-01-01") + np.arange(2)
COORDS: dict[str, Any] = {"time": DAYS.astype("M8[ns]"), "y": np.arange(5) / 10}


def with_coordinate(name: str, values: Any) -> tuple[Labelled, Labelled]:
    """Probabilities, and labels with another coordinate."""
    return (
        Labelled(PROBS, ("time", "class", "y", "x"), coords=COORDS),
        Labelled(LABELS, ("time", "y", "x"), coords=COORDS | {name: values}),
    )


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("time", COORDS["time"][::-1], "the items are in another order"),
        ("y", COORDS["y"][::-1].astype("f4"), "the rows are in another order"),
    ],
)
def test_coordinates_in_another_order(name: str, values: Any, says: str) -> None:
    probs, labels = with_coordinate(name, values)
    refused(lambda: accuracy(probs, labels), says, error=StoreError)
    refused(lambda: accuracy({"probs": probs}, {"labels": labels}), says, error=StoreError)


@pytest.mark.parametrize(
    "values",
    [
        COORDS["y"].astype("f4"), COORDS["y"] + 0.05, ["a", "b", "c", "d", "e"],
        np.full(5, np.nan), [0] * 5,
    ],
)  # fmt: skip
def test_coordinates_in_no_other_order(values: Any) -> None:
    assert accuracy(*with_coordinate("y", values)) == 1


def test_coordinates_in_stores(tmp_path: Path) -> None:
    """Times count from the first one, as xarray writes them; texts and HDF5 have no other rule.
    Items with names are matched by name."""

    def saved(path: Path, arrays: dict[str, Any], days: list[int], start: str, **more: Any) -> Path:
        root = zarr.create_group(str(path), attributes=more)
        for name, values in arrays.items():
            root.create_array(name, data=values, dimension_names=None)
        root.create_array("time", data=np.array(days)).attrs["units"] = f"days since {start}"
        return path

    probs = saved(tmp_path / "p", {"probs": PROBS}, [0, 1], "2026-01-01")
    same = saved(tmp_path / "l", {"labels": LABELS}, [-1, 0], "2026-01-02 00:00:00")
    assert accuracy(probs, same) == 1
    turned = saved(tmp_path / "t", {"labels": LABELS[::-1]}, [0, -1], "2026-01-02 00:00:00")
    says = "t: the items are in another order than those of"
    refused(lambda: accuracy(probs, turned), says, error=StoreError)
    other = saved(tmp_path / "q", {"probs": PROBS}, [1, 0], "2026-01-01")
    refused(lambda: accuracy([probs, other], LABELS), "q: the items are in another order")
    zarr.open_group(str(probs)).attrs["names"] = ["a", "b"]
    zarr.open_group(str(turned)).attrs["names"] = ["b", "a"]
    assert accuracy(probs, turned) == 1
    for name, texts in (("p.h5", ["a", "b"]), ("l.h5", ["b", "a"])):
        with h5py.File(tmp_path / name, "w") as file:
            file["item"] = texts
            file["probs" if name == "p.h5" else "labels"] = PROBS if name == "p.h5" else LABELS
    says = "l.h5::item runs from b to a"
    refused(lambda: accuracy(tmp_path / "p.h5", tmp_path / "l.h5"), says, error=StoreError)


def test_missing_chunks(tmp_path: Path) -> None:
    """An array of Zarr or h5py reads them as the fill value, as if they were written."""
    group = zarr.create_group(tmp_path / "z")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for holder, create in ((group, group.create_array), (file, file.create_dataset)):
            create("probs", data=PROBS, chunks=(1, 4, 5, 5))
            create("labels", shape=LABELS.shape, dtype="u1", chunks=(1, 5, 5))[:1] = LABELS[:1]
            says = "labels or target: 1 of 2 chunks of the array are missing"
            given = (holder["probs"], holder["labels"])
            refused(partial(accuracy, *given), says, "missing_chunks fill")
            assert accuracy(holder["probs"], holder["labels"][...]) < 1
            holder["labels"][1:] = LABELS[1:]
            assert accuracy(*given) == 1
        file.create_dataset("target", shape=LABELS.shape, dtype="f4")
        refused(partial(accuracy, file, None), "'target': 1 of 1 chunks of the array are missing")


class OfWebServer(Labelled):
    """An array of Zarr whose store cannot list its chunks."""

    chunks, shape, nchunks_initialized = (1, 4, 5, 5), PROBS.shape, 0


class OfBrokenServer(OfWebServer):
    @property
    def nchunks_initialized(self) -> int:  # type: ignore[override]
        raise NotImplementedError


@pytest.mark.parametrize("form", [OfWebServer, OfBrokenServer])
def test_stores_that_cannot_list_their_chunks(form: Any) -> None:
    assert accuracy(form(PROBS, AXES), LABELS) == 1


def test_an_item_of_its_own_may_have_an_axis_of_items(tmp_path: Path) -> None:
    """As rasterio gives a mask, and `ds.isel(time=[k])` of xarray an item."""
    about: dict[str, Any] = {"names": ["a"], "samples": 1, "classes": 4, "size": (5, 5)}
    with uqeval.PredictionWriter(tmp_path / "w", **about) as writer:
        writer.add("a", Labelled(PROBS[:1], ("time", "class", "y", "x")))
        writer.add_labels("a", Labelled(LABELS[:1], ("band", "y", "x")))
    assert accuracy(tmp_path / "w", None) == 1


def test_arrays_of_zarr_in_shards(tmp_path: Path) -> None:
    """Shards have chunks beyond the edge, which may be missing."""
    shards: dict[str, Any] = {"chunks": (1, 4, 5, 5), "shards": (2, 4, 5, 5)}
    labels = LABELS[[0, 1, 0]]
    whole = zarr.create_array(str(tmp_path / "a"), data=PROBS[[0, 1, 0]], **shards)
    assert accuracy(whole, labels) == 1
    for file in (tmp_path / "a/c/1").rglob("*"):
        if file.is_file():
            file.unlink()
    refused(
        lambda: accuracy(zarr.open_array(str(tmp_path / "a")), LABELS[[0, 1, 0]]), "1 of 3 chunks"
    )


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("place", ["memory", "folder", "zip"])
def test_missing_chunks_in_any_store_of_zarr(tmp_path: Path, place: str, form: Any) -> None:
    """A shard may be there without all its chunks."""
    path = tmp_path / "s.zip"
    store: Any = {
        "memory": zarr.storage.MemoryStore, "folder": lambda: zarr.storage.LocalStore(tmp_path),
        "zip": lambda: zarr.storage.ZipStore(path, mode="w"),
    }[place]()  # fmt: skip
    options: dict[str, Any] = {"chunks": (1, 5, 5)} | ({"shards": (2, 5, 5)} if form == 3 else {})
    group = zarr.create_group(store, zarr_format=form)
    for name, items in (("labels", 1), ("labels2", 2)):
        array = group.create_array(name, shape=LABELS.shape, dtype="u1", **options)
        array[:items] = LABELS[:items]
    if place == "zip":
        store.close()
        group = zarr.open_group(zarr.storage.ZipStore(path), mode="r")
    refused(lambda: accuracy(PROBS, group["labels"]), "1 of 2 chunks of the array are missing")
    assert accuracy(PROBS, group["labels2"]) == 1
