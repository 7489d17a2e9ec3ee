"""The void id: the given one, else that of the labels, else that of the predictions, else 255."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused, run_well
from scenes import zarr_group
from small_stores import labels, probs, save
from small_videos import save_store, video

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.inputs import InputOptions
from uqeval.inputs.live import Live, Patience
from uqeval.stores.class_ids import declared_void
from uqeval.usecases.convert import convert

CLASSES = 10
OWN = video()


def declared(path: Path, void: int | None) -> Path:
    if void is not None:
        zarr.open_group(path).attrs["ignore_index"] = void
    return path


def member(path: Path, void: int | None, seed: int = 0) -> Path:
    """A store of probabilities that declares a void id."""
    attributes = {} if void is None else {"ignore_index": void}
    return save(path, {"probs": probs(seed=seed)}, attributes)


@pytest.mark.parametrize("order", [1, -1])
def test_any_member_of_an_ensemble_declares_the_void_id(tmp_path: Path, order: int) -> None:
    ids = np.where(labels() == 255, 3, labels())
    members = [member(tmp_path / "a", None), member(tmp_path / "b", 3, seed=1)]
    report = uqeval.evaluate(members[::order], ids, "segmentation")
    assert report.results["segmentation"]["pixels"] == (ids != 3).sum()


def test_members_that_declare_different_void_ids(tmp_path: Path) -> None:
    members = [member(tmp_path / "a", 4), member(tmp_path / "b", 3, seed=1)]

    def void(truth: Any, **options: Any) -> int:
        return int(
            uqeval.evaluate(members, truth, "segmentation", **options).inputs["ignore_index"]
        )

    refused(lambda: void(labels()), f"4 in {tmp_path / 'a'}", f"3 in {tmp_path / 'b'}",
            "ignore_index=3", error=UsageError)  # fmt: skip
    assert void(labels(), ignore_index=255) == 255
    assert void({"labels": labels(), "ignore_index": 255}) == 255


def ids(kind: str, void: int) -> Any:
    """The ids of the frames of `OWN`, with another void id."""
    stack = OWN.stack(kind)
    return np.where(stack == 255, void, stack).astype("u1")


def of_video(path: Path, kind: str, void: int, attribute: int | None = None) -> Path:
    """Ids of the frames in a store of their own."""
    return declared(save_store(path, OWN.names, **{kind: ids(kind, void)}), attribute)


def frames(path: Path) -> Path:
    return save_store(path, OWN.names, frames=OWN.stack("frames"))


def temporal(path: Path, predictions: Path, truth: Path | None, **options: Any) -> Any:
    given = {"video": path / "frames", "classes": CLASSES, "metrics": "tc"} | options
    return uqeval.evaluate(predictions, truth, **given)


def scores(report: Any) -> Any:
    """The scores without the name of the model."""
    return report.results["temporal"] | {"model": None}


def test_each_store_of_a_video_has_its_own_void_id(tmp_path: Path) -> None:
    frames(tmp_path / "frames")
    plain = of_video(tmp_path / "p", "predictions", 255)
    truth = of_video(tmp_path / "l", "labels", 255)
    expected = scores(temporal(tmp_path, plain, truth))
    own = of_video(tmp_path / "p9", "predictions", 9, 9)
    assert scores(temporal(tmp_path, own, truth)) == expected
    for void, predictions in ((7, plain), (7, own), (9, own)):
        declaring = of_video(tmp_path / "own", "labels", void, void)
        report = temporal(tmp_path, predictions, declaring)
        assert (report.inputs["ignore_index"], scores(report)) == (void, expected)


def test_a_video_of_more_than_255_classes(tmp_path: Path) -> None:
    frames(tmp_path / "frames")
    predictions = of_video(tmp_path / "p", "predictions", 7)
    truth = of_video(tmp_path / "l", "labels", 255, 255)
    temporal(tmp_path, predictions, truth, classes=300)


def test_predictions_that_are_computed_are_never_void(tmp_path: Path) -> None:
    """Their store declares the void id of labels, which may be a class."""
    frames(tmp_path / "frames")
    writer = uqeval.PredictionWriter(
        tmp_path / "maps", names=OWN.names, samples=1, classes=4, size=(36, 48), keep="maps",
        ignore_index=3, ranks=1,
    )  # fmt: skip
    values = np.eye(4, dtype="f4")[OWN.stack("predictions") % 4].transpose(0, 3, 1, 2)
    with writer:
        for name, plane in zip(OWN.names, values, strict=True):
            writer.add(name, plane)
    stacked = declared(save_store(tmp_path / "probs", OWN.names, probs=values), 3)
    truth = of_video(tmp_path / "l", "labels", 3)
    given = {"states": tmp_path / "r.states.zip", "classes": 4}
    reports = [temporal(tmp_path, path, truth, **given) for path in (stacked, tmp_path / "maps")]
    expected = temporal(tmp_path, declared(stacked, 255), declared(truth, 3), classes=4)
    for report in reports:
        assert scores(report) == scores(expected)
    reports[1].save(tmp_path / "r.json")
    stores = (tmp_path / name for name in ("frames", "maps", "l"))
    run_well("verify", tmp_path / "r.json", *stores, "--all", cwd=tmp_path)
    options = InputOptions(video=str(tmp_path / "frames"))
    live = Live(str(tmp_path / "maps"), options, Patience(), warn=print)
    assert [frame.ids.tolist() for frame in live] == values.argmax(1).tolist()


@pytest.mark.parametrize("kind", ["labels", "mask", "map", "convert"])
def test_arrays_of_ids_that_declare_another_void_id(tmp_path: Path, kind: str) -> None:
    """That of an array in a group counted nowhere."""
    path = save(tmp_path / "ids", {"labels": np.where(labels() == 255, 3, labels() % 2)})
    predictions = save(tmp_path / "p", {"probs": probs()})
    zarr.open_group(path)["labels"].attrs["ignore_index"] = 3
    options: dict[str, Any] = {
        "labels": {"labels": path, "metrics": "segmentation"},
        "mask": {"ood_mask": path, "metrics": "ood"},
        "map": {"labels": labels(), "metrics": "segmentation", "region": f"map:{path}"},
    }.get(kind, {})

    def evaluated() -> Any:
        if kind == "convert":
            return convert(predictions, tmp_path / "out", labels=path)
        return uqeval.evaluate(predictions, **options).results

    text = refused(evaluated, "ids/labels: attribute ignore_index is 3, but the void id is 255",
                   error=StoreError)  # fmt: skip
    assert ("or give" in text) == (kind != "map")  # the option counts
    if kind == "mask":
        options["labels"] = labels()
        refused(evaluated, "to it; else remove the attribute", error=StoreError)
        del options["labels"]
    if kind == "labels":
        found = uqeval.evaluate(predictions, **options, ignore_index=3).results["segmentation"]
        assert found["pixels"] == (labels() != 255).sum()
    if kind == "convert":
        convert(predictions, tmp_path / "given", labels=path, ignore_index=3)
        again = uqeval.evaluate(tmp_path / "given", None, "segmentation").results["segmentation"]
        assert again["pixels"] == (labels() != 255).sum()
    declared(path, 3)
    evaluated()


def with_attribute(path: Path, void: Any) -> Path:
    """An HDF5 file whose labels have the attribute ignore_index."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["probs"], file["labels"] = probs(), labels()
        file["labels"].attrs["ignore_index"] = void
    return path


