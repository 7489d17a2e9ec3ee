"""Depth scores, conversions of units, the preset of mono-uncertainty and the factor of σ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
import zarr

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.report.tables.of_report import tables_of

PARTS = {"regression": {"depth": True, "ence": True, "sigma_scale": True}}
#: Fields that are not affected by it where the regression's other scores are not.
FIELDS = ("abs_rel", "sq_rel", "rmse_log", "log10", "silog", "a1", "a2", "a3", "ence", "uce", "cv")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Depths with many ties: ratios of exactly 1.25 too, and equal σ across the edges of bins."""
    rng = np.random.default_rng(4)
    target = rng.choice([2.0, 4.0, 10.0, 20.0], (4, 12, 15))
    mean = target * rng.choice([0.5, 0.75, 1.0, 1.25, 1.5], target.shape)
    sigma = rng.choice([0.25, 0.5, 1.0, 3.0], target.shape) * rng.choice([1, 1.5], target.shape)
    return {"mean": mean, "std": sigma, "target": target, "valid": rng.random(target.shape) < 0.9,
            "names": [f"n{i}" for i in range(4)]}  # fmt: skip


def arrays(data: dict[str, Any], items: Any = slice(None)) -> list[Any]:
    """Mean, σ and target of the valid pixels of some items."""
    valid = data["valid"][items]
    return [data[name][items][valid] for name in ("mean", "std", "target")]


def test_ties_and_regions(data: dict[str, Any]) -> None:
    data = {name: np.concatenate([data[name], data[name][:3]]) for name in data if name != "names"}
    report = uqeval.evaluate(data, None, PARTS, region="depth:4-15")
    intervals = uqeval.evaluate(data, None, PARTS, ci=0.9, draws=100).intervals
    for key in ("regression", "regression@depth:4-15"):
        own = arrays(data)
        if "@" in key:
            own = [values[(own[2] >= 4) & (own[2] < 15)] for values in own]
        expected = naive.depth(*own)
        for field in FIELDS:
            assert report.results[key][field] == pytest.approx(expected[field], rel=1e-12), field
            if "@" not in key:
                interval = intervals[f"{key}.{field}"]
                assert interval["low"] <= report.results[key][field] <= interval["high"]
    for i, item in enumerate(report.items):
        expected = naive.depth(*arrays(data, i), of_bins=arrays(data)[1])
        for field in FIELDS:
            assert item["regression"][field] == pytest.approx(expected[field], rel=1e-12), field
    bins = report.results["regression"]["sigma_bins"]
    assert sum(bins["pixels"]) == data["valid"].sum()


def test_an_item_with_a_bin_of_sigma_0(data: dict[str, Any]) -> None:
    """It has no ENCE, as the whole set."""
    own = data | {"std": data["std"].copy()}
    own["std"][2] = 0
    report = uqeval.evaluate(own, None, PARTS)
    item = report.items[2]["regression"]
    assert item["ence"] is item["cv"] is report.results["regression"]["ence"] is None
    assert item["ence_reason"] == "no pixel is evaluated, or σ² = 0 in float64 in a whole bin"
    mean, _, target = arrays(own, 2)
    assert item["uce"] == pytest.approx(((mean - target) ** 2).mean())
    assert report.items[0]["regression"]["ence"] > 0


def test_an_error_by_one_factor_has_no_silog(data: dict[str, Any]) -> None:
    own = data | {"mean": 1.3 * data["target"]}
    record = uqeval.evaluate(own, None, PARTS).results["regression"]
    assert record["silog"] == pytest.approx(0, abs=1e-8)
    assert record["rmse_log"] == pytest.approx(np.log(1.3))


@pytest.mark.parametrize("normalise", ["first", "none"])
def test_depths_of_0_or_less(data: dict[str, Any], normalise: str) -> None:
    bad = data | {"mean": data["mean"].copy(), "target": data["target"].copy()}
    bad["mean"][1, 2, 3], bad["valid"] = -1.0, None
    bad.pop("valid")
    record = uqeval.evaluate(bad, None, PARTS).results["regression"]
    assert record["rmse_log"] is record["silog"] is record["log10"] is None
    assert record["silog_reason"] == "the prediction is 0 or less at 1 of 720 evaluated pixels"
    ratio = np.maximum(bad["mean"] / bad["target"], bad["target"] / bad["mean"])
    assert record["a1"] == ((ratio < 1.25) & (bad["mean"] > 0)).mean()
    bad["target"][0, 0, :2] = 0
    curves = {"error": "a1", "normalise": normalise}
    record = uqeval.evaluate(bad, None, {**PARTS, "sparsification": curves}).results
    for field in FIELDS[:8]:
        assert record["regression"][field] is None
    assert record["regression"]["a1_reason"] == (
        "the target is 0 or less at 2 of 720 evaluated pixels"
    )
    assert "infinite" in record["sparsification"]["ause_reason"]
    masked = uqeval.evaluate(bad, None, PARTS, invalid=0).results["regression"]
    assert masked["abs_rel"] is not None


