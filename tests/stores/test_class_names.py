"""Names of classes that several stores declare: the same class has the same number in all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scenes

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.array import Store
from uqeval.stores.class_names import names_of_classes, refuse_other_numbers

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
