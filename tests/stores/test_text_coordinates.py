"""Texts along items or classes that arrays list as coordinates, as `filename` of xarray."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
import pytest
import zarr
from command import refused
from tensors import Labelled

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

PROBS = np.random.default_rng(0).dirichlet(np.ones(3), (3, 6, 6)).transpose(0, 3, 1, 2)
LABELS = PROBS.argmax(1).astype(np.uint8)
KINDS = {"probs": (PROBS, ("item", "class", "y", "x")), "labels": (LABELS, ("item", "y", "x"))}
FILES, CITIES, CLASSES = ["oslo", "bern", "rome"], ["a", "b", "a"], ["sky", "road", "car"]
FORMS = [".zarr", "/", ".h5", "::", "memory"]
evaluate = partial(uqeval.evaluate, workers=1)
pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")


def saved(path: Path, form: str, kind: str, is_listed: bool = True, **texts: Any) -> Any:
    """A store of an array that lists these texts as coordinates, each with its dimension."""
    values, dims = KINDS[kind]
    listed = {"coordinates": " ".join(texts)} if is_listed else {}
    if form == "memory":
        along = {name: Labelled(np.array(own), (dim,)) for name, (dim, own) in texts.items()}
        return {kind: Labelled(values, dims, coords=along)}
    if form in (".h5", "::"):
        with h5py.File(path.with_suffix(".h5"), "w") as file:
            file[kind] = values
            for axis, dim in enumerate(dims):
                file[kind].dims[axis].label = dim
            for name, (dim, own) in texts.items():
                file[name] = own
                file[name].dims[0].label = dim
            file[kind].attrs.update(listed)
        return f"{path.with_suffix('.h5')}::/{kind if form == '::' else ''}"
    group = zarr.create_group(str(path.with_suffix(".zarr")))
    group.create_array(kind, data=values, dimension_names=dims, attributes=listed)
    for name, (dim, own) in texts.items():
        group.create_array(name, data=np.array(own), dimension_names=(dim,))
    return f"{path.with_suffix('.zarr')}{f'/{kind}' if form == '/' else ''}"


def accuracy(*given: Any) -> Any:
    return evaluate(*given, "segmentation").results["segmentation"]["pixel_accuracy"]


@pytest.mark.parametrize("form", FORMS)
def test_items_in_another_order(tmp_path: Path, form: str) -> None:
    own = saved(tmp_path / "p", form, "probs", filename=("item", FILES))
    same = saved(tmp_path / "s", form, "labels", filename=("item", FILES))
    turned = saved(tmp_path / "t", form, "labels", filename=("item", FILES[::-1]))
    index = saved(tmp_path / "i", form, "labels", item=("item", FILES[::-1]))
    other = saved(tmp_path / "o", form, "labels", image_name=("item", FILES[::-1]))
    assert accuracy(own, same) == accuracy(own, other) == 1
    says = "the items are in another order"
    for bad in (turned, index, {"labels": LABELS, "names": FILES[::-1]}):
        refused(lambda: accuracy(own, bad), says, error=StoreError)  # noqa: B023
    if form != "memory":
        convert(own, tmp_path / "c.zarr")
        refused(lambda: accuracy(tmp_path / "c.zarr", turned), says, error=StoreError)


@pytest.mark.parametrize("form", FORMS)
def test_texts_that_are_no_names(tmp_path: Path, form: str) -> None:
    """Several items may be of one city, and not all texts are coordinates."""
    own = saved(tmp_path / "p", form, "probs", city=("item", CITIES))
    labels = saved(tmp_path / "l", form, "labels", city=("item", [*CITIES[1:], "a"]))
    assert accuracy(own, labels) == 1
    if form != "memory":  # where all that an array has are coordinates
        for is_listed, turned in ((False, FILES[::-1]), (True, FILES)):
            own = saved(
                tmp_path / f"p{is_listed}", form, "probs", is_listed, caption=("item", FILES)
            )
            texts = {"caption": ("item", turned)}
            labels = saved(tmp_path / f"l{is_listed}", form, "labels", is_listed, **texts)
            assert accuracy(own, labels) == 1


@pytest.mark.parametrize("form", FORMS)
def test_labels_in_files(tmp_path: Path, form: str) -> None:
    (tmp_path / "labels").mkdir()
    for name, values in zip(FILES, LABELS, strict=True):
        assert cv2.imwrite(f"{tmp_path}/labels/{name}.png", values)
    for k, texts in enumerate((
        {"item": ("item", FILES)}, {"filename": ("item", FILES), "city": ("item", CITIES)},
        {"item": ("item", FILES), "other": ("item", FILES[::-1])},
    )):  # fmt: skip
        own = saved(tmp_path / f"p{k}", form, "probs", **texts)
        report = evaluate(own, tmp_path / "labels", "segmentation")
        assert report.results["segmentation"]["pixel_accuracy"] == 1
        assert not report.warnings
        if form != "memory":
            convert(own, tmp_path / f"c{k}.zarr")
            assert accuracy(tmp_path / f"c{k}.zarr", tmp_path / "labels") == 1
    two = {"filename": ("item", FILES), "other": ("item", FILES[::-1])}
    for k, texts in enumerate((two, {"city": ("item", CITIES)})):
        own = saved(tmp_path / f"q{k}", form, "probs", **texts)
        says = "gives its 3 items no names"
        refused(lambda: accuracy(own, tmp_path / "labels"), says, error=StoreError)  # noqa: B023


@pytest.mark.parametrize("form", FORMS)
def test_names_of_classes(tmp_path: Path, form: str) -> None:
    own = saved(tmp_path / "p", form, "probs", label=("class", CLASSES))
    report = evaluate(own, LABELS, "segmentation")
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == CLASSES
    turned = saved(tmp_path / "t", form, "probs", label=("class", CLASSES[::-1]))
    refused(lambda: accuracy([own, turned], LABELS), "the classes have other numbers")
    colours, others = (
        saved(tmp_path / f"{k}", form, "probs", colour=("class", [*own]))
        for k, own in enumerate(("rgb", "bgr"))
    )
    assert "class_names" not in open_store(colours, role="predictions").attributes
    says = "the classes are in another order"
    refused(lambda: accuracy([colours, others], LABELS), says, error=StoreError)


def test_declared_names_of_classes_count_first(tmp_path: Path) -> None:
    own = saved(tmp_path / "p", ".zarr", "probs", colour=("class", [*"rgb"]))
    zarr.open_group(own).attrs["class_names"] = CLASSES
    report = evaluate(own, LABELS, "segmentation")
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == CLASSES
    assert not report.warnings
