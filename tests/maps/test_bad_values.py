"""Numbers that cannot be evaluated are maps_refused, with the item, the store and how many."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused
from scenes import Chunked, all_same, labels, read_maps, read_stack, softmax, zarr_array, zarr_group

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.maps.reduction import reduce_array
from uqeval.spelling import as_keywords
from uqeval.usecases.convert import convert
from uqeval.usecases.inspect import inspect

N, T, C, H, W = 3, 2, 4, 5, 6
NAMES = ["first", "second", "third"]


def samples(dtype: str = "f4") -> Any:
    return softmax(0, N, T, C, H, W, dtype=dtype)


def store(tmp_path: Path, p: Any, chunks: Any = (1, T, C, H, W), kind: str = "probs") -> Path:
    return zarr_group(tmp_path / "preds", {kind: (p, {"chunks": chunks})}, names=NAMES)


def maps_refused(
    given: Any, *words: str, truth: Any = None, error: Any = DataError, **more: Any
) -> str:
    return refused(lambda: read_maps(given, truth, **more), *words, error=error)


# Samples


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize(
    ("value", "word"),
    [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite"), (-0.1, "negative")],
)
def test_what_is_no_number_or_negative(tmp_path: Path, dtype: str, value: float, word: str) -> None:
    p = samples(dtype)
    p[1, 1, 2, 3, 4] = p[1, 1, 3, 4, 5] = p[1, 1, 2, 4, 0] = value
    message = maps_refused(
        store(tmp_path, p), "preds", "item second", f"3 of {T * C * H * W}", word
    )
    assert "first in sample 1, class 2, row 3, column 4" in message


@pytest.mark.parametrize("chunks", [(1, 1, 2, 3, 3), (2, 2, 4, 3, 6), (3, 1, 1, 5, 6)])
def test_the_place_is_right_in_any_chunks(tmp_path: Path, chunks: Any) -> None:
    p = samples("f2")
    p[1, 1, 2, 3, 4] = np.nan
    message = maps_refused(store(tmp_path, p, chunks), "preds", "item second", "1 of ", "NaN")
    assert "first in sample 1, class 2, row 3, column 4" in message


@pytest.mark.parametrize("chunks", [(1, T, C, H, W), (1, 1, 1, H, W), (2, 1, 2, H, W)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sums_that_are_not_1(tmp_path: Path, dtype: str, chunks: Any) -> None:
    p = samples(dtype)
    p[2, 0, :, 0, 1:3] *= 0.9
    said = f"2 of {(T if chunks[1] == T else 1) * H * W} pixels"
    message = maps_refused(
        store(tmp_path, p, chunks), "preds", "item third", said, "do not sum to 1"
    )
    assert "first sum is 0.9, in" in message or dtype == "f2"
    assert "sample 0, row 0, column 1" in message
    assert f"tolerance {0.002 if dtype == 'f2' else 0.0001}" in message


def hint(message: str) -> str:
    return message[message.index("(tolerance") :].partition("). ")[2]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p * 100, "percentages: divide them by 100"),
        (lambda p: p * np.float32(1.0005), "too coarse to sum to 1. Take the softmax in float32"),
        (lambda p: p * np.float32(0.9), "Check the order of axes"),
        (lambda p: p * np.float32(20), "All sums are about 20, so these may be scaled probabilit"),
        (lambda p: p * p * np.float32(20), "There are values above 1. If these are logits"),
    ],
)
def test_readers_and_the_writer_say_the_same_about_sums(
    tmp_path: Path, change: Any, says: str
) -> None:
    p = change(samples("f4"))
    read_message = maps_refused(p, "do not sum to 1", says)
    about = {"names": NAMES, "samples": T, "classes": C, "size": (H, W), "dtype": "float32"}
    writer = uqeval.PredictionWriter(tmp_path / "p.zarr", **about)
    said = refused(lambda: writer.add(NAMES[0], p[0]), says, error=DataError)
    assert hint(as_keywords(read_message)).startswith(hint(said)) or "logits, declare" in said


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_integers_that_do_not_sum_to_1(tmp_path: Path, dtype: str) -> None:
    top = np.iinfo(dtype).max
    data = np.zeros((N, T, C, H, W), dtype)
    data[:, :, 1] = top
    data[0, 1, 1, 4, 4] = top - 5 * C
    group = zarr_group(tmp_path / "preds", {"probs": (data, {"attributes": {"scale": 1 / top}})})
    maps_refused(group, "item 0", f"1 of {T * H * W} pixels", "sample 1, row 4, column 4")


@pytest.mark.parametrize("scale", [None, 0, 2, "x"])
def test_integers_without_a_scale(tmp_path: Path, scale: Any) -> None:
    data = np.full((N, T, C, H, W), 64, "u1")
    options = {} if scale is None else {"attributes": {"scale": scale}}
    group = zarr_group(tmp_path / "preds", {"probs": (data, options)})
    maps_refused(group, "probs", "uint8", f"scale {scale!r}", "0.00392157", error=StoreError)


def test_signed_integers_are_no_probabilities(tmp_path: Path) -> None:
    group = store(tmp_path, np.ones((N, T, C, H, W), "i2"))
    maps_refused(group, "int16", "expected float16", error=StoreError)


def test_logits_that_were_stored_as_probs(tmp_path: Path) -> None:
    z = 5 * np.random.default_rng(0).normal(size=(N, T, C, H, W)).astype("f4")
    maps_refused(store(tmp_path, z), "item first", "negative", "call the array `logits`")
    maps_refused(samples() * 100, "do not sum to 1", "percentages: divide them by 100")
    message = maps_refused(np.abs(z) + 3, "do not sum to 1", "values above 1", "`logits`")
    assert f"{T * H * W} of {T * H * W} pixels" in message


def test_a_chunk_of_zeros(tmp_path: Path) -> None:
    p = samples("f2")
    p[1] = 0
    maps_refused(
        store(tmp_path, p),
        "item second",
        f"{T * H * W} of {T * H * W}",
        "All are 0",
        "never written",
    )


def test_a_chunk_that_is_not_there(tmp_path: Path) -> None:
    path = store(tmp_path, samples("f2"))
    (path / "probs" / "c" / "1" / "0" / "0" / "0" / "0").unlink()
    maps_refused(path, "preds", "1 ", "missing", error=StoreError)
    maps_refused(path, "item second", "All are 0", missing_chunks="fill")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("classes", [1, 4])
def test_logits_that_are_no_numbers(tmp_path: Path, value: float, classes: int) -> None:
    z = np.zeros((N, T, classes, H, W), "f4")
    z[1, 0, 0, 2, 2:4] = value
    path = store(tmp_path, z, (1, T, classes, H, W), kind="logits")
    maps_refused(
        path, "preds", "item second", f"2 of {T * classes * H * W} logits", "NaN or infinite"
    )


def test_a_foreground_probability_above_1(tmp_path: Path) -> None:
    p = np.full((N, T, 1, H, W), 0.25, "f4")
    p[0, 0, 0, 0, 0] = 1.5
    path = store(tmp_path, p, (1, T, 1, H, W))
    maps_refused(path, "item first", "1 of", "foreground probabilities", "the largest is 1.5")


def test_the_member_that_is_bad_is_named(tmp_path: Path) -> None:
    p = samples()
    bad = p.copy()
    bad[1, 0, 0, 0, 0] = np.nan
    good = zarr_array(tmp_path / "good", p)
    message = maps_refused([good, zarr_array(tmp_path / "bad", bad)], "/bad", "item 1", "sample 2")
    assert "/good" not in message


def test_the_item_of_an_array_in_memory() -> None:
    p = samples()
    p[2, 0, 1, 0, 0] = np.nan
    maps_refused(p, "array in memory", "item 2", f"1 of {T * C * H * W}")
    with pytest.raises(DataError, match=r"1 of 240 probabilities .* are NaN"):
        reduce_array(p[2])


def test_bad_pixels_in_a_later_block() -> None:
    p = np.full((1, 1, 2, 60, 50), 0.5, "f4")
    p[0, 0, 1, 55, 7] = np.nan
    maps_refused(p, "1 of", "from row 40, column 48 on", "class 1, row 55, column 7")


# What is accepted


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("chunks", [(N, T, C, H, W), (1, 1, 1, 2, 2), (2, 2, 3, 5, 6)])
def test_negative_zeros_are_zeros(dtype: str, chunks: Any) -> None:
    p = samples(dtype)
    p[..., :2] = 0
    p[:, :, 1, :, :2] = 1
    minus = np.where(p == 0, -0.0, p).astype(dtype)
    assert np.signbit(minus).any()
    found = read_stack(Chunked(minus, chunks))
    all_same(found, read_stack(Chunked(p)))
    assert not any(np.signbit(v).any() for maps in found for v in maps.values())


@pytest.mark.parametrize(("dtype", "off"), [("f2", 1.9e-3), ("f4", 0.9e-4), ("f8", 0.99e-4)])
def test_sums_within_the_tolerance(dtype: str, off: float) -> None:
    for sign in (1, -1):
        p = np.full((1, 1, 4, 2, 2), 0.25, "f8")
        p[:, :, 1] += sign * off
        read_maps(p.astype(dtype))
        p[:, :, 1] += sign * off
        maps_refused(p.astype(dtype), "4 of 4 pixels")


def test_a_wider_tolerance(tmp_path: Path) -> None:
    p = samples()
    p[0, 0, :, 0, 0] *= 0.5
    maps_refused(p, "1 of", "--sum-tolerance")
    read_maps(p, sum_tolerance=0.6)
    maps_refused(softmax(0, N, T, C, H, W, dtype="f2"), sum_tolerance=1e-9)


@pytest.mark.parametrize("chunks", [(1, T, C, H, W), (N, 1, 2, H, 3)])
def test_each_member_has_the_tolerance_of_its_own_dtype(tmp_path: Path, chunks: Any) -> None:
    """A coarse member widened that of the others."""
    p = samples()
    good, off = (zarr_array(tmp_path / name, values, chunks=chunks)
                 for name, values in (("good", p), ("off", p * np.float32(1.009))))  # fmt: skip
    half = zarr_array(tmp_path / "half", p.astype("f2"), chunks=chunks)
    numbers = np.round(p * 255).astype("u1")
    whole = zarr_group(tmp_path / "whole", {"probs": (numbers, {"attributes": {"scale": 1 / 255}})})
    for coarse in (half, whole):
        for order in (1, -1):
            read_maps([coarse, good][::order])
            message = maps_refused([coarse, off][::order], "/off", "(tolerance 0.0001)")
            assert f"/{coarse.name}" not in message
            sweep = partial(
                uqeval.sweep, [coarse, off][::order], labels(0, N, H, W, classes=C), "segmentation"
            )
            refused(sweep, "(tolerance 0.0001)", error=DataError)
            uqeval.sweep([coarse, good][::order], labels(0, N, H, W, classes=C), "segmentation")


def test_each_item_has_the_tolerance_of_its_own_array(tmp_path: Path) -> None:
    """Small items are read together: those of bfloat16 do not widen the tolerance of others."""
    p = samples() * np.float32(1.005)
    for name in ("bfloat16", "mixed"):
        zarr_group(tmp_path / name, {})
        zarr_group(tmp_path / name / "items", {})
        for k in range(N):
            is_coarse = name == "bfloat16" or k != 1
            attributes = {"source_dtype": "bfloat16"} if is_coarse else {}
            array = p[k], {"attributes": attributes}
            zarr_group(tmp_path / name / "items" / f"i{k}", {"probs": array})
    truth = labels(0, N, H, W, classes=C)
    uqeval.evaluate(tmp_path / "bfloat16", truth, "segmentation")
    evaluate = partial(uqeval.evaluate, tmp_path / "mixed", truth, "segmentation")
    refused(evaluate, "item i1", "(tolerance 0.0001)", error=DataError)


# Labels


def test_labels_outside_the_classes(tmp_path: Path) -> None:
    truth = labels(0, N, H, W, classes=C)
    truth[1, 2, 3] = truth[1, 4, 5] = 7
    truth[1, 4, 0] = 200
    message = maps_refused(
        samples(), "item 1", f"3 of {H * W} pixels", "4 classes 0 … 3", "ignore_index 255",
        "7, 200", "row 2, column 3", truth=truth,
    )  # fmt: skip
    assert "--ignore-index" in message
    path = zarr_array(tmp_path / "truth", truth)
    maps_refused(samples(), str(path), "item 1", truth=path)


@pytest.mark.parametrize(("dtype", "ignore"), [("i2", -1), ("i8", 1000), ("u2", 65535), ("u1", 0)])
def test_any_ignore_index(dtype: str, ignore: int) -> None:
    truth = labels(0, N, H, W, classes=C, void=0).astype(dtype)
    if ignore:
        truth[0, 0, :] = ignore
    found = read_maps(samples(), truth, ignore_index=ignore)
    for maps, label in zip(found, truth, strict=True):
        assert maps["label"].dtype == np.uint8
        expected = np.where(label == ignore, 255, label)
        np.testing.assert_array_equal(maps["label"], expected)
    if ignore:
        maps_refused(samples(), f"{W} of {H * W} pixels", str(ignore), truth=truth)


def test_a_negative_label_is_no_class() -> None:
    truth = np.zeros((N, H, W), "i4")
    truth[2, 0, 0] = -1
    maps_refused(samples(), "item 2", "1 of", "-1", truth=truth)


def test_labels_of_255_and_256_classes() -> None:
    for classes in (255, 256):
        p = np.zeros((1, 1, classes, 1, 3), "f2")
        p[:, :, classes - 1] = 1
        truth = np.array([[[classes - 1, 0, 1000]]], "u2")
        maps = read_maps(p, truth, ignore_index=1000)[0]
        assert maps["label"].dtype == (np.uint8 if classes == 255 else np.uint16)
        assert maps["label"][0, 0] == maps["prediction"][0, 0] == classes - 1
        assert maps["label"][0, 2] == (255 if classes == 255 else 65535)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((N, H, W + 1), "Evaluate at the size of the labels"),
        ((N, H - 1, W), "resize the logits"),
        ((N, 3 * H, 3 * W), f"interpolate(logits, size=({3 * H}, {3 * W})"),
        ((N, C, H), "add --axes NHWC"),
        ((N, H, W, C), "np.where(labels.min(-1) == labels.max(-1), 255, labels.argmax(-1))"),
    ],
)
def test_labels_of_another_size(shape: Any, hint: str) -> None:
    seen = shape[-2:]
    message = maps_refused(
        samples(), "item 0", f"{seen[0]}×{seen[1]}", f"{H}×{W}", hint, truth=np.zeros(shape, "u1"),
        error=StoreError,
    )  # fmt: skip
    assert "same size" in message


@pytest.mark.parametrize("count", [1, 5])
def test_another_number_of_labels(count: int) -> None:
    truth = np.zeros((count, H, W), "u1")
    maps_refused(samples(), f"{count} labels", f"{N} items", truth=truth, error=StoreError)


def test_labels_that_are_no_integers() -> None:
    maps_refused(samples(), "float", truth=np.zeros((N, H, W), "f4"), error=StoreError)


# Maps stores


def maps_store(tmp_path: Path, **arrays: Any) -> Path:
    plain = {"predictions": np.zeros((N, H, W), "u1"), "mine": np.zeros((N, H, W), "f4")}
    return zarr_group(tmp_path / "maps", plain | arrays, names=NAMES, class_names=["a", "b", "c"])


@pytest.mark.parametrize(("value", "dtype"), [(np.nan, "f4"), (np.inf, "f2"), (1e39, "f8")])
def test_uncertainties_that_are_no_numbers(tmp_path: Path, value: float, dtype: str) -> None:
    mine = np.zeros((N, H, W), dtype)
    mine[1, 3, 2] = mine[1, 4, 4] = value
    message = maps_refused(
        maps_store(tmp_path, mine=mine), "maps", "item second", f"2 of {H * W} values",
        "row 3, column 2", wanted=["mine"],
    )  # fmt: skip
    assert "finite" in message


@pytest.mark.parametrize("name", ["entropy", "mutual_information", "expected_entropy", "brier"])
def test_uncertainties_of_uqeval_are_not_negative(tmp_path: Path, name: str) -> None:
    """But for rounding, and at void pixels; another map may have any sign."""
    values = np.zeros((N, H, W), "f4")
    values[1, 3, 2], values[2, 0, 0], values[2, 1, 1] = -1, -6e-8, -2
    truth = np.zeros((N, H, W), "u1")
    truth[2, 1, 1] = 255
    path = maps_store(tmp_path, **{name: values}, mine=values)
    maps_refused(
        path, "item second", f"1 evaluated values of the map {name} are negative, the first is "
        "-1 at row 3, column 2", truth=truth, wanted=["label", name],
    )  # fmt: skip
    assert len(read_maps(path, truth, wanted=["mine"])) == N
    values[1, 3, 2] = 0
    good = maps_store(tmp_path / "good", **{name: values})
    assert len(read_maps(good, truth, wanted=["label", name])) == N


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_rounding_of_uncertainties(tmp_path: Path, dtype: str) -> None:
    """It is that of 16 bits; values of which none is positive have the other sign."""
    rounding, other = -4e-3, -1e-2
    values = np.full((N, H, W), 0.1, dtype)
    values[1, 3, 2] = rounding
    good = maps_store(tmp_path / "good", mutual_information=values)
    assert len(read_maps(good, wanted=["mutual_information"])) == N
    values[1, 3, 2] = other
    bad = maps_store(tmp_path / "bad", mutual_information=values)
    maps_refused(bad, "1 evaluated values", "are negative", wanted=["mutual_information"])
    values = np.full((N, H, W), rounding, dtype)
    turned = maps_store(tmp_path / "turned", mutual_information=values)
    maps_refused(turned, f"{H * W} evaluated values", wanted=["mutual_information"])
    values = np.full((N, H, W), -6e-8, dtype)
    values[1], values[2, 0, 0] = -0.0, rounding
    noise = maps_store(tmp_path / "noise", mutual_information=values)
    assert len(read_maps(noise, wanted=["mutual_information"])) == N


def test_mean_probabilities_that_are_none(tmp_path: Path) -> None:
    mean = softmax(0, N, 3, H, W)
    mean[:, 0] += 2  # predicted where nothing else is stored
    mean /= mean.sum(axis=1, keepdims=True)
    for value, says in ((np.nan, "1 of"), (-0.5, "negative"), (0.9, "1 of 30 pixels do not sum")):
        changed = mean.copy()
        changed[1, 2, 3, 4] = value
        path = maps_store(tmp_path / says, mean_probs=changed)
        maps_refused(path, "item second", says, "row 3, column 4", wanted=["mean_probs"])
    for wanted in (["mean_probs"], ["brier", "label_probability"]):
        given = {"truth": np.zeros((N, H, W), "u1"), "wanted": wanted}
        maps_refused(maps_store(tmp_path / wanted[0], mean_probs=mean / 2), "--sum-t", **given)
        assert len(read_maps(tmp_path / wanted[0] / "maps", sum_tolerance=0.6, **given)) == N


def test_mean_probabilities_that_are_integers(tmp_path: Path) -> None:
    """They have a scale and a tolerance, as probabilities have."""
    scaled = {"attributes": {"scale": 0.02}}
    whole = np.full((N, 3, H, W), 16, "u1")
    whole[:, 0] = 17  # sums of 0.98
    confidence = np.full((N, H, W), 0.35, "f4")
    own = {"mean_probs": (whole, scaled), "confidence": confidence}
    found = read_maps(maps_store(tmp_path / "a", **own), wanted=[*own])
    np.testing.assert_array_equal(found[0]["mean_probs"], (whole[0] * 0.02).astype("f4"))
    whole[1, 0, 3, 4] = 22
    path = maps_store(tmp_path / "b", mean_probs=(whole, scaled))
    maps_refused(path, "item second", "1 of 30 pixels do not sum", wanted=["mean_probs"])
    assert any("do not sum" in problem for problem in inspect(path, full=True).problems)
    for name, values, says in (
        ("c", (whole, {"attributes": {"scale": 2}}), "uint8 mean_probs with scale 2"),
        ("d", (whole.astype("i2"), scaled), "mean_probs of dtype int16"),
    ):
        path = maps_store(tmp_path / name, mean_probs=values)
        maps_refused(path, says, wanted=["mean_probs"], error=StoreError)


def test_mean_probabilities_of_other_predictions(tmp_path: Path) -> None:
    """Another model's, or those of other images; or with 1 - max as the confidence."""
    mean = softmax(0, N, 3, H, W)
    own = {"mean_probs": mean, "predictions": mean.argmax(1).astype("u1")}
    confidence = mean.max(axis=1)
    nearly = own | {"confidence": confidence - np.float32(0.007)}
    assert len(read_maps(maps_store(tmp_path / "a", **nearly), wanted=[*nearly][:1])) == N
    ids, wrong = own["predictions"].copy(), 1 - confidence
    ids[1, 2, 3] = mean[1, :, 2, 3].argmin()
    for name, changed, says in (
        ("b", {"predictions": ids}, "likeliest classes of mean_probs at 1 of 30 pixels"),
        ("c", {"confidence": wrong}, "confidence is not the probability"),
        ("d", {"mean_probs": mean[::-1]}, "images in the same order"),
    ):
        path = maps_store(tmp_path / name, **own | changed)
        maps_refused(path, "item", says, wanted=["mean_probs", *({"confidence"} & changed.keys())])


