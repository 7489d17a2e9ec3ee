"""Counting by rank key: rows, bins, squares, void."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uqeval.kernels.items import count_undetected_of_items
from uqeval.kernels.ranked import LAST_BITS, count_ranked

VOID = 255


def key_of(value: float) -> int:
    """The rank key of a float32, from its bits."""
    bits = int(np.float32(value).view(np.uint32))
    return bits + 2**31 if bits < 2**31 else 2**32 - 1 - bits


def counted(
    score: Any, error: Any, label: Any, bins: list[tuple[int, int]], skip: int, bits: int,
    by_class: bool = False, squared: bool = False, dtype: str = "f8",
) -> tuple[Any, Any]:  # fmt: skip
    """Pixels and errors [row, bin] by plain loops, compared with the kernel's."""
    expected = np.zeros((2, len(bins), 1 << bits))
    for v, e, y in zip(score.ravel(), error.ravel(), label.ravel(), strict=True):
        row = (int(y) if by_class else 0, key_of(v) >> (32 - skip))
        if y != VOID and row in bins:
            at = bins.index(row), (key_of(v) >> (32 - skip - bits)) % (1 << bits)
            expected[0][at] += 1
            expected[1][at] += float(e) ** (2 if squared else 1)
    last = 1 << LAST_BITS
    prefixes = sorted({p for _, p in bins})
    blocks = sorted({p // last for p in prefixes})
    block = np.zeros((1 << skip) // last + 1, np.int32)
    block[blocks] = np.arange(1, len(blocks) + 1)
    column = np.zeros((len(blocks) + 1, last), np.int32)
    slot = np.full((4, len(prefixes) + 1), -1, np.int32)
    for i, (g, p) in enumerate(bins):
        column[block[p // last], p % last] = prefixes.index(p) + 1
        slot[g, prefixes.index(p) + 1] = i
    pixels, errors = np.zeros(expected[0].shape, np.int64), np.zeros(expected[0].shape, dtype)
    count_ranked(
        score, error, label, VOID, by_class, squared, block, column, slot,
        32 - skip, 32 - skip - bits, (1 << bits) - 1, pixels, errors,
    )  # fmt: skip
    np.testing.assert_array_equal(pixels, expected[0])
    np.testing.assert_allclose(errors, expected[1], rtol=1e-14)
    return pixels, errors


def maps(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    score = np.round(8 * rng.normal(size=(6, 7))).astype("f4") / 8
    label = rng.choice([0, 1, 2, 3, VOID], (6, 7)).astype("u1")
    return score, rng.random((6, 7)).astype("f4"), label


@pytest.mark.parametrize("squared", [False, True])
def test_all_pixels_by_their_high_bits(squared: bool) -> None:
    score, error, label = maps(0)
    pixels, _ = counted(score, error, label, [(0, 0)], 0, 12, squared=squared)
    assert pixels.sum() == (label != VOID).sum()


def test_by_class_in_some_bins() -> None:
    score, error, label = maps(1)
    wanted = sorted({(int(y), key_of(v) >> 23) for v, y in zip(score[0], label[0], strict=True)})
    pixels, _ = counted(
        score, error, label, [w for w in wanted if w[0] != VOID], 9, 4, by_class=True
    )
    assert pixels.sum() > 0


def test_wrong_pixels_are_counted_as_integers() -> None:
    score, error, label = maps(2)
    wrong = np.round(error).astype("f4")
    _, errors = counted(score, wrong, label, [(0, 0)], 0, 8, dtype="i8")
    assert errors.sum() == wrong[label != VOID].sum()


def test_neighbours_are_told_apart_by_the_last_bits() -> None:
    score = (np.float32(0.5).view("u4") + np.arange(8, dtype="u4")).view("f4").reshape(2, 4)
    label = np.zeros((2, 4), "u1")
    pixels, _ = counted(score, score, label, [(0, key_of(0.5) >> 10)], 22, 10)
    assert pixels[0, :8].tolist() == [1] * 8


def test_undetected_errors_are_those_not_above_the_threshold() -> None:
    first = np.array([0, 5, 6])
    score = np.array([0.1, 0.2, 0.3, 0.2, 0.2, 0.1], "f4")
    prediction = np.array([1, 1, 1, 0, 1, 0], "u1")
    label = np.array([0, 0, 0, 0, VOID, 1], "u1")
    counts = np.zeros((2, 2, 3), np.int64)
    count_undetected_of_items(first, score, prediction, label, VOID, np.float32(0.2), counts)
    assert counts.tolist() == [[[4, 3, 2], [0, 0, 0]], [[0, 0, 0], [1, 1, 1]]]