@pytest.mark.parametrize("void", [255, [255], 255.0, np.int64(255), -100, [-100.0]])
def test_void_ids_of_an_array_of_labels_that_change_nothing(tmp_path: Path, void: Any) -> None:
    """255 in the forms of other formats, and ids that no uint8 has."""
    path = with_attribute(tmp_path / "p.h5", void)
    assert pixels(path) == (labels() != 255).sum()


@pytest.mark.parametrize("void", [True, "none", "3"])
def test_void_ids_of_an_array_of_labels_that_are_no_ids(tmp_path: Path, void: Any) -> None:
    """A text was ignored, and its pixels counted."""
    path = with_attribute(tmp_path / "p.h5", void)
    says = f"labels: attribute ignore_index is {void!r}"
    refused(lambda: pixels(path), says, "an integer", error=StoreError)


def pixels(path: Path, **options: Any) -> int:
    report = uqeval.evaluate(path, None, "segmentation", workers=1, **options)
    return int(report.results["segmentation"]["pixels"])


def test_the_group_of_an_item_declares_another_void_id(tmp_path: Path) -> None:
    """It was ignored, and its pixels counted."""
    ids = np.where(labels() == 255, 3, labels() % 2)
    for k, plane in enumerate(ids):
        arrays = {"probs": probs()[k], "labels": plane}
        own = {"ignore_index": 3} if k == 0 else {}  # if all have it, it is that of the store
        zarr_group(tmp_path / f"p/items/i{k}", arrays, **own)
    zarr_group(tmp_path / "p", {})
    refused(lambda: pixels(tmp_path / "p"), "i0/labels: attribute ignore_index is 3", "top group",
            "the group of its item", error=StoreError)  # fmt: skip
    assert pixels(tmp_path / "p", ignore_index=3) == (ids != 3).sum()
    declared(tmp_path / "p", 3)
    assert pixels(tmp_path / "p") == (ids != 3).sum()