@pytest.mark.parametrize(("dtype", "value"), [("f4", np.nan), ("f4", 1.0), ("i2", -1), ("u2", 3)])
def test_ranks_of_labels_that_are_none(tmp_path: Path, dtype: str, value: float) -> None:
    ranks = np.zeros((N, H, W), dtype)
    ranks[1, 0, 0] = value
    maps_refused(
        maps_store(tmp_path, label_rank=ranks), "item", f"{ranks.dtype}", "from 0 to 2",
        wanted=["label_rank"], truth=np.zeros((N, H, W), "u1"),
    )  # fmt: skip


def test_mean_probabilities_of_fewer_classes_in_one_item(tmp_path: Path) -> None:
    """A kernel would read beyond the array."""
    group = zarr.create_group(tmp_path / "m", attributes={"class_names": ["a", "b", "c"]})
    for name, classes in (("first", 3), ("second", 2)):
        mean = softmax(0, classes, H, W)
        for kind, values in {"mean_probs": mean, "predictions": mean.argmax(0).astype("u1"),
                             "labels": np.full((H, W), 2, "u1")}.items():  # fmt: skip
            group[f"items/{name}/{kind}"] = values
    maps_refused(
        tmp_path / "m", "item second", "2 classes; expected 3", wanted=["brier"], error=StoreError,
        missing_chunks="fill",
    )  # fmt: skip


