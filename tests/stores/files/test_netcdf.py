"""HDF5 files as netCDF writes them: fill values, dimensions, texts of characters, suffixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from number_stores import numbers

import uqeval
from uqeval.errors import DataError, StoreError
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

h5py = pytest.importorskip("h5py", reason="stores in HDF5 need uqeval[hdf5]")

#: The fill values that netCDF assumes without `_FillValue`.
FILLS = {"f4": 9.969209968386869e36, "f8": 9.969209968386869e36, "i2": -32767, "u2": 65535,
         "i4": -2147483647, "u1": 255, "i1": -127}  # fmt: skip
DIMS = {"item": 3, "y": 12, "x": 16}
ORDER = [2, 0, 1]


def netcdf(
    path: Path, arrays: dict[str, Any], texts: dict[str, Any] | None = None,
    is_netcdf: bool = True, inside: str = "/", **sizes: int,
) -> Path:  # fmt: skip
    """Write arrays [item, y, x] or [item, class, y, x]. `texts`: variables of texts, by name, each
    with its dimension, and a dimension of its letters if it has two axes."""
    dims = sizes or DIMS
    with h5py.File(path, "w") as file:
        if is_netcdf:
            file.attrs["_NCProperties"] = "version=2,netcdf=4.9.2,hdf5=1.14.4"
        group = file.require_group(inside)
        for name, (dim, values) in (texts or {}).items():
            group[name] = values
            if dim == name:
                group[name].make_scale(name)
        for name, size in dims.items():
            if name not in group:
                scale = group.create_dataset(name, (size,), ">f4")
                start = "This is a netCDF dimension but not a netCDF variable."
                scale.make_scale(f"{start}{size:10d}")
        for name, (dim, _) in (texts or {}).items():
            if dim != name:
                group[name].dims[0].attach_scale(group[dim])
        for name, values in arrays.items():
            fill = FILLS.get(values.dtype.str[1:])
            own = group.create_dataset(name, data=values, fillvalue=fill)
            for axis, (dim, _) in enumerate(dims.items()):
                own.dims[axis].attach_scale(group[dim])
    return path


def in_numbers(dtype: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return predicted numbers with a target of a dtype, and where this is not known."""
    arrays = {name: numbers()[name] for name in ("mean", "std", "target")}
    hole = np.isnan(arrays["target"])
    target = np.nan_to_num(arrays["target"]).astype(dtype)
    arrays["target"] = np.where(hole, np.array(FILLS[dtype], dtype), target)
    return arrays, hole


def evaluated(path: Any) -> Any:
    return uqeval.evaluate(path, None, "regression", workers=1).results["regression"]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u2", "i4"])
def test_default_fill_values_of_a_target(tmp_path: Path, dtype: str) -> None:
    """They counted as measurements: an RMSE of 1e36."""
    arrays, hole = in_numbers(dtype)
    expected = evaluated(arrays | {"valid": ~hole})
    path = netcdf(tmp_path / "a.h5", arrays)
    assert evaluated(path) == expected
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr") == expected
    with h5py.File(path) as file:
        assert evaluated({name: file[name] for name in arrays}) == expected


@pytest.mark.parametrize(
    ("dtype", "is_netcdf", "counts"),
    [("u1", True, True), ("i1", True, True), ("i2", False, True), ("f4", False, False)],
)
def test_values_that_may_be_default_fill_values(
    tmp_path: Path, dtype: str, is_netcdf: bool, counts: bool
) -> None:
    """netCDF does not mask bytes. Of other files, only the value for floats is sure."""
    arrays, hole = in_numbers(dtype)
    found = evaluated(netcdf(tmp_path / "a.h5", arrays, is_netcdf=is_netcdf))
    assert found == evaluated(arrays if counts else arrays | {"valid": ~hole})


def test_an_explicit_fill_value_replaces_the_default(tmp_path: Path) -> None:
    arrays, hole = in_numbers("i2")
    path = netcdf(tmp_path / "a.h5", arrays)
    with h5py.File(path, "a") as file:
        file["target"].attrs["_FillValue"] = np.int16(7)
    valid = arrays["target"] != 7
    assert hole.any() and evaluated(path) == evaluated(arrays | {"valid": valid})


