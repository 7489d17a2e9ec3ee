"""`convert` joins predictions and labels as evaluations do, so the results are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from small_stores import CLASS_NAMES, NAMES, labels, probs, save, save_predictions
from written import stored

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.inputs import InputOptions
from uqeval.inputs.opening import open_inputs
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert
from uqeval.usecases.reduce import reduce

LABELS, CALLED = labels(), {"names": NAMES}


def scores(*given: Any) -> Any:
    return uqeval.evaluate(*given, metrics="segmentation").results["segmentation"]


def save_volumes(folder: Path, volumes: dict[str, np.ndarray]) -> Path:
    """One .npy per case, [slice, ...]."""
    folder.mkdir()
    for case, values in volumes.items():
        np.save(folder / f"{case}.npy", values)
    return folder


@pytest.mark.parametrize(
    "names",
    [
        ["A/0000", "B/0001", "B/0000", "A/0001"],
        ["A/0001", "A/0000", "B/0001", "B/0000"],
        ["A/0000", "A/0001", "B/0000", "B/0001"],
        ["B/0001", "B/0000"],
    ],
)
def test_slices_of_volumes_in_any_order(tmp_path: Path, names: list[str]) -> None:
    rng = np.random.default_rng(0)
    truth = {case: rng.integers(0, 3, (2, 16, 16)).astype("u1") for case in "AB"}
    volumes = {
        case: rng.dirichlet(np.ones(3), (2, 16, 16)).transpose(3, 0, 1, 2).astype("f4")
        for case in "AB"
    }
    label_folder = save_volumes(tmp_path / "labels", truth)
    expected = [truth[name[0]][int(name[-1])] for name in names]
    expected_probs = np.stack([volumes[name[0]][:, int(name[-1])] for name in names])
    # Of one store, with labels of volumes.
    store = save(tmp_path / "p.zarr", {"probs": expected_probs}, {"names": names})
    convert(store, tmp_path / "joined", labels=label_folder)
    np.testing.assert_array_equal(stored(tmp_path / "joined", "labels"), expected)
    assert scores(tmp_path / "joined") == scores(store, label_folder)
    # Of volumes of probabilities.
    (tmp_path / "probs").mkdir()
    for case, values in volumes.items():
        np.savez(tmp_path / "probs" / f"{case}.npz", probabilities=values)
    convert(tmp_path / "probs", tmp_path / "of volumes", names=names, labels=label_folder)
    np.testing.assert_array_equal(stored(tmp_path / "of volumes"), expected_probs)
    np.testing.assert_array_equal(stored(tmp_path / "of volumes", "labels"), expected)


@pytest.mark.parametrize("order", [[2, 0, 1], [3, 1, 0, 2]], ids=["other order", "more items"])
@pytest.mark.parametrize("given", [None, NAMES])
def test_labels_are_matched_by_name(
    tmp_path: Path, order: list[int], given: Sequence[str] | None
) -> None:
    own_names = [[*NAMES, "dresden"][i] for i in order]
    truth = save(tmp_path / "l", {"labels": labels(4)[order]}, {"names": own_names})
    predictions = save_predictions(tmp_path / "p")
    assert convert(predictions, tmp_path / "out", labels=truth, names=given) == ()
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), labels(4)[:3])
    assert scores(tmp_path / "out") == scores(predictions, truth)


def test_labels_of_other_items_are_refused_and_positions_warned_of(tmp_path: Path) -> None:
    predictions = save_predictions(tmp_path / "p")
    truth = save(tmp_path / "l", {"labels": LABELS[:2]}, {"names": NAMES[:2]})
    with pytest.raises(StoreError, match=r"1 of 3 items of .* have no label: celle"):
        convert(predictions, tmp_path / "out", labels=truth)
    nameless = save(tmp_path / "n", {"labels": LABELS})
    (said,) = convert(predictions, tmp_path / "out", labels=nameless)
    assert "matched with those of" in said and "by position" in said
    with pytest.raises(StoreError, match=r"holds probs, but no `labels`"):
        convert(predictions, tmp_path / "none", labels=predictions)
    assert not (tmp_path / "none").exists()


def test_labels_of_another_size_are_refused(tmp_path: Path) -> None:
    predictions = save_predictions(tmp_path / "p")
    truth = save(tmp_path / "l", {"labels": LABELS[:, :12]}, CALLED)
    for join in (lambda *given: convert(given[0], tmp_path / "o", labels=given[1]), scores):
        with pytest.raises(StoreError, match=r"item aachen: labels are 12×32 .* 24×32"):
            join(predictions, truth)


def test_labels_of_annotators(tmp_path: Path) -> None:
    several = np.stack([LABELS, LABELS % 5], axis=1)[[1, 0, 2]]
    predictions = save_predictions(tmp_path / "p")
    names = {"names": [NAMES[i] for i in (1, 0, 2)]}
    convert(predictions, tmp_path / "out", labels=save(tmp_path / "l", {"labels": several}, names))
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), several[[1, 0, 2]])
    root = zarr.create_group(str(tmp_path / "g"))
    for count, name in enumerate(NAMES, 1):
        item = root.create_group(f"items/{name}", attributes={"name": name})
        item.create_array("labels", data=np.stack([LABELS[0]] * count))
    with pytest.raises(StoreError, match=r"of 2 annotators, .* of 1; expected the same number"):
        convert(predictions, tmp_path / "other", labels=tmp_path / "g")


def test_classes_in_another_order_are_refused(tmp_path: Path) -> None:
    other = CLASS_NAMES[::-1]
    predictions = save_predictions(tmp_path / "p", class_names=CLASS_NAMES)
    truth = save(tmp_path / "l", {"labels": LABELS}, CALLED | {"class_names": other})
    with pytest.raises(StoreError, match=r"the classes have other numbers: 'tree' is class 4 in "):
        convert(predictions, tmp_path / "out", labels=truth)
    assert not (tmp_path / "out").exists()
    # Names that the user gives count, as in an evaluation.
    convert(predictions, tmp_path / "out", labels=truth, class_names=other)
    attributes = open_store(tmp_path / "out", role="predictions").attributes
    assert attributes["class_names"] == other


def test_names_of_classes_are_those_of_an_evaluation(tmp_path: Path) -> None:
    truth = save(tmp_path / "l", {"labels": LABELS}, CALLED | {"class_names": CLASS_NAMES})
    named = [*CLASS_NAMES[:4], "bush"]
    for own, expected, warnings in (({}, CLASS_NAMES, 0), ({"class_names": named}, named, 1)):
        path = tmp_path / f"p{len(own)}"
        predictions = save_predictions(path, **own)
        said = convert(predictions, f"{path}.out", labels=truth)
        assert len(said) == warnings
        assert list(zarr.open_group(f"{path}.out").attrs["class_names"]) == expected
        assert scores(f"{path}.out") == scores(predictions, truth)


@pytest.mark.parametrize(
    ("own", "given", "error", "says"),
    [
        ({}, ["a", "b"], UsageError, "--class-names: 2 names, but .* has 5 classes"),
        ({"class_names": ["a"]}, None, StoreError, "1 class_names for 5 classes"),
    ],
)
def test_each_class_has_a_name(
    tmp_path: Path, own: Any, given: Any, error: type[UqevalError], says: str
) -> None:
    predictions = save_predictions(tmp_path / "p", **own)
    with pytest.raises(error, match=says):
        convert(predictions, tmp_path / "out", class_names=given)
    convert(predictions, tmp_path / "out", class_names=CLASS_NAMES)


def test_labels_of_a_video_are_those_of_its_frames(tmp_path: Path) -> None:
    """There is a flow less than frames, which is no number of items."""
    frames = np.zeros((3, 24, 32, 3), np.uint8)
    flow = np.zeros((2, 24, 32, 2), "f4")
    np.savez(tmp_path / "v.npz", flow=flow, frames=frames, predictions=LABELS % 5)
    np.save(tmp_path / "l.npy", LABELS)
    convert(tmp_path / "v.npz", tmp_path / "out", labels=tmp_path / "l.npy")
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), LABELS)


def test_an_array_keeps_the_names_of_its_store(tmp_path: Path) -> None:
    """Given with --key, it is joined as the store is."""
    predictions = save_predictions(tmp_path / "p", class_names=CLASS_NAMES, ignore_index=7)
    order = [2, 0, 1]
    names = {"names": [NAMES[i] for i in order]}
    truth = save(tmp_path / "l", {"labels": LABELS[order]}, names | {"ignore_index": 255})
    convert(predictions, tmp_path / "out", key="probs", labels=truth)
    store = open_store(tmp_path / "out", role="predictions")
    assert store.names == tuple(NAMES) and store.attributes["class_names"] == CLASS_NAMES
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), LABELS)
    other = save(tmp_path / "o", {"labels": LABELS}, CALLED | {"class_names": CLASS_NAMES[::-1]})
    with pytest.raises(StoreError, match="the classes have other numbers"):
        convert(predictions, tmp_path / "other", key="probs", labels=other)
    scaled = np.full((3, 5, 24, 32), 51, np.uint8)
    np.savez(tmp_path / "s.npz", probs=scaled, scale=1 / 255, names=np.array(names["names"]))
    convert(tmp_path / "s.npz", tmp_path / "of npz", key="probs", labels=truth)
    np.testing.assert_array_equal(stored(tmp_path / "of npz", "labels"), LABELS[order])
    assert zarr.open_group(tmp_path / "of npz")["probs"].attrs["scale"] == 1 / 255


def test_an_unfinished_store_is_refused_by_the_name_of_an_array_too(tmp_path: Path) -> None:
    unfinished = {"uqeval": {"format": "predictions", "version": 1, "complete": False}}
    predictions = save_predictions(tmp_path / "p", **unfinished)
    for key in (None, "probs"):
        with pytest.raises(StoreError, match=r"unfinished|complete"):
            convert(predictions, tmp_path / "out", key=key)


def test_maps_of_the_labels_that_are_replaced_are_left_out(tmp_path: Path) -> None:
    """They hold the probabilities and errors of the labels of before."""
    source = save(tmp_path / "p", {"probs": probs(), "labels": LABELS}, CALLED)
    reduce(open_inputs(source, None, InputOptions()), tmp_path / "maps")
    other = save(tmp_path / "l", {"labels": (LABELS + 1) % 5}, CALLED)
    (said,) = convert(tmp_path / "maps", tmp_path / "out", labels=other)
    assert "left out brier, label_probability, label_rank of" in said
    results = [
        uqeval.evaluate(*given, metrics="calibration").results["calibration"]
        for given in ((tmp_path / "out",), (source, other))
    ]
    assert results[0]["brier"] == pytest.approx(results[1]["brier"], rel=1e-6)


def test_items_of_float16_and_float32_are_stored_as_float32(tmp_path: Path) -> None:
    folder, values = tmp_path / "p", probs()
    folder.mkdir()
    for name, dtype, own in zip(NAMES, ("f2", "f4", "f2", "f4"), values, strict=False):
        np.save(folder / f"{name}.npy", own.astype(dtype))
    truth = save(tmp_path / "t", {"labels": LABELS}, CALLED)
    (said,) = convert(folder, tmp_path / "out", labels=truth)
    assert said == "the items have 'probs' of float16, float32; all are stored as float32."
    array = zarr.open_group(str(tmp_path / "out"))["probs"]
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array[0], values[0].astype("f2"))
    # The sums of float16 are coarser, also when they are read and copied again.
    found = scores(tmp_path / "out")
    assert found["miou"] == pytest.approx(scores(folder, truth)["miou"], rel=1e-6)
    convert(tmp_path / "out", tmp_path / "again")
    assert scores(tmp_path / "again") == found
    off = np.stack([values[0] * 1.001, *values[1:]])
    (tmp_path / "off").mkdir()
    for name, own in zip(NAMES, off, strict=True):
        np.save(tmp_path / "off" / f"{name}.npy", own.astype("f4"))
    with pytest.raises(UqevalError, match=r"tolerance 0\.0001 for float32"):
        convert(tmp_path / "off", tmp_path / "refused")