@pytest.mark.parametrize("id_", [3, 255])
def test_predicted_ids_outside_the_classes(tmp_path: Path, id_: int) -> None:
    predictions = np.zeros((N, H, W), "u1")
    predictions[2, 0, 0] = id_
    path = maps_store(tmp_path, predictions=predictions)
    maps_refused(path, "item third", f"from 0 to {id_}", "0 … 2", wanted=["mine"])


def test_maps_that_are_not_there(tmp_path: Path) -> None:
    path = maps_store(tmp_path)
    maps_refused(
        path, "no map 'entropy'", "mine", "uqeval reduce", wanted=["entropy"], error=StoreError
    )
    maps_refused(
        path, "--top-k", "mean_probs", wanted=["label_rank"], truth=np.zeros((N, H, W), "u1"),
        error=StoreError,
    )  # fmt: skip


@pytest.mark.parametrize("width", [W - 1, W + 1])
@pytest.mark.parametrize("kind", ["mine", "zebra", "label_rank", "mean_probs"])
def test_maps_of_another_size(tmp_path: Path, kind: str, width: int) -> None:
    shape = (N, 3, H, width) if kind == "mean_probs" else (N, H, width)
    path = maps_store(tmp_path, **{kind: np.zeros(shape, "u2" if kind == "label_rank" else "f4")})
    wanted = "label_rank" if kind == "mean_probs" else kind
    maps_refused(
        path, "item first", str(width), f"({H}, {W})", wanted=[wanted], error=StoreError,
        truth=np.zeros((N, H, W), "u1"),
    )  # fmt: skip


