"""`class_names` and `names` as attributes of arrays, as xarray saves those of a DataArray."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

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

PROBS = np.random.default_rng(0).dirichlet(np.ones(3), (4, 6, 6)).transpose(0, 3, 1, 2)
LABELS = PROBS.argmax(1).astype(np.uint8)
CLASSES, OTHER = ["road", "car", "sky"], ["sky", "road", "car"]
NAMES = [*"abcd"]
evaluate = partial(uqeval.evaluate, workers=1)
same_classes = pytest.mark.parametrize("form", [".zarr", "/probs", ".h5", "::/probs", "memory"])


def saved(path: Path, form: str, kind: str, values: Any, of_group: Any = (), **own: Any) -> Any:
    """A store of an array with its own attributes, in a group with others."""
    if form == "memory":
        return {kind: Labelled(values, None, own), **dict(of_group)}
    if "h5" in form or "::" in form:
        with h5py.File(path.with_suffix(".h5"), "w") as file:
            file[kind] = values
            file.attrs.update(dict(of_group))
            file[kind].attrs.update(own)
        return f"{path.with_suffix('.h5')}::/{kind if '::' in form else ''}"
    group = zarr.create_group(str(path.with_suffix(".zarr")), attributes=dict(of_group))
    group.create_array(kind, data=values).attrs.update(own)
    return f"{path.with_suffix('.zarr')}{f'/{kind}' if '/' in form else ''}"


@same_classes
def test_names_of_classes(tmp_path: Path, form: str) -> None:
    own = saved(tmp_path / "a", form, "probs", PROBS, class_names=CLASSES)
    other = saved(tmp_path / "b", form, "probs", PROBS, class_names=OTHER)
    report = evaluate(own, LABELS, "segmentation")
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == CLASSES
    says = "the classes have other numbers: 'sky' is class 2"
    refused(lambda: evaluate([own, other], LABELS, "segmentation"), says, error=StoreError)
    labels = saved(tmp_path / "l", form, "labels", LABELS, class_names=OTHER)
    refused(lambda: evaluate(own, labels, "segmentation"), says, error=StoreError)


@same_classes
def test_names_of_classes_that_the_group_contradicts(tmp_path: Path, form: str) -> None:
    differ = "class_names of 'probs' and of the store differ: number 2 is 'sky' in the attributes"
    for name, of_group, says in (
        ("a", OTHER, "the classes have other numbers: 'road' is class 1"),
        ("b", ["road", "car", "cloud"], differ),
    ):
        given = {"class_names": of_group}.items()
        own = saved(tmp_path / name, form, "probs", PROBS, given, class_names=CLASSES)
        refused(lambda: evaluate(own, LABELS, "segmentation"), says, error=StoreError)  # noqa: B023


@same_classes
def test_names_of_items(tmp_path: Path, form: str) -> None:
    own = saved(tmp_path / "a", form, "probs", PROBS, names=NAMES)
    labels = saved(tmp_path / "l", form, "labels", LABELS[::-1].copy(), names=NAMES[::-1])
    report = evaluate(own, labels, "segmentation")
    assert report.results["segmentation"]["pixel_accuracy"] == 1
    assert [row["name"] for row in report.items] == NAMES
    given = {"names": NAMES}.items()
    both = saved(tmp_path / "b", form, "probs", PROBS, given, names=NAMES[::-1])
    says = "names of 'probs' and of the store differ: number 0 is 'd' in the attributes of"
    refused(lambda: evaluate(both, LABELS, "segmentation"), says, error=StoreError)


def test_labels_may_have_other_words(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "a.zarr"), attributes={"class_names": CLASSES})
    group.create_array("probs", data=PROBS)
    labels = group.create_array("labels", data=LABELS)
    for words in ([str(c) for c in range(len(CLASSES))], [name.upper() for name in CLASSES]):
        labels.attrs["class_names"] = words
        report = evaluate(tmp_path / "a.zarr", None, "segmentation")
        assert [row["name"] for row in report.results["segmentation"]["per_class"]] == CLASSES


def test_labels_may_have_more_classes(tmp_path: Path) -> None:
    """Their names do not count then, but must not be those of other numbers."""
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    group.create_array("probs", data=PROBS)
    group.create_array("labels", data=LABELS).attrs["class_names"] = [*CLASSES, "void"]
    assert not open_store(tmp_path / "a.zarr", role="predictions").attributes
    group["probs"].attrs["class_names"] = CLASSES
    store = open_store(tmp_path / "a.zarr", role="predictions")
    assert store.attributes["class_names"] == CLASSES
    group["labels"].attrs["class_names"] = [*OTHER, "void"]
    refused(lambda: open_store(tmp_path / "a.zarr", role="predictions"), "have other numbers")


def test_groups_of_items(tmp_path: Path) -> None:
    root = zarr.create_group(str(tmp_path / "a.zarr"))
    for name, values in zip("ab", PROBS, strict=False):
        group = root.create_group(f"items/{name}")
        group.create_array("probs", data=values).attrs["class_names"] = CLASSES
    store = open_store(tmp_path / "a.zarr", role="predictions")
    assert store.attributes["class_names"] == CLASSES
    root["items/b/probs"].attrs["class_names"] = OTHER
    refused(lambda: open_store(tmp_path / "a.zarr", role="predictions"), "have other numbers")


def test_converted(tmp_path: Path) -> None:
    given = {"class_names": CLASSES, "names": NAMES}
    for form in (".zarr", ".h5"):
        own = saved(tmp_path / "a", form, "scores", PROBS, **given)
        convert(own, tmp_path / f"c{form}.zarr", key="scores" if form == ".zarr" else None)
        store = open_store(tmp_path / f"c{form}.zarr", role="predictions")
        assert store.attributes["class_names"] == CLASSES
        assert store.names == tuple(NAMES)


OTHERS: list[tuple[str, Any]] = [
    ("class_names", "road,car"), ("class_names", {"0": "road"}), ("names", {"0": "road"}),
    ("names", []), ("names", ["softmax"]), ("names", [*CLASSES, "x", "y"]), ("names", ["a"] * 3),
]  # fmt: skip


@pytest.mark.parametrize("form", [".zarr", "/probs", ".h5", "::/probs"])
@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_attributes_of_other_tools_do_not_count(
    tmp_path: Path, form: str, name: str, value: Any
) -> None:
    value = json.dumps(value) if "zarr" not in form and isinstance(value, dict) else value
    own = saved(tmp_path / "a", form, "probs", PROBS, **{name: value})
    store = open_store(own, role="predictions")
    assert store.names is None and "class_names" not in store.attributes


@pytest.mark.parametrize("form", [".zarr", "/probs", ".h5", "::/probs", "memory"])
def test_names_of_channels_are_none_of_items(tmp_path: Path, form: str) -> None:
    """Where there are as many classes as items, `names` of an array with classes may be theirs."""
    own = saved(tmp_path / "a", form, "probs", PROBS[:3], names=CLASSES)
    report = evaluate(own, LABELS[:3], "segmentation")
    assert [row["name"] for row in report.items] == ["0", "1", "2"]
    ids = saved(tmp_path / "b", ".zarr", "labels", LABELS[:3], names=CLASSES)
    assert open_store(ids, role="labels").names == tuple(CLASSES)


@same_classes
def test_empty_names_of_classes_are_placeholders(tmp_path: Path, form: str) -> None:
    given = {"class_names": CLASSES}.items()
    own = saved(tmp_path / "a", form, "probs", PROBS, given, class_names=["road", "", "sky"])
    labels = saved(tmp_path / "l", form, "labels", LABELS, class_names=["", "car", "sky"])
    report = evaluate(own, labels, "segmentation")
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == CLASSES
    assert not any("results use the latter" in text for text in report.warnings)
    other = saved(tmp_path / "o", form, "labels", LABELS, class_names=["", "bus", "sky"])
    report = evaluate(own, other, "segmentation")
    assert any("class 1 is 'bus'" in text for text in report.warnings)
