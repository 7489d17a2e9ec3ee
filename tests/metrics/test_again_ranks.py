"""Families that rank pixels: read again, each bin is a tie, and nothing else is different."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scenes
from in_memory import evaluated
from near import near
from number_stores import SHAPE, numbers
from read_again import Reread, without

from uqeval.maps.names import lambda_of
from uqeval.metrics import failure, nmerci, sparsification
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._rank_bins import BIN_WIDTH
from uqeval.metrics.failure_scores import BOUNDS

N, C, H, W = 4, 3, 24, 30
Maps = dict[str, Any]


def in_bins(values: Any) -> Any:
    """Float32 values moved to the middle of the bin that they are counted in."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32)
    middle = ((bits & ~0x1FFF) | 0x1000).view(np.float32)
    return np.where((bits >> 13 == 0) | np.isinf(values), values, middle)


def item(seed: int, size: int = 900, exact: bool = False) -> Maps:
    """Maps [1, size] of classes and of regression at once; `exact`: as bins have them."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, C, (1, size)).astype("u1")
    u = np.abs(rng.normal(size=label.shape)).astype("f4")
    u[rng.random(u.shape) < 0.1] = 0
    wrong = rng.random(label.shape) < u / 4
    error = np.abs((u + 0.1) * rng.normal(size=label.shape)).astype("f4")
    error[rng.random(u.shape) < 0.05] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0, error / u).astype("f4")
    if exact:
        u, error, ratio = in_bins(u), in_bins(error), in_bins(ratio)
    brier = np.minimum(2, wrong + rng.random(label.shape)).astype("f4")
    maps = {
        "prediction": np.where(wrong, (label + 1) % C, label).astype("u1"),
        "entropy": u,
        "sigma": u,
        "brier": in_bins(brier) if exact else brier,
        "error": error,
        "error:rank": error,
        lambda_of("sigma"): ratio,
        "target": rng.normal(10, 2, label.shape).astype("f4"),
        "label": label,
    }
    label[rng.random(label.shape) < 0.1] = 255
    return maps


def of_powers(maps: Maps) -> Maps:
    """The same with a power of 2 as σ, so that λ = ε/σ is in the middle of a bin where ε is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma = np.exp2(np.round(np.log2(maps["sigma"])))
        ratio = np.where(maps["error"] == 0, 0, maps["error"] / sigma).astype("f4")
    return maps | {"sigma": sigma, lambda_of("sigma"): ratio}


def info(kind: str, items: Sequence[Maps]) -> DatasetInfo:
    n, names = len(items), tuple(f"class {c}" for c in range(C))
    return DatasetInfo("here", tuple(map(str, range(n))), ((1, 900),) * n, C, names, None, kind)


def both(family: Any, kind: str, options: dict[str, Any], items: list[Maps]) -> Any:
    """The results of a run over maps, and what is read off its items' states again."""
    known = info(kind, items)
    ((key, settings),) = family.settings(options, known).items()
    section, _ = evaluated(family.evaluations(key, settings, known)[key], items)
    again = family.evaluations(key, settings, known, {key: section.fitted})[key]
    states = {}
    for tally in again.tallies():
        assert tally.saved
        states[tally] = tally.empty()
        for maps in items:
            tally.merge(states[tally], tally.state_of(maps))
    return section.results, again.scores(states), again


def same(found: Any, expected: Any) -> None:
    """Assert the same but for the order in which sums were added up; of bounds, not the value."""
    found, expected = without_bounds(found), without_bounds(expected)
    near(found, expected, rel=1e-11, least=1e-13, same_keys=True)


def without_bounds(value: Any) -> Any:
    """Leave the values of bounds out of nested records, not their names."""
    if isinstance(value, dict):
        return {k: k if k.endswith("_bound") else without_bounds(v) for k, v in value.items()}
    return [without_bounds(one) for one in value] if isinstance(value, list) else value


REPEATED = [item(0, exact=True), item(1, exact=True), item(0, exact=True)]
ITEMS = [item(seed) for seed in range(3)]


