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
from uqeval.inputs import InputOptions, open_inputs
from uqeval.inputs.members import joined_members
from uqeval.stores.array import Store
from uqeval.stores.planes import Planes
from uqeval.stores.store import open_store
from uqeval.stores.zarr.array import ZarrArray
from uqeval.usecases.reduce import reduce
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


def set_attributes(store: Path, name: str, **attributes: Any) -> None:
    zarr.open_group(str(store))[name].attrs.update(attributes)


#: Which array may declare what its values mean in any member, and another meaning.
MEANINGS = {
    "invalid": ("target", 3.0, 4.0),
    "_FillValue": ("target", 3.0, 4.0),
    "missing_value": ("target", [3.0], 4.0),
    "ignore_index": ("region", 1, 2),
}


@pytest.mark.parametrize("attribute", MEANINGS)
def test_any_member_may_say_what_values_mean(tmp_path: Path, attribute: str) -> None:
    case, meaning, other = MEANINGS[attribute]
    of_member, arrays, options = SHARED[case]
    ((name, values),) = arrays.items()
    values = values.copy()
    values[:, 0] = 3 if case == "target" else 1
    paths = members(tmp_path, *(of_member(k) | {name: values} for k in range(2)))
    without = results(paths, options)
    set_attributes(paths[1], name, **{attribute: meaning})
    found = [results(paths[::order], options)[0] for order in (1, -1)]
    set_attributes(paths[0], name, **{attribute: meaning})
    declared = results(paths, options)[0]
    pixels = [{key: own["pixels"] for key, own in r.items()} for r in (*found, declared)]
    assert (
        pixels[0] == pixels[1] == pixels[2] != {k: own["pixels"] for k, own in without[0].items()}
    )
    assert found[0] == declared
    zarr.open_group(str(paths[0]))[name].attrs.clear()
    report = uqeval.evaluate(paths, None, workers=1, **options)
    report.save(tmp_path / "r.json")
    assert not verify(tmp_path / "r.json", paths).problems()
    set_attributes(paths[0], name, **{attribute: other})
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), attribute, f"{paths[0]}/{name}",  # noqa: B023
                f"{paths[1]}/{name}", error=StoreError)  # fmt: skip


@pytest.mark.parametrize("of_other", [255, [255.0]])
def test_the_option_settles_void_ids_of_labels(tmp_path: Path, of_other: Any) -> None:
    of_member, arrays, options = SHARED["labels"]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    set_attributes(paths[0], "labels", ignore_index=255)
    set_attributes(paths[1], "labels", ignore_index=of_other)
    expected = results(paths, options)
    set_attributes(paths[1], "labels", ignore_index=0)
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), "ignore_index is 0", "but", "255",  # noqa: B023
                f"{paths[1]}/labels", error=StoreError)  # fmt: skip
    assert results(paths, options | {"ignore_index": 255}) == expected


def test_equal_void_ids_of_a_map_in_other_forms(tmp_path: Path) -> None:
    of_member, arrays, options = SHARED["region"]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    set_attributes(paths[0], "areas", ignore_index=1)
    expected = results(paths, options)
    set_attributes(paths[1], "areas", ignore_index=[1.0])
    assert results(paths, options) == expected


def test_a_fill_value_of_nan_is_no_other_meaning(tmp_path: Path) -> None:
    of_member, arrays, options = SHARED["target"]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    for path, value in zip(paths, ("NaN", -9999), strict=True):
        set_attributes(path, "target", _FillValue=value)
    assert results(paths, options)[0]["regression"]["pixels"] == N * H * W


