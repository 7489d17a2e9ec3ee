"""States of items packed together: they come back, and no hostile bytes take more than they may."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from numcodecs.zstd import compress

from uqeval.stores.compression import MAGIC
from uqeval.stores.states.blocks import MOST_TOGETHER, ItemStates, PackedItems

MOST = 100


@pytest.mark.parametrize("states", [[b"one"], [b""], [b"one", b"", b"three"], [b"x" * 100] * 300])
def test_states_come_back(states: list[bytes]) -> None:
    packed = PackedItems.of(states)
    assert packed.items == len(states)
    assert packed.states(MOST) == states
    assert packed == PackedItems.of(list(states))


def test_one_state_is_packed_as_in_earlier_versions() -> None:
    assert PackedItems.of([b"one"]).data == zlib.compress(b"one", 1)


def test_large_states_come_back() -> None:
    rng = np.random.default_rng(0)
    states = [rng.bytes(70_000), bytes(10**6), b"small"]
    for own in (states, states[:1], states[1:2]):
        packed = PackedItems.of(own)
        assert packed.data.startswith(MAGIC)
        assert packed.states(10**6) == own
        with pytest.raises(ValueError, match=r"it can have|is the most"):
            packed.states(69_999)


@pytest.mark.parametrize("items", [1, 2])
@pytest.mark.parametrize("damage", ["cut", "more", "frames", "no size", "flipped"])
def test_damaged_large_states_are_refused(damage: str, items: int) -> None:
    text = (lengths(40_000, 40_000) if items == 2 else b"") + bytes(80_000)
    data = bytes(compress(text, 1))
    assert len(PackedItems(data, items).states(80_000)) == items
    changed = {
        "cut": data[:-1], "more": data + b"x", "frames": data * 2,
        "no size": data[:4] + bytes([data[4] & 0x1F]) + data[5:], "flipped": data[:5],
    }  # fmt: skip
    with pytest.raises(ValueError):
        PackedItems(changed[damage], items).states(80_000)


def test_small_states_pack_better_together() -> None:
    states = [bytes([i % 7]) * 60 for i in range(256)]
    alone = sum(len(PackedItems.of([state]).data) for state in states)
    assert len(PackedItems.of(states).data) < alone / 5


def lengths(*sizes: int) -> bytes:
    return struct.pack(f"<{len(sizes)}I", *sizes)


@pytest.mark.parametrize(
    ("data", "items"),
    [
        (b"", 1),
        (b"nonsense", 1),
        (b"nonsense", 2),
        (zlib.compress(b"x" * (MOST + 1)), 1),
        (zlib.compress(b"x" * 50)[:-3], 1),
        (zlib.compress(bytes(10**6)), 1),
        (zlib.compress(b"abc"), 2),
        (zlib.compress(lengths(MOST + 1, 0) + b"x" * (MOST + 1)), 2),
        (zlib.compress(lengths(3, 3) + b"abcde"), 2),
        (zlib.compress(lengths(3, 3) + b"abcdefg"), 2),
        (zlib.compress(lengths(3, 3) + b"abcdef")[:-2], 2),
        (zlib.compress(b"abc"), 10**9),
    ],
)
def test_strange_bytes_are_refused(data: bytes, items: int) -> None:
    with pytest.raises(ValueError):
        PackedItems(data, items).states(MOST)


def test_states_that_claim_too_much_together_are_refused() -> None:
    each = MOST_TOGETHER // 2
    data = zlib.compress(lengths(each, each, each), 1)
    with pytest.raises(ValueError, match="3 states of"):
        PackedItems(data, 3).states(each)
    data = zlib.compress(lengths(each, each, each) + bytes(3 * each), 1)
    with pytest.raises(ValueError, match="more than the"):
        PackedItems(data, 3).states(each)


def test_any_bytes_give_states_or_an_error() -> None:
    rng = np.random.default_rng(0)
    whole = PackedItems.of([b"one", b"two", b"three"])
    refused = 0
    for _ in range(300):
        data = bytearray(whole.data)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            assert len(PackedItems(bytes(data), 3).states(MOST)) == 3
        except ValueError:
            refused += 1
    assert refused > 250


def test_the_states_of_a_run() -> None:
    blocks = [PackedItems.of([b"a", b"b"]), PackedItems.of([b"c"])]
    states = ItemStates(MOST, blocks)
    assert list(states) == [b"a", b"b", b"c"] and len(states) == 3
    assert [states[i] for i in (0, 1, 2, -1)] == [b"a", b"b", b"c", b"c"]
    assert states[1:] == [b"b", b"c"]
    for i in (3, -4):
        with pytest.raises(IndexError):
            states[i]


def test_a_block_is_unpacked_once_for_items_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    unpack, calls = PackedItems.states, []

    def counted(self: PackedItems, most: int) -> list[bytes]:
        calls.append(self)
        return unpack(self, most)

    monkeypatch.setattr(PackedItems, "states", counted)
    blocks = [PackedItems.of([bytes([block, i]) for i in range(50)]) for block in range(3)]
    states = ItemStates(MOST, blocks)
    assert [states[i] for i in range(150)] == [bytes([i // 50, i % 50]) for i in range(150)]
    assert calls == blocks
    assert (states[149], states[0], states[149]) == (b"\x02\x31", b"\x00\x00", b"\x02\x31")
