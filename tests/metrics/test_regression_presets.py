"""Presets of regression calibration against the codes whose rules they follow.

uncertainty-toolbox runs; torch-uncertainty's quantile calibration error is written out, from
reference/metrics.md §2.6: 15 levels 0.05 … 0.95, closed intervals, mean absolute gap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import evaluated, numbers
from scipy import stats

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics.regression_settings import DEFINITIONS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("presets") / "r.npz"
    np.savez(path, **numbers(11))  # type: ignore[arg-type]
    return path


def flat(item: Any = slice(None)) -> tuple[Any, Any, Any]:
    """Means, standard deviations and targets of the evaluated pixels, the errors as maps have them.

    That is in float32, so that μ - y is what a preset sees.
    """
    arrays = numbers(11)
    keep = evaluated(arrays)[item]
    mean, target = (arrays[name][item][keep].astype(float) for name in ("mean", "target"))
    residual = (mean - target).astype("f4").astype(float)
    return residual, arrays["std"][item][keep].astype(float), np.zeros_like(residual)


def regression(store: Path, **options: Any) -> Any:
    return uqeval.evaluate(store, None, {"regression": options})


@pytest.fixture(scope="module")
def toolbox() -> Any:
    """The peer; it loads pyplot, which no other process of tests needs."""
    from uncertainty_toolbox import metrics_calibration

    return metrics_calibration


@pytest.mark.parametrize("proportion", ["interval", "quantile"])
@pytest.mark.parametrize("levels", [100, 21])
def test_uncertainty_toolbox(store: Path, toolbox: Any, proportion: str, levels: int) -> None:
    report = regression(
        store, definition="uncertainty-toolbox", proportion=proportion, levels=levels
    )
    found, options = report.results["regression"], {"num_bins": levels, "prop_type": proportion}
    p, observed = toolbox.get_proportion_lists_vectorized(*flat(), **options)
    assert found["calibration"]["p"] == pytest.approx(p.tolist(), abs=1e-15)
    assert found["calibration"]["observed"] == observed.tolist()
    area = toolbox.miscalibration_area(*flat(), **options)
    assert found["auce"] == pytest.approx(area, rel=1e-12)
    for i, item in enumerate(report.items):
        own = toolbox.miscalibration_area(*flat(i), **options)
        assert item["regression"]["auce"] == pytest.approx(own, rel=1e-12)
    mean = regression(
        store, definition="uncertainty-toolbox", proportion=proportion, levels=levels, area="mean"
    )
    expected = toolbox.mean_absolute_calibration_error(*flat(), **options)
    assert mean.results["regression"]["auce"] == pytest.approx(expected, rel=1e-12)


def torch_uncertainty(residual: Any, std: Any) -> tuple[Any, Any, float]:
    """0.13, QuantileCalibrationError: coverage of central intervals at 15 levels, mean gap."""
    levels = np.linspace(0.05, 0.95, 15)
    observed = []
    for level in levels:
        low, high = stats.norm(0, std).interval(level)
        observed.append(np.mean((low <= residual) & (residual <= high)))
    return levels, np.array(observed), float(np.abs(levels - observed).mean())


def test_torch_uncertainty(store: Path) -> None:
    report = regression(store, definition="torch-uncertainty-0.13")
    residual, std, _ = flat()
    levels, observed, error = torch_uncertainty(residual, std)
    found = report.results["regression"]
    assert found["calibration"]["p"] == pytest.approx(levels.tolist(), abs=1e-15)
    assert found["calibration"]["observed"] == pytest.approx(observed.tolist(), abs=1e-15)
    assert found["auce"] == pytest.approx(error, rel=1e-12)


def test_parts_of_an_area_add_up(store: Path) -> None:
    for area in ("trapezoid", "crossing", "mean"):
        found = regression(store, area=area, levels=9).results["regression"]
        assert found["auce_over"] + found["auce_under"] == pytest.approx(found["auce"], rel=1e-12)


def test_gaps_of_one_sign_have_the_interval_of_the_trapezoid() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(8, 20, 30)), rng.uniform(0.5, 1, (8, 20, 30))
    given = {"mean": mean, "std": std, "target": mean + 4 * std * rng.normal(size=mean.shape)}
    found = {
        area: uqeval.evaluate(given, metrics={"regression": {"area": area, "levels": 9}}, ci=0.9)
        for area in ("trapezoid", "crossing")
    }
    for name in ("auce", "auce_over"):
        expected, interval = (
            found[area].intervals[f"regression.{name}"] for area in ("trapezoid", "crossing")
        )
        assert interval["low"] == pytest.approx(expected["low"], rel=1e-12)
        assert interval["high"] == pytest.approx(expected["high"], rel=1e-12)
    assert found["crossing"].intervals["regression.auce"]["low"] > 0


def test_of_quantiles_the_sign_says_nothing_of_confidence(store: Path) -> None:
    found = regression(store, proportion="quantile").results["regression"]
    for name in ("auce_over", "auce_under"):
        assert found[name] is None and "bias" in found[f"{name}_reason"]
    usual = regression(store).results["regression"]
    assert {k: found[k] for k in ("coverage", "nll", "crps", "interval_score")} == {
        k: usual[k] for k in ("coverage", "nll", "crps", "interval_score")
    }


def test_laplace_quantiles(store: Path) -> None:
    found = regression(store, proportion="quantile", distribution="laplace", levels=9)
    residual, std, _ = flat()
    scaled = stats.laplace(scale=std / np.sqrt(2)).cdf(residual)
    expected = [np.mean(scaled <= k / 10) for k in range(1, 10)]
    observed = found.results["regression"]["calibration"]["observed"]
    assert observed == pytest.approx(expected, abs=1e-12)


def test_a_report_says_every_choice(store: Path) -> None:
    report = regression(store, definition=list(DEFINITIONS))
    for name, choices in DEFINITIONS.items():
        key = "regression" if name == "paper" else f"regression[definition={name}]"
        said = report.settings[key]
        assert said["definition"] == name
        assert {k: said[k] for k in choices} == choices
        assert set(said) >= {"levels", "grid", "proportion", "area", "distribution"}
    found = {report.results[key]["auce"] for key in report.results}
    assert len(found) == len(DEFINITIONS) - 1  # the paper's and its code's are one


def test_what_cannot_be(store: Path) -> None:
    for options, words in [
        ({"grid": "half"}, "grid='half'; expected one of open, closed, 5-95"),
        ({"area": "sum"}, "area='sum'"), ({"proportion": "tail"}, "proportion='tail'"),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match=words):
            regression(store, **options)


def with_ties() -> dict[str, Any]:
    """Numbers [2, 12, 20] in quarters: many errors of 0, of σ, and of a multiple of it; no σ 0."""
    rng = np.random.default_rng(5)
    target = rng.integers(-8, 8, (2, 12, 20)) / 4
    std = rng.choice([0.25, 0.5, 1.0], target.shape)
    error = std * rng.choice([-2, -1, -0.5, 0, 0.5, 1, 2], target.shape)
    return {"mean": target + error, "std": std, "target": target}


@pytest.mark.parametrize("proportion", ["interval", "quantile"])
def test_presets_on_ties(toolbox: Any, proportion: str) -> None:
    """Errors of exactly 0 lie in the interval of level 0 and below the median."""
    arrays = with_ties()
    names = ["paper", "uncertainty-toolbox", "torch-uncertainty-0.13"]
    options = {"definition": names, "proportion": proportion}
    results = uqeval.evaluate(arrays, metrics={"regression": options}).results
    found = {name: results[key] for name, key in zip(names, results, strict=True)}
    residual, std = (arrays["mean"] - arrays["target"]).ravel(), arrays["std"].ravel()
    zero = np.zeros_like(residual)

    ours = found["uncertainty-toolbox"]
    p, observed = toolbox.get_proportion_lists_vectorized(
        residual, std, zero, num_bins=100, prop_type=proportion
    )
    assert ours["calibration"]["p"] == pytest.approx(p.tolist(), abs=1e-15)
    assert ours["calibration"]["observed"] == observed.tolist()
    area = toolbox.miscalibration_area(residual, std, zero, prop_type=proportion)
    assert ours["auce"] == pytest.approx(area, rel=1e-12)
    if proportion == "interval":
        assert observed[0] > 0.1
        _, observed, error = torch_uncertainty(residual, std)
        ours = found["torch-uncertainty-0.13"]
        assert ours["calibration"]["observed"] == pytest.approx(observed.tolist(), abs=1e-15)
        assert ours["auce"] == pytest.approx(error, rel=1e-12)