@pytest.mark.parametrize(
    ("attribute", "declared", "others"),
    [
        ("valid_min", (-100.0, -50), -0.5), ("valid_max", (100.0, 50), 0.5),
        ("valid_range", ([-100, 100], [-50, 50]), [-0.5, 50]),
    ],
)  # fmt: skip
def test_valid_ranges_may_differ_where_no_value_is(
    tmp_path: Path, attribute: str, declared: tuple[Any, Any], others: Any
) -> None:
    of_member, arrays, options = SHARED["target"]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    expected = results(paths, options)
    for path, value in zip(paths, declared, strict=True):
        set_attributes(path, "target", **{attribute: value})
    assert results(paths, options) == expected
    for path in paths:
        set_attributes(path, "target", **{attribute: others})
    fewer = results(paths, options)[0]["regression"]["pixels"]
    assert fewer < expected[0]["regression"]["pixels"]
    set_attributes(paths[0], "target", **{attribute: declared[0]})
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), f"attribute {attribute} is",  # noqa: B023
                "values are in only one of these ranges", error=DataError)  # fmt: skip


def test_targets_of_all_members_have_one_unit(tmp_path: Path) -> None:
    of_member, arrays, options = SHARED["target"]
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    set_attributes(paths[0], "target", units="m")
    results(paths, options)
    set_attributes(paths[1], "target", units="metres")
    results(paths, options)
    set_attributes(paths[1], "target", units="cm")
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), "mixed units", str(paths[0]),  # noqa: B023
                str(paths[1]), error=StoreError)  # fmt: skip


def test_the_unit_is_recorded(tmp_path: Path) -> None:
    """That of the target, unless both are converted; a target without a unit has that of the
    predictions."""
    of_member, arrays, _ = SHARED["target"]
    path, *_ = members(tmp_path, of_member(0) | arrays)

    def unit(**options: Any) -> Any:
        return open_inputs(path, None, InputOptions(**options)).record.get("units")

    assert unit() is None
    set_attributes(path, "mean", units="px")
    assert unit() == "px"
    set_attributes(path, "target", units="m")
    assert unit(baseline_focal=2.0) == unit(median_scaling=True) == "m"
    assert unit(baseline_focal=2.0, disparity="both") is None


@pytest.mark.parametrize(
    ("name", "case", "axis"),
    [("labels", "labels", 1), ("labels", "labels", 2), ("areas", "region", 1),
     ("mine", "uncertainty", 2), ("depth", "depth", 1), ("target", "target", 2),
     ("valid", "valid", 1)],
)  # fmt: skip
def test_a_larger_array_of_another_member_is_refused(
    tmp_path: Path, name: str, case: str, axis: int
) -> None:
    of_member, arrays, options = SHARED[case]
    values = arrays[name]
    larger = np.concatenate([values, values.take([0], axis)], axis)
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | {name: larger})
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), f"{paths[0]}/{name}",  # noqa: B023
                f"{paths[1]}/{name}", f"{'yx'[axis - 1]} {values.shape[axis] + 1}",
                error=StoreError)  # fmt: skip


def test_labels_of_further_annotators_are_refused(tmp_path: Path) -> None:
    labelled = [np.stack([labels()] * count, 1) for count in (3, 4)]
    paths = members(tmp_path, *({"probs": probs(seed=k), "labels": labelled[k]} for k in range(2)))
    for order in (1, -1):
        refused(lambda: results(paths[::order], {"metrics": "annotators"}),  # noqa: B023
                "annotator 3", "annotator 4", error=StoreError)  # fmt: skip


def test_each_member_may_have_maps_of_its_own_that_are_not_read(tmp_path: Path) -> None:
    own: list[dict[str, np.ndarray]] = [{"mine": MAP}, {"mine": MAP[:, 1:] + 1}]
    paths = members(tmp_path, *(with_labels(k) | own[k] for k in range(2)))
    set_attributes(paths[0], "mine", ignore_index=1)
    set_attributes(paths[1], "mine", ignore_index=2)
    results(paths, {"metrics": "segmentation"})


