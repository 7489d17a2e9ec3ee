"""Arrays in memory, and the chunks of NumPy arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uqeval.errors import StoreError
from uqeval.stores.files import numpy_array
from uqeval.stores.files.numpy_array import in_memory

EVERYTHING = (slice(None),) * 4


def values() -> np.ndarray:
    return np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype("f2")


def test_the_advice_for_objects_works() -> None:
    """Such as tables of pandas with types of their own."""
    with pytest.raises(StoreError, match=r"holds object, .*: array\.astype\(float\)") as caught:
        in_memory(values().astype(object))
    assert "pickled" not in str(caught.value)
    in_memory(values().astype(object).astype(float))


def test_the_advice_for_texts_works() -> None:
    names = np.array(["a", "b"], "S1")
    with pytest.raises(StoreError, match=r"Save texts as str: array\.astype\(str\)"):
        in_memory(names)
    assert in_memory(names.astype(str)).read((slice(None),)).tolist() == ["a", "b"]


def test_fingerprint_of_nothing_and_of_one() -> None:
    assert in_memory(np.zeros((0, 3))).fingerprint() != in_memory(np.zeros((1, 3))).fingerprint()


def test_fingerprint_in_memory_is_of_every_value_in_any_order_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numpy_array, "_TILE_BYTES", 1 << 14)
    data = np.random.default_rng(0).integers(0, 255, (5, 300, 200, 3), dtype="u1")
    first = in_memory(data).fingerprint()
    for view in (np.asfortranarray(data), data[..., ::-1].copy()[..., ::-1],
                 data.transpose(0, 3, 1, 2).copy().transpose(0, 2, 3, 1)):  # fmt: skip
        assert not view.flags.c_contiguous
        assert in_memory(view).fingerprint() == first
    assert in_memory(data.reshape(5, 200, 300, 3)).fingerprint() != first
    for place in np.random.default_rng(1).integers(0, data.size, 20):
        other = data.copy()
        other.reshape(-1)[place] += 1
        assert in_memory(other).fingerprint() != first


@pytest.mark.parametrize(
    "values", [np.zeros(()), np.zeros((0, 3)), np.array(["a", "bc"]), np.ones((2, 3), ">f2")]
)
def test_fingerprint_in_memory_of_unusual_arrays(values: Any) -> None:
    assert in_memory(values).fingerprint() == in_memory(values.copy()).fingerprint()


def test_fingerprint_in_memory_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    array = in_memory(values())
    first = array.fingerprint()
    monkeypatch.setattr(numpy_array, "zlib", None)
    assert array.fingerprint() == first


def test_in_memory() -> None:
    array = in_memory(values())
    assert array.where == "array in memory"
    assert np.array_equal(array.read(EVERYTHING), values())


def test_what_was_written_to_a_map_of_ones_own_stays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros_like(values()))
    own = np.load(tmp_path / "a.npy", mmap_mode="c")
    own[...] = values()
    array = in_memory(own)
    assert array.fingerprint() == in_memory(values()).fingerprint()
    assert np.array_equal(array.read(EVERYTHING), values())
    assert np.array_equal(own, values())


@pytest.mark.parametrize(
    ("shape", "dtype", "chunks"),
    [
        ((9, 4, 19, 1024, 2048), "f2", (1, 4, 19, 26, 2048)),
        ((9, 19, 64, 64), "f4", (1, 19, 64, 64)),
        ((9, 500, 200, 1024, 2048), "f8", (1, 500, 200, 1, 2048)),
        ((9, 300, 400), "u1", (1, 300, 400)),
        ((9,), "u1", (9,)),
    ],
)
def test_chunks_are_bands_of_rows(
    shape: tuple[int, ...], dtype: str, chunks: tuple[int, ...]
) -> None:
    lazy = np.broadcast_to(np.zeros((), dtype), shape)
    assert in_memory(lazy).chunks == chunks


@pytest.mark.parametrize(
    ("axes", "shape", "chunks"),
    [
        (("item", "class", "y", "x"), (9999, 10, 1, 1), (4096, 10, 1, 1)),
        (("item", "class"), (9999, 10), (4096, 10)),
        (("item", "y", "x"), (999, 32, 64), (256, 32, 64)),
        (("item", "y", "x"), (5, 32, 64), (5, 32, 64)),
        (("item", "class", "y", "x"), (9, 19, 64, 64), (6, 19, 64, 64)),
        (("class", "item", "y", "x"), (19, 9, 1024, 2048), (19, 1, 53, 2048)),
        (("class", "y", "x"), (19, 8, 8), (19, 8, 8)),
    ],
)
def test_small_items_are_read_many_at_a_time(
    axes: tuple[str, ...], shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    array = in_memory(np.broadcast_to(np.zeros((), "f4"), shape))
    array.suit(axes)
    assert array.chunks == chunks
