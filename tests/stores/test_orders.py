"""Coordinates that are in another order: they are compared wherever arrays are paired."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_videos
from command import refused
from small_videos import save_store
from tensors import Labelled, LabelledSet

import uqeval
from uqeval.errors import StoreError
from uqeval.inputs.live import Live, Patience
from uqeval.inputs.options import InputOptions

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(4), (3, 6, 6)).transpose(0, 3, 1, 2).astype(np.float32)
LABELS = PROBS.argmax(1).astype(np.uint8)
AXES = ("time", "class", "y", "x")
ALONG = {"time": np.arange(3), "y": np.arange(6)}
TURNED = [("time", "the items are in another order"), ("y", "the rows are in another order")]
evaluate = partial(uqeval.evaluate, workers=1)


def probs(**coords: Any) -> Labelled:
    return Labelled(PROBS, AXES, coords=ALONG | coords)


def labels(**coords: Any) -> Labelled:
    return Labelled(LABELS, ("time", "y", "x"), coords=ALONG | coords)


@pytest.mark.parametrize(("name", "says"), TURNED)
def test_where_arrays_are_paired(name: str, says: str) -> None:
    turned = {name: ALONG[name][::-1]}
    evaluate(probs(), None, "divergence", reference=probs())
    refused(
        lambda: evaluate(probs(), None, "divergence", reference=probs(**turned)), says,
        error=StoreError,
    )  # fmt: skip
    refused(lambda: evaluate([PROBS.copy(), probs()], labels(**turned), "segmentation"), says)
    one = {"probs": probs(), "labels": labels(**turned)}
    refused(lambda: evaluate(one, None, "segmentation"), says, error=StoreError)
    with uqeval.Evaluator("segmentation") as evaluator:
        evaluator.update(probs(), labels(), ["a", "b", "c"])
        refused(lambda: evaluator.update(probs(), labels(**turned), [*"def"]), says)
        assert len(evaluator) == 3


def test_attributes_of_updates() -> None:
    ignored = Labelled(LABELS, ("item", "y", "x"), {"scale_factor": 2})
    with uqeval.Evaluator("segmentation") as evaluator:
        refused(lambda: evaluator.update(PROBS, ignored, [*"abc"]), "scale_factor 2")


@pytest.mark.parametrize("turned", ["predictions", "labels"])
@pytest.mark.parametrize(("name", "says"), TURNED)
def test_videos(tmp_path: Path, turned: str, name: str, says: str) -> None:
    own = small_videos.video()
    flow = np.zeros((len(own.names) - 1, 36, 48, 2), np.float32) + 1
    along = {"time": np.arange(1, 6), "y": np.arange(36)}
    video = save_store(tmp_path / "v.zarr", frames=own.stack("frames"), flow=flow, **along)
    stores = {
        key: save_store(
            tmp_path / f"{key}-{is_turned}.zarr", **{key: own.stack(key)},
            **(along | ({name: along[name][::-1]} if is_turned else {})),
        )
        for key in ("predictions", "labels") for is_turned in (key == turned, False)
    }  # fmt: skip
    bad = tmp_path / f"{turned}-True.zarr"
    given: dict[str, Any] = {"metrics": {"tc": {"flow": "file"}}, "video": video}
    evaluate(stores["predictions"], stores["labels"], **given)
    refused(lambda: evaluate(*(stores | {turned: bad}).values(), **given), says, error=StoreError)
    if turned == "predictions":
        live = Live(str(bad), InputOptions(video=str(video)), Patience(), warn=print)
        refused(lambda: list(live), says, error=StoreError)
    else:
        region = [f"map:{bad}"]
        refused(lambda: evaluate(*stores.values(), region=region, **given), says, error=StoreError)
    if turned == "predictions" and name == "y":
        other = save_store(tmp_path / "f.zarr", flow=flow, y=along["y"][::-1])
        alone = save_store(tmp_path / "a.zarr", frames=own.stack("frames"), **along)
        given |= {"video": alone, "flow_path": other}
        refused(lambda: evaluate(stores["predictions"], None, **given), "f.zarr: the rows are")


COUNT = np.arange(6)
ALONG_Y = partial(Labelled, dims=("y",))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"row": COUNT}, {"y": COUNT[::-1]}),
        (
            {"row": ALONG_Y(COUNT), "lat": ALONG_Y(COUNT[::-1])},
            {"lat": ALONG_Y(COUNT[::-1]), "row": ALONG_Y(COUNT)},
        ),
        ({"time": Labelled(COUNT[:3], ("sample",))}, {"time": COUNT[2::-1]}),
        ({"x": ALONG_Y(COUNT)}, {"x": COUNT[::-1]}),
    ],
)
def test_coordinates_that_are_not_the_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    given = Labelled(PROBS, AXES, coords=first), Labelled(LABELS, ("time", "y", "x"), coords=second)
    report = evaluate(*given, "segmentation")
    assert report.results["segmentation"]["pixel_accuracy"] == 1


def test_columns_of_tables(tmp_path: Path) -> None:
    numbers = np.arange(1.0, 7)
    np.savez(tmp_path / "p.npz", mean=numbers, std=numbers, x=COUNT[::-1], item=COUNT)
    for name, more in (("t", {"x": COUNT}), ("u", {"item": COUNT[::-1]})):
        np.savez(tmp_path / f"{name}.npz", target=numbers + 1, **more)
    report = evaluate(tmp_path / "p.npz", tmp_path / "t.npz", "regression")
    assert report.results["regression"]["rmse"] == 1
    says = "the items are in another order"
    refused(lambda: evaluate(tmp_path / "p.npz", tmp_path / "u.npz", "regression"), says)
    table = LabelledSet({"probs": PROBS[:, :, 0, 0], "x": COUNT[:3]})
    turned = {"labels": LABELS[:, 0, 0], "x": COUNT[2::-1]}
    assert evaluate(table, turned, "segmentation").results["segmentation"]["miou"] == 1


def in_units(units: str, values: Any = ALONG["time"]) -> Labelled:
    return Labelled(values, ("time",), {"units": units})


@pytest.mark.parametrize(
    ("unit", "turned"),
    [
        ("h since 2026-01-01", "hours since 2026-01-01"),
        ("months since 2000-01-01", "months since 2000-01-01"),
        ("days since 1850-1-1", "days since 1850-1-1"),
    ],
)
def test_units_of_times(unit: str, turned: str) -> None:
    own = probs(time=in_units(unit))
    evaluate(own, labels(time=in_units(unit)), "segmentation")
    other = labels(time=in_units(turned, ALONG["time"][::-1]))
    says = "the items are in another order"
    refused(lambda: evaluate(own, other, "segmentation"), says, error=StoreError)


def test_units_that_are_not_read_are_compared_only_with_themselves() -> None:
    own = probs(time=in_units("months since 2000-01-01"))
    other = labels(time=in_units("weeks since 2000-01-01", ALONG["time"][::-1]))
    evaluate(own, other, "segmentation")


def test_coordinates_that_are_rounded() -> None:
    """float32 rounds these by half a metre."""
    metres = 5400000.37 + 10 * np.arange(6)
    rounded = metres.astype(np.float32)
    evaluate(probs(y=metres), labels(y=rounded), "segmentation")
    says = "the rows are in another order"
    turned = labels(y=rounded[::-1])
    refused(lambda: evaluate(probs(y=metres), turned, "segmentation"), says, error=StoreError)