@pytest.mark.parametrize("name", ["mean", "std"])
def test_default_fill_values_of_predictions_are_refused(tmp_path: Path, name: str) -> None:
    """An AUSE of 0 passed the gate."""
    arrays = {own: numbers()[own] for own in ("mean", "std", "target")}
    arrays[name][0, 0] = FILLS["f4"]
    path = netcdf(tmp_path / "a.h5", arrays)
    for family in ("regression", "sparsification"):
        with pytest.raises(DataError, match=rf"::/{name}, item 0.*9\.96921e\+36"):
            uqeval.evaluate(path, None, family, workers=1)


def test_a_default_is_no_declaration(tmp_path: Path) -> None:
    """Zeros are still doubtful, and members may have defaults of several types."""
    arrays, _ = in_numbers("f4")
    arrays["target"] = np.nan_to_num(numbers()["target"]).round()
    first = netcdf(tmp_path / "a.h5", arrays)
    report = uqeval.evaluate(first, None, "regression", workers=1)
    assert any("are exactly 0" in text for text in report.warnings)
    other = netcdf(tmp_path / "b.h5", arrays | {"target": arrays["target"].astype("i2")})
    uqeval.evaluate([first, other], None, "regression", workers=1)
    with h5py.File(other, "a") as file:
        file["target"].attrs["_FillValue"] = np.int16(7)
    known = {"valid": arrays["target"] != 7}
    assert (arrays["target"] == 7).any()
    expected = uqeval.evaluate([arrays | known, arrays], None, "regression", workers=1)
    for members in ([first, other], [other, first]):
        found = uqeval.evaluate(members, None, "regression", workers=1)
        assert found.results == expected.results


def classes_of(path: Path, order: list[int], texts: Any, with_labels: bool) -> Path:
    """Write probabilities of three classes, with a coordinate of their names."""
    labels = np.random.default_rng(0).integers(0, 3, (2, 8, 8))
    probs = (np.eye(3)[labels].transpose(0, 3, 1, 2) * 0.8 + 0.2 / 3).astype("f4")[:, order]
    sizes = {"item": 2, "class": 3, "y": 8, "x": 8}
    netcdf(path, {"probs": probs}, {"class": ("class", texts)}, **sizes)
    if with_labels:
        with h5py.File(path, "a") as file:
            file["labels"] = labels.astype("u1")
    return path


def characters(texts: list[str]) -> np.ndarray:
    """Return texts as netCDF's classic format stores them: [text, letter]."""
    rows = np.array([text.encode() for text in texts])
    return rows.view("S1").reshape(len(texts), -1)


def as_bytes(texts: list[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts])


@pytest.mark.parametrize("form", [characters, as_bytes])
def test_classes_in_another_order_as_bytes(tmp_path: Path, form: Any) -> None:
    names = ["sky", "road", "vélo"]
    first = classes_of(tmp_path / "a.h5", [0, 1, 2], form(names), False)
    store = open_store(first, role="predictions")
    assert store.attributes["class_names"] == names
    other = classes_of(tmp_path / "b.h5", ORDER, form([names[k] for k in ORDER]), True)
    refused(run_uqeval("calibration", first, other), "the classes have other numbers: 'vélo' is")
    uqeval.evaluate([first, classes_of(tmp_path / "c.h5", [0, 1, 2], form(names), True)])