@pytest.mark.parametrize("target", [5e-324, 1e-310, 1e-289])
def test_a_target_too_small_to_divide_by(data: dict[str, Any], target: float) -> None:
    tiny = {name: data[name].copy() for name in ("mean", "std", "target")}
    tiny["target"][0, 2, 3] = target
    report = uqeval.evaluate(tiny, None, PARTS)
    record = report.results["regression"]
    assert record["abs_rel"] is record["sq_rel"] is None
    reason = "the target is too small to divide by at 1 of 720 pixels"
    assert record["abs_rel_reason"] == record["sq_rel_reason"] == reason
    assert record["rmse_log"] > 20 and 0 < record["a1"] < 1
    assert report.items[1]["regression"]["abs_rel"] is not None
    report.to_json()


def test_a_sigma_too_small_for_float64(data: dict[str, Any]) -> None:
    tiny = {name: data[name].copy() for name in ("mean", "std", "target")}
    tiny["std"][0, 2, 3], tiny["target"][0, 2, 3] = 1e-200, tiny["mean"][0, 2, 3] + 1
    record = uqeval.evaluate(tiny, None, PARTS).results["regression"]
    scale = record["sigma_scale"]
    assert scale["value"] is scale["nll"] is scale["nll_before"] is None
    assert "|error|/σ exceeds 3e144" in scale["value_reason"]
    assert record["ence"] is not None
    for sigma, ence in ((1e-160, 1e160), (1e-200, None)):  # σ² is subnormal, and 0
        alike = tiny | {"std": np.full_like(tiny["std"], sigma)}
        alike["mean"] = alike["target"] + 1
        report = uqeval.evaluate(alike, None, PARTS)
        assert report.results["regression"]["ence"] == (ence and pytest.approx(ence, rel=1e-3))
        report.to_json()


def test_a_factor_of_other_items_with_an_enormous_likelihood(
    data: dict[str, Any], tmp_path: Path
) -> None:
    """The factor 1e-100 is fitted on the first item; the second has errors of 1e140 σ."""
    pair = {name: data[name][:2].copy() for name in ("mean", "std", "target")}
    pair["std"][:] = [[[1.0]], [[1e-130]]]
    pair["mean"] = pair["target"] + np.array([[[1e-100]], [[1e10]]])
    pair["target"][0], pair["mean"][0] = 0, 1e-100
    pair["names"] = ["a", "b"]
    (tmp_path / "fit.txt").write_text("a\n")
    options = {"sigma_scale": True, "fit_on": tmp_path / "fit.txt"}
    report = uqeval.evaluate(pair, None, {"regression": options})
    scale = report.results["regression"]["sigma_scale"]
    assert scale["value"] == pytest.approx(1e-100)
    assert scale["held_out"]["nll"] is None and scale["held_out"]["nll_before"] is not None
    assert "likelihood is 0 or unbounded" in scale["held_out"]["nll_reason"]
    report.to_json()


def test_mono_uncertainty(data: dict[str, Any]) -> None:
    """The preset, against its algorithm in plain NumPy, on ties."""
    options = {"definition": "mono-uncertainty", "error": ["abs-rel", "rmse", "a1"]}
    report = uqeval.evaluate(data, None, {"sparsification": options})
    found = [naive.mono_uncertainty(*arrays(data, i)) for i in range(4)]
    for key, error in (("", "abs-rel"), ("[rmse]", "rmse"), ("[a1]", "a1")):
        record = report.results[f"sparsification{key}"]
        expected = np.mean([own[error] for own in found], axis=0)
        assert [record["ause"], record["aurg"]] == pytest.approx(expected, rel=1e-6), error
        items = [item[f"sparsification{key}"]["ause"] for item in report.items]
        assert items == pytest.approx([own[error][0] for own in found], rel=1e-6, abs=1e-9)