@pytest.mark.parametrize("threshold", ["mean", "0.5"])
def test_failure_of_what_bins_tell_apart(threshold: str) -> None:
    expected, found, _ = both(failure.FAMILY, "classes", {"threshold": threshold}, REPEATED)
    for row in expected["per_class"]:
        for name in [*row]:
            if name.removesuffix("_reason") not in ("class", "name", "pixels", "errors",
                                                    "undetected_error_rate"):  # fmt: skip
                del row[name]
    same(found, expected)


def test_failure_lies_within_its_bounds() -> None:
    expected, found, again = both(failure.FAMILY, "classes", {}, ITEMS)
    for name in BOUNDS:
        off = abs(found[name] - expected[name])
        assert 0 < off <= found[f"{name}_bound"] + expected[f"{name}_bound"]
        assert found[f"{name}_bound"] < 0.01
    for name in ("pixels", "errors", "undetected_error_rate", "uncertainty_threshold"):
        assert found[name] == expected[name]
    assert again.approximate.isdisjoint(("pixels", "errors", "undetected_error_rate"))
    assert again.approximate <= set(found)
    assert again.bound == BIN_WIDTH


SPARSIFICATION: list[tuple[str, dict[str, Any]]] = [
    ("classes", {}),
    ("classes", {"error": "zero-one", "definition": "torch-uncertainty-0.13"}),
    ("regression", {"definition": "mono-uncertainty", "scope": "set"}),
    ("regression", {"definition": "gustafsson-code"}),
    ("regression", {"definition": "torch-uncertainty-0.13", "error": "mae"}),
]


@pytest.mark.parametrize(("kind", "options"), SPARSIFICATION)
def test_sparsification_of_what_bins_tell_apart(kind: str, options: dict[str, Any]) -> None:
    expected, found, _ = both(sparsification.FAMILY, kind, options, REPEATED)
    same(found, expected)


@pytest.mark.parametrize(("kind", "options"), SPARSIFICATION)
def test_sparsification_is_close(kind: str, options: dict[str, Any]) -> None:
    expected, found, again = both(sparsification.FAMILY, kind, options, ITEMS)
    assert found["ause"] == pytest.approx(expected["ause"], abs=2e-3)
    assert found["aurg"] == pytest.approx(expected["aurg"], abs=2e-3)
    if "ause_bound" in found:
        off = abs(found["ause"] - expected["ause"])
        assert 0 < off <= found["ause_bound"] + expected["ause_bound"]
    assert again.approximate == {"*"}


NMERCI: list[dict[str, Any]] = [
    {"alpha": 60},
    {"alpha": 99, "interpolation": "inverted_cdf"},
    {"alpha": 50, "definition": "trimmed-mae"},
    {"alpha": 50, "definition": "public-code"},
]


@pytest.mark.parametrize("options", NMERCI)
def test_nmerci_of_what_bins_tell_apart(options: dict[str, Any]) -> None:
    items = [of_powers(maps) for maps in REPEATED]
    expected, found, _ = both(nmerci.FAMILY, "regression", options, items)
    if options.get("definition") == "public-code":
        expected = without(expected, "nmerci", "merci", "mae_trimmed", "curve")
    same(found, expected)


@pytest.mark.parametrize("alpha", [80.0, 85.0])
def test_nmerci_is_within_half_a_bin(alpha: float) -> None:
    expected, found, again = both(nmerci.FAMILY, "regression", {"alpha": alpha}, ITEMS)
    for name in ("lambda", "merci", "max_alpha"):
        assert found[name] == pytest.approx(expected[name], rel=BIN_WIDTH / 2)
    assert found["mae_trimmed"] == pytest.approx(expected["mae_trimmed"], rel=5e-3)
    most, half = expected["max_alpha"], BIN_WIDTH / 2
    off = half * (expected["merci"] + abs(expected["nmerci"]) * most)
    off /= most * (1 - half) - expected["mae"]
    assert found["nmerci"] == pytest.approx(expected["nmerci"], abs=off)
    assert found["mae"] == expected["mae"]
    assert "mae" not in again.approximate


# Whole runs: what is needed is in the states file, and stands for other items too.


