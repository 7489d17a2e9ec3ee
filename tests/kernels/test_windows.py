"""Patches against the oracle, and the exactness that sliding windows need."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import labels

from uqeval.tallies._values import Uncertainty
from uqeval.tallies.patches import Patches

CLASSES = 3


def table(uncertainty: Any, label: Any, prediction: Any, **options: Any) -> dict[str, Any]:
    patches = Patches(Uncertainty("entropy"), CLASSES, **options)
    maps = {"entropy": uncertainty, "label": label, "prediction": prediction}
    return patches.table(maps)


def rows(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """(mean, right, valid, category) of the patches that have pixels."""
    columns = (v.tolist() for v in found.values())
    return [row for row in zip(*columns, strict=True) if row[3] >= 0]


def expected(u: Any, label: Any, prediction: Any, **options: Any) -> list[tuple[Any, ...]]:
    found = naive.patches([prediction == label], [u], [label], **options)
    return [
        (
            float(p["mean"]),
            p["right"],
            p["valid"],
            255 if p["category"] == "mixed" else p["category"],
        )
        for p in found
    ]


def scene(seed: int, height: int, width: int, void: float = 0.2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    label = labels(seed, height, width, classes=CLASSES, void=void)
    prediction = rng.integers(0, CLASSES, label.shape).astype("u1")
    return (rng.integers(0, 200, label.shape) / 64).astype("f4"), label, prediction


@given(
    st.integers(0, 10**6), st.integers(1, 13), st.integers(1, 13), st.integers(1, 6),
    st.integers(1, 8), st.sampled_from(["drop", "partial", "pad"]),
    st.sampled_from(["exclude", "inaccurate"]), st.sampled_from([0.0, 0.2, 1.0]),
)  # fmt: skip
def test_any_window_stride_border_and_void(
    seed: int,
    height: int,
    width: int,
    window: int,
    stride: int,
    border: str,
    void: str,
    share: float,
) -> None:
    maps = scene(seed, height, width, share)
    options = {"window": window, "stride": stride, "border": border, "void": void}
    assert rows(table(*maps, **options)) == expected(*maps, **options)


@pytest.mark.parametrize("border", ["drop", "partial", "pad"])
@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1), (2, 17)])
def test_one_row_and_one_column(border: Any, shape: tuple[int, int]) -> None:
    maps = scene(3, *shape)
    for window in (1, 2, 4):
        options = {"window": window, "stride": window, "border": border}
        assert rows(table(*maps, **options)) == expected(*maps, **options)


def test_a_window_larger_than_the_image_has_no_patch() -> None:
    assert len(table(*scene(0, 3, 5), window=4, stride=1)["mean"]) == 0


@pytest.mark.parametrize("window", [2, 3, 4])
def test_sliding_gives_the_aligned_patches_bit_for_bit(window: int) -> None:
    _, label, prediction = scene(1, 12, 13)
    u = np.random.default_rng(1).normal(size=label.shape).astype("f4") * np.float32(1e3)
    aligned = table(u, label, prediction, window=window, stride=window)
    sliding = table(u, label, prediction, window=window, stride=1)
    wide = 13 - window + 1
    for name, values in aligned.items():
        mine = sliding[name].reshape(-1, wide)[::window, ::window]
        assert mine.tobytes() == values.reshape(mine.shape).tobytes(), name


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("large", [1e30, 3e38, 12345.678])
def test_zeros_beside_large_values_are_exactly_zero(stride: int, large: float) -> None:
    u = np.full((16, 16), large, "f4")
    u[5:11, 6:12] = 0
    label = np.zeros((16, 16), "u1")
    mean = table(u, label, label, window=4, stride=stride)["mean"]
    side = len(range(0, 13, stride))
    of_zeros = [
        mean.reshape(side, side)[y // stride, x // stride]
        for y in range(0, 13, stride)
        for x in range(0, 13, stride)
        if y >= 5 and y + 4 <= 11 and x >= 6 and x + 4 <= 12
    ]
    assert of_zeros or stride > 3
    assert all(v == 0 and not np.signbit(v) for v in of_zeros)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=49, max_size=49), st.integers(1, 3))
def test_means_of_any_floats_are_rounded_once(values: list[float], stride: int) -> None:
    u = np.array(values, "f4").reshape(7, 7)
    label = np.zeros((7, 7), "u1")
    mean = table(u, label, label, window=4, stride=stride)["mean"]
    exact = np.array([row[0] for row in expected(u, label, label, window=4, stride=stride)], "f4")
    # float64 sums of 16 float32: at worst half a unit of float32 is decided by rounding.
    scale = np.abs(u).max() * 2.0**-50
    assert (np.abs(mean.astype("f8") - exact) <= np.spacing(np.abs(exact)) + scale).all()


@pytest.mark.parametrize("void", ["exclude", "inaccurate"])
def test_uncertainty_of_void_pixels(void: str) -> None:
    u = np.array([[np.nan if void == "exclude" else 4.0, 1.0], [2.0, 3.0]], "f4")
    label = np.array([[255, 0], [0, 0]], "u1")
    prediction = np.zeros((2, 2), "u1")
    found = rows(table(u, label, prediction, window=2, stride=2, void=void))
    assert found == ([(2.0, 3, 3, 0)] if void == "exclude" else [(2.5, 3, 4, 0)])


def test_categories() -> None:
    label = np.array([[0, 1, 1, 1, 0, 2], [0, 1, 1, 255, 2, 1]], "u1")
    u = np.zeros((2, 6), "f4")
    found = table(u, label, label, window=2, stride=2)
    assert found["category"].tolist() == [255, 1, 255]
    # The sums of classes 0, 2 and 1, 1 agree; their squares do not.
    apart = np.array([[0, 2, 1, 1], [1, 1, 1, 1]], "u1")
    assert table(u[:, :4], apart, apart, window=2, stride=2)["category"].tolist() == [255, 1]


def test_a_patch_of_void_pixels_is_dropped() -> None:
    label = np.full((4, 4), 255, "u1")
    u = np.ones((4, 4), "f4")
    assert rows(table(u, label, label * 0, window=2, stride=2)) == []
    kept = rows(table(u, label, label * 0, window=2, stride=2, void="inaccurate"))
    assert kept == [(1.0, 0, 4, 255)] * 4


def test_top_k_takes_ranks() -> None:
    label = np.zeros((2, 4), "u1")
    maps = {
        "entropy": np.zeros((2, 4), "f4"),
        "label": label,
        "label_rank": np.array([[0, 1, 2, 2], [1, 2, 0, 3]], np.uint16),
    }
    for k, hits in ((2, [3, 1]), (3, [4, 3])):
        found = Patches(Uncertainty("entropy"), CLASSES, 2, 2, top_k=k).table(maps)
        assert found["hits"].tolist() == hits


def test_large_windows_count_their_classes_exactly() -> None:
    size = 40
    label = np.full((size, size), 2, "u1")
    u = np.full((size, size), 0.1, "f4")
    found = table(u, label, label, window=size, stride=size)
    assert rows(found) == [(float(np.float32(0.1)), size * size, size * size, 2)]
    label[-1, -1] = 1
    assert table(u, label, label, window=size, stride=size)["category"].tolist() == [255]
