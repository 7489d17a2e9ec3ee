"""Attributes and coordinates of arrays that `PredictionWriter` gets: none of them is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from tensors import Labelled
from written import RNG, probs

from uqeval.errors import DataError
from uqeval.stores.writing import item_descriptions
from uqeval.writer import PredictionWriter

PROBS = probs(2, 3, 6, 6)
LABELS = PROBS.argmax(1).astype(np.uint8)
ABOUT: dict[str, Any] = {"names": ["a", "b"], "samples": 1, "classes": 3, "size": (6, 6)}
BATCH, LABEL = ("item", "class", "y", "x"), ("y", "x")
ROWS = np.arange(6)


def writer(path: Path, **options: Any) -> PredictionWriter:
    return PredictionWriter(path / "p.zarr", **(ABOUT | options))


@pytest.mark.parametrize("attributes", [
    {"scale_factor": 0.5}, {"_FillValue": 2}, {"missing_value": 2}, {"ignore_index": 2},
    {"ignore_index": "void"}, {"class_names": ["car", "road", "sky"]},
])  # fmt: skip
def test_attributes_of_labels(tmp_path: Path, attributes: dict[str, Any]) -> None:
    with writer(tmp_path, class_names=["road", "car", "sky"]) as own:
        own.add_batch(["a", "b"], PROBS)
        bad = Labelled(LABELS[0], LABEL, attributes)
        word = next(iter(attributes)).replace("class_names", "classes have other numbers")
        refused(lambda: own.add_labels("a", bad), word)
        harmless = {"ignore_index": 255, "_FillValue": 255, "scale_factor": 1, "note": "a"}
        for name, ids in zip("ab", LABELS, strict=True):
            assert own.add_labels(name, Labelled(ids, LABEL, harmless))


def test_a_void_id_that_the_writer_has(tmp_path: Path) -> None:
    with writer(tmp_path, ignore_index=2) as own:
        own.add_batch(["a", "b"], PROBS)
        for name, ids in zip("ab", LABELS, strict=True):
            about = {"_FillValue": 2, "ignore_index": 2, "missing_value": -1}
            assert own.add_labels(name, Labelled(ids, LABEL, about))


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_attributes_of_predictions(tmp_path: Path, kind: Any) -> None:
    values = PROBS if kind == "probs" else RNG.normal(size=PROBS.shape).astype(np.float32)
    fill = values[0, 0, 0, 0]
    with writer(tmp_path, kind=kind) as own:
        for about, word in (({"scale_factor": 2}, "packed"), ({"_FillValue": fill}, "no number")):
            refused(lambda: own.add_batch(["a", "b"], Labelled(values, BATCH, about)), word)  # noqa: B023
            refused(lambda: own.add("a", Labelled(values[0], BATCH[1:], about)), word)  # noqa: B023
        wrong = Labelled(values[:, 0, 0], ("a", "b"), {"note": "a"})
        refused(lambda: own.add("a", wrong), "has the shape", error=DataError)
        assert own.add_batch(["a", "b"], Labelled(values, BATCH, {"_FillValue": 1e20})) == 2


@pytest.mark.parametrize("dims", [("lat", "lon"), ("y", "x"), ("lines", "pixels")])
def test_another_order_than_that_of_the_item_before(tmp_path: Path, dims: tuple[str, str]) -> None:
    def along(values: Any, first: int, *before: str) -> Labelled:
        coords = {dims[0]: first + ROWS, dims[1]: ROWS / 10}
        return Labelled(values, (*before, *dims), coords=coords)

    def turned(own: Labelled, name: str) -> Labelled:
        coords = {key: values.values for key, values in own.coords.items()}
        return Labelled(own.values, own.dims, coords=coords | {name: coords[name][::-1]})

    classes = "class" if dims[0] != "lines" else "bands"
    with writer(tmp_path) as own:
        given = along(PROBS[0], 0, classes)
        wrong = turned(along(PROBS[0] * 2, 0, classes), dims[0])
        refused(lambda: own.add("a", wrong), "do not sum to 1")  # and leaves no trace
        own.add("a", given)
        own.add("b", along(PROBS[1], 100, classes))  # items may have other coordinates
        for name, says in zip(dims, ("rows", "columns"), strict=True):
            bad = turned(along(LABELS[0], 0), name)
            refused(lambda: own.add_labels("a", bad), f"the {says} are in another order")  # noqa: B023
        for k, (name, ids) in enumerate(zip("ab", LABELS, strict=True)):
            assert own.add_labels(name, along(ids, 100 * k))


def test_another_order_of_classes(tmp_path: Path) -> None:
    def along(names: Any) -> Labelled:
        return Labelled(PROBS[0], BATCH[1:], coords={"class": names})

    with writer(tmp_path, names=[*"abc"]) as own:
        own.add("a", along(["road", "car", "sky"]))
        other = along(["road", "sky", "car"])
        refused(lambda: own.add("b", other), "classes have other numbers")
        refused(lambda: own.add("b", along([2, 1, 0])), "another order than their ids")
        own.add("b", along([0, 1, 2]))
        own.add("c", PROBS[0])


def test_few_coordinates_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_descriptions, "_KEPT", 1)
    with writer(tmp_path) as own:
        own.add_batch(["a", "b"], Labelled(PROBS, BATCH, coords={"y": ROWS}))
        bad = Labelled(LABELS[0], LABEL, coords={"y": ROWS[::-1]})
        refused(lambda: own.add_labels("b", bad), "the rows are in another order")
        for name in "ab":
            own.add_labels(name, LABELS["ab".index(name)])
        assert list(own._descriptions._coordinates) == [1]


@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_what_is_written_before_a_refusal_is_remembered(tmp_path: Path, keep: Any) -> None:
    def along(values: Any, names: list[str], rows: Any = ROWS) -> Labelled:
        return Labelled(values, BATCH[-values.ndim :], coords={"class": names, "y": rows})

    names = ["road", "car", "sky"]
    bad = PROBS * np.array([1, 2], np.float32).reshape(2, 1, 1, 1)
    with writer(tmp_path, keep=keep) as own:
        refused(lambda: own.add_batch(["a", "b"], along(bad, names)), "item 'b'")
        assert own.done("a") and not own.done("b")
        refused(lambda: own.add("b", along(PROBS[1], names[::-1])), "classes have other numbers")
        turned = Labelled(LABELS[0], LABEL, coords={"y": ROWS[::-1]})
        refused(lambda: own.add_labels("a", turned), "the rows are in another order")
        own.add("b", along(PROBS[1], names, ROWS[::-1]))


def test_a_sample_before_one_that_is_there_is_remembered(tmp_path: Path) -> None:
    def along(*names: str) -> Labelled:
        return Labelled(PROBS, ("sample", *BATCH[1:]), coords={"class": names})

    with writer(tmp_path, samples=2) as own:
        own.add("a", PROBS[1], sample=1)
        refused(lambda: own.add("a", along("road", "car", "sky")), "was written already")
        assert own.done("a")
        other = along("car", "road", "sky")
        refused(lambda: own.add("b", other), "classes have other numbers")
        for t, values in enumerate(PROBS):
            own.add("b", values, sample=t)


@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_how_to_go_on_after_a_batch_that_failed_half_way(tmp_path: Path, keep: Any) -> None:
    bad = PROBS.copy()
    bad[1] = np.nan
    for repeated in ("error", "skip"):
        options = {"keep": keep, "repeated": repeated, "overwrite": True}
        with writer(tmp_path, **options) as own:
            refused(lambda: own.add_batch(["a", "b"], bad), "item 'b'", "NaN")
            if repeated == "error":
                says = "was written already", "failed", "done() is False", "repeated='skip'"
                refused(lambda: own.add_batch(["a", "b"], PROBS), *says)
                left = [k for k, name in enumerate("ab") if not own.done(name)]
                assert own.add_batch(["ab"[k] for k in left], PROBS[left]) == 1
            else:
                assert own.add_batch(["a", "b"], PROBS) == 1
