"""Names of classes that several stores declare: the same class has the same number in all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scenes
import zarr
from command import refused
from tensors import Index, Labelled, Table

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.array import Store
from uqeval.stores.class_ids import names_of_classes, refuse_other_numbers

NAMES = ("road", "car", "sky")
SWAPPED = ("road", "sky", "car")
LABELS = scenes.labels(0, 2, 8, 8, classes=3)
IDS = np.minimum(LABELS, 2)  # without void
PROBS = np.random.default_rng(0).dirichlet(np.ones(3), (2, 2, 8, 8)).transpose(0, 1, 4, 2, 3)


def called(names: Any, **arrays: Any) -> dict[str, Any]:
    return arrays | {"class_names": list(names)}


@pytest.mark.parametrize("given", [
    ([called(NAMES, probs=PROBS), called(SWAPPED, probs=PROBS)], LABELS),
    (called(NAMES, probs=PROBS), called(SWAPPED, labels=LABELS)),
    (called(NAMES, predictions=IDS), called(SWAPPED, labels=LABELS)),
])  # fmt: skip
def test_another_order_is_refused(given: Any) -> None:
    """The mean of the members, or the accuracy, would be of different classes."""
    with pytest.raises(StoreError, match=r"'sky' is class 2 in .* and class 1 in"):
        uqeval.evaluate(*given, metrics="segmentation")
    report = uqeval.evaluate(*given, metrics="segmentation", class_names=NAMES)
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == list(NAMES)


def test_another_order_in_a_reference_is_refused() -> None:
    predictions, reference = called(NAMES, probs=PROBS), called(SWAPPED, probs=PROBS)
    with pytest.raises(StoreError, match="classes have other numbers"):
        uqeval.evaluate(predictions, None, "divergence", reference=reference)


def test_another_order_in_labels_of_a_video_is_refused() -> None:
    video = {"frames": np.zeros((2, 8, 8, 3), "u1"), "flow": np.zeros((1, 8, 8, 2), "f4")}
    given = called(NAMES, predictions=IDS, **video), called(SWAPPED, labels=LABELS)
    with pytest.raises(StoreError, match="classes have other numbers"):
        uqeval.evaluate(*given, {"tc": {"flow": "file"}})


def test_other_words_for_a_class_are_named() -> None:
    given = called(NAMES, probs=PROBS), called(("street", "car", "sky"), labels=LABELS)
    report = uqeval.evaluate(*given, metrics="segmentation")
    assert [text for text in report.warnings if "class 0 is 'street' in" in text]
    assert report.results["segmentation"]["per_class"][0]["name"] == "road"


def test_names_that_do_not_tell_an_order() -> None:
    """Ids in place of names, names of some classes alone, and names that repeat."""
    for declared in (
        [("a", NAMES), ("b", ("0", "1", "2")), ("c", NAMES[:2])],
        [("a", ("1", "0", "2")), ("b", ("0", "1", "2"))],
        [("a", ("x", "y", "x")), ("b", ("x", "y", "x"))],
        [("a", ("x", "y", "y")), ("b", ("x", "z", "y"))],
        [("a", ("x", "", "")), ("b", ("", "y", ""))],
    ):
        refuse_other_numbers(declared)
    stores = [Store("a", {}, None, {}), Store("b", {}, None, {"class_names": list(NAMES[:2])})]
    assert names_of_classes(None, stores, 3)[0] == ("0", "1", "2")
    assert names_of_classes(None, stores, 2)[0] == NAMES[:2]


AXES = ("item", "sample", "class", "y", "x")
OTHER_NUMBERS = "the classes have other numbers: 'sky' is class"


def along(classes: Any, name: str = "class", values: Any = PROBS) -> Labelled:
    """Probabilities with a coordinate of their classes."""
    return Labelled(values, AXES, coords={name: Labelled(np.array(classes), ("class",))})


def accuracy(*given: Any) -> Any:
    return uqeval.evaluate(*given, "segmentation").results["segmentation"]["pixel_accuracy"]


@pytest.mark.parametrize("name", ["class", "class_names"])
def test_names_along_the_axis_of_classes(name: str) -> None:
    own, same, other = (along(names, name) for names in (NAMES, NAMES, SWAPPED))
    report = uqeval.evaluate([own, same], LABELS, "segmentation")
    assert [row["name"] for row in report.results["segmentation"]["per_class"]] == list(NAMES)
    for given in ([own, other], LABELS), (own, called(SWAPPED, labels=LABELS)):
        refused(lambda: accuracy(*given), OTHER_NUMBERS, error=StoreError)  # noqa: B023
    with pytest.raises(StoreError, match=OTHER_NUMBERS):
        uqeval.evaluate(own, None, "divergence", reference=other)
    refused(lambda: accuracy(called(SWAPPED, probs=own), LABELS), "(road, car, sky)")
    with uqeval.Evaluator("segmentation") as evaluator:
        evaluator.update(own, LABELS, [*"ab"])
        refused(lambda: evaluator.update(other, LABELS, [*"cd"]), OTHER_NUMBERS)


def test_names_that_a_store_declares_count() -> None:
    own = called(("street", "car", "sky"), probs=along(NAMES))
    report = uqeval.evaluate(own, LABELS, "segmentation")
    assert report.results["segmentation"]["per_class"][0]["name"] == "street"
    assert [text for text in report.warnings if "class 0 is 'road' in class of" in text]
    foreground = along(["fg"], values=PROBS[:, :, :1])
    assert accuracy(foreground, (PROBS.mean(1)[:, 0] > 0.5).astype("u1")) == 1


def test_ids_along_the_axis_of_classes() -> None:
    same = accuracy(PROBS, LABELS)
    for ids in ([0, 1, 2], ["0", "1", "2"]):
        assert accuracy(along(ids), LABELS) == same
        turned = along(ids[::-1])
        refused(lambda: accuracy(turned, LABELS), "another order than their ids")  # noqa: B023
    assert accuracy([along([10, 20, 30]), along([10, 20, 30])], LABELS) == same
    says = "the classes are in another order than those of member 1"
    refused(lambda: accuracy([along([10, 20, 30]), along([30, 20, 10])], LABELS), says)


def test_names_of_columns() -> None:
    table, ids = PROBS.mean(1)[:, :, 0, 0], IDS[:, 0, 0]
    own, other = (Table(table, Index([0, 1]), Index(names)) for names in (NAMES, SWAPPED))
    report = uqeval.evaluate(own, ids, "segmentation")
    assert report.results["segmentation"]["per_class"][0]["name"] == "road"
    refused(lambda: accuracy([own, other], ids), OTHER_NUMBERS)
    turned = Table(table, Index([0, 1]), Index([2, 1, 0]))
    refused(lambda: accuracy(turned, ids), "another order than their ids")


@pytest.mark.parametrize("ending", [".zarr", ".h5"])
def test_names_along_the_axis_in_stores(tmp_path: Path, ending: str) -> None:
    own, other = tmp_path / f"own{ending}", tmp_path / f"other{ending}"
    for path, names in ((own, NAMES), (other, SWAPPED)):
        if ending == ".zarr":
            root = zarr.create_group(str(path), zarr_format=2)
            for name, values, dims in (("probs", PROBS, AXES), ("class", names, ["class"])):
                array = root.create_array(name, data=np.array(values))
                array.attrs["_ARRAY_DIMENSIONS"] = list(dims)
            continue
        with h5py.File(path, "w") as file:
            file["probs"], file["class"] = PROBS, list(names)
    for inside in ("", "/probs" if ending == ".zarr" else "::/probs"):
        pair = [f"{own}{inside}", f"{other}{inside}"]
        report = uqeval.evaluate(pair[0], LABELS, "segmentation")
        assert report.results["segmentation"]["per_class"][1]["name"] == "car"
        refused(lambda: accuracy(pair, LABELS), OTHER_NUMBERS)  # noqa: B023