def test_classes_of_a_maps_store(tmp_path: Path) -> None:
    plain = {"predictions": np.zeros((N, H, W), "u1"), "mine": np.zeros((N, H, W), "f4")}
    path = zarr_group(tmp_path / "maps", plain)
    maps_refused(path, "--classes", wanted=["mine"], error=UsageError)
    assert len(read_maps(path, wanted=["mine"], classes=3)) == N
    maps_refused(samples(), "--classes 9", "4 classes", classes=9, error=UsageError)


@pytest.mark.parametrize(("total", "noun"), [(1, "probabilities"), (100, "percentages")])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_logits_that_are_probabilities(tmp_path: Path, dtype: str, total: int, noun: str) -> None:
    p = (samples("f8") * total).astype(dtype)
    words = [noun, "item first", f"sum to {total}", "`probs`"]
    maps_refused({"logits": p, "names": NAMES}, *words)
    maps_refused(store(tmp_path, p, (1, 1, 2, 3, W), "logits"), *words)
    if total == 1:  # a writer's whole samples, and items of one pixel, which are read together
        writer = uqeval.PredictionWriter(
            tmp_path / "written", names=NAMES, samples=T, classes=C, size=(H, W), kind="logits"
        )
        refused(lambda: writer.add("first", p[0]), "item 'first'", noun, error=DataError)
    pixels = p[0].transpose(2, 3, 0, 1).reshape(H * W, T, C, 1, 1)
    maps_refused({"logits": pixels}, noun)


