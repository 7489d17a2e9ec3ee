"""With more than 255 classes, label 255 is a class or void: who evaluates it must say which."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused, run_uqeval
from PIL import Image
from scenes import zarr_group
from small_stores import save
from small_videos import save_store, video
from tensors import Labelled

import uqeval
from uqeval.errors import DataError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.stores.class_ids import ASSUMED_VOID, stamp_of_void
from uqeval.usecases.convert import convert
from uqeval.usecases.inspect import inspect
from uqeval.usecases.reduce import reduce

C, N, H, W = 300, 3, 6, 8


def ids() -> np.ndarray:
    """Labels [item, y, x] of 300 classes; five pixels have 255."""
    labels = np.random.default_rng(0).integers(0, 255, (N, H, W)).astype("u2")
    labels[0, 0, :5] = 255
    return labels


def probs() -> np.ndarray:
    """Probabilities [item, class, y, x] whose likeliest class is the label."""
    values = np.full((N, C, H, W), 0.5 / C, "f4")
    np.put_along_axis(values, ids()[:, None].astype(int), 0.5 + 0.5 / C, axis=1)
    return values


def in_one_store(path: Path) -> tuple[Any, Any]:
    return save(path / "s", {"probs": probs(), "labels": ids()}), None


def in_memory(path: Path) -> tuple[Any, Any]:
    return {"probs": probs()}, ids()


def archive(path: Path) -> tuple[Any, Any]:
    np.savez(path / "s.npz", probs=probs(), labels=ids())
    return path / "s.npz", None


def images(path: Path) -> tuple[Any, Any]:
    save(path / "s", {"probs": probs()}, {"names": ["a", "b", "c"]})
    (path / "labels").mkdir()
    for name, plane in zip("abc", ids(), strict=True):
        Image.fromarray(plane).save(path / "labels" / f"{name}.png")
    return path / "s", path / "labels"


def maps(path: Path) -> tuple[Any, Any]:
    arrays = {"mean_probs": probs(), "predictions": ids(), "labels": ids()}
    return save(path / "s", arrays), None


def annotators(path: Path) -> tuple[Any, Any]:
    return save(path / "s", {"probs": probs(), "labels": np.stack([ids(), ids()], 1)}), None


def classification(path: Path) -> tuple[Any, Any]:
    return {"probs": probs()[0, :, 0].T.copy()}, ids()[0, 0]


STORES = [in_one_store, in_memory, archive, images, maps, annotators, classification]


def pixels(given: tuple[Any, Any], **options: Any) -> int:
    report = uqeval.evaluate(*given, metrics="segmentation", **options)
    return int(report.results["segmentation"]["pixels"])


@pytest.mark.parametrize("store", STORES)
def test_an_assumed_void_id_that_is_a_class_is_refused(
    tmp_path: Path, store: Callable[[Path], tuple[Any, Any]]
) -> None:
    given = store(tmp_path)
    refused(lambda: pixels(given), "labels 255", f"the {C} classes", "ignore_index=255",
            "ignore_index=65535", error=DataError)  # fmt: skip
    count = pixels(given, ignore_index=65535)
    assert pixels(given, ignore_index=255) == count - 5


def test_the_void_id_of_one_array_does_not_decide_for_its_store(tmp_path: Path) -> None:
    """The message says why, and where the declaration counts."""
    own = {"attributes": {"ignore_index": 255}}
    path = zarr_group(tmp_path / "s", {"probs": probs(), "labels": (ids(), own)})
    says = "An attribute ignore_index of one array does not decide", "belongs to the top group"
    refused(lambda: pixels((path, None)), "ignore_index=255", *says, error=DataError)
    count = pixels((path, None), ignore_index=255)
    zarr.open_group(str(path)).attrs["ignore_index"] = 255
    assert pixels((path, None)) == count


def test_a_command_names_its_options(tmp_path: Path) -> None:
    path, _ = in_one_store(tmp_path)
    outcome = run_uqeval("failure", path, cwd=tmp_path)
    refused(outcome, "--ignore-index 255", "--ignore-index 65535")
    assert any("labels 255" in problem for problem in inspect(path, full=True).problems)


@pytest.mark.on_disk
def test_results_of_a_given_void_id_are_not_reused_for_an_assumed_one(tmp_path: Path) -> None:
    path, _ = in_one_store(tmp_path)
    time.sleep(0.03)  # what was written just now has no stamp
    for option in ({"states": tmp_path / "r.states.zip"}, {"map_cache": tmp_path / "cache"}):
        for _ in range(2):
            report = uqeval.evaluate(path, None, "segmentation", ignore_index=255, **option)
        assert report.timing["bytes_read"] == 0
        refused(lambda: pixels((path, None), **option), "labels 255", error=DataError)  # noqa: B023


def test_the_stamp_of_a_void_id_that_may_be_a_class_is_new() -> None:
    """Results of versions that did not refuse it have the id alone."""
    assert stamp_of_void(255, C) != stamp_of_void(ASSUMED_VOID, C)
    assert 255 not in (stamp_of_void(255, C), stamp_of_void(ASSUMED_VOID, C))
    assert stamp_of_void(ASSUMED_VOID, 255) == 255
    assert stamp_of_void(7, C) == 7


def test_a_void_id_in_the_store_is_given(tmp_path: Path) -> None:
    path, _ = in_one_store(tmp_path)
    zarr.open_group(str(path)).attrs["ignore_index"] = 255
    assert pixels((path, None)) == ids().size - 5


def test_predicted_ids_of_255_are_a_class(tmp_path: Path) -> None:
    labels = np.where(ids() == 255, 7, ids()).astype("u2")
    arrays = {"mean_probs": probs(), "predictions": ids(), "labels": labels}
    assert pixels((save(tmp_path / "s", arrays), None)) == ids().size


def test_labels_that_say_which_pixels_are_out(tmp_path: Path) -> None:
    path, _ = in_one_store(tmp_path)
    ood = {"metrics": "ood", "ood_mask": 254}
    refused(lambda: uqeval.evaluate(path, **ood), "labels 255", error=DataError)


def test_ids_of_a_video(tmp_path: Path) -> None:
    own = video()
    stacks = {kind: own.stack(kind) for kind in ("frames", "predictions")}
    stacks["predictions"] = stacks["predictions"].astype("u2")
    stacks["predictions"][0, 0, 0] = 255
    save_store(tmp_path / "v", own.names, **stacks)
    given = {"video": tmp_path / "v", "metrics": "tc", "classes": C}
    refused(lambda: uqeval.evaluate(**given), "predictions 255", error=DataError)
    uqeval.evaluate(**given, ignore_index=65535)


def written(path: Path, keep: str, **options: Any) -> Path:
    """A store of the writer."""
    about = {"names": ["a", "b", "c"], "samples": 1, "classes": C, "size": (H, W), "ranks": 1}
    writer = uqeval.PredictionWriter(path, **about, keep=keep, dtype="float32", **options)
    with writer:
        for name, values, plane in zip("abc", probs(), ids(), strict=True):
            writer.add(name, values)
            writer.add_labels(name, plane)
    return path


@pytest.mark.parametrize("keep", ["samples", "maps"])
def test_the_writer_stores_only_a_void_id_that_is_given(tmp_path: Path, keep: str) -> None:
    refused(lambda: written(tmp_path / "s", keep), "labels 255", "ignore_index=255",
            error=DataError)  # fmt: skip
    assert pixels((written(tmp_path / "void", keep, ignore_index=255), None)) == ids().size - 5
    assert pixels((written(tmp_path / "class", keep, ignore_index=65535), None)) == ids().size


def test_runs_merge_if_their_void_id_is_the_same(tmp_path: Path) -> None:
    """Whether it is assumed, given or declared; other ids are refused, also without void pixels."""
    labels = np.where(ids() == 255, 7, ids())
    assumed = {"ignore_index": None}

    def states(name: str, items: slice, declares: dict[str, Any], **options: Any) -> Path:
        arrays = {"probs": probs()[items], "labels": labels[items]}
        store = save(tmp_path / name, arrays, {"names": ["a", "b", "c"][items], **declares})
        path = tmp_path / f"{name}.states.zip"
        uqeval.evaluate(store, None, "segmentation", states=path, **options)
        return path

    first = states("first", slice(0, 1), {}, **assumed)
    given = {"ignore_index": 255}
    for name, declares, options in (("given", {}, given), ("declared", given, assumed)):
        report = uqeval.merge([first, states(name, slice(1, 3), declares, **options)])
        assert report.results["segmentation"]["pixels"] == labels.size
        assert report.inputs["ignore_index"] == 255
    other = states("other", slice(1, 3), {}, ignore_index=65535)
    refused(lambda: uqeval.merge([first, other]), "void id", "ignore_index", "255 and 65535",
            str(first), str(other), error=UsageError)  # fmt: skip


NAMES = [f"c{i}" for i in range(C)]


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ({"probs": probs(), "labels": ids()}, {}),
        ({"mean_probs": probs(), "predictions": ids(), "labels": ids()}, {}),
        ({"labels": ids()}, {"class_names": NAMES}),
    ],
)
def test_convert_writes_only_a_void_id_that_is_given(
    tmp_path: Path, arrays: dict[str, np.ndarray], options: dict[str, Any]
) -> None:
    source = save(tmp_path / "s", arrays)
    refused(lambda: convert(source, tmp_path / "new", **options), "labels 255",
            "--ignore-index 255", error=DataError)  # fmt: skip
    assert not (tmp_path / "new").exists()
    for void in (255, 65535):
        convert(source, tmp_path / f"{void}", ignore_index=void, **options)
        assert zarr.open_group(str(tmp_path / f"{void}")).attrs["ignore_index"] == void


def test_maps_without_labels_do_not_decide_for_later_labels(tmp_path: Path) -> None:
    save(tmp_path / "s", {"probs": probs()})
    reduce(open_inputs(tmp_path / "s", None, InputOptions()), tmp_path / "maps")
    assert "ignore_index" not in zarr.open_group(str(tmp_path / "maps")).attrs
    refused(lambda: pixels((tmp_path / "maps", ids())), "labels 255", error=DataError)


def test_the_advice_for_an_id_of_more_than_32_bits_names_the_void_id(tmp_path: Path) -> None:
    """No option takes such an id."""
    large = 2**40
    plane = np.array([[0, 1], [large, 1]])
    array = Labelled(plane, ("y", "x"), attrs={"ignore_index": large})
    advice = f"If {large} is void, put 0 in its place: np.where(ids == {large}, 0, ids)"
    observer = uqeval.TemporalObserver(classes=4, ignore_index=0)
    frame = np.zeros((2, 2, 3), np.uint8)
    refused(lambda: observer.update(frame, array), advice, error=DataError)
    labels = np.tile(plane, (N, 1, 1))
    np.savez(tmp_path / "s.npz", probs=np.full((N, 4, 2, 2), 0.25, "f4"), labels=labels)

    def evaluate() -> object:
        return uqeval.evaluate(tmp_path / "s.npz", metrics="calibration", ignore_index=0)

    refused(evaluate, advice, error=DataError)
