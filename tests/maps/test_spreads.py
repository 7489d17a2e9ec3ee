"""Standard deviations stored as a variance or as a logarithm, and maps that are none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from number_stores import NAMES, close, numbers
from scenes import zarr_group

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.stores.kinds import SPREADS
from uqeval.usecases.convert import convert
from uqeval.usecases.inspect import inspect

OF_STD: dict[str, Any] = {
    "std": lambda s: s,
    "variance": np.square,
    "log_variance": lambda s: 2 * np.log(s),
    "log_var": lambda s: 2 * np.log(s),
    "logvar": lambda s: 2 * np.log(s),
    "log_std": np.log,
    "log_sigma": np.log,
    "log_b": lambda s: np.log(s / math.sqrt(2)),
}


def stored(name: str, members: int = 0) -> dict[str, np.ndarray]:
    arrays = numbers(1, members)
    std = arrays.pop("std").astype("f8")
    return {**arrays, name: OF_STD[name](std)}


def scores(given: Any, **options: Any) -> dict[str, Any]:
    return uqeval.evaluate(given, None, {"regression": {}}, **options).results["regression"]


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for field in ("rmse", "nll", "crps", "sharpness", "auce"):
        assert close(found[field], expected[field]), field


@pytest.mark.parametrize("members", [0, 3])
def test_every_form_is_the_same_standard_deviation(tmp_path: Path, members: int) -> None:
    assert set(OF_STD) == set(SPREADS)
    expected: dict[str, Any] = {}
    for name in OF_STD:
        path = tmp_path / f"{name}.npz"
        np.savez(path, **stored(name, members))
        report = uqeval.evaluate(path, None, {"regression": {}}, workers=1)
        expected = expected or report.results["regression"]
        same(report.results["regression"], expected)
        converted = report.inputs["predictions"][0].get("converted")
        if name == "std":
            assert converted is None
        else:
            assert converted["sigma"] == SPREADS[name]
            assert ("logarithm" in converted) == (name != "variance")
            assert inspect(str(path)).facts["sigma"] == SPREADS[name]


def test_logarithms_in_groups_items_and_converted_stores(tmp_path: Path) -> None:
    np.savez(tmp_path / "std.npz", **stored("std"))
    expected = scores(tmp_path / "std.npz")
    arrays = stored("log_variance")
    same(scores(zarr_group(tmp_path / "a.zarr", arrays)), expected)
    group = zarr.create_group(str(tmp_path / "items.zarr"))
    for i, name in enumerate(NAMES):
        own = group.create_group(f"items/{name}")
        for kind, values in arrays.items():
            own.create_array(kind, data=values[i], config={"write_empty_chunks": True})
    same(scores(tmp_path / "items.zarr"), expected)
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    same(scores(tmp_path / "b.zarr"), expected)


def test_two_spreads_are_refused_with_a_command(tmp_path: Path) -> None:
    path = zarr_group(tmp_path / "a.zarr", stored("log_b") | {"std": numbers(1)["std"]})
    with pytest.raises(StoreError) as caught:
        scores(path)
    assert "holds std and log_b; expected only one of them" in str(caught.value)
    assert "del zarr.open_group(" in str(caught.value) and "['log_b']" in str(caught.value)


def test_a_logarithm_too_large_is_told_with_its_formula(tmp_path: Path) -> None:
    arrays = stored("log_std")
    arrays["log_std"][:] = 5000
    np.savez(tmp_path / "r.npz", **arrays)
    with pytest.raises(DataError, match=r"first is 5000 .*σ = exp\(log_std\)"):
        scores(tmp_path / "r.npz")


def test_scores_of_sigma_refuse_logarithms_and_negative_maps(tmp_path: Path) -> None:
    arrays = numbers(1) | {"my_log_map": numbers(1)["std"], "energy": -numbers(1)["std"]}
    np.savez(tmp_path / "r.npz", **arrays)
    path = str(tmp_path / "r.npz")

    def evaluated(family: str, name: str) -> uqeval.Report:
        return uqeval.evaluate(path, None, {family: {"uncertainty": name}}, workers=1)

    with pytest.raises(
        UsageError, match=r"its name says that it is a logarithm.*uqeval sparsification"
    ):
        evaluated("regression", "my_log_map")
    assert evaluated("nmerci", "my_log_map").results["nmerci"]["nmerci"] is not None
    for family in ("regression", "nmerci"):
        with pytest.raises(
            DataError, match=r"values are negative, the first is -.*uqeval sparsification"
        ):
            evaluated(family, "energy")
    assert evaluated("sparsification", "energy").results["sparsification"]["ause"] is not None
    # A cache of the map, written where its sign did not matter, does not hide it.
    cache = tmp_path / "cache"
    for family in ("sparsification", "regression"):
        asked = {family: {"uncertainty": "energy"}}
        if family == "regression":
            with pytest.raises(DataError, match="negative"):
                uqeval.evaluate(path, None, asked, map_cache=cache)
        else:
            uqeval.evaluate(path, None, asked, map_cache=cache)


def test_the_own_spread_is_named_where_it_is_asked_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", **stored("log_variance"))
    asked = {"sparsification": {"uncertainty": "log_variance"}}
    with pytest.raises(StoreError, match=r"σ = exp\(log_variance / 2\) already. Leave"):
        uqeval.evaluate(tmp_path / "r.npz", None, asked)
