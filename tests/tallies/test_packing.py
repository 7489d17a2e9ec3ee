"""Packed states: packed together as alone, narrow and wide, of earlier versions and forged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from uqeval.tallies._fields import CountedItems, Field
from uqeval.tallies._packing import _MANY_ENTRIES, Packing, _mark

if TYPE_CHECKING:
    from uqeval.tallies._fields import Thin

ROWS, BINS = 4, 1 << 13
PACKING = Packing(
    "x", {"pixels": Field((ROWS, BINS), "int64"), "sum": Field((3,), "float64")}, added=()
)


def items(*entries: int) -> list[Thin]:
    """States with so many entries each."""
    rng = np.random.default_rng(0)
    return [
        [
            (np.sort(rng.choice(ROWS * BINS, n, replace=False)), rng.integers(1, 2**40, n)),
            (None, rng.normal(size=3)),
        ]
        for n in entries
    ]


@pytest.mark.parametrize(
    "entries",
    [(0, 0), (0, 5, 1), (_MANY_ENTRIES, _MANY_ENTRIES), (_MANY_ENTRIES + 1, 2 * _MANY_ENTRIES, 0)],
)
def test_many_and_few_entries_have_the_bytes_of_one_by_one(entries: tuple[int, ...]) -> None:
    states = items(*entries)
    packed = PACKING.pack_items(CountedItems.of(states))
    assert packed == [PACKING.pack(state) for state in states]
    for data, state in zip(packed, states, strict=True):
        for (places, values), (expected_places, expected) in zip(
            PACKING.unpack(data), state, strict=True
        ):
            assert (places is None) == (expected_places is None)
            if places is not None:
                np.testing.assert_array_equal(places, expected_places)
            np.testing.assert_array_equal(values, expected)


MANY = _MANY_ENTRIES + 1


@pytest.mark.parametrize("largest", [1, 255, 256, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**53])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_numbers_of_any_size_are_read_as_they_were(largest: int, dtype: str) -> None:
    packing = Packing("x", {"counts": Field((1 << 18,), dtype)}, added=())
    for step in (1, 255, 256, 300):
        places = np.arange(MANY) * step
        values = np.full(MANY, largest, dtype)
        ((found_places, found),) = packing.unpack(packing.pack([(places, values)]))
        np.testing.assert_array_equal(found_places, places)
        np.testing.assert_array_equal(found, values)
        assert found.dtype == np.dtype(dtype).newbyteorder("<")


def test_negative_sums_are_read_as_they_were() -> None:
    packing = Packing("x", {"sums": Field((1 << 18,), "int64", signed=True)}, added=())
    values = np.arange(MANY) - 5
    ((_, found),) = packing.unpack(packing.pack([(np.arange(MANY), values)]))
    np.testing.assert_array_equal(found, values)


def test_many_small_counts_take_two_bytes_each() -> None:
    packing = Packing("x", {"counts": Field((1 << 18,), "int64")}, added=())
    data = packing.pack([(np.arange(MANY) * 3, np.ones(MANY, np.int64))])
    assert len(data) == 4 + 8 + 2 * (1 + MANY)


def test_states_of_earlier_versions_are_read() -> None:
    """They had 4 bytes for a difference and 8 for a count, however many there were."""
    fields = {"counts": Field((1 << 18,), "int64")}
    places, values = np.arange(MANY) * 3, np.arange(1, MANY + 1)
    data = b"".join((
        _mark("x", fields), np.int64(MANY).tobytes(),
        np.diff(places, prepend=0).astype("<i4").tobytes(), values.astype("<i8").tobytes(),
    ))  # fmt: skip
    packing = Packing("x", fields, added=())
    for ((found_places, found),) in (
        packing.unpack(data),
        packing.unpack_items([data] * 2).thin(1),
    ):
        np.testing.assert_array_equal(found_places, places)
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("at", "byte", "message"),
    [
        (12, 0, "numbers of 0 bytes"), (12, 3, "numbers of 3 bytes"), (12, 8, "numbers of 8 bytes"),
        (12, 4, "requested"), (13 + MANY, 16, "numbers of 16 bytes"), (13 + MANY, 2, "requested"),
        (4, 200, "requested|too many|numbers of"), (11, 255, "entries in"),
    ],
)  # fmt: skip
def test_forged_widths_and_numbers_are_refused(at: int, byte: int, message: str) -> None:
    packing = Packing("x", {"counts": Field((1 << 18,), "int64")}, added=())
    data = bytearray(packing.pack([(np.arange(MANY), np.ones(MANY, np.int64))]))
    data[at] = byte
    with pytest.raises(ValueError, match=message):
        packing.unpack(bytes(data))


def test_a_float_has_one_width() -> None:
    packing = Packing("x", {"sums": Field((1 << 18,), "float64")}, added=())
    data = bytearray(packing.pack([(np.arange(MANY), np.ones(MANY))]))
    assert data[13 + MANY] == 8  # after the places, of one byte each
    data[13 + MANY] = 4
    with pytest.raises(ValueError, match="numbers of 4 bytes"):
        packing.unpack(bytes(data))


@pytest.mark.parametrize("size", [0, 3, 4, 10, 12, 13, 14, 100])
def test_states_that_are_cut_short_are_refused(size: int) -> None:
    packing = Packing("x", {"counts": Field((1 << 18,), "int64")}, added=())
    data = packing.pack([(np.arange(MANY), np.ones(MANY, np.int64))])
    with pytest.raises(ValueError, match=r"not of x|requested|no greater than"):
        packing.unpack(data[:size])