@pytest.fixture(scope="module")
def classes() -> tuple[Any, Any]:
    truth = scenes.labels(0, N, H, W, classes=C)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, C, H, W)) + 2 * (truth[:, None] == np.arange(C)[:, None, None])
    p = np.exp(z)
    return (p / p.sum(1, keepdims=True)).astype("f4"), truth


@pytest.mark.parametrize("items", [[0, 1, 2, 3], [2], [3, 1, 1]])
def test_failure_of_other_items(tmp_path: Path, classes: Any, items: list[int]) -> None:
    run = Reread(tmp_path, *classes, metrics="failure")
    found = run.scores("failure", items)
    (tmp_path / "b").mkdir()
    threshold = repr(run.results("failure")["uncertainty_threshold"])
    own = Reread(tmp_path / "b", *(values[items] for values in classes),
                 metrics={"failure": {"threshold": threshold}})  # fmt: skip
    expected = own.results("failure")
    assert found["undetected_error_rate"] == expected["undetected_error_rate"]
    for name in BOUNDS:
        bound = found[f"{name}_bound"] + expected[f"{name}_bound"]
        assert abs(found[name] - expected[name]) <= bound + 1e-12
    assert own.scores("failure") == found


def test_failure_without_a_threshold(tmp_path: Path, classes: Any) -> None:
    """Runs that were joined fit each their own threshold: the ranked scores need none."""
    from uqeval.statistics.variants import evaluations_of

    run = Reread(tmp_path, *classes, metrics="failure")
    expected = without(run.scores("failure"), "per_class", "per_class_by", "undetected_error_rate",
                       "uncertainty_threshold")  # fmt: skip
    run.evaluations = evaluations_of({**run.saved.index, "fitted": {}}, run.saved.path)
    assert run.scores("failure") == expected


def test_failure_of_nothing(tmp_path: Path, classes: Any) -> None:
    found = Reread(tmp_path, *classes, metrics="failure").scores("failure", [])
    assert found["auroc"] is None
    assert found["auroc_reason"]


def test_sparsification_of_other_items(tmp_path: Path, classes: Any) -> None:
    run = Reread(tmp_path, *classes, metrics={"sparsification": {"error": ["brier", "zero-one"]}})
    (tmp_path / "b").mkdir()
    items = [3, 1, 1]
    own = Reread(tmp_path / "b", *(values[items] for values in classes), metrics="sparsification")
    found = run.scores("sparsification", items)
    assert found == own.scores("sparsification")
    assert found["ause"] == pytest.approx(own.results("sparsification")["ause"], abs=2e-3)
    assert run.scores("sparsification", [])["ause_reason"]


def test_means_over_items_are_the_reports(tmp_path: Path, classes: Any) -> None:
    options = {"sparsification": {"scope": "item"}}
    run = Reread(tmp_path, *classes, metrics=options)
    again = run.evaluations["sparsification"]
    assert again.tallies() == ()
    for name, field in again.over_items().means.items():
        own = [record["sparsification"][field] for record in run.report.items]
        assert np.mean(own) == pytest.approx(run.results("sparsification")[name], rel=1e-12)


def test_nmerci_of_other_items(tmp_path: Path) -> None:
    arrays: Any = numbers(5)
    assert arrays["mean"].shape == SHAPE
    np.savez(tmp_path / "a.npz", **arrays)
    items = [2, 0, 2]
    np.savez(tmp_path / "b.npz", **{name: values[items] for name, values in arrays.items()})
    (tmp_path / "b").mkdir()
    options = {"nmerci": {"alpha": 70, "depth_step": 10}}
    run = Reread(tmp_path, tmp_path / "a.npz", metrics=options)
    own = Reread(tmp_path / "b", tmp_path / "b.npz", metrics=options)
    found, expected = run.scores("nmerci", items), own.results("nmerci")
    assert found["lambda"] == pytest.approx(expected["lambda"], rel=BIN_WIDTH)
    assert found["mae"] == expected["mae"]
    high = slice(80, 100)
    assert found["curve"]["nmerci"][high] == pytest.approx(
        expected["curve"]["nmerci"][high], rel=0.01
    )
    assert "by_depth" not in found
    assert run.scores("nmerci", [])["nmerci"] is None
