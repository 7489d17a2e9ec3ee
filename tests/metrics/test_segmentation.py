"""Segmentation scores of a run."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
import scenes
from sklearn.metrics import jaccard_score, recall_score

import uqeval


def one_hot(prediction: Any, classes: int) -> Any:
    """Samples [n, 1, c, y, x] that predict the ids."""
    return np.moveaxis(np.eye(classes, dtype="f2")[prediction], -1, 1)[:, None]


def evaluated(prediction: Any, label: Any, classes: int, **options: Any) -> Any:
    return uqeval.evaluate(one_hot(prediction, classes), label, ("segmentation",), **options)


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 8))
    label = scenes.labels(seed, 3, 9, 8, classes=classes - 1)  # one class is in no label
    guess = rng.integers(0, classes - (seed % 2), label.shape)
    prediction = np.where((rng.random(label.shape) < 0.6) & (label < 255), label, guess)
    report = evaluated(prediction, label, classes)
    found = report.results["segmentation"]
    expected = naive.segmentation(label, prediction, classes)
    for name in ("pixel_accuracy", "mean_accuracy", "miou", "pixels"):
        assert found[name] == pytest.approx(expected[name], rel=1e-12)
    rows = [
        {k: v for k, v in row.items() if k != "name" and not k.endswith("_reason")}
        for row in found["per_class"]
    ]
    assert rows == expected["per_class"]
    for row in found["per_class"]:
        undefined = {f"{name}_reason" for name in ("iou", "accuracy") if row[name] is None}
        assert {name for name in row if name.endswith("_reason")} == undefined
    for i, item in enumerate(report.items):
        one = naive.segmentation(label[i : i + 1], prediction[i : i + 1], classes)
        for name in ("pixel_accuracy", "mean_accuracy", "miou", "pixels"):
            assert item["segmentation"][name] == pytest.approx(one[name], rel=1e-12)
    assert report.numerics["segmentation"] == {"void": int((label == 255).sum())}

    known = label != 255
    y, p = label[known], prediction[known]
    present = sorted({*y, *p})
    ious = jaccard_score(y, p, labels=present, average=None)
    assert found["miou"] == pytest.approx(ious.mean(), rel=1e-12)
    assert [found["per_class"][c]["iou"] for c in present] == pytest.approx(ious.tolist())
    recall = recall_score(y, p, labels=sorted(set(y)), average="macro")
    assert found["mean_accuracy"] == pytest.approx(recall, rel=1e-12)


def test_a_class_that_nobody_has_is_null() -> None:
    label = np.array([[[0, 0, 1, 255]]], "u1")
    report = evaluated(np.array([[[0, 1, 1, 3]]]), label, 4)
    rows = report.results["segmentation"]["per_class"]
    assert [row["iou"] for row in rows] == [0.5, 0.5, None, None]
    assert [row["accuracy"] for row in rows] == [0.5, 1.0, None, None]
    assert report.results["segmentation"]["miou"] == 0.5


def test_a_class_that_is_only_predicted_counts_as_an_iou_of_0() -> None:
    label = np.zeros((1, 1, 4), "u1")
    report = evaluated(np.array([[[0, 0, 0, 1]]]), label, 3)
    found = report.results["segmentation"]
    assert found["miou"] == (0.75 + 0) / 2
    assert found["mean_accuracy"] == 0.75


def test_a_void_item_has_reasons() -> None:
    label = np.array([[[0, 1]], [[255, 255]]], "u1")
    report = evaluated(np.zeros((2, 1, 2), int), label, 2)
    item = report.items[1]["segmentation"]
    assert item["pixels"] == 0
    for name in ("pixel_accuracy", "mean_accuracy", "miou"):
        assert item[name] is None
        assert item[f"{name}_reason"] == "no labelled pixel"


@pytest.mark.parametrize("channels", [1, 2])
def test_masks_of_0_and_255_are_doubted(channels: int) -> None:
    """255 is void, but many masks of two classes have it where the class is 1."""
    rng = np.random.default_rng(2)
    likely = rng.random((3, 1, 8, 8), np.float32)
    probs = likely if channels == 1 else np.concatenate([1 - likely, likely], 1)
    mask = rng.random((3, 8, 8)) < 0.25
    for labels, is_doubted in (
        (np.where(mask, 255, 0), True),
        (np.where(mask, 255, likely[:, 0] > 0.9), False),  # void pixels, and two classes
        (np.zeros(mask.shape), False),
        (mask, False),
    ):
        report = uqeval.evaluate(
            probs, labels.astype(np.uint8), metrics="pavpu", region=["class:0", "box:0:0.5,0:1"]
        )
        doubts = [text for text in report.warnings if "no label is 1" in text]
        assert len(doubts) == is_doubted
        assert (
            not doubts
            or f"{mask.sum()} of {mask.size} pixels are void, with the id 255" in doubts[0]
        )


def test_samples_that_are_read_as_classes() -> None:
    """Their numbers are never in binary labels, but are predicted as often as 0 and 1."""
    rng = np.random.default_rng(0)
    logits, label = rng.normal(size=(2, 8, 16, 16)), rng.integers(0, 2, (2, 16, 16))
    label[0, 0] = 255
    says = "the labels have only the ids 0 and 1, but of 8 classes, others are predicted at"

    def doubts(values: Any, labels: Any, **options: Any) -> list[str]:
        report = uqeval.evaluate({"logits": values}, labels, "segmentation", workers=1, **options)
        return [text for text in report.warnings if "only the ids 0 and 1" in text]

    (text,) = doubts(logits, label)
    assert says in text and "values[:, :, None]" in text
    assert not doubts(logits[:, :, None], label)  # as the message says
    assert len(doubts(logits, label, region=["box:0:0.5,0:1"])) == 1  # none of the region
    third = label.copy()
    third[0, 5, 5] = 2
    assert not doubts(logits, third)
    assert not doubts(logits, np.minimum(label, 255 * (label > 1)))  # one class in a small set
    rare = np.where(np.arange(8)[:, None, None] < 2, logits, logits - 2)
    assert not doubts(rare, label)
