"""Intervals of all scores against a slow bootstrap, and exact bounds against SciPy's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import run, scoring, weights_of
from scipy import stats

from uqeval.errors import UsageError
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import Drawn, check_level, interval, metric_of


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    report, path = run(tmp_path_factory.mktemp("run"), 14, ["pavpu", "calibration", "failure"])
    return report, scoring(path)


def slow(weights: Any, counts: Any, score: Any, level: float) -> tuple[float, float]:
    """Percentiles of a score of the counts of items that are repeated one by one."""
    values = []
    for row in weights:
        items = [i for i, times in enumerate(row) for _ in range(times)]
        values.append(score(np.sum([counts[i] for i in items], axis=0)))
    tail = (1 - level) / 2
    return float(np.quantile(values, tail)), float(np.quantile(values, 1 - tail))


GROUPS = tuple("aabbccddeeffgg")


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(
    "resampling",
    [Resampling(300, 1), Resampling(300, 2, GROUPS), Resampling(300, 3, None, GROUPS)],
)
def test_against_a_slow_bootstrap(
    saved: tuple[Any, Any], resampling: Resampling, level: float
) -> None:
    _, own = saved
    found = Drawn.of(own, resampling).intervals(level)
    weights = weights_of(resampling, 14)
    four = ("n_ac", "n_au", "n_ic", "n_iu")
    each = [own.whole([i]) for i in range(14)]
    counts = np.array([[item["pavpu"][f] for f in four] for item in each])

    def pavpu(sums: Any) -> float:
        return float((sums[0] + sums[3]) / sums.sum())

    expected = slow(weights, counts, pavpu, level)
    assert (found["pavpu.pavpu"]["low"], found["pavpu.pavpu"]["high"]) == expected
    assert found["pavpu.pavpu"]["level"] == level
    assert found["pavpu.pavpu"]["method"] == "percentile"

    pixels = np.array([item["segmentation"]["pixels"] for item in each])
    nll = np.array([item["calibration"]["nll"] for item in each]) * pixels
    expected = slow(weights, np.stack([nll, pixels], 1), lambda s: s[0] / s[1], level)
    own_nll = found["calibration.nll"]
    assert (own_nll["low"], own_nll["high"]) == pytest.approx(expected, rel=1e-12)


def test_what_has_an_interval(saved: tuple[Any, Any]) -> None:
    report, own = saved
    found = Drawn.of(own, Resampling(200)).intervals(0.95)
    assert {"segmentation.miou", "segmentation.per_class.0.iou"} <= found.keys()
    assert {"pavpu.pavpu", "pavpu.per_class.1.pavpu"} <= found.keys()
    assert {"pavpu.pavpu_peak.value", "failure.auroc", "calibration.ece"} <= found.keys()
    # Counts, settings and what is held fixed have none.
    assert not [a for a in found if a.split(".")[-1] in ("n_ac", "pixels", "window", "t")]
    assert "calibration.temperature.value" not in found
    assert "pavpu.uncertainty_threshold" not in found
    for address, record in found.items():
        assert record["low"] < record["high"], address
        assert record["approximate"] == (
            address.startswith("failure") and "undetected" not in address
        ), address
        low, high = metric_of(report.metrics, address)["range"]
        assert (low is None or low <= record["low"]) and (high is None or record["high"] <= high)


def test_of_some_items_alone(saved: tuple[Any, Any]) -> None:
    _, own = saved
    found = Drawn.of(own, Resampling(200), [2, 5, 7]).intervals(0.95)["pavpu.pavpu"]
    values = [own.whole([i])["pavpu"]["pavpu"] for i in (2, 5, 7)]
    assert min(values) <= found["low"] <= found["high"] <= max(values)


def test_of_one_unit_there_are_none(saved: tuple[Any, Any]) -> None:
    _, own = saved
    assert Drawn.of(own, Resampling(200), [3]).intervals(0.95) == {}
    assert Drawn.of(own, Resampling(200, groups=("x",) * 14)).intervals(0.95) == {}
    assert Drawn.of(own, Resampling(200, sequences=("x",) * 14), [0, 1]).intervals(0.95) == {}


def test_seeds(saved: tuple[Any, Any]) -> None:
    _, own = saved
    first, again, other = (
        Drawn.of(own, Resampling(100, seed)).intervals(0.95) for seed in (0, 0, 1)
    )
    assert first == again != other


# Exact bounds


@pytest.mark.parametrize("units", [1, 2, 10, 300])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_clopper_pearson(units: int, level: float) -> None:
    for value in (0.0, 1.0):
        found = interval(np.full(100, value), value, level, lambda: units)
        assert found is not None and found["method"] == "clopper-pearson"
        exact = stats.binomtest(int(value) * units, units).proportion_ci(level, "exact")
        assert (found["low"], found["high"]) == pytest.approx((exact.low, exact.high), rel=1e-12)


def test_where_resampling_knows_nothing() -> None:
    assert interval(np.full(100, 0.25), 0.25, 0.95, lambda: 9) is None
    assert interval(np.zeros(100), 0.0, 0.95, None) is None
    draws = np.arange(100.0)
    draws[:5] = np.nan
    found = interval(draws, 50.0, 0.9, None)
    low, high = np.quantile(draws[5:], [(1 - 0.9) / 2, 1 - (1 - 0.9) / 2])
    assert found == {"low": low, "high": high, "method": "percentile"}
    draws[5] = np.nan
    assert interval(draws, 50.0, 0.9, None) is None


def test_a_rate_without_events_counts_the_items_that_have_it(tmp_path: Path) -> None:
    """A class in 4 of 30 items, never right: its bound is that of 4 items, not of 30."""
    import uqeval

    p, y = np.full((30, 1, 3, 8, 8), 0.05, "f4"), np.zeros((30, 8, 8), "u1")
    rng = np.random.default_rng(0)
    wrong = rng.random((30, 8, 8)) < 0.2
    p[:, 0, 0] = np.where(wrong, 0.05, 0.9)
    p[:, 0, 1] = np.where(wrong, 0.9, 0.05)
    y[:4, :4, :4] = 2
    uqeval.evaluate(p, y, "segmentation", states=tmp_path / "report.states.zip")
    found = Drawn.of(scoring(tmp_path / "report.json"), Resampling(500)).intervals(0.95)
    own = found["segmentation.per_class.2.iou"]
    assert own["method"] == "clopper-pearson" and own["low"] == 0
    assert own["high"] == pytest.approx(stats.binomtest(0, 4).proportion_ci(0.95, "exact").high)
    groups = tuple("aabb" + "c" * 26)
    by_group = Drawn.of(scoring(tmp_path / "report.json"), Resampling(500, groups=groups))
    own = by_group.intervals(0.95)["segmentation.per_class.2.iou"]
    assert own["high"] == pytest.approx(stats.binomtest(0, 2).proportion_ci(0.95, "exact").high)


@pytest.mark.parametrize("level", [0.0, 0.49, 1.0, 95.0, float("nan")])
def test_levels(level: float) -> None:
    with pytest.raises(UsageError, match="--ci"):
        check_level(level)
