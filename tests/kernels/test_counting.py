"""Ranks, thresholds and counts."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from compiled import compiled
from hypothesis import given
from hypothesis import strategies as st

from uqeval.kernels import counting
from uqeval.kernels.counting import (
    FINE,
    FINE_BITS,
    count_patches,
    count_ranks,
    count_ranks_finely,
)
from uqeval.kernels.items import (
    count_by_uncertainty_of_items,
    count_classes_of_items,
    measure_items,
)

rank_key = compiled(counting.rank_key)

LADDER = [
    -np.inf, -3.4e38, -1.5, -1.0, -1e-30, -(2.0**-126), -(2.0**-149), -0.0,
    0.0, 2.0**-149, 2.0**-126, 1e-30, 1.0, 1.0 + 2.0**-23, 3.4e38, np.inf,
]  # fmt: skip


def test_keys_order_like_floats() -> None:
    keys = [int(rank_key(np.float32(v))) for v in LADDER]
    assert keys == sorted(set(keys))
    assert keys[0] >= 0 and keys[-1] < 2**32


def test_zeros_are_neighbours() -> None:
    low, high = (int(rank_key(np.float32(v))) for v in (-0.0, 0.0))
    assert high - low == 1


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=2, max_size=30))
def test_keys_of_any_floats_order_like_them(values: list[float]) -> None:
    keys = [int(rank_key(np.float32(v + 0.0))) for v in values]
    for i, j in zip(np.argsort(values)[:-1], np.argsort(values)[1:], strict=True):
        assert (keys[i] < keys[j]) == (values[i] < values[j])


def test_counts_of_ranks_lie_at_their_keys() -> None:
    values = np.array([*LADDER, 1.0, 0.5], "f4")
    group = np.zeros(len(values), np.int32)
    group[-1] = -1
    coarse = np.zeros((1, 1 << (32 - FINE_BITS)), np.int64)
    count_ranks(values, group, -1, True, coarse)
    keys = [int(rank_key(v)) for v in values[:-1]]
    expected = np.bincount([k >> FINE_BITS for k in keys], minlength=coarse.shape[1])
    np.testing.assert_array_equal(coarse[0], expected)
    slot = np.full(coarse.shape, -1, np.int16)
    slot[0, keys[-1] >> FINE_BITS] = 0
    fine = np.zeros((1, FINE), np.int64)
    count_ranks_finely(values, group, -1, True, slot, fine)
    assert fine.sum() == 3  # 1.0 twice, and the number after it
    assert fine[0, keys[-1] & (FINE - 1)] == 2


def test_pixels_by_class() -> None:
    first = np.array([0, 4, 4, 5])
    label = np.array([0, 1, 2, 255, 1], "u1")
    prediction = np.array([0, 2, 2, 1, 1], "u1")
    labelled, predicted, correct = np.zeros((3, 3, 3), np.int64)
    void = np.zeros((3, 1), np.int64)
    count_classes_of_items(first, label, prediction, 255, labelled, predicted, correct, void)
    assert labelled.tolist() == [[1, 1, 1], [0, 0, 0], [0, 1, 0]]
    assert predicted.tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0]]
    assert correct.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert void.tolist() == [[1], [0], [0]]


def test_moments_of_classes() -> None:
    first = np.array([0, 4, 5])
    value = np.array([1.0, -2.0, 4.0, 99.0, 3.0], "f4")
    label = np.array([0, 0, 1, 255, 2], "u1")
    count, total = np.zeros((2, 3), np.int64), np.zeros((2, 3))
    least, most = np.full((2, 3), np.inf), np.full((2, 3), -np.inf)
    measure_items(first, value, label, 255, count, total, least, most)
    assert count.tolist() == [[2, 1, 0], [0, 0, 1]]
    assert total.tolist() == [[-1, 4, 0], [0, 0, 3]]
    assert least.tolist() == [[-2, 4, np.inf], [np.inf, np.inf, 3]]
    assert most.tolist() == [[1, 4, -np.inf], [-np.inf, -np.inf, 3]]


def test_a_pixel_on_an_edge_lies_below_it() -> None:
    value = np.array([0.1, 0.2, 0.3, 0.2, 0.3], "f4")
    label = np.array([0, 0, 0, 255, 1], "u1")
    pixels, correct = np.zeros((2, 2, 2, 3), np.int64)
    edges, first = np.array([0.1, 0.2], "f4"), np.array([0, 4, 5])
    count_by_uncertainty_of_items(first, value, label, label * 0, 255, edges, pixels, correct)
    assert pixels.tolist() == [[[1, 1, 1], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]]]
    assert correct.tolist() == [[[1, 1, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]


def patches_of(seed: int, n: int = 60) -> list[naive.Patch]:
    rng = np.random.default_rng(seed)
    return [
        {
            "right": int(rng.integers(0, 5)),
            "valid": 4,
            "mean": np.float32(rng.integers(0, 11) / 10),
            "category": [0, 1, "mixed"][rng.integers(0, 3)],
        }
        for _ in range(n)
    ]


def counted(
    patches: list[naive.Patch],
    threshold: list[float],
    curve: Any,
    accuracy: float = 0.5,
    **ops: bool,
) -> tuple[Any, ...]:
    mean = np.array([p["mean"] for p in patches], "f4")
    hits, valid = (np.array([p[k] for p in patches], np.int32) for k in ("right", "valid"))
    category = np.array([255 if p["category"] == "mixed" else p["category"] for p in patches])
    counts, by_threshold = np.zeros((3, 2, 2), np.int64), np.zeros((3, 2, 102), np.int64)
    by_accuracy, ties = np.zeros((102, 2), np.int64), np.zeros(2, np.int64)
    count_patches(
        mean, hits, valid, category.astype(np.int32), 255, len(threshold) > 1,
        np.array(threshold, "f4"), np.array(curve, "f4"), accuracy, np.arange(101) / 100,
        ops.get("accurate_closed", False), ops.get("uncertain_closed", False),
        counts, by_threshold, by_accuracy, ties,
    )  # fmt: skip
    return counts, by_threshold, by_accuracy, ties


STEPS = [i / 100 for i in range(101)]


@pytest.mark.parametrize("closed_a", [False, True])
@pytest.mark.parametrize("closed_u", [False, True])
def test_patches_on_thresholds(closed_a: bool, closed_u: bool) -> None:
    patches = patches_of(1)
    ops = (">=" if closed_a else ">", ">=" if closed_u else ">")
    counts, by_threshold, by_accuracy, ties = counted(
        patches, [0.4], [STEPS], accurate_closed=closed_a, uncertain_closed=closed_u
    )
    expected = naive.counts(patches, 0.5, 0.4, *ops)
    assert ties.tolist() == list(expected["ties"].values())
    assert ties.all()
    for c, name in enumerate((0, 1, "mixed")):
        mine = [p for p in patches if p["category"] == name]
        n = naive.counts(mine, 0.5, 0.4, *ops)
        assert counts[c].tolist() == [[n["n_ic"], n["n_iu"]], [n["n_ac"], n["n_au"]]]
    for k, t in enumerate(STEPS):
        n = naive.counts(patches, 0.5, t, *ops)
        uncertain = by_threshold.sum(axis=0)[:, k + 1 :].sum(axis=1)
        assert uncertain.tolist() == [n["n_iu"], n["n_au"]]
        n = naive.counts(patches, t, 0.4, *ops)
        accurate = by_accuracy[k + 1 :].sum(axis=0)
        assert accurate.tolist() == [n["n_ac"], n["n_au"]]


def test_each_category_has_its_own_threshold() -> None:
    patches = patches_of(2)
    limits = [0.2, 0.5, 0.8]
    counts, by_threshold, _, _ = counted(patches, limits, [[v * t for t in STEPS] for v in limits])
    for c, name in enumerate((0, 1, "mixed")):
        mine = [p for p in patches if p["category"] == name]
        n = naive.counts(mine, 0.5, limits[c])
        assert counts[c].tolist() == [[n["n_ic"], n["n_iu"]], [n["n_ac"], n["n_au"]]]
        assert by_threshold[c, :, -1].tolist() == counts[c, :, 1].tolist()


def test_dropped_patches_are_not_counted() -> None:
    patches = patches_of(3, 8)
    for p in patches:
        p["category"] = -1
        p["valid"] = 0
    assert not any(found.any() for found in counted(patches, [0.4], [STEPS]))
