"""Kinds of arrays: which numbers their readers take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from number_stores import numbers, save, with_target
from scenes import zarr_array, zarr_group

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.kinds import resolve
from uqeval.stores.store import contents_of, open_store
from uqeval.usecases.convert import convert


@pytest.mark.parametrize(
    ("dtype", "attributes", "code"),
    [
        ("i2", {"scale_factor": 0.01}, "numbers * 0.01"),
        ("i2", {"scale_factor": 0.01, "add_offset": 2.0}, "numbers * 0.01 + 2.0"),
        ("f4", {"scale_factor": 1.0, "add_offset": -1}, "numbers + -1"),
        ("u2", {"scale": 0.01}, "numbers * 0.01"),
        ("i2", {"scale": "0.01"}, "numbers * 0.01"),
        ("i2", {"scale": [0.01], "offset": 2}, "numbers * 0.01 + 2"),
        ("i2", {"_Unsigned": "true"}, "numbers.view('uint16')"),
        ("u1", {"_Unsigned": "false", "add_offset": 2.0}, "numbers.view('int8') + 2.0"),
    ],
)
def test_packed_numbers(tmp_path: Path, dtype: str, attributes: Any, code: str) -> None:
    target = np.ones(numbers()["target"].shape, dtype)
    with pytest.raises(StoreError, match=r"target holds \w+ numbers that are packed") as told:
        uqeval.evaluate(with_target(tmp_path / "r.zarr", target, **attributes), None)
    assert f"Store {code!r} as float32" in str(told.value)


@pytest.mark.parametrize(
    ("dtype", "unsigned"), [("u2", "true"), ("i2", "false"), ("f4", "true"), ("i2", "n/a")]
)
def test_unsigned_that_changes_no_number(tmp_path: Path, dtype: str, unsigned: str) -> None:
    target = np.ones(numbers()["target"].shape, dtype)
    path = with_target(tmp_path / "r.zarr", target, _Unsigned=unsigned)
    uqeval.evaluate(path, None, "regression", workers=1)


@pytest.mark.parametrize("scale", ["nominal", [1.0, 1.0], 0.5])
def test_scale_counts_only_where_it_is_read(tmp_path: Path, scale: Any) -> None:
    """It is no attribute of the CF conventions: that of a mask or of ids may mean anything."""
    stored = numbers()
    path = with_target(tmp_path / "r.zarr", stored["target"])
    mask = stored["valid"].astype("u1")
    zarr_array(path / "valid", mask, attributes={"scale": scale})
    ids = zarr_array(tmp_path / "ids.zarr", mask, attributes={"scale": scale})
    expected = uqeval.evaluate(stored, None, "regression", workers=1).results
    assert uqeval.evaluate(path, None, "regression", workers=1).results == expected
    uqeval.evaluate(mask, ids, "segmentation", workers=1, classes=2)


@pytest.mark.parametrize("scale", ["nominal", [1.0, 1.0], 1, "1"])
def test_scale_of_a_target_that_changes_no_number(tmp_path: Path, scale: Any) -> None:
    target = np.ones(numbers()["target"].shape, "u2")
    path = with_target(tmp_path / "r.zarr", target, scale=scale)
    uqeval.evaluate(path, None, "regression", workers=1)


@pytest.mark.parametrize(("kind", "says"), [("labels", "the class ids as integers"),
                                            ("valid", "the values of a mask as bool")])  # fmt: skip
def test_packed_ids_and_masks(tmp_path: Path, kind: str, says: str) -> None:
    array = zarr_array(tmp_path / "a.zarr", np.ones((3, 4, 4), "u1"), attributes={"add_offset": 1})
    with pytest.raises(StoreError, match=f"are packed .* Store {says}"):
        resolve(contents_of(str(array)).unnamed, kind)


@pytest.mark.parametrize("factor", [1 / 255, [1 / 255], 1 / 254])
def test_probabilities_with_a_scale_and_a_scale_factor(tmp_path: Path, factor: Any) -> None:
    attributes = {"scale": 1 / 255, "scale_factor": factor, "add_offset": 0.0}
    probs = np.full((1, 5, 4, 4), 51, "u1")
    path = str(zarr_array(tmp_path / "p.zarr", probs, attributes=attributes))
    labels = np.zeros((1, 4, 4), "u1")
    if factor == 1 / 254:
        with pytest.raises(StoreError, match="numbers that are packed"):
            uqeval.evaluate(path, labels, "segmentation", workers=1)
    else:
        uqeval.evaluate(path, labels, "segmentation", workers=1)


def test_probabilities_with_an_offset(tmp_path: Path) -> None:
    probs, labels = np.full((1, 5, 4, 4), 51, "u1"), np.zeros((1, 4, 4), "u1")
    for offset in (0, 0.5):
        attributes = {"scale": 1 / 255, "offset": offset}
        path = str(zarr_array(tmp_path / f"{offset}.zarr", probs, attributes=attributes))
        if not offset:
            uqeval.evaluate(path, labels, "segmentation", workers=1)
            continue
        with pytest.raises(StoreError, match=r"attribute offset 0.5.*numbers \* 0.0039\d+ \+ 0.5"):
            uqeval.evaluate(path, labels, "segmentation", workers=1)


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_one_scale_in_all_forms(tmp_path: Path, kind: str) -> None:
    """As an attribute, a member of an .npz or an entry of a dict: a number, or a list of one."""
    numbers = np.full((1, 5, 4, 4), 51 if kind == "probs" else 102, "u1")
    arrays = {kind: numbers, "labels": np.zeros((1, 4, 4), "u1")}
    expected = uqeval.evaluate(
        arrays | {kind: (numbers / 255).astype("f4")}, None, "calibration", workers=1
    ).results
    inputs: list[Any] = []
    for i, scale in enumerate((1 / 255, [1 / 255])):
        stored = {kind: (numbers, {"attributes": {"scale": scale}})}
        inputs += [arrays | {"scale": scale}, zarr_group(tmp_path / f"{i}", arrays | stored)]
        np.savez(tmp_path / f"{i}.npz", **arrays, scale=scale)
        inputs.append(tmp_path / f"{i}.npz")
        convert(tmp_path / f"{i}.npz", tmp_path / f"converted {i}")
        convert(tmp_path / f"{i}", tmp_path / f"converted group {i}")
        inputs += [tmp_path / f"converted {i}", tmp_path / f"converted group {i}"]
    for given in inputs:
        found = uqeval.evaluate(given, None, "calibration", workers=1).results
        assert found["calibration"]["nll"] == pytest.approx(expected["calibration"]["nll"])


@pytest.mark.parametrize("dtype", ["u2", "i2"])
@pytest.mark.parametrize("form", ["npz", "dict", "zarr"])
def test_a_member_scale_of_a_mean_is_no_hint(tmp_path: Path, form: str, dtype: str) -> None:
    """The message says what an .npz or a dict can have instead."""
    mean = np.ones((1, 4, 4), dtype)
    arrays = {"mean": mean, "std": np.ones((1, 4, 4)), "target": np.ones((1, 4, 4)), "scale": 0.5}
    given: Any = arrays
    if form == "npz":
        given = save(tmp_path / "r.npz", arrays)
    elif form == "zarr":
        given = zarr_group(tmp_path / "r", {k: v for k, v in arrays.items() if k != "scale"})
    message = refused(
        lambda: uqeval.evaluate(given, None, "regression", workers=1),
        "`scale`" if dtype == "i2" else "scale None",
    )
    at_array = "in the attributes of the array."
    advice = "a member `scale` does not count for mean: give mean as float32."
    assert message.endswith(at_array if form == "zarr" else advice), message
    assert "attributes of an array of Zarr, HDF5 or xarray" in message or form == "zarr"


@pytest.mark.parametrize("pixels", [(4, 4), ()])
@pytest.mark.parametrize("form", ["npz", "dict", "zarr"])
def test_where_the_scale_of_probabilities_belongs(
    tmp_path: Path, form: str, pixels: tuple[int, ...]
) -> None:
    probs, labels = np.full((1, 5, *pixels), 51, "u1"), np.zeros((1, *pixels), "u1")
    arrays = {"probs": probs, "labels": labels}
    given: Any = arrays
    if form == "npz":
        given = save(tmp_path / "r.npz", arrays)
    elif form == "zarr":
        given = zarr_group(tmp_path / "r", arrays)
    message = refused(lambda: uqeval.evaluate(given, None, "calibration", workers=1), "scale None")
    assert ("as a member `scale` of the .npz or dict" in message) == (form != "zarr")


@pytest.mark.parametrize("dtype", ["u2", "i4"])
@pytest.mark.parametrize("ending", ["npz", "memory"])
def test_a_member_scale_of_an_integer_target(tmp_path: Path, ending: str, dtype: str) -> None:
    """As its attribute of this name: the numbers are refused where it changes them."""
    arrays = numbers() | {"target": np.full(numbers()["target"].shape, 512, dtype)}
    for scale in (1, 1 / 256):
        given: Any = arrays | {"scale": scale}
        if ending == "npz":
            given = save(tmp_path / f"{scale}.npz", given)
        if scale == 1:
            uqeval.evaluate(given, None, "regression", workers=1)
            continue
        with pytest.raises(StoreError, match=r"target\b.* numbers that are packed .*0\.00390625"):
            uqeval.evaluate(given, None, "regression", workers=1)


def test_a_packed_map_that_is_not_read_is_left_out(tmp_path: Path) -> None:
    path = with_target(tmp_path / "r.zarr", numbers()["target"], scale_factor=1, add_offset=0.0)
    height = np.ones(numbers()["target"].shape, "i2")
    zarr_array(path / "height", height, attributes={"scale_factor": 0.5})
    report = uqeval.evaluate(path, None, "regression", workers=1)
    assert any("left out" in text and "height" in text for text in report.warnings)


@pytest.mark.parametrize("attribute", ["scale", "scale_factor"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("zone", {"region": ["map:zone"]}),
        ("depth", {"region": ["depth:0-40"]}),
        ("unsure", {"metrics": {"sparsification": {"uncertainty": ["unsure"]}}}),
    ],
)
def test_packed_maps_that_options_name(
    tmp_path: Path, name: str, options: Any, attribute: str
) -> None:
    """A packed depth was left out, and regions were those of the target."""
    path = with_target(tmp_path / "r.zarr", numbers()["target"])
    ids = np.tile(np.arange(16, dtype="u1"), (3, 12, 1))
    zarr_array(path / name, ids, attributes={attribute: 0.5})
    request = {"metrics": "regression", "workers": 1} | options
    if attribute == "scale":  # it says nothing
        uqeval.evaluate(path, None, **request)
        return
    with pytest.raises(StoreError, match=rf"{name} holds uint8 numbers that are packed"):
        uqeval.evaluate(path, None, **request)


def test_a_packed_map_in_groups_of_items(tmp_path: Path) -> None:
    arrays = numbers()
    for i, item in enumerate("ab"):
        inside = {name: arrays[name][i] for name in ("mean", "std", "target")}
        packed = (np.ones((12, 16), "u1"), {"attributes": {"scale_factor": 2}})
        zarr_group(tmp_path / "r.zarr/items" / item, inside | {"zone": packed})
    zarr_group(tmp_path / "r.zarr", {})
    report = uqeval.evaluate(tmp_path / "r.zarr", None, "regression", workers=1)
    assert sum("left out" in text and "zone" in text for text in report.warnings) == 1
    with pytest.raises(StoreError, match="zone holds uint8 numbers that are packed"):
        uqeval.evaluate(tmp_path / "r.zarr", None, "regression", workers=1, region="map:zone")


def test_one_kind_under_two_names() -> None:
    probs = np.full((2, 4, 3, 3), 0.25)
    for names, once in (
        (("probs", "softmax"), "once as 'softmax'"),
        (("softmax", "probs"), "once as 'softmax' or 'probabilities' or 'pred'"),
    ):
        with pytest.raises(StoreError, match=f"holds 'probs' twice, {once}"):
            open_store(dict.fromkeys(names, probs), role="predictions")


def test_the_advice_for_labels_of_tables_works() -> None:
    """Bare labels [N, R] may be those of one image."""
    probs, labels = np.full((40, 2), 0.5), np.zeros((40, 3), np.uint8)
    with pytest.raises(StoreError, match=r"\[N, R\] needs a name: {'labels': array}"):
        uqeval.evaluate(probs, labels, "annotators", workers=1)
    uqeval.evaluate(probs, {"labels": labels}, "annotators", workers=1)