def test_a1_of_the_set(data: dict[str, Any]) -> None:
    """The curve of wrong depths; the best order is that of the ratio."""
    report = uqeval.evaluate(data, None, {"sparsification": {"error": "a1", "normalise": "none"}})
    mean, sigma, target = arrays(data)
    ratio = np.maximum(mean / target, target / mean).astype("f4")
    record = report.results["sparsification"]
    for name, score in (("curve", sigma.astype("f4")), ("oracle", ratio)):
        values, n = [], len(score)
        for k in range(100):
            left = n - k * n // 100
            total = kept = 0.0
            for value in np.unique(score):  # ties share what is kept of them
                tied = score == value
                here = min(tied.sum(), left - kept)
                total += (ratio[tied] >= 1.25).mean() * here
                kept += here
            values.append(total / left)
        assert record[name] == pytest.approx(values, abs=1e-9), name


def test_disparities(data: dict[str, Any]) -> None:
    report = uqeval.evaluate(
        data, None, {**PARTS, "nmerci": {"alpha": 90}}, baseline_focal=12.5, disparity="both"
    )
    mean, sigma, target = arrays(data)
    converted = 12.5 / mean, sigma * 12.5 / mean**2, 12.5 / target
    expected = naive.depth(*converted)
    record = report.results["regression"]
    for field in FIELDS:
        assert record[field] == pytest.approx(expected[field], rel=1e-9), field
    found = naive.nmerci(naive.pixels(*(v[None] for v in converted)), 90)
    assert report.results["nmerci"]["nmerci"] == pytest.approx(found["nmerci"], rel=1e-6)
    assert report.inputs["options"]["baseline_focal"] == 12.5
    alone = uqeval.evaluate(data, None, "regression", baseline_focal=12.5).results["regression"]
    assert alone["mae"] == pytest.approx(abs(12.5 / mean - target).mean())


def test_median_scaling(data: dict[str, Any]) -> None:
    report = uqeval.evaluate(
        data, None, {**PARTS, "sparsification": {}}, median_scaling=True, region="depth:4-15"
    )
    scaled = [[], [], []]
    for i in range(4):
        mean, sigma, target = arrays(data, i)
        by = np.median(target) / np.median(mean)
        for values, own in zip(scaled, (by * mean, by * sigma, target), strict=True):
            values.append(own)
    mean, sigma, target = map(np.concatenate, scaled)
    inside = (target >= 4) & (target < 15)
    for key, chosen in (("regression", target > 0), ("regression@depth:4-15", inside)):
        expected = naive.depth(mean[chosen], sigma[chosen], target[chosen])
        for field in FIELDS:
            assert report.results[key][field] == pytest.approx(expected[field], rel=1e-9), field
    assert report.results["regression"]["sharpness"] == pytest.approx((sigma**2).mean() ** 0.5)


@pytest.mark.parametrize(
    "options", [{"median_scaling": True}, {"baseline_focal": 3.0}, {"baseline_focal": 3.0,
                 "median_scaling": True}]
)  # fmt: skip
def test_converted_numbers_do_not_depend_on_the_type_of_the_store(options: dict[str, Any]) -> None:
    """The same numbers as float32 and as float64: conversions are in float64."""
    rng = np.random.default_rng(5)
    target = rng.uniform(5, 20, (3, 6, 7)).astype("f4")
    stored = {"mean": rng.uniform(5, 20, target.shape).astype("f4"), "target": target}
    stored["std"] = rng.uniform(0.2, 2, target.shape).astype("f4")
    families = {**PARTS, "nmerci": {}, "sparsification": {}}
    narrow, wide = (
        uqeval.evaluate({k: v.astype(dtype) for k, v in stored.items()}, None, families, **options)
        for dtype in ("f4", "f8")
    )
    assert narrow.results == wide.results and narrow.items == wide.items


def test_the_factor_of_sigma_on_named_items(data: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "fit.txt").write_text("n1\nn3\n")
    options = {"sigma_scale": True, "fit_on": str(tmp_path / "fit.txt")}
    report = uqeval.evaluate(data, None, {"regression": options})
    record = report.results["regression"]
    mean, sigma, target = arrays(data, [1, 3])
    factor = np.sqrt((((mean - target) / sigma) ** 2).mean())
    assert record["sigma_scale"]["value"] == pytest.approx(factor, rel=1e-12)
    mean, sigma, target = arrays(data, [0, 2])
    for name, by in (("nll_before", 1), ("nll", factor)):
        z = (mean - target) / (by * sigma)
        nll = (0.5 * np.log(2 * np.pi) + np.log(by * sigma) + z * z / 2).mean()
        assert record["sigma_scale"]["held_out"][name] == pytest.approx(nll, rel=1e-12)
    assert record["sigma_scale"]["held_out"]["items"] == 2
    table = next(t for t in tables_of(report) if t.title == "Scale of σ")
    held_out = record["sigma_scale"]["held_out"]
    assert table.columns[-2:] == ["held out, before", "held out, with the factor"]
    shown = [cell.number for cell in table.rows[0].cells[-2:]]
    assert shown == [held_out["nll_before"], held_out["nll"]]


