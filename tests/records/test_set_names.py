"""Names of OUT sets do not depend on the order of the stores."""

from __future__ import annotations

import itertools

import pytest

from uqeval.disk.suffixes import OF_STORES
from uqeval.records.set_names import is_order_unknown, moved_stores, set_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["fog.v1.npz", "d/fog.v2.npz"], ["fog.v1", "fog.v2"]),
        (["fog.v1", "fog.v2"], ["fog.v1", "fog.v2"]),  # folders
        (["d/x/fog.npz", "d/y/fog.NPZ", "rain.zarr.zip"], ["x/fog", "y/fog", "rain"]),
        (["fog.npz", "x/fog.npz"], ["fog", "x/fog"]),
        (["a/b/fog.zarr", "c/b/fog.zarr"], ["a/b/fog", "c/b/fog"]),
        (["fog.npz", "fog.npy"], ["fog.npz", "fog.npy"]),
        (["in.npz"], ["in.npz"]),
        (["d/in.npz", "out.h5"], ["d/in", "out"]),
        (["a.h5::/fog", "a.h5::/rain"], ["fog", "rain"]),
        (["s3://one/fog.zarr", "s3://two/fog.zarr"], ["one/fog", "two/fog"]),
    ],
)
def test_names_follow_paths(paths: list[str], names: list[str]) -> None:
    for order in itertools.permutations(range(len(paths))):
        assert set_names([paths[k] for k in order]) == [names[k] for k in order]


@pytest.mark.parametrize("suffix", sorted(OF_STORES))
def test_each_suffix_of_a_store_is_left_out(suffix: str) -> None:
    assert set_names([f"d/fog{suffix}", f"d/rain{suffix.upper()}.zip"]) == ["fog", "rain"]


def test_arrays_in_memory_are_numbered() -> None:
    assert set_names([None]) == ["out"]
    assert set_names([None, "d/out.npz", None]) == ["out", "d/out", "out_2"]


def inputs(**paths: str) -> dict[str, object]:
    """A record of inputs with one store in each set."""
    return {
        "predictions": [{"path": path} for path in paths.values()],
        "sets": [{"name": name, "items": 2} for name in paths],
    }


IN = {"in": "known.npz"}
OLD = inputs(**IN, fog="fog.v1.npz", fog_2="fog.v2.npz")


def test_stores_in_other_sets_are_found_by_their_paths() -> None:
    assert not list(moved_stores(OLD, OLD))
    swapped = inputs(**IN, fog="m/fog.v2.npz", fog_2="m/fog.v1.npz")
    (found,) = moved_stores(OLD, swapped)
    assert found == ("fog.v1", 2, ("fog", "fog_2"), False)
    # A report of this version calls them otherwise, so no score has the same address.
    named = inputs(**IN, **{"fog.v2": "fog.v2.npz", "fog.v1": "fog.v1.npz"})
    assert not list(moved_stores(OLD, named))
    exchanged = inputs(**{"in": "d/rain.npz", "known": "d/known.npz", "fog": "d/fog.npz"})
    (found,) = moved_stores(inputs(**IN, fog="fog.npz", rain="rain.npz"), exchanged)
    assert found.of_kind and found.first == "known"
    # Shards: the same file name is IN in one and OUT in the other.
    first, second = ({"in": f"k/{n}.npz", "out": f"f/{n + 1}.npz"} for n in (0, 1))
    assert not list(moved_stores(inputs(**first), inputs(**second)))


def test_names_by_order_need_names_of_items() -> None:
    arrays = {"in": "arrays in memory", "out": "arrays in memory", "out_2": "arrays in memory"}
    assert is_order_unknown(inputs(**arrays), inputs(**arrays))
    assert not is_order_unknown(OLD, OLD)
    elsewhere = inputs(**IN, fog="fog.v3.npz", fog_2="fog.v4.npz")
    assert is_order_unknown(OLD, elsewhere)
    named = inputs(**IN, fog="fog.npz", rain="rain.npz")
    assert not is_order_unknown(named, named)