@pytest.mark.parametrize("inside", ["", "::/mean"])
@pytest.mark.parametrize("name", ["item", "names"])
@pytest.mark.parametrize("form", [characters, as_bytes])
def test_items_in_another_order_as_bytes(tmp_path: Path, form: Any, name: str, inside: str) -> None:
    """Coordinates are compared; names match the items."""
    arrays, texts = numbers(), ["a", "böblingen", "c"]
    predicted = {own: arrays[own] for own in ("mean", "std")}
    target = {"target": arrays["target"][ORDER]}
    first = netcdf(tmp_path / "a.h5", predicted, {name: ("item", form(texts))})
    other = [texts[k] for k in ORDER]
    truth = netcdf(tmp_path / "b.h5", target, {name: ("item", form(other))})
    if inside:
        found = open_store(f"{first}{inside}", role="target")
        own = found.names if name == "names" else found.coordinates["item item"].values
        assert list(own) == texts  # type: ignore[arg-type]
    elif name == "item":
        refused(run_uqeval("regression", first, truth), "the items are in another order")
    else:
        expected = evaluated({own: arrays[own] for own in ("mean", "std", "target")})
        found = uqeval.evaluate(first, truth, "regression", workers=1)
        assert found.results["regression"] == expected


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    arrays = {name: numbers()[name] for name in ("mean", "std", "target")}
    texts = np.array([b"\xff", b"b", b"c"])
    path = netcdf(tmp_path / "a.h5", arrays, {"item": ("item", texts)})
    report = uqeval.evaluate(path, None, "regression", workers=1)
    (text,) = (text for text in report.warnings if "UTF-8" in text)
    assert "a.h5::/item holds bytes that are not text in UTF-8" in text
    path = netcdf(tmp_path / "b.h5", arrays, {"names": ("item", texts)})
    says = "b.h5::/names holds bytes that are not text in UTF-8"
    refused(lambda: open_store(path, role="predictions"), says)


@pytest.mark.parametrize("inside", ["", "::/mean"])
def test_dimensions_without_coordinates(tmp_path: Path, inside: str) -> None:
    """They are empty arrays, which were copied as coordinates."""
    arrays = {name: numbers()[name] for name in ("mean", "std", "target")}
    path = netcdf(tmp_path / "a.h5", arrays)
    assert not open_store(path, role="predictions").coordinates
    if inside:
        assert not open_store(f"{path}{inside}", role="target").coordinates
    else:
        convert(path, tmp_path / "c.zarr")
        assert not open_store(tmp_path / "c.zarr", role="predictions").coordinates
        assert evaluated(tmp_path / "c.zarr") == evaluated(arrays)


def test_reduce_without_coordinates(tmp_path: Path) -> None:
    path = classes_of(tmp_path / "a.h5", [0, 1, 2], as_bytes(["a", "b", "c"]), True)
    run_well("reduce", path, "-o", tmp_path / "m.zarr")
    assert not open_store(tmp_path / "m.zarr", role="predictions").coordinates
    run_well("convert", f"{path}::/probs", tmp_path / "c.zarr")  # an attribute refers to scales
    store = open_store(tmp_path / "c.zarr", role="predictions")
    assert store.attributes["class_names"] == ["a", "b", "c"] and not store.coordinates


def test_arrays_in_groups(tmp_path: Path) -> None:
    """The dimensions of the file are no arrays of its own."""
    arrays = {name: numbers()[name] for name in ("mean", "std", "target")}
    path = netcdf(tmp_path / "a.nc", arrays, inside="/run")
    with h5py.File(path, "a") as file:
        for name in DIMS:
            file[name] = file["run"][name]
    refused(run_uqeval("inspect", path), f"its groups do. Give the path of a group: {path}::/run")
    assert evaluated(f"{path}::/run") == evaluated(arrays)


@pytest.mark.parametrize("suffix", [".nc", ".nc4", ".NC"])
def test_suffixes_of_netcdf(tmp_path: Path, suffix: str) -> None:
    arrays, hole = in_numbers("f4")
    path = netcdf(tmp_path / f"a{suffix}", arrays)
    assert evaluated(path) == evaluated(f"{path}::/") == evaluated(arrays | {"valid": ~hole})


@pytest.mark.parametrize("version", [1, 2, 5])
def test_the_classic_format_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a b.nc"
    path.write_bytes(b"CDF" + bytes([version]) + bytes(28))
    says = f"nccopy -k nc4 '{path}' '{tmp_path / 'a b.nc4'}'"
    refused(lambda: open_store(path, role="predictions"), "classic format", says, error=StoreError)
    path.write_bytes(b"no netCDF")
    refused(lambda: open_store(path, role="predictions"), "cannot be opened as an HDF5 file")
