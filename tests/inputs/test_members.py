"""Members of an ensemble: no result depends on their order, and what differs is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused
from small_stores import CLASS_NAMES, NAMES, H, N, W, labels, probs, save

import uqeval
from uqeval.errors import DataError, StoreError
from uqeval.inputs.members import joined_members
from uqeval.stores.array import Store
from uqeval.usecases.verify.verifying import verify

RNG = np.random.default_rng(0)
MAP = RNG.random((N, H, W)).astype("f4")
NUMBERS = [RNG.normal(size=(N, H, W)).astype("f4") for _ in range(3)]


def with_labels(k: int) -> dict[str, np.ndarray]:
    return {"probs": probs(seed=k), "labels": labels()}


def numbers(k: int) -> dict[str, np.ndarray]:
    return {"mean": NUMBERS[k], "std": np.abs(NUMBERS[k]) + 1}


#: The predictions of a member, an array that any member may hold, and an evaluation that reads it.
SHARED: dict[str, tuple[Callable[[int], Any], dict[str, np.ndarray], dict[str, Any]]] = {
    "labels": (
        lambda k: {"probs": probs(seed=k)}, {"labels": labels()}, {"metrics": "segmentation"}
    ),
    "uncertainty": (with_labels, {"mine": MAP}, {"metrics": {"failure": {"uncertainty": "mine"}}}),
    "region": (
        with_labels, {"areas": labels()}, {"metrics": "segmentation", "region": "map:areas"}
    ),
    "depth": (with_labels, {"depth": MAP}, {"metrics": "segmentation", "region": "depth:0-0.5"}),
    "target": (numbers, {"target": NUMBERS[2]}, {"metrics": "regression"}),
    "valid": (
        lambda k: numbers(k) | {"target": NUMBERS[2]}, {"valid": MAP > 0.5},
        {"metrics": "regression"},
    ),
}  # fmt: skip


def results(paths: list[Path], options: dict[str, Any]) -> Any:
    report = uqeval.evaluate(paths, None, workers=1, **options)
    return report.results, report.items


def members(folder: Path, *arrays: dict[str, np.ndarray]) -> list[Path]:
    names = {"names": NAMES}
    return [save(folder / f"m{k}", own, names, together=1 + k) for k, own in enumerate(arrays)]


@pytest.mark.parametrize("name", SHARED)
def test_any_member_may_have_what_is_no_prediction(tmp_path: Path, name: str) -> None:
    of_member, arrays, options = SHARED[name]
    found = []
    for k, own in enumerate(([{}, arrays], [arrays, {}], [arrays, arrays])):
        paths = members(tmp_path / str(k), of_member(0) | own[0], of_member(1) | own[1])
        found.append(results(paths, options))
        assert uqeval.evaluate(paths[::-1], None, workers=1, **options).items
    assert found[1] == found[0] and found[2] == found[0]


@pytest.mark.parametrize("name", SHARED)
def test_members_with_other_values_are_refused(tmp_path: Path, name: str) -> None:
    of_member, arrays, options = SHARED[name]
    ((kind, values),) = arrays.items()
    changed = values.copy()
    changed[1] = values[1, ::-1]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | {kind: changed})
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), f"{paths[0]}/{kind}",  # noqa: B023
                f"{paths[1]}/{kind}", "differ", error=DataError)  # fmt: skip


def test_items_in_another_order_are_compared_by_name(tmp_path: Path) -> None:
    order = [2, 0, 1]
    first = save(tmp_path / "a", with_labels(0), {"names": NAMES}, 3)
    moved = {kind: values[order] for kind, values in with_labels(1).items()}
    second = save(tmp_path / "b", moved, {"names": [NAMES[i] for i in order]}, 2)
    options = {"metrics": "segmentation"}
    results([first, second], options)
    zarr.open_group(str(second))["labels"][:] = labels()
    refused(lambda: results([first, second], options), "differ", error=DataError)


def test_each_member_has_names_of_all_classes(tmp_path: Path) -> None:
    paths = members(tmp_path, with_labels(0), with_labels(1))
    zarr.open_group(str(paths[1])).attrs["class_names"] = CLASS_NAMES[:-1]
    for order in (1, -1):
        refused(lambda: results(paths[::order], {"metrics": "segmentation"}),  # noqa: B023
                f"{paths[1]}: 4 class_names", error=StoreError)  # fmt: skip


def test_cases_of_volumes_are_those_of_any_member() -> None:
    plain, cases = Store("plain", {}), Store("cases", {}, groups=("a", "a", "b"))
    other = Store("other", {}, groups=("a", "b", "b"))
    for stores in ([plain, cases], [cases, plain]):
        assert joined_members(stores).groups == ("a", "a", "b")
    for stores in ([plain, cases, other], [other, plain, cases]):
        refused(lambda: joined_members(stores), "item 1", "cases", "other", error=StoreError)  # noqa: B023


def test_the_report_names_the_member_that_has_an_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    members(Path(), {"probs": probs()}, with_labels(1) | {"areas": labels()})
    stores = [Path("m0"), Path("m1")]
    report = uqeval.evaluate(stores, None, "segmentation", workers=1, region="map:areas")
    assert report.inputs["labels"]["path"] == report.inputs["regions"][0]["path"] == "m1"
    report.save("r.json")
    found = verify("r.json")
    assert not found.problems()
    assert ("labels", "m1") in {(own["role"], own["path"]) for own in found.stores}
