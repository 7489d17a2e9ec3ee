"""Scores by rank of slices that a run knows: those of a run over the items of the slice alone."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from saved_runs import stack, told

import uqeval
from uqeval.errors import StoreError
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.statistics.from_states import FromStates
from uqeval.usecases.merge import merge

N = 13
NAMES = [f"n{(7 * i) % N:02d}" for i in range(N)]
WET = [i for i in range(N) if i % 3]
TABLE = "name,weather,city,half\n" + "".join(
    f"{name},{'wet' if i % 3 else 'dry'},{'abc'[i % 3]},{i // 7}\n" for i, name in enumerate(NAMES)
)
NAMED = {"slice_by": ["weather", "city"]}
Data = dict[str, Any]


def classes() -> Data:
    probs, labels = stack(N)
    labels[WET[0]] = 255  # an item without pixels
    return {"probs": probs, "labels": labels}


def single_pixels() -> Data:
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.full(4, 0.4), N).astype("f4")
    return {"probs": probs, "labels": rng.integers(0, 4, N).astype("u1")}


def calibrated() -> Data:
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.full(4, 0.4), (N, 12, 16)).astype("f4")
    labels = (rng.random((N, 12, 16, 1)) > probs.cumsum(axis=-1)).sum(axis=-1).clip(0, 3)
    return {"probs": np.moveaxis(probs, -1, 1).copy(), "labels": labels.astype("u1")}


def numbers() -> Data:
    rng = np.random.default_rng(1)
    std = rng.gamma(2, 1, (N, 12, 16)).astype("f4")
    std[:, 0] = std[:, 1]  # ties
    std[3, 2] = 0
    target = rng.uniform(1, 40, std.shape).astype("f4")
    mean = (target + rng.standard_t(4, std.shape) * std).astype("f4")
    target[rng.random(std.shape) < 0.1] = np.nan
    return {"mean": mean, "std": std, "target": target}


def sets() -> Data:
    data = classes()
    labels = data["labels"]
    return {"probs": data["probs"], "labels": np.where(labels < 255, labels % 3, 255).astype("u1")}


CASES: dict[str, tuple[Callable[[], Data], Data, Data]] = {
    "failure": (classes, {"failure": {"threshold": 0.7}}, {}),
    "failure of regions": (
        classes, {"failure": {"threshold": 0.7}}, {"region": ["class:1", "box:0:0.6,0:1"]},
    ),
    "failure of single pixels": (single_pixels, {"failure": {"threshold": 0.7}}, {}),
    "sparsification": (classes, {"sparsification": {"error": ["zero-one", "brier"]}}, {}),
    "sparsification, every rank": (classes, {"sparsification": {"grid": "every-rank"}}, {}),
    "sparsification of numbers": (numbers, {"sparsification": {"error": ["rmse", "mae"]}}, {}),
    "sparsification of numbers, every rank": (
        numbers, {"sparsification": {"grid": "every-rank"}}, {"region": ["box:0:0.6,0:1"]},
    ),
    "n-MeRCI": (numbers, {"nmerci": {"alpha": [80, 95], "mae": ["full", "trimmed"]}}, {}),
    "n-MeRCI of kept pixels": (numbers, {"nmerci": {"over": "kept"}}, {}),
    "n-MeRCI by depth": (numbers, {"nmerci": {"depth_step": 10}}, {}),
    "ood": (sets, {"ood": {}}, {"ood_mask": 2}),
    "calibration": (calibrated, {"calibration": {"temperature": False}}, {}),
    "calibration, estimated": (
        calibrated,
        {
            "calibration": {
                "temperature": False, "bins": [15, 4],
                "estimator": ["kumar-l2", "kumar-l1", "roelofs-sweep"],
            }
        },
        {"region": "box:0:0.6,0:1"},
    ),
    "σ in bins": (numbers, {"regression": {"ence": True}}, {"region": "box:0:0.6,0:1"}),
}  # fmt: skip


#: Scores of which the value from bins is another one: key of the results, and field.
BINNED = {
    "failure": [("failure", "aurc")],
    "calibration": [("calibration", "adaptive_ece")],
    "calibration, estimated": [
        ("calibration", "kumar_l2"), ("calibration[estimator=roelofs-sweep]", "sweep_l2"),
    ],
    "σ in bins": [("regression", "ence")],
}  # fmt: skip


def evaluated(name: str, items: list[int] | None = None, **options: Any) -> Report:
    data, metrics, given = CASES[name]
    kept = range(N) if items is None else items
    return uqeval.evaluate(
        {key: values[list(kept)] for key, values in data().items()}, metrics=metrics,
        names=[NAMES[i] for i in kept], **given, **options,
    )  # fmt: skip


def without_means(record: Data) -> Data:
    """The results of a family, without means over items, of which the last bits may differ."""
    return {key: value for key, value in record.items() if key != "per_image"}


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Data]:
    """The slices of two cases that are counted in memory."""
    path = tmp_path_factory.mktemp("table") / "items.csv"
    path.write_text(TABLE)
    names = ("failure of regions", "n-MeRCI by depth")
    return {name: told(evaluated(name, slices=path, **NAMED))["slices"] for name in names}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "items.csv").write_text(TABLE)
    return tmp_path / "items.csv"


@pytest.mark.parametrize("name", CASES)
def test_a_slice_has_the_scores_of_a_run_over_its_items(
    name: str, table: Path, tmp_path: Path
) -> None:
    """A merge reads them from the states; other slices are computed from bins."""
    draws = {"ci": 0.9, "draws": 100} if name in ("failure", "n-MeRCI") else {}
    cut = {"slices": table, **draws}
    report = evaluated(name, **cut, **NAMED, states=tmp_path / "r.states.zip")
    ranked = next(iter(CASES[name][1]))
    for key, items in {"weather=wet": WET, "city=a": list(range(0, N, 3))}.items():
        alone, own = evaluated(name, items), report.slices[key]
        assert own["approximate"] == []
        keys = [k for k in alone.results if k.startswith(ranked)]
        assert keys
        for k in keys:
            assert without_means(own["results"][k]) == without_means(alone.results[k]), (key, k)
    report.save(tmp_path / "r.json")
    assert merge(tmp_path / "r.json", **cut, **NAMED).slices == report.slices
    later = merge(tmp_path / "r.json", slices=table, slice_by=["half"]).slices
    assert all(own["approximate"] for own in later.values())
    if name in BINNED:  # exact and binned values differ, else this test would compare nothing
        exact = evaluated(name, list(range(7))).results
        for key, field in BINNED[name]:
            assert any(k.startswith(key) for k in later["half=0"]["approximate"])
            value, binned = exact[key][field], later["half=0"]["results"][key][field]
            assert value != binned and value == pytest.approx(binned, rel=0.5)


@pytest.mark.parametrize(
    ("options", "items_a_chunk"),
    [
        ({"workers": 1}, 1),
        ({"workers": 3}, 1),
        ({"workers": 2, "memory": "130MB"}, 1),
        ({"workers": 2}, 5),
    ],
)
def test_the_way_of_counting_changes_nothing(
    options: Data, items_a_chunk: int, table: Path, tmp_path: Path, in_memory: dict[str, Data]
) -> None:
    for name in in_memory:
        data, metrics, given = CASES[name]
        store = tmp_path / f"{name}.zarr"
        group = zarr.create_group(store)
        for key, values in data().items():
            group.create_array(key, data=values, chunks=(items_a_chunk, *values.shape[1:]))
        report = uqeval.evaluate(
            store, metrics=metrics, names=NAMES, slices=table, **NAMED, **given, **options
        )
        assert told(report)["slices"] == in_memory[name], name


def test_scores_of_bravo_and_of_sets(tmp_path: Path) -> None:
    """`bravo` is a part of its family, and its tallies look at other views of the data."""
    data = classes()
    masks = np.where(data["labels"] == 255, 1, 0).astype("u1")
    masks[:, -3:] = 1
    settings = {"ood": {"definition": "bravo"}}
    (tmp_path / "items.csv").write_text(TABLE)

    def run(items: list[int], **options: Any) -> Report:
        return uqeval.evaluate(
            data["probs"][items], data["labels"][items], settings, ood_mask=masks[items],
            names=[NAMES[i] for i in items], **options,
        )  # fmt: skip

    report = run(list(range(N)), slices=tmp_path / "items.csv", **NAMED)
    own = report.slices["weather=wet"]
    assert own["approximate"] == []
    assert own["results"] == run(WET).results
    assert own["results"]["ood"]["bravo"]["bravo_index"] is not None


def test_several_runs_are_merged_from_bins(table: Path, tmp_path: Path) -> None:
    """The items of a slice are in several files, of which none has counted it."""
    files = [tmp_path / "first.states.zip", tmp_path / "second.states.zip"]
    for file, items in zip(files, (list(range(6)), list(range(6, N))), strict=True):
        evaluated("n-MeRCI", items, states=file)
    report = merge(files, slices=table, **NAMED)
    assert all(own["approximate"] for own in report.slices.values())
    exact = evaluated("n-MeRCI", slices=table, **NAMED).slices["weather=wet"]["results"]["nmerci"]
    about = report.slices["weather=wet"]["results"]["nmerci"]
    assert about["nmerci"] != exact["nmerci"]
    assert about["nmerci"] == pytest.approx(exact["nmerci"], rel=2**-9)


@pytest.mark.on_disk
def test_a_run_again_takes_the_saved_counts(table: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "classes.npz", **classes(), names=NAMES)
    time.sleep(0.1)  # a file that was just written may change again at the same time

    def run() -> Report:
        return uqeval.evaluate(
            tmp_path / "classes.npz", metrics={"failure": {}, "sparsification": {}}, slices=table,
            states=tmp_path / "r.states.zip",
        )  # fmt: skip

    first, again = run(), run()
    assert again.timing["bytes_read"] == 0 < first.timing["bytes_read"]
    assert told(again)["slices"] == told(first)["slices"]


def test_a_damaged_total_is_refused(table: Path, tmp_path: Path) -> None:
    """The counts of slices are checked as all counts: states may be forged."""
    states, forged = tmp_path / "r.states.zip", tmp_path / "forged.states.zip"
    evaluated("failure", states=states, slices=table)
    with zipfile.ZipFile(states) as old, zipfile.ZipFile(forged, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:-3] if name.startswith("totals/") else data)
    with pytest.raises(StoreError, match="damaged"):
        merge(forged, slices=table)


@pytest.mark.parametrize(
    "name", ["failure", "sparsification of numbers", "n-MeRCI by depth", "ood"]
)
def test_a_slice_without_pixels_has_no_scores(name: str, table: Path) -> None:
    data, metrics, given = CASES[name]
    arrays, dry = data(), [i for i in range(N) if i not in WET]
    if "labels" in arrays:
        arrays["labels"][dry] = 255
    else:
        arrays["target"][dry] = np.nan
    report = uqeval.evaluate(arrays, metrics=metrics, names=NAMES, slices=table, **NAMED, **given)
    own = report.slices["weather=dry"]
    family = next(iter(metrics))
    field = {"failure": "auroc", "sparsification": "ause", "nmerci": "nmerci"}.get(family, "auroc")
    assert own["approximate"] == []
    assert own["results"][family][field] is None and own["results"][family][f"{field}_reason"]
    assert report.slices["weather=wet"]["results"][family][field] is not None


@pytest.mark.parametrize(
    ("name", "addresses"),
    [("calibration", ["calibration.adaptive_ece"]),
     ("σ in bins", ["regression.ence", "regression.uce"])],
)  # fmt: skip
def test_intervals_of_slices_are_drawn_in_the_bins_of_the_set(
    name: str, addresses: list[str], table: Path
) -> None:
    """So they are marked; those of the set have its bins."""
    report = evaluated(name, slices=table, ci=0.9, draws=200, slice_by=["weather"])
    own = report.slices["weather=wet"]
    for address in addresses:
        record = own["intervals"][address]
        assert record["approximate"] and not report.intervals[address]["approximate"]
        family, field = address.split(".")
        assert record["low"] <= own["results"][family][field] <= record["high"]


def test_what_states_do_not_give_is_null(table: Path, tmp_path: Path) -> None:
    """Ranks of the pixels of a class are not in the states of items."""
    states = tmp_path / "r.states.zip"
    results = evaluated("failure", states=states).results["failure"]
    later = merge(states, slices=table, **NAMED).slices["weather=wet"]["results"]["failure"]
    assert {name for name in results if not name.endswith("_reason")} <= later.keys()
    for row, of_set in zip(later["per_class"], results["per_class"], strict=True):
        assert row["errors"] > 0 and row["undetected_error_rate"] is not None
        for name in ("auroc", "fpr95", "e_aurc", "risk_at_coverage"):
            assert of_set[name] is not None and row[name] is None
            assert "saved states do not contain" in row[f"{name}_reason"]


def test_the_gate_marks_levels_and_changes_of_slices(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    evaluated("calibration", slices=table, states=tmp_path / "r.states.zip", **NAMED).save(path)
    turned = {key: values[::-1].copy() for key, values in calibrated().items()}
    other = tmp_path / "o.json"
    uqeval.evaluate(
        turned, metrics=CASES["calibration"][1], names=NAMES, slices=table,
        states=tmp_path / "o.states.zip", **NAMED,
    ).save(other)  # fmt: skip
    states = FromStates()
    for text, is_rough in (("", False), ("@weather=wet", True)):
        address = Address.parse(f"calibration.adaptive_ece{text}")
        assert states.interval(path, address, 0.8).approximate == is_rough
        assert states.change(other, path, address, 0.8, relative=False).approximate == is_rough
        assert not states.change(path, path, address, 0.8, relative=False).approximate
