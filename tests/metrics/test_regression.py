"""`regression` against the slow oracle, uncertainty-toolbox, and what must hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from number_stores import SHAPE, close, evaluated, numbers, save

import uqeval
from uqeval.errors import DataError, UsageError
from uqeval.tallies.intervals import PredictiveScores


def scores(path: Path, **options: Any) -> dict[str, Any]:
    report = uqeval.evaluate(path, None, {"regression": options}, workers=1)
    return report.results["regression"]  # type: ignore[no-any-return]


def oracle(arrays: dict[str, Any], items: slice = slice(None), **options: Any) -> dict[str, Any]:
    cut = {name: values[items] for name, values in arrays.items()}
    found = naive.pixels(cut["mean"], cut["std"], cut["target"], cut.get("valid"))
    return naive.regression(found, **options)


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        if isinstance(value, dict):
            for key, own in value.items():
                assert found[name][key] == pytest.approx(own, rel=1e-9), (name, key)
        else:
            assert close(found[name], value), (name, found[name], value)


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
@pytest.mark.parametrize("levels", [99, 7])
def test_oracle(tmp_path: Path, distribution: str, levels: int) -> None:
    arrays = numbers(1)
    path = save(tmp_path / "r.npz", arrays)
    options = {"distribution": distribution, "levels": levels}
    report = uqeval.evaluate(path, None, {"regression": options})
    expected = oracle(arrays, **options)  # type: ignore[arg-type]
    same(report.results["regression"], expected)
    assert (
        report.results["regression"]["calibration"]["observed"]
        == expected["calibration"]["observed"]
    )
    for i, item in enumerate(report.items):
        alone = oracle(arrays, slice(i, i + 1), **options)  # type: ignore[arg-type]
        same(item["regression"], {k: v for k, v in alone.items() if not isinstance(v, dict)})
    assert report.numerics["regression"]["invalid"] == (~evaluated(arrays)).sum()


def test_uncertainty_toolbox(tmp_path: Path) -> None:
    calibration = pytest.importorskip(
        "uncertainty_toolbox.metrics_calibration", reason="uncertainty-toolbox is the peer"
    )
    from uncertainty_toolbox.metrics_scoring_rule import crps_gaussian, nll_gaussian

    arrays = numbers(2)
    keep = evaluated(arrays)
    error = np.abs(arrays["mean"].astype(float) - arrays["target"].astype(float))[keep]
    mean, std = error, arrays["std"][keep].astype(float)
    truth = np.zeros_like(mean)
    found = scores(save(tmp_path / "r.npz", arrays))
    assert found["nll"] == pytest.approx(nll_gaussian(mean, std, truth), rel=1e-9)
    assert found["crps"] == pytest.approx(crps_gaussian(mean, std, truth), rel=1e-9)
    _, observed = calibration.get_proportion_lists_vectorized(mean, std, truth, num_bins=101)
    assert found["calibration"]["observed"] == observed[1:-1].tolist()


def test_extreme_uncertainties_have_the_same_area(tmp_path: Path) -> None:
    arrays = numbers(3)
    for name, std, over in (("zero", 1e-20, 0.49), ("large", 1e20, 0.0)):
        arrays["std"] = np.full(SHAPE, std, "f4")
        found = scores(save(tmp_path / f"{name}.npz", arrays))
        assert found["auce"] == pytest.approx(0.49, rel=1e-9)
        assert found["auce_over"] == pytest.approx(over, rel=1e-9)
        assert found["auce_under"] == pytest.approx(0.49 - over, rel=1e-9)


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_a_calibrated_model_has_no_area(tmp_path: Path, distribution: str) -> None:
    rng = np.random.default_rng(4)
    std = rng.uniform(0.5, 2, (2, 300, 400))
    noise = rng.normal(size=std.shape)
    if distribution == "laplace":
        noise = rng.laplace(0, 1 / np.sqrt(2), std.shape)
    path = save(tmp_path / "r.npz", {"mean": std * noise, "std": std, "target": 0 * std})
    found = scores(path, distribution=distribution)
    assert found["auce"] < 0.002
    assert found["coverage"]["95"] == pytest.approx(0.95, abs=0.002)
    assert found["nmse"] is None and "one value" in found["nmse_reason"]


def test_sigma_of_zero(tmp_path: Path) -> None:
    arrays = numbers(5)
    keep = evaluated(arrays)
    first, second = (tuple(k) for k in np.argwhere(keep)[:2])
    arrays["std"][first] = arrays["std"][second] = 0
    arrays["mean"][first] = arrays["target"][first]
    path = save(tmp_path / "r.npz", arrays)
    report = uqeval.evaluate(path, None, {"regression": {}})
    found = report.results["regression"]
    assert found["nll"] is None and found["nll_reason"].startswith("σ = 0 at 2 of ")
    assert report.numerics["regression"]["sigma_zero"] == 2
    assert report.numerics["regression"]["lambda_infinite"] == 1
    assert any("σ = 0 at 2" in text for text in report.warnings)
    same(found, oracle(arrays))


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
@pytest.mark.parametrize("sigma", [5e-324, 1e-310, 1e-200, 1e-155])
def test_a_sigma_too_small_for_float64(tmp_path: Path, sigma: float, distribution: str) -> None:
    arrays = {name: numbers(5)[name].astype("f8") for name in ("mean", "std", "target")}
    arrays["target"][0, 2, 3], arrays["mean"][0, 2, 3] = 5, 7
    wide = scores(save(tmp_path / "wide.npz", arrays), distribution=distribution)
    arrays["std"][0, 2, 3] = 0
    at_zero = scores(save(tmp_path / "zero.npz", arrays), distribution=distribution)
    arrays["std"][0, 2, 3] = sigma
    path = save(tmp_path / "r.npz", arrays)
    report = uqeval.evaluate(path, None, {"regression": {"distribution": distribution}})
    found = report.results["regression"]
    report.to_json()
    n = found["pixels"]
    if distribution == "laplace" and sigma > 1e-288:  # |error|/σ is not squared
        assert found["nll"] == pytest.approx(2 * 2**0.5 / sigma / n, rel=1e-9)
    else:
        reason = f"|error|/σ is too large for float64 at 1 of {n} evaluated pixels"
        assert found["nll"] is None and found["nll_reason"].startswith(reason)
        assert report.items[0]["regression"]["nll_reason"].startswith("|error|/σ is too large")
        assert any("|error|/σ is above 1e144 at 1" in text for text in report.warnings)
    assert report.items[1]["regression"]["nll"] is not None
    assert found["crps"] == pytest.approx(at_zero["crps"], rel=1e-15) != wide["crps"]
    assert found["interval_score"] == at_zero["interval_score"]
    assert report.numerics["regression"]["sigma_zero"] == 0


def test_a_sigma_of_few_digits_at_an_exact_prediction() -> None:
    """Subnormal numbers have no leading 1 in their mantissa."""
    for sigma in (5e-324, 1e-310, 2.0**-1022, 1e-300):
        maps: dict[str, Any] = {"error": np.zeros(1), "sigma": np.array([sigma])}
        state = PredictiveScores(False, (), ()).state_of(maps | {"label": np.zeros(1, "u1")})
        expected = math.log(sigma) + 0.5 * math.log(2 * math.pi)
        assert state["nll"][0] == pytest.approx(expected, rel=1e-14) and not state["far"][0]


@pytest.mark.parametrize(
    ("value", "size"),
    [(4.576540019252194, (19, 14)), (9.544842525194307, (19, 17)), (1e-45, (6, 7))],
)
def test_items_of_one_target_have_no_nmse(tmp_path: Path, value: float, size: Any) -> None:
    """The mean of equal numbers is rounded, and the sum of squares about it is not 0."""
    target = np.full((8, *size), value)
    arrays = {"mean": target + 1, "std": np.ones_like(target), "target": target}
    table = tmp_path / "slices.csv"
    table.write_text("name,half\n" + "".join(f"{i},{'ab'[i // 4]}\n" for i in range(8)))
    path = save(tmp_path / "r.npz", arrays)
    report = uqeval.evaluate(path, None, "regression", ci=0.9)
    assert report.results["regression"]["nmse"] is None
    assert {item["regression"]["nmse"] for item in report.items} == {None}
    target[4:] += np.random.default_rng(0).normal(size=target[4:].shape)
    report = uqeval.evaluate(save(path, arrays), None, "regression", slices=table, ci=0.9)
    nmse = [report.slices[f"half={h}"]["results"]["regression"]["nmse"] for h in "ab"]
    assert nmse[0] is None and 0 < nmse[1] < 3
    assert report.intervals["regression.nmse"]["high"] < 100


def test_a_target_that_hardly_varies(tmp_path: Path) -> None:
    target = np.zeros(SHAPE)
    target[0, 0, 0] = 1e-160
    arrays = {"mean": target + 1, "std": np.ones(SHAPE), "target": target}
    found = scores(save(tmp_path / "r.npz", arrays))
    assert found["nmse"] is None and "one value only, or almost" in found["nmse_reason"]


def test_a_far_target_loses_no_digits_of_its_variance(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    target = (30_000 + rng.normal(size=(4, 40, 50))).astype("f4")
    path = save(
        tmp_path / "r.npz", {"mean": target + 1, "std": np.ones_like(target), "target": target}
    )
    assert scores(path)["nmse"] == pytest.approx(
        1 / np.var(target.astype("f8")), rel=1e-9
    )  # fmt: skip


def test_any_split_gives_the_same_bits(tmp_path: Path) -> None:
    import zarr

    arrays = numbers(7, members=3)
    reports = []
    for i, chunks in enumerate([(3, 3, 12, 16), (1, 1, 5, 7), (2, 2, 12, 3)]):
        group = zarr.create_group(str(tmp_path / f"{i}.zarr"))
        for name, values in arrays.items():
            own = chunks if values.ndim == 4 else (chunks[0], *chunks[2:])
            array = group.create_array(
                name, shape=values.shape, dtype=values.dtype, chunks=own,
                config={"write_empty_chunks": True},
            )  # fmt: skip
            array[...] = values
        for workers in (1, 3):
            report = uqeval.evaluate(
                tmp_path / f"{i}.zarr", None,
                {"regression": {}, "nmerci": {"depth_step": 3.0}}, workers=workers,
            )  # fmt: skip
            reports.append((report.results, report.items))
    assert all(found == reports[0] for found in reports)


def test_what_cannot_be(tmp_path: Path) -> None:
    arrays = numbers(8)
    path = save(tmp_path / "r.npz", arrays)
    for options, word in [
        ({"levels": 1}, "levels=1"), ({"distribution": "cauchy"}, "expected one of gaussian"),
        ({"definition": "mine"}, "definition='mine'"), ({"sigma": 1}, "unknown regression"),
        ({"uncertainty": "error"}, "not an uncertainty"),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match=word):
            scores(path, **options)
    arrays["valid"][...] = False
    with pytest.raises(DataError, match="nothing is left to evaluate"):
        scores(save(tmp_path / "void.npz", arrays))


def test_an_item_without_a_target_is_told(tmp_path: Path) -> None:
    arrays = numbers(9)
    arrays["target"][1] = np.nan
    metrics, states = ["regression", "nmerci", "sparsification"], tmp_path / "r.states.zip"
    report = uqeval.evaluate(save(tmp_path / "r.npz", arrays), None, metrics, states=states)
    expected = "regression, nmerci, sparsification: 1 of 3 items have no valid target: 1."
    assert expected in report.warnings
    assert expected in uqeval.merge(states).warnings
    assert report.items[1]["regression"]["rmse"] is None
    assert report.items[1]["regression"]["rmse_reason"] == "no pixel is evaluated"
    assert report.items[1]["nmerci"]["nmerci"] is None


@pytest.mark.parametrize("seed", [2, 3, 5, 6, 10])
def test_draws_of_one_target_have_no_nmse(seed: int) -> None:
    """Of 20 items, 7 have a pixel. Some draws repeat one of them: Σ y² - (Σ y)²/N is rounding."""
    rng = np.random.default_rng(seed)
    target = rng.normal(5, 1, (20, 1, 1))
    target[7:] = np.nan
    data = {"mean": target + rng.normal(0, 1, target.shape), "std": np.ones(target.shape)}
    report = uqeval.evaluate(data | {"target": target}, None, ["regression"], ci=0.9, draws=2000)
    assert report.intervals["regression.nmse"]["standard_error"] < 1e6


def test_targets_in_another_unit_are_a_warning() -> None:
    rng = np.random.default_rng(1)
    target = rng.uniform(1, 60, (3, 8, 9))
    mean, sigma = target + rng.normal(size=target.shape), np.ones(target.shape)
    for factor, is_doubtful in ((1, False), (1000, True)):
        arrays = {"mean": mean, "std": sigma, "target": factor * target}
        warnings = uqeval.evaluate(arrays, None, "regression", region="box:0:0.5,0:1").warnings
        doubts = [text for text in warnings if "metres and millimetres" in text]
        assert len(doubts) == is_doubtful
        assert all(text.startswith("regression: the nMSE is ") for text in doubts)


@pytest.mark.parametrize("area", ["mean", "trapezoid", "crossing"])
def test_quantiles_of_which_none_is_inside(area: str) -> None:
    arrays = {"mean": np.zeros((2, 4, 4)), "std": np.ones((2, 4, 4)), "target": np.ones((2, 4, 4))}
    settings = {"grid": "closed", "levels": 2, "proportion": "quantile", "area": area}
    found = uqeval.evaluate(arrays, None, {"regression": settings}, workers=1)
    record = found.results["regression"]
    assert record["calibration"] == {"p": [0.0, 1.0], "observed": [0.0, 1.0]}
    assert record["auce"] == 0.0