@pytest.mark.parametrize(("total", "noun"), [(1, "probabilities"), (100, "percentages")])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_integer_logits_that_are_probabilities(
    tmp_path: Path, dtype: str, total: int, noun: str
) -> None:
    top = np.iinfo(dtype).max
    scaled = {"attributes": {"scale": total / top}}
    whole = np.rint(samples("f8") * top).astype(dtype)
    path = zarr_group(tmp_path / "s", {"logits": (whole, scaled)})
    words = [noun, "item 0", f"sum to {total}"]
    maps_refused(path, *words)
    refused(lambda: convert(path, tmp_path / "out"), *words, error=DataError)


@pytest.mark.parametrize("rounded", [np.rint, np.floor])
@pytest.mark.parametrize(
    ("classes", "scale", "total"),
    [(6, 1 / 255, 1), (19, 1 / 255, 1), (150, 1 / 255, 1), (4, 1.0, 100), (19, 1.0, 100)],
)
def test_integer_logits_that_are_coarse_probabilities(
    tmp_path: Path, classes: int, scale: float, total: int, rounded: Any
) -> None:
    """Sums are as far from the total as the rounding of each class allows."""
    p = np.random.default_rng(0).dirichlet(np.full(classes, 0.1), (N, H, W))
    p[:, 0, 0] = np.eye(classes)[0]
    values = rounded(p.transpose(0, 3, 1, 2) * total / scale + 1e-9).astype("u1")
    path = zarr_group(tmp_path / "s", {"logits": (values, {"attributes": {"scale": scale}})})
    words = ["item 0", f"sum to {total}"]
    maps_refused(path, *words)
    refused(lambda: convert(path, tmp_path / "out"), *words, error=DataError)