@pytest.mark.parametrize(
    ("name", "fill", "dtype", "counts"),
    [
        ("_FillValue", 3, "u1", False), ("missing_value", [0], "u1", False),
        ("_FillValue", -1, "i2", True), ("_FillValue", 0, "u1", True),
        ("_FillValue", 255, "u1", True),
    ],
)  # fmt: skip
def test_fill_values_of_labels(
    tmp_path: Path, name: str, fill: Any, dtype: str, counts: bool
) -> None:
    """Ids that they declare to be none counted. No pixel has -1; tools write 0 to all arrays."""
    ids = labels().astype(dtype), {"attributes": {name: fill}}
    path = zarr_group(tmp_path / "p", {"probs": probs(), "labels": ids})
    every = (labels() != 255).sum()
    if counts:
        assert pixels(path) == every
        return
    void = np.ravel(fill)[0]
    says = (f"labels {void}, which the attribute {name}", "the void id is 255", "ignore_index")
    refused(lambda: pixels(path), *says, error=DataError)
    refused(lambda: convert(path, tmp_path / "out"), *says, error=DataError)
    assert pixels(path, ignore_index=255) == every
    declared(path, 255)
    assert pixels(path) == every


@pytest.mark.parametrize("kind", ["mask", "video", "predictions"])
def test_fill_values_of_other_ids(tmp_path: Path, kind: str) -> None:
    own = {"attributes": {"_FillValue": 1}}
    if kind == "mask":
        mask = zarr_group(tmp_path / "m", {"labels": ((labels() % 2).astype("u1"), own)})
        call = {"predictions": {"probs": probs()}, "metrics": "ood", "ood_mask": mask}
    elif kind == "video":
        truth = zarr_group(tmp_path / "l", {"labels": (OWN.stack("labels"), own)})
        predictions = of_video(tmp_path / "p", "predictions", 255)
        call = {"predictions": predictions, "labels": truth, "video": frames(tmp_path / "f"),
                "classes": CLASSES, "metrics": "tc"}  # fmt: skip
    else:
        found = probs().mean(1).argmax(1).astype("u1"), own
        arrays = {"mean_probs": probs().mean(1), "predictions": found, "labels": labels()}
        call = {"predictions": zarr_group(tmp_path / "p", arrays), "metrics": "segmentation"}
    refused(lambda: uqeval.evaluate(**call), "_FillValue", error=DataError)


@pytest.mark.parametrize("void", [[3], 3.0, np.uint8(3), np.array([3, 3])])
def test_forms_of_a_void_id(void: Any) -> None:
    assert declared_void({"ignore_index": void}, "s") == 3
    refused(lambda: declared_void({"ignore_index": [1, 3]}, "s"), "ignore_index is", "remove it",
            error=StoreError)  # fmt: skip