@pytest.mark.parametrize("spread", [1e-2, 1e-5, 1e-7, 1e-9])
def test_the_cv_of_almost_equal_sigma_keeps_its_digits(spread: float, data: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    sigma = 0.3 + spread * rng.random(data["std"].shape)
    report = uqeval.evaluate(data | {"std": sigma}, None, PARTS)
    values = sigma[data["valid"]].tolist()
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    expected = math.sqrt(squares / (len(values) - 1)) / mean
    assert report.results["regression"]["cv"] == pytest.approx(expected, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize("sigma", [0.1, 0.3, 1 / 7, 1e-30, 1e30])
def test_the_cv_of_one_sigma_is_0(sigma: float, data: dict[str, Any]) -> None:
    report = uqeval.evaluate(data | {"std": np.full(data["std"].shape, sigma)}, None, PARTS)
    assert report.results["regression"]["cv"] == 0
    assert all(item["regression"]["cv"] == 0 for item in report.items)


def test_without_sigma_or_errors(data: dict[str, Any]) -> None:
    none = uqeval.evaluate(data | {"std": 0 * data["std"]}, None, PARTS).results["regression"]
    assert none["ence"] is none["cv"] is none["sigma_scale"]["value"] is None
    assert "some evaluated pixel σ = 0" in none["sigma_scale"]["nll_reason"]
    exact = uqeval.evaluate(data | {"mean": data["target"]}, None, PARTS).results["regression"]
    assert exact["sigma_scale"]["value"] is None
    assert exact["ence"] == 1
    assert exact["abs_rel"] == exact["silog"] == 0
    empty = uqeval.evaluate(data, None, PARTS, region="depth:100-200").results
    record = empty["regression@depth:100-200"]
    for field in FIELDS:
        assert record[field] is None
        assert record[f"{field}_reason"]


@pytest.mark.parametrize(
    ("options", "changes", "error", "text"),
    [
        ({"baseline_focal": 2.0}, {"mean": -1.0}, DataError,
         r"item n0: 180 of 180 predicted disparities are 0 or less"),
        ({"baseline_focal": 2.0, "disparity": "both"}, {"target": 0.0}, DataError,
         "180 of 180 target disparities are 0 or less"),
        ({"median_scaling": True}, {"mean": -1.0}, DataError, "median of the prediction is -1"),
        ({"baseline_focal": 0.0}, {}, UsageError, "expected a number above 0"),
        ({"baseline_focal": 1e308}, {}, DataError,
         r"180 of 180 values of mean are beyond float32 after baseline_focal=1e\+308"),
        ({"baseline_focal": 1e30}, {"mean": 1e-20}, DataError, "values of mean are beyond float32"),
        ({"baseline_focal": 1e-30}, {"mean": 1e-36}, DataError, "values of sigma are beyond"),
    ],
)  # fmt: skip
def test_refused(
    data: dict[str, Any], options: dict[str, Any], changes: dict[str, float], error: Any, text: str
) -> None:
    own = {name: data[name] for name in ("mean", "std", "target", "names")}
    own |= {name: np.full(data[name].shape, value) for name, value in changes.items()}
    with pytest.raises(error, match=text):
        uqeval.evaluate(own, None, "regression", **options)


def test_refused_for_other_data(data: dict[str, Any]) -> None:
    probs = np.full((1, 2, 4, 4), 0.5)
    with pytest.raises(UsageError, match="median_scaling is for predicted depths"):
        uqeval.evaluate(probs, np.zeros((1, 4, 4), "u1"), "calibration", median_scaling=True)
    with pytest.raises(UsageError, match="a sweep takes predicted numbers as they are stored"):
        uqeval.sweep(data, None, baseline_focal=2.0)


def test_mixed_units(data: dict[str, Any], tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    for name, units in (("mean", "px"), ("std", "px"), ("target", "m")):
        array = group.create_array(name, data=data[name])
        array.attrs["units"] = units
    with pytest.raises(StoreError, match=r"mean of .* is in px, (std of .*)?target of .* is in m "):
        uqeval.evaluate(tmp_path / "d.zarr", None, "regression")
    uqeval.evaluate(tmp_path / "d.zarr", None, "regression", baseline_focal=2.0)
