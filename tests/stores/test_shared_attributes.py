"""Attributes that the .npz files of a folder, or the groups of items in Zarr, declare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from group_files import group

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

C = 4
RNG = np.random.default_rng(3)
PROBS = np.moveaxis(RNG.dirichlet(np.ones(C), (4, 6, 8)), -1, 1).astype("f4")
LABELS = RNG.integers(0, C, (4, 6, 8)).astype(np.uint8)
LABELS[:, :2] = 9

Declared = Callable[[int], dict[str, Any]]


def saved(path: Path, form: str, declared: Declared, of_all: Any = None, **own: np.ndarray) -> Path:
    """Four items, each with its arrays and what it declares."""
    path.mkdir()
    if form == "zarr":
        group(path, {}, **({} if of_all is None else of_all))
    for i in range(4):
        arrays = {name: stack[i] for name, stack in own.items()}
        if form == "npz":
            np.savez(path / f"x{i}.npz", **arrays, **declared(i))
        else:
            group(path / f"items/x{i}", arrays, **declared(i))
    return path


def truth(folder: Path) -> Path:
    folder.mkdir()
    for i, plane in enumerate(LABELS):
        np.save(folder / f"x{i}.npy", plane)
    return folder


def some(*items: int, **attributes: Any) -> Declared:
    return lambda i: attributes if i in items else {}


both_forms = pytest.mark.parametrize("form", ["npz", "zarr"])


@both_forms
@pytest.mark.parametrize("items", [(0, 1, 2, 3), (0, 1, 3), (2,)])
def test_a_void_id_of_some_counts_for_all(tmp_path: Path, form: str, items: Any) -> None:
    labels = truth(tmp_path / "labels")
    names = list("abcd")
    store = saved(
        tmp_path / "p", form, some(*items, ignore_index=9, class_names=names), probs=PROBS
    )
    report = uqeval.evaluate(store, labels, "segmentation")
    assert report.inputs["ignore_index"] == 9
    assert report.results["segmentation"]["pixels"] == np.count_nonzero(LABELS != 9)
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == names
    assert not open_store(str(store), role="predictions").warnings
    convert(store, tmp_path / "c.zarr")
    assert open_store(tmp_path / "c.zarr", role="predictions").attributes["ignore_index"] == 9


@both_forms
def test_void_ids_that_differ(tmp_path: Path, form: str) -> None:
    labels = truth(tmp_path / "labels")
    store = saved(
        tmp_path / "p", form, lambda i: {"ignore_index": 254 if i == 2 else 255}, probs=PROBS
    )
    said = r"x0\S*: ignore_index is 255, but 254 in \S*x2\S*; .*the option ignore_index does not"
    for options in ({}, {"ignore_index": 9}):
        with pytest.raises(StoreError, match=said):
            uqeval.evaluate(store, labels, "segmentation", **options)


@both_forms
def test_ids_without_the_void_id_of_others(tmp_path: Path, form: str) -> None:
    """9 may be a class there."""
    store = saved(tmp_path / "p", form, some(0, ignore_index=9), probs=PROBS, labels=LABELS)
    (said,) = open_store(str(store), role="predictions").warnings
    assert "left out ignore_index, which is not the same in all" in said
    with pytest.raises(StoreError, match="ignore_index is 9, but the void id is 255"):
        uqeval.evaluate(store, None, "segmentation")
    assert uqeval.evaluate(store, None, "segmentation", ignore_index=9).results


@pytest.mark.parametrize("void", [9, 8])
def test_the_void_id_of_the_top_group_counts(tmp_path: Path, void: int) -> None:
    store = saved(
        tmp_path / "p", "zarr", some(0, ignore_index=9), {"ignore_index": void}, probs=PROBS
    )
    if void == 9:
        assert open_store(store, role="predictions").attributes["ignore_index"] == 9
        return
    with pytest.raises(StoreError, match=r"p: ignore_index is 8, but 9 in \S*items/x0"):
        open_store(store, role="predictions")


def test_files_without_ids_declare_it_for_the_labels_beside(tmp_path: Path) -> None:
    for kind, stack in (("probs", PROBS), ("labels", LABELS)):
        declared = some(0, 3, ignore_index=9) if kind == "probs" else some()
        (tmp_path / "p").mkdir(exist_ok=True)
        saved(tmp_path / "p" / kind, "npz", declared, **{kind: stack})
    report = uqeval.evaluate(tmp_path / "p", None, "segmentation")
    assert report.inputs["ignore_index"] == 9


@both_forms
@pytest.mark.parametrize("with_labels", [False, True])
def test_classes_in_another_order(tmp_path: Path, form: str, with_labels: bool) -> None:
    arrays = {"probs": PROBS} | ({"labels": LABELS} if with_labels else {})
    store = saved(
        tmp_path / "p", form,
        lambda i: {"class_names": list("bacd") if i == 1 else list("abcd"), "ignore_index": 9},
        **arrays,
    )  # fmt: skip
    said = r"'b' is class 1 in \S*x0\S* \(class_names a, b, c, d\) and class 0 in \S*x1\S* \(b, a"
    for call in (
        lambda: uqeval.evaluate(store, None if with_labels else LABELS, "segmentation"),
        lambda: convert(store, tmp_path / "c.zarr"),
    ):
        with pytest.raises(StoreError, match=said):
            call()


@both_forms
def test_names_that_differ_and_tell_no_order(tmp_path: Path, form: str) -> None:
    others = {0: ["a", "", "x", "x"], 1: ["a", "x", "", "d"], 2: list("abcd")}
    store = saved(
        tmp_path / "p", form,
        lambda i: {"class_names": others[i]} if i in others else {}, probs=PROBS,
    )  # fmt: skip
    (said,) = open_store(str(store), role="predictions").warnings
    assert "left out class_names, which is not the same in all" in said


@both_forms
@pytest.mark.parametrize(
    ("attributes", "says"),
    [({"ignore_index": 1.5}, "ignore_index is 1.5"), ({"class_names": [1, 2]}, "list of texts")],
)
def test_attributes_of_a_wrong_type(
    tmp_path: Path, form: str, attributes: dict[str, Any], says: str
) -> None:
    store = saved(tmp_path / "p", form, some(1, **attributes), probs=PROBS)
    with pytest.raises(StoreError, match=rf"x1\S*: .*{says}"):
        open_store(str(store), role="predictions")
