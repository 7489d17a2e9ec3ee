"""The interval of a mean over neighbouring pairs, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.series import series_mean
from uqeval.statistics.swaps import swap_tests
from uqeval.statistics.units import autocorrelation, batches


def alike(pairs: int, rho: float, seed: int = 1) -> np.ndarray:
    """An AR(1) series around 0.8."""
    rng = np.random.default_rng(seed)
    values = [rng.normal()]
    for _ in range(pairs - 1):
        values.append(rho * values[-1] + rng.normal() * (1 - rho**2) ** 0.5)
    return 0.8 + 0.02 * np.array(values)


def test_batches_of_one_sequence() -> None:
    """Batches of equal length: mean ± t·s/√b over the means of the batches."""
    values = alike(300, 0.5)
    found = series_mean(values, ["a"] * 300, 0.9)
    assert isinstance(found.bounds, Bounds) and found.bounds.method == "batch-means"
    count = found.resampling.units
    means = values.reshape(count, -1).mean(axis=1)
    reach = student.ppf(0.95, count - 1) * means.std(ddof=1) / count**0.5
    assert (found.bounds.low, found.bounds.high) == pytest.approx(
        (values.mean() - reach, values.mean() + reach), abs=1e-9
    )
    assert 30 < float(found.resampling.effective or 0) < 300 and not found.warnings


def test_few_pairs_without_correlation_do_not_blame_it() -> None:
    (text,) = series_mean(alike(12, -0.6), ["a"] * 12, 0.9).warnings
    assert "independent pairs" in text and "correlat" not in text


@pytest.mark.parametrize("pairs", [80, 99, 100, 101, 200])
def test_equal_pairs_are_not_correlated(pairs: int) -> None:
    """The mean of equal values may differ from them by rounding."""
    found = series_mean(np.full(pairs, 0.81667), ["a"] * pairs)
    assert found.resampling.effective == pairs and found.resampling.problem is None
    assert found.bounds == NoBounds("the score is the same in all pairs")


def test_batches_do_not_depend_on_the_order_of_sequences() -> None:
    names = [*["b"] * 40, *["a"] * 40]
    assert {*batches(names, 3)} == {*batches(names[::-1], 3)}


def test_few_independent_pairs_are_a_warning() -> None:
    values = alike(120, 0.95)
    values[3] = np.nan
    found = series_mean(values, ["a"] * 120)
    assert found.resampling.effective is not None and found.resampling.effective < 10
    assert "independent pairs" in found.warnings[0] and "longer" in found.warnings[0]
    assert found.value == pytest.approx(float(np.nanmean(values)), abs=1e-12)


def test_too_short() -> None:
    found = series_mean(np.linspace(0, 1, 6), ["a"] * 6)
    assert isinstance(found.bounds, NoBounds) and "too short" in found.bounds.reason
    assert found.warnings[0].startswith("no intervals: the video is too short")


def test_a_sequence_that_is_too_short_is_named() -> None:
    values = alike(203, 0.8)
    found = series_mean(values, ["long"] * 200 + ["short"] * 3)
    (warning,) = found.warnings
    assert (
        "1 sequence of the video is too short: short (3 pairs); a batch needs at least" in warning
    )
    assert "Evaluate the others alone" in warning
    assert isinstance(series_mean(values[:200], ["long"] * 200).bounds, Bounds)
    resampling = found.resampling
    assert swap_tests(None, None, [], resampling, ["temporal.mtc"]) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lengths", "count", "expected"),
    [
        ((64, 64, 74, 3, 3), 10, [2, 3, 3, 1, 1]),
        ((100,), 3, [3]),
        ((100, 50), 10, [7, 3]),
        ((9, 9, 9, 9, 9), 3, [1, 1, 1, 1, 1]),
    ],
)
def test_batches_are_shared_among_sequences(
    lengths: tuple[int, ...], count: int, expected: list[int]
) -> None:
    names = [f"s{i}" for i, length in enumerate(lengths) for _ in range(length)]
    found = {batch.split("/")[0]: batch for batch in batches(names, count)}  # the last of each
    assert [int(batch.split("/")[1]) + 1 for batch in found.values()] == expected


def test_ten_sequences_are_the_units() -> None:
    values = alike(60, 0.0)
    found = series_mean(values, [str(i // 6) for i in range(60)])
    assert (found.resampling.unit, found.resampling.units) == ("sequence", 10)
    assert isinstance(found.bounds, Bounds) and found.bounds.method == "jackknife-t"
    assert "come from" in found.warnings[0]


def test_sequences_of_one_pair_have_no_autocorrelation() -> None:
    values = np.random.default_rng(0).random(10)
    found = series_mean(values, [f"s{i}" for i in range(10)])
    assert found.resampling.lag1 is None and found.resampling.effective == 10
    (warning,) = found.warnings
    assert (
        warning
        == "intervals come from about 10 independent pairs. Below 30 they may be too narrow."
    )
    found = series_mean(values[:9], [f"s{i}" for i in range(9)])
    assert isinstance(found.bounds, NoBounds)
    assert found.warnings == (
        "no intervals: 9 sequences of the video are too short: s0 (1 pair), s1 (1 pair), s2 (1 "
        "pair) and 6 more; a batch needs at least 2 pairs, more than the autocorrelation time of "
        "1. Evaluate longer sequences, or at least 10 sequences.",
    )


@pytest.mark.parametrize("scale", [1.0, 2.0, 0.1, -1.0])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_a_pair_of_autocovariances_of_exactly_0_ends_the_sum(scale: float, offset: float) -> None:
    # The autocovariances at lags 2 and 3 are 6 and -6; those at 4 and 5 have a sum above 0.
    values = np.array([1.0, 2, 2, -2, 1, -1, 1, -2, -1, -1])
    products = [values[: 10 - lag] @ values[lag:] for lag in range(6)]
    assert values.sum() == 0 and products[2] + products[3] == 0 < products[4] + products[5]
    tau, _ = autocorrelation([scale * values + offset])
    assert tau == 1.0