@pytest.mark.parametrize(
    ("dtype", "scale", "mean", "centred"),
    [
        ("u1", 0.1, 100 / 19, False),
        ("u2", 0.1, 100 / 19, False),
        ("u1", 1.0, 100 / 19, False),
        ("u1", 1.0, 5, True),  # logits of mean 0 to which 5 is added
        ("u1", 1 / 12, 1 / 19, True),
        ("u1", 0.1, 0, True),
    ],
)
def test_integer_logits_that_sum_to_about_a_total(
    tmp_path: Path, dtype: str, scale: float, mean: float, centred: bool
) -> None:
    """Sums of many logits may be about 100, and what is rounded to coarse steps cannot be told."""
    z = np.random.default_rng(0).uniform(0.5, 1.5, (N, 19, H, W)) * mean
    if centred:
        z += mean - z.mean(axis=1, keepdims=True)
    values = np.rint(z / scale).astype(dtype), {"attributes": {"scale": scale}}
    path = zarr_group(tmp_path / "s", {"logits": values})
    assert len(read_maps(path)) == N
    convert(path, tmp_path / "out")
    assert len(read_maps(tmp_path / "out")) == N


def test_logits_that_are_not_negative_are_logits() -> None:
    """One pixel that does not sum to 1 is enough, as are few pixels."""
    p = samples()
    p[:, :, :, H - 1, W - 1] *= 1.01
    read_maps({"logits": p})
    read_maps({"logits": samples()[:1, :, :, :1, :1]})