def test_reduce_copies_a_map_of_several_members_only_by_name(tmp_path: Path) -> None:
    own: list[dict[str, np.ndarray]] = [{"mine": MAP, "same": MAP}, {"mine": MAP + 1, "same": MAP}]
    paths = members(tmp_path, *(with_labels(k) | own[k] for k in range(2)))
    zarr.open_group(str(paths[0])).create_array("one", data=MAP)

    def reduced(maps: list[str] | None) -> tuple[set[str], list[str]]:
        inputs = open_inputs(paths, None, InputOptions())
        store = reduce(inputs, tmp_path / "out", maps, overwrite=True)
        return set(zarr.open_group(str(store)).array_keys()), inputs.warnings

    arrays, warnings = reduced(None)
    assert arrays & {"one", "mine", "same"} == {"one"}
    assert [name in " ".join(warnings) for name in ("'mine'", "'same'", "--maps")] == [True] * 3
    assert "same" in reduced(["same"])[0]
    refused(lambda: reduced(["mine"]), "differ", "rename", error=DataError)


def test_chunks_of_other_members_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, decoded = 8, []
    values = np.arange(items * H * W, dtype="u1").reshape(items, H, W)
    paths = [save(tmp_path / f"m{k}", {"depth": values}, together=(1, 4)[k]) for k in range(2)]
    box = ZarrArray._box

    def counted(array: ZarrArray, position: tuple[int, ...], *rest: Any) -> Any:
        decoded.append((array.where, position))
        return box(array, position, *rest)

    monkeypatch.setattr(ZarrArray, "_box", counted)
    stores = [open_store(path, role="predictions") for path in paths]
    for order in (1, -1):
        decoded.clear()
        planes = Planes(joined_members(stores[::order]).arrays["depth"])
        assert all((planes.read(i) == values[i]).all() for i in range(items))
        assert len(decoded) == len(set(decoded)) == items + items // 4
        assert planes.chunk_bytes > 2 * 4 * H * W  # chunks of four items stay in memory


def test_masks_are_equal_that_are_true_at_the_same_pixels(tmp_path: Path) -> None:
    of_member, arrays, options = SHARED["valid"]
    valid = arrays["valid"]
    masks = [valid, (valid * 255).astype("u1"), np.where(valid, 1, np.nan).astype("f4")]
    for k, mask in enumerate(masks):
        paths = members(tmp_path / str(k), of_member(0) | arrays, of_member(1) | {"valid": mask})
        for order in (1, -1):
            found = results(paths[::order], options)[0]["regression"]["pixels"]
            assert found == np.count_nonzero(valid)


@pytest.mark.parametrize("holder", [0, 1])
def test_targets_may_differ_where_they_are_not_valid(tmp_path: Path, holder: int) -> None:
    valid = np.ones((N, H, W), bool)
    valid[1, 2] = False
    targets = [np.where(valid, NUMBERS[2], fill).astype("f4") for fill in (0, np.nan)]
    arrays = [numbers(k) | {"target": targets[k]} for k in range(2)]
    arrays[holder]["valid"] = valid
    paths = members(tmp_path, *arrays)
    options = {"metrics": "regression"}
    found = [results(paths[::order], options)[0] for order in (1, -1)]
    assert found[0] == found[1]
    assert found[0]["regression"]["pixels"] == np.count_nonzero(valid)
    zarr.open_group(str(paths[1]))["target"][1, 3] = 9
    for order in (1, -1):
        refused(lambda: results(paths[::order], options), "target differ (item 1)",  # noqa: B023
                error=DataError)  # fmt: skip


@pytest.mark.parametrize("name", ["labels", "region", "target", "valid"])
def test_missing_chunks_of_any_member_are_found_before_the_first_is_read(
    tmp_path: Path, name: str
) -> None:
    of_member, arrays, options = SHARED[name]
    ((kind, _),) = arrays.items()
    paths = members(tmp_path, of_member(0) | arrays, of_member(1) | arrays)
    (first, *_) = sorted(path for path in (paths[1] / kind / "c").rglob("*") if path.is_file())
    first.unlink()
    own = InputOptions(**({"region": options["region"]} if "region" in options else {}))
    for order in (1, -1):
        refused(lambda: open_inputs(paths[::order], None, own), f"{paths[1]}/{kind}",  # noqa: B023
                "chunks are missing", error=StoreError)  # fmt: skip
