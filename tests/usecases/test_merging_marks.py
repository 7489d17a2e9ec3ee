"""Every number of a merged report has the bits of the single run, is null, or is marked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval

T = {"threshold": "0.9"}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("segmentation", {}), ("pavpu", T | {"curve_range": "0:1.4"}),
    ("pavpu", T | {"threshold_scope": "item"}), ("calibration", {}), ("failure", T),
    ("sparsification", {}), ("sparsification", {"scope": "item"}),
    ("sparsification", {"definition": "mono-uncertainty", "scope": "set"}),
    ("sparsification", {"definition": "torch-uncertainty-0.13"}),
    ("regression", {}), ("regression", {"proportion": "quantile"}), ("nmerci", {"depth_step": 2.0}),
    ("nmerci", {"definition": "public-code"}), ("sparsification", {"error": "rmse"}),
]  # fmt: skip


def given(family: str, options: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    if family in ("regression", "nmerci") or options.get("error") == "rmse":
        mean = rng.normal(10, 2, (4, 20, 30)).astype("f4")
        target = (mean + rng.normal(0, 1, mean.shape)).astype("f4")
        std = rng.uniform(0.5, 2, mean.shape).astype("f4")
        return {"predictions": {"mean": mean, "std": std, "target": target}}
    label = rng.integers(0, 4, (4, 6, 7)).repeat(4, 1).repeat(4, 2)
    z = rng.normal(size=(4, 3, 4, 24, 28)) + 1.5 * (
        label[:, None, None] == np.arange(4)[:, None, None]
    )
    p = np.exp(z)
    return {"predictions": (p / p.sum(2, keepdims=True)).astype("f4"), "labels": label.astype("u1")}


def rows_of(values: Any, rows: slice) -> Any:
    if isinstance(values, dict):
        return {name: own[rows] for name, own in values.items()}
    return values[rows]


def differing(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Return the paths of numbers that are neither the same nor null in the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one:
            if not name.endswith(("_reason", "_bound")):
                yield from differing(one[name], other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for a, b in zip(one, other, strict=True):
            yield from differing(a, b, path)
    elif one != other and other is not None:
        yield path


@pytest.mark.parametrize(("family", "options"), CASES)
def test_merged_numbers(family: str, options: dict[str, Any], tmp_path: Path) -> None:
    data, metrics = given(family, options), {family: options}
    whole = json.loads(uqeval.evaluate(**data, metrics=metrics, workers=1).to_json())
    files = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    for states, names in zip(files, (["0", "1"], ["2", "3"]), strict=True):
        rows = slice(int(names[0]), int(names[1]) + 1)
        half = {name: rows_of(values, rows) for name, values in data.items()}
        uqeval.evaluate(**half, metrics=metrics, states=states, names=names, workers=1)
    merged = json.loads(uqeval.merge(files).to_json())
    marked = {name for name, own in merged["metrics"].items() if "approximate" in own}
    for key in ("results", "items", "numerics"):
        for path in differing(whole[key], merged[key]):
            fields = path.split(".")
            places = {".".join(fields[:n]) for n in range(2, len(fields) + 1)}
            places.add(f"{fields[0]}.{fields[-1]}")
            assert places & marked, path