def test_one_hot_labels(tmp_path: Path) -> None:
    ids = np.arange(N * H * W).reshape(N, H, W) % C
    one_hot = np.eye(C, dtype="u1")[ids].transpose(0, 3, 1, 2)
    words = ["look one-hot", "one of 4 planes", "labels.argmax(1)"]
    maps_refused(samples(), *words, "item 0", truth=one_hot)
    maps_refused(samples(), *words, truth=one_hot.astype(bool))
    group = zarr_group(tmp_path / "preds", {"probs": samples(), "labels": one_hot})
    maps_refused(str(group), *words, wanted=["label"])
    pixels = samples()[:, 0].transpose(0, 2, 3, 1).reshape(-1, C)
    of_images = {"probs": pixels, "labels": np.eye(C, dtype="u1")[ids.reshape(-1)]}
    maps_refused(of_images, *words)
    with uqeval.PredictionWriter(
        tmp_path / "written", names=NAMES, samples=T, classes=C, size=(H, W)
    ) as writer:
        refused(lambda: writer.add_labels("first", one_hot[0]), *words, error=DataError)
        for name, item in zip(NAMES, samples(), strict=True):
            writer.add(name, item)
    one_hot[0, :, 0, 0] = 1  # annotators who agree about one pixel
    read_maps(samples()[:1], one_hot[:1])


