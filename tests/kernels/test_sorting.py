"""The radix sort against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.kernels.sorting import DIGITS, RADIX, radix_sort


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("bits", [1, 11, 12, 33, 64])
def test_sorts_like_numpy(n: int, bits: int) -> None:
    rng = np.random.default_rng(n * 100 + bits)
    keys = (
        rng.integers(0, 2**bits, n, np.uint64, endpoint=False)
        if bits < 64
        else rng.integers(0, 2**64 - 1, n, np.uint64, endpoint=True)
    )
    expected = np.sort(keys)
    spare = np.empty_like(keys)
    swapped = radix_sort(keys, spare, np.zeros((DIGITS, RADIX), np.int64))
    np.testing.assert_array_equal(spare if swapped else keys, expected)


def test_what_all_share_costs_no_pass() -> None:
    keys = np.full(5, 2**63 + 12345, np.uint64)
    assert not radix_sort(keys, np.zeros_like(keys), np.zeros((DIGITS, RADIX), np.int64))
    assert (keys == 2**63 + 12345).all()
