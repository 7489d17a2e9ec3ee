"""Casts to float16 and back have the bits of NumPy's."""

from __future__ import annotations

import numpy as np

from uqeval.stores.float16 import to_half, to_single


def test_every_half_and_all_between_two() -> None:
    halves = np.arange(0x4000, dtype=np.uint16).view(np.float16)  # 0 up to 2
    exact = halves.astype(np.float32)
    middle = (exact[1:] + exact[:-1]) / 2
    around = np.concatenate([np.nextafter(middle, np.float32(x)) for x in (0, 2)])
    for values in (exact, middle[:-1], around[around < 1.999], np.float32([1e-45, 1e-38, 0])):
        expected = values.astype(np.float16).view(np.uint16)
        np.testing.assert_array_equal(to_half(values).view(np.uint16), expected)


def test_shapes_blocks_and_strides() -> None:
    values = (np.random.default_rng(0).random((7, 90, 110)) ** 30).astype(np.float32)
    for view in (values, values[:, ::2, 1:], values.T, values[:, :0]):
        np.testing.assert_array_equal(to_half(view), view.astype(np.float16))


def test_every_half_widened() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(2, -1)
    np.testing.assert_array_equal(to_single(halves), halves.astype(np.float32))
