"""Sparsification against plain oracles and published codes, over maps in memory."""

from __future__ import annotations

import math
import warnings
from typing import Any

import naive_ranked as naive
import numpy as np
import pytest
from in_memory import evaluated
from sklearn.metrics import auc

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics.sparsification import FAMILY, Sparsification
from uqeval.metrics.sparsification_curves import harmonics
from uqeval.metrics.sparsification_settings import SparsificationSettings

CLASSES = 3
Maps = dict[str, Any]


def item(seed: int, size: int = 500, few: bool = False, void: float = 0.1) -> Maps:
    """Maps [1, size] of classes and of regression at once; errors grow with both uncertainties."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, (1, size)).astype("u1")
    u = np.abs(rng.normal(size=label.shape))
    if few:
        u = np.round(4 * u) / 4
    wrong = rng.random(label.shape) < u / 4
    target = rng.normal(10, 2, label.shape).astype("f4")
    maps = {
        "prediction": np.where(wrong, (label + 1) % CLASSES, label).astype("u1"),
        "entropy": u.astype("f4"),
        "sigma": (u + 0.01).astype("f4"),
        "brier": np.minimum(2, wrong + rng.random(label.shape)).astype("f4"),
        "error": np.abs((u + 0.1) * rng.normal(size=label.shape)).astype("f4"),
        "target": target,
        "label": label,
    }
    label[rng.random(label.shape) < void] = 255
    return maps


def settings(error: str, **more: Any) -> SparsificationSettings:
    kind = "classes" if error in ("brier", "zero-one") else "regression"
    return SparsificationSettings.of(error=error, **more).for_data(kind, "here")


def info_of(items: list[Maps]) -> DatasetInfo:
    names = tuple(str(i) for i in range(len(items)))
    return DatasetInfo(
        "here", names, tuple(m["label"].shape for m in items), CLASSES, ("",) * 3, None
    )


def section(items: list[Maps], error: str, **more: Any) -> Any:
    return evaluated(Sparsification(settings(error, **more), info_of(items)), items)[0]


def arrays(items: list[Maps], error: str) -> tuple[Any, Any]:
    """Float64 scores and errors of the evaluated pixels; squared where the error is."""
    m = {name: np.concatenate([one[name].ravel() for one in items]) for name in items[0]}
    known = m["label"] < 255
    score = m["entropy" if error in ("brier", "zero-one") else "sigma"]
    eps = m["error"].astype("f8")
    found = {
        "brier": m["brier"].astype("f8"),
        "zero-one": (m["label"] != m["prediction"]).astype("f8"),
        "rmse": eps**2,
        "mse": eps**2,
        "mae": eps,
        "abs-rel": (eps / np.abs(m["target"].astype("f8"))).astype("f4").astype("f8"),
    }[error]
    return score[known], found[known]


ERRORS = ["brier", "zero-one", "rmse", "mse", "mae", "abs-rel"]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("error", ERRORS)
def test_curves_and_areas_equal_the_oracle(error: str, few: bool) -> None:
    items = [item(seed, 300 + seed, few) for seed in range(3)]
    found = section(items, error)
    expected = naive.sparsification(*arrays(items, error), error == "rmse")
    for name in ("curve", "oracle", "ause", "aurg"):
        assert found.results[name] == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name
    fractions = found.results["fractions"]
    assert fractions == [k / 100 for k in range(100)]
    by_sklearn = auc(fractions, found.results["error_curve"])
    assert found.results["ause"] == pytest.approx(by_sklearn, rel=1e-9)
    assert found.results["error"] == error
    first = naive.curve(*arrays(items, error), error == "rmse")[0]
    assert found.results["normalisation"] == pytest.approx(first, rel=1e-12)
    for one, record in zip(items, found.items, strict=True):
        own = naive.sparsification(*arrays([one], error), error == "rmse")
        assert record["ause"] == pytest.approx(own["ause"], rel=1e-9, abs=1e-12)
        assert record["aurg"] == pytest.approx(own["aurg"], rel=1e-9, abs=1e-12)


def test_cuts_inside_crowded_bins_are_exact() -> None:
    rng = np.random.default_rng(1)
    one = item(1, 4000)
    bits = np.float32(0.5).view(np.uint32) + rng.integers(0, 3000, (1, 4000)).astype("u4")
    one["entropy"] = bits.view("f4")
    one["brier"] = (bits + np.uint32(7)).view("f4")
    found, passes = evaluated(Sparsification(settings("brier"), info_of([one])), [one])
    expected = naive.sparsification(*arrays([one], "brier"))
    assert found.results["curve"] == pytest.approx(expected["curve"], rel=1e-12)
    assert found.results["oracle"] == pytest.approx(expected["oracle"], rel=1e-12)
    assert passes == 2


@pytest.mark.parametrize("error", ERRORS)
def test_the_oracle_has_an_ause_of_0(error: str) -> None:
    name = "entropy" if error in ("brier", "zero-one") else "sigma"
    items = [item(seed) for seed in range(2)]
    for m in items:
        m[name] = {
            "brier": m["brier"],
            "zero-one": (m["label"] != m["prediction"]).astype("f4"),
            "abs-rel": (m["error"].astype("f8") / np.abs(m["target"].astype("f8"))).astype("f4"),
        }.get(error, m["error"])
    found = section(items, error)
    assert found.results["ause"] == 0.0
    assert set(found.results["error_curve"]) == {0.0}
    assert [record["ause"] for record in found.items] == [0.0, 0.0]


def test_a_constant_uncertainty_has_one_answer_for_every_order_of_rows() -> None:
    one = item(2) | {"sigma": np.full((1, 500), 0.5, "f4")}
    first = section([one], "rmse").results
    assert first["curve"] == pytest.approx([1.0] * 100, rel=1e-12)
    assert first["aurg"] == 0  # rounding is no gain over a random order
    for order in (np.argsort(one["error"][0]), np.argsort(-one["error"][0])):
        found = section([{k: v[:, order] for k, v in one.items()}], "rmse").results
        for name in ("ause", "aurg", "curve", "oracle"):
            assert found[name] == pytest.approx(first[name], rel=1e-12, abs=1e-14)


def test_scaling_by_a_power_of_two_changes_nothing() -> None:
    items = [item(seed) for seed in range(2)]
    scaled = [m | {"sigma": m["sigma"] * np.float32(2**9)} for m in items]
    assert section(items, "mae").results == section(scaled, "mae").results


def test_any_split_of_counts_gives_the_same_bits() -> None:
    whole = item(4, 900)
    parts = [{k: v[:, a:b] for k, v in whole.items()} for a, b in ((0, 10), (10, 500), (500, 900))]
    assert section([whole], "zero-one").results == section(parts, "zero-one").results
    found, expected = section(parts, "rmse").results, section([whole], "rmse").results
    assert found["ause"] == pytest.approx(expected["ause"], rel=1e-12)


def test_numerics_count_zeros_and_the_ties_that_cuts_divide() -> None:
    one = item(3, 1000, few=True, void=0.0)
    one["sigma"][one["sigma"] < 0.5] = 0
    found = section([one], "rmse").numerics
    scores, counts = np.unique(one["sigma"], return_counts=True)
    assert found["sigma_zero"] == counts[0] > 0 == scores[0]
    ends = np.cumsum(counts)
    kept = 1000 - np.arange(100) * 10
    divided = {int(np.searchsorted(ends, k)) for k in kept if k not in ends}
    assert found["ties_at_cuts"] == sum(counts[i] for i in divided)
    assert section([item(3, 100, void=0.0)], "brier").numerics == {
        "items_undefined": 0, "uncertainty_zero": 0, "ties_at_cuts": 0,
    }  # fmt: skip


def test_a_few_zeros_are_counted_though_no_cut_is_among_them() -> None:
    one = item(5, 1000, void=0.0)
    one["sigma"][0, :3] = 0
    assert section([one], "rmse").numerics["sigma_zero"] == 3


def test_scope_item_is_the_mean_over_items() -> None:
    items = [item(seed, 200 + 50 * seed) for seed in range(3)]
    items.append(item(9))
    items[3]["label"][...] = 255
    found = section(items, "rmse", scope="item")
    each = [naive.sparsification(*arrays([m], "rmse"), True) for m in items[:3]]
    for name in ("ause", "aurg"):
        mean = math.fsum(one[name] for one in each) / 3
        assert found.results[name] == pytest.approx(mean, rel=1e-9), name
    expected = np.mean([one["curve"] for one in each], axis=0)
    assert found.results["curve"] == pytest.approx(expected, rel=1e-9)
    assert found.items[3]["ause"] is None and found.items[3]["ause_reason"]
    assert found.numerics["items_undefined"] == 1


# Presets, by their codes' own rules -----------------------------------------------------------


@pytest.mark.parametrize("size", [1000, 977, 123])
@pytest.mark.parametrize("error", ["rmse", "brier"])
def test_gustafsson_code(error: str, size: int) -> None:
    items = [item(3, size, void=0.0)]
    found = section(items, error, definition="gustafsson-code").results
    curve, oracle, ause = naive.gustafsson_code(*arrays(items, error), error == "rmse")
    assert found["curve"] == pytest.approx(curve, rel=1e-9)
    assert found["oracle"] == pytest.approx(oracle, rel=1e-9)
    assert found["ause"] == pytest.approx(ause, rel=1e-9)
    if size == 1000:
        assert found["ause"] != section(items, error).results["ause"]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("error", ["rmse", "abs-rel"])
def test_mono_uncertainty(error: str, few: bool) -> None:
    items = [item(seed, 300 + seed, few) for seed in range(3)]
    found = section(items, error, definition="mono-uncertainty")
    pairs = [naive.mono_uncertainty(*arrays([m], error), error == "rmse") for m in items]
    for (ause, aurg), record in zip(pairs, found.items, strict=True):
        assert record["ause"] == pytest.approx(ause, rel=1e-9)
        assert record["aurg"] == pytest.approx(aurg, rel=1e-9)
    assert found.results["ause"] == pytest.approx(np.mean([a for a, _ in pairs]), rel=1e-9)
    assert found.results["aurg"] == pytest.approx(np.mean([b for _, b in pairs]), rel=1e-9)
    assert found.results["fractions"][-1] == 1.0 and found.results["curve"][-1] == 0.0
    assert found.results["normalisation"] == 1.0


@pytest.mark.parametrize("scope", ["set", "item"])
@pytest.mark.parametrize("error", ["mse", "mae", "brier"])
def test_torch_uncertainty(error: str, scope: str) -> None:
    items = [item(7, 3000)]
    for name in ("entropy", "sigma"):  # without ties, which that code breaks by the order of rows
        items[0][name] += np.arange(3000, dtype="f4") * np.float32(2**-10)
        assert len(np.unique(items[0][name])) == 3000
    found = section(items, error, definition="torch-uncertainty-0.13", scope=scope).results
    expected = naive.torch_uncertainty_0_13(*arrays(items, error))
    assert abs(found["ause"] - expected) <= found["ause_bound"] + 1e-9
    assert found["ause_bound"] < 1e-3


def test_the_bound_of_every_rank_holds_in_crowded_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqeval.metrics.sparsification.WIDEST", 0)
    rng = np.random.default_rng(2)
    one = item(8, 20_000)
    bits = np.float32(0.5).view(np.uint32) + rng.permutation(2**20)[:20_000].astype("u4") * 8
    one["entropy"] = bits.astype("u4").view("f4").reshape(1, -1)
    found = section([one], "brier", definition="torch-uncertainty-0.13").results
    error = abs(found["ause"] - naive.torch_uncertainty_0_13(*arrays([one], "brier")))
    assert 1e-9 < error <= found["ause_bound"]


def test_torch_uncertainty_takes_no_root() -> None:
    with pytest.raises(UsageError, match="expected --error mse"):
        settings("rmse", definition="torch-uncertainty-0.13")
    own = SparsificationSettings.of(definition="torch-uncertainty-0.13")
    assert own.for_data("regression", "here").error == "mse"


# What is undefined ----------------------------------------------------------------------------


def undefined(found: Any, word: str) -> None:
    for name in ("ause", "aurg", "curve", "oracle", "error_curve", "normalisation"):
        assert found.results[name] is None
        assert word in found.results[f"{name}_reason"]


@pytest.mark.parametrize("scope", ["set", "item"])
def test_undefined_cases_have_reasons(scope: str) -> None:
    void = item(0)
    void["label"][...] = 255
    undefined(section([void], "brier", scope=scope), "no pixel")
    right = item(0)
    right["prediction"] = right["label"].copy()
    undefined(section([right], "zero-one", scope=scope), "is 0")
    assert section([right], "zero-one", scope=scope, normalise="none").results["ause"] == 0.0
    far = item(0)
    far["target"][0, np.flatnonzero(far["label"][0] < 255)[:3]] = 0
    undefined(section([far], "abs-rel", scope=scope), "infinite")
    few = item(0, 50, void=0.0)
    undefined(section([few], "brier", scope=scope, definition="gustafsson-code"), "too few")
    assert section([few], "brier", scope=scope).results["ause"] is not None


@pytest.mark.parametrize("end", ["last", "zero"])
@pytest.mark.parametrize("scope", ["set", "item"])
def test_fractions_are_the_same_with_and_without_a_curve(scope: str, end: str) -> None:
    wrong, right = item(0), item(0)
    right["prediction"] = right["label"].copy()
    with_curve, without = (
        section([own], "zero-one", scope=scope, end=end).results for own in (wrong, right)
    )
    assert without["curve"] is None and without["fractions"] == with_curve["fractions"]
    assert len(with_curve["fractions"]) == len(with_curve["curve"])


def test_one_pixel() -> None:
    one = item(0, 1, void=0.0)
    assert section([one], "mae").results["ause"] == 0.0


# Settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"definition": "other"}, {"error": "rms"}, {"scope": "all"}, {"steps": 1},
        {"grid": "every-rank", "end": "zero"},
    ],
)  # fmt: skip
def test_bad_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        SparsificationSettings.of(**wrong)


def info(kind: str) -> DatasetInfo:
    return DatasetInfo("here", ("a",), ((4, 4),), 1, ("value",), None, kind)


def test_defaults_by_kind_of_data() -> None:
    assert set(FAMILY.kinds) == {"classes", "regression"}
    for kind, uncertainty, error in (
        ("classes", "entropy", "brier"),
        ("regression", "sigma", "rmse"),
    ):
        own = FAMILY.settings({}, info(kind))["sparsification"]
        assert (own.uncertainty, own.error) == (uncertainty, error)
        assert uncertainty in FAMILY.maps(own, info(kind))
    own = FAMILY.settings({"error": ["rmse", "mae"]}, info("regression"))
    assert list(own) == ["sparsification", "sparsification[mae]"]
    with pytest.raises(UsageError, match="predicted numbers; expected one of rmse"):
        FAMILY.settings({"error": "brier"}, info("regression"))


def test_harmonics() -> None:
    a, b = np.array([0, 0, 3, 10, 64, 500]), np.array([1, 50, 64, 1000, 65, 2000])
    expected = [math.fsum(1 / m for m in range(i + 1, j + 1)) for i, j in zip(a, b, strict=True)]
    assert harmonics(a, b) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("error", ["a1", "abs-rel"])
def test_a_ratio_beyond_float32_is_infinite(error: str) -> None:
    rng = np.random.default_rng(0)
    target = rng.uniform(1, 10, (2, 5, 6))
    target[0, 1, 2] = 1e-45
    data = {"mean": target + 1, "std": rng.uniform(1, 2, target.shape), "target": target}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = uqeval.evaluate(data, None, {"sparsification": {"error": error}})
    found = report.results["sparsification"]
    assert (found["ause"] is None) == (error == "abs-rel")
    report.to_json()