@pytest.mark.parametrize("scale", [1, 255])
@pytest.mark.parametrize("void", [0, 255])
def test_one_hot_labels_with_void_pixels(tmp_path: Path, scale: int, void: int) -> None:
    ids = np.arange(N * H * W).reshape(N, H, W) % C
    one_hot = (scale * np.eye(C)[ids]).transpose(0, 3, 1, 2).astype("u1")
    one_hot[:, :, 0] = void
    words = [f"is {scale} in exactly one of 4 planes", f"void in all of them ({W} pixels)",
             "np.where(labels.min(1) == labels.max(1), 255, labels.argmax(1))"]  # fmt: skip
    maps_refused(samples(), *words, "item 0", truth=one_hot)
    with uqeval.PredictionWriter(
        tmp_path / "written", names=NAMES, samples=T, classes=C, size=(H, W), ignore_index=-1
    ) as writer:
        refused(lambda: writer.add_labels("first", one_hot[0]), *words, error=DataError)
        for name, item in zip(NAMES, samples(), strict=True):
            writer.add(name, item)
    proposed = np.where(one_hot.min(1) == one_hot.max(1), 255, one_hot.argmax(1))
    assert (proposed[:, 0] == 255).all() and (proposed[:, 1:] == ids[:, 1:]).all()


def test_annotators_who_disagree_about_every_object_are_read() -> None:
    raters = np.zeros((N, C, H, W), "u1")
    for r in range(C):
        raters[:, r, r, :3] = 1
    read_maps(samples(), raters)


def test_two_annotators_who_mark_different_parts_are_read() -> None:
    """Planes of 0 and 1, few pixels of which are 0 in both."""
    raters = np.zeros((N, 2, H, W), "u1")
    raters[:, 0, :2], raters[:, 1, 2:] = 1, 1
    raters[:, :, 0, 0] = 0
    read_maps(softmax(0, N, 2, H, W), raters)


@pytest.mark.parametrize(("classes", "void", "declared"), [
    (4, 255, ""), (4, 0, " and give --ignore-index 255"), (300, 65535, ""),
    (300, 0, " and give --ignore-index 65535"),
])  # fmt: skip
def test_labels_from_1_are_proposed_with_a_void_id_that_is_no_class(
    classes: int, void: int, declared: str
) -> None:
    truth = np.full((1, 8, 8), classes, "u2")
    truth[0, 0] = 0
    free = void if void else 255 if classes < 255 else 65535
    said = f"save np.where(labels == 0, {free}, labels - 1){declared}. If they"
    maps_refused(softmax(0, 1, classes, 8, 8), said, truth=truth, ignore_index=void)


def test_bool_labels_of_several_classes() -> None:
    def warnings(p: Any) -> list[str]:
        truth = np.ones((N, H, W), bool)
        return uqeval.evaluate(p, truth, "segmentation").warnings

    assert any("bool, so only the classes 0 and 1 of 4" in text for text in warnings(samples()))
    assert not any("bool" in text for text in warnings(softmax(0, N, 2, H, W)))
