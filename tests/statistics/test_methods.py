"""Interval formulas against slow ones with scipy.stats, and published values."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial

import naive_statistics as naive
import numpy as np
import pytest
from scipy.stats import skew, ttest_ind

from uqeval.compare.holm import holm
from uqeval.metrics._score_kinds import Gaps
from uqeval.statistics import flips, jackknife, methods
from uqeval.statistics.methods import Bounds, NoBounds

LEVELS = [0.5, 0.9, 0.95, 0.999]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("events", "trials"), [(0, 1), (0, 30), (3, 10), (7, 7), (1, 500)])
def test_clopper_pearson(events: int, trials: int, level: float) -> None:
    found = methods.clopper_pearson(events / trials, trials, level)
    assert found == pytest.approx(naive.clopper_pearson(events, trials, level), rel=1e-9)


def test_clopper_pearson_of_a_thousandth_of_an_event() -> None:
    low, high = methods.clopper_pearson(0.001, 1.0, 0.95)
    assert low == 0.0  # 0.025^1000 is smaller than every number
    assert 0.97 < high < 1


def shares(rng: np.random.Generator, units: int) -> tuple[np.ndarray, np.ndarray]:
    trials = rng.integers(5, 50, units)
    return rng.binomial(trials, rng.beta(8, 3, units)), trials


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("units", [2, 5, 12, 40])
def test_shares_and_other_scores(units: int, level: float) -> None:
    events, trials = shares(np.random.default_rng(units), units)
    p = events.sum() / trials.sum()
    without = (events.sum() - events) / (trials.sum() - trials)

    def score(items: list[int]) -> float:
        return float(events[items].sum() / trials[items].sum())

    variance = float(jackknife.jackknife_variance(without))
    rare = 1 - events / trials
    few = (rare > 0).sum() < 5 or rare.sum() ** 2 / (rare**2).sum() < min(5, units / 2)
    assert methods.few_events(p, events / trials) == few
    found = methods.korn_graubard(p, variance, units, bool(few), float(trials.sum()), level)
    expected = naive.korn_graubard(range(units), score, int(trials.sum()), level, few)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
    for logit in (True, False):
        scores = left_out(p, without)
        assert scores.spread().variance == variance
        own = jackknife.jackknife_t(scores, level, logit=logit)
        assert isinstance(own, Bounds)
        expected = naive.jackknife_t(range(units), score, level, logit)
        assert (own.low, own.high) == pytest.approx(expected, rel=1e-9)


def test_the_bound_never_gets_better_with_another_event() -> None:
    """One trial a unit, 100 units, 0 to 3 wrong ones: the values of the definitions."""
    lows = []
    for events in range(12):
        p = 1 - events / 100
        each = np.repeat([0.0, 1.0], [events, 100 - events])
        without = (each.sum() - each) / 99
        variance = float(jackknife.jackknife_variance(without))
        lows.append(methods.korn_graubard(p, variance, 100, events < 5, 100, 0.95).low)
    assert lows[:4] == pytest.approx([0.964, 0.945, 0.929, 0.914], abs=6e-4)
    assert all(a > b for a, b in itertools.pairwise(lows))


def test_units_with_few_of_the_events_do_not_count() -> None:
    """Two bad images of 20 are two units with events, if the others have few."""
    for rest, few in ((0.0, True), (0.01, True), (0.2, False)):
        of_units = np.repeat([0.5, rest, np.nan], [2, 18, 1])
        assert methods.few_events(0.1, of_units) == methods.few_events(0.9, 1 - of_units) == few
    # Half of the units have nearly all events: those of five units may well differ so much.
    assert not methods.few_events(0.3, np.array([0.5, 0.4, 0.6, 0.1, 0.1]))
    assert methods.few_events(0.3, np.array([0.5, 0.01, 0.01, 0.01, 0.01]))


@pytest.mark.parametrize("units", [8, 10, 18])
def test_units_with_equal_shares_are_counted_in_any_order(units: int) -> None:
    """Five units with equal shares of events, or half of fewer than ten, are no few units: the
    rounding of the sum of the shares, whose order differs, decides nothing."""
    some, rng = min(5, units // 2), np.random.default_rng(0)
    for pixels in (2, 3, 9, 36, 49, 63, 97, 1_000_000):
        of_units = np.repeat([1 / pixels, 0.0], [some, units - some])
        for _ in range(10):
            rng.shuffle(of_units)
            share = float(of_units.mean())
            few = some < 5  # `FEW_EVENTS`
            assert methods.few_events(share, of_units) == few
            assert methods.few_events(1 - share, 1 - of_units) == few
    of_units[:] = np.repeat([0.5, 0.4, 0.0], [some - 1, 1, units - some])
    assert methods.few_events(0.1, of_units)


def test_no_event_counts_units() -> None:
    found = methods.korn_graubard(1.0, 0.0, 4, False, 1e6, 0.95)
    assert (found.low, found.high) == pytest.approx(naive.clopper_pearson(4, 4, 0.95))
    own = jackknife.jackknife_t(left_out(0.0, np.zeros(4)), 0.95, logit=True)
    assert isinstance(own, Bounds) and own.high == pytest.approx(found_of(0, 4)[1])
    undefined = left_out(0.4, np.array([0.3, 0.5, 0.4, math.nan]))
    for logit in (False, True):
        assert isinstance(jackknife.jackknife_t(undefined, 0.95, logit=logit), NoBounds)


def left_out(value: float, without: np.ndarray) -> jackknife.LeftOut:
    units = len(without)
    return jackknife.LeftOut(value, without, [np.arange(units)], units, units)


def test_a_biased_score_reaches_beyond_both_centres() -> None:
    """Its interval contains those around the value and around the value less its bias."""
    plain = jackknife.Spread(0.01, 0.0, 9)
    low, high = plain.ends(0.5, 0.95)
    for bias in (-0.1, 0.1):
        ends = replace(plain, bias=bias).ends(0.5, 0.95)
        assert ends == pytest.approx((low - max(bias, 0), high - min(bias, 0)))


def test_a_skewed_score_reaches_farther_on_one_side() -> None:
    """The coefficient 1/6·(1 + 2t²) of Johnson's modified t."""
    plain = jackknife.Spread(0.01, 0.0, 9)
    low, high = plain.ends(0.5, 0.95)
    t = (high - low) / 2 / 0.1
    for skewness in (-0.3, 0.3):
        ends = replace(plain, skewness=skewness).ends(0.5, 0.95)
        more = 0.1 * 0.3 / 6 * (1 + 2 * t * t)
        assert ends == pytest.approx((low - more, high) if skewness < 0 else (low, high + more))


def test_one_large_unit_moves_the_high_end_only() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 9.0])
    without = np.array([np.delete(values, i).mean() for i in range(7)])
    spread = left_out(float(values.mean()), without).spread()
    assert spread.skewness == pytest.approx(skew(values, bias=False) / 7**0.5)
    (low, high), reach = spread.ends(0.0, 0.9), spread.reach(0.9)
    assert low == pytest.approx(-reach) and high > 1.5 * reach


@pytest.mark.parametrize("power", [-900, -300, 0, 300, 960])
def test_welch_is_the_same_at_every_size_of_the_scores(power: int) -> None:
    """float64 has no fourth powers of scores above 2^256 or below 2^-268."""
    first, second = np.array([1.25, 2.5, 2.0]), np.array([4.0, 3.5])
    test = ttest_ind(first, second, equal_var=False)
    ends = test.confidence_interval(0.9)
    bounds, p = methods.welch(np.ldexp(first, power), np.ldexp(second, power), 0.9)
    expected = np.ldexp([ends.low, ends.high, test._standard_error], power)
    assert [bounds.low, bounds.high, bounds.standard_error] == pytest.approx(
        expected.tolist(), rel=1e-12, abs=0
    )
    assert p == pytest.approx(test.pvalue, rel=1e-12)


def test_strata_add_their_variances_with_degrees_of_welch() -> None:
    rng = np.random.default_rng(3)
    inside, outside = rng.normal(0, 1, 8), rng.normal(1, 3, 5)
    value = outside.mean() - inside.mean()
    without = [outside.mean() - np.delete(inside, i).mean() for i in range(8)]
    without += [np.delete(outside, i).mean() - inside.mean() for i in range(5)]
    spread = jackknife.Spread.of(value, np.array(without), [np.arange(8), np.arange(8, 13)], 13)
    parts = inside.var(ddof=1) / 8, outside.var(ddof=1) / 5
    assert spread.variance == pytest.approx(sum(parts)) and spread.bias == pytest.approx(
        0, abs=1e-9
    )
    welch = sum(parts) ** 2 / (parts[0] ** 2 / 7 + parts[1] ** 2 / 4)
    assert spread.degrees == pytest.approx(welch)
    expected = ttest_ind(outside, inside, equal_var=False).confidence_interval(0.9)
    plain = replace(spread, skewness=0.0).ends(float(value), 0.9)
    assert plain == pytest.approx((expected.low, expected.high))


def found_of(events: int, trials: int) -> tuple[float, float]:
    return naive.clopper_pearson(events, trials, 0.95)


@pytest.mark.parametrize("units", [6, 10, 200])
def test_expanded_percentiles(units: int) -> None:
    drawn = np.random.default_rng(units).normal(size=2000)
    found = methods.expanded(drawn, units, 0.95)
    assert (found.low, found.high) == pytest.approx(naive.expanded(drawn, units, 0.95), rel=1e-9)
    plain = methods.percentile(drawn, 0.95)
    assert found.low < plain.low < plain.high < found.high


def flipped(gaps: np.ndarray, weights: np.ndarray, flips_of: int, **form: bool) -> flips.Flipped:
    """The gaps of units [unit, bin] with random signs."""
    signs = np.concatenate(list(flips.signs_of(len(gaps), 0, flips_of))).astype(float)
    score = partial(Gaps(of_no_states, of_no_states, **form).score, weights=weights)
    return flips.Flipped(signs @ gaps, signs.mean(axis=1), gaps.sum(axis=0), score)


def of_no_states(states: object) -> np.ndarray:
    raise AssertionError


@pytest.mark.parametrize("form", ["sum", "largest", "one_sided"])
def test_signs_of_gaps(form: str) -> None:
    """All 2^5 signs by hand; random ones are near that share. For several shares of the gaps."""
    gaps = np.random.default_rng(0).normal(0.4, 1, (5, 3))
    weights = np.array([0.5, 1.0, 0.25])
    found = flipped(gaps, weights, 20_000, **({} if form == "sum" else {form: True}))
    for share in (0.0, 0.3, 1.0):
        expected = naive.p_of_signs(gaps, weights, share, form)
        assert found.p(share) == pytest.approx(expected, abs=0.015), share


def test_the_least_share_is_the_end_of_the_rejected_ones() -> None:
    rng = np.random.default_rng(1)
    weights = np.full(6, 1 / 30)
    clear = flipped(rng.normal(1, 0.2, (30, 6)), weights, 1000)
    share = clear.least_share(0.95)
    assert 0.7 < share < 1 and clear.p(share) <= 0.025 < clear.p(share + 1 / 256)
    assert flipped(rng.normal(0, 1, (30, 6)), weights, 1000).least_share(0.95) == 0


def test_biased_scores_reach_beyond_their_bias() -> None:
    """The score is the truth + b, and the mean of the draws the score + b: 2b is taken away."""
    rng = np.random.default_rng(2)
    for value in (3.0, 5.0):
        drawn = rng.normal(4.0, 1, 2000)
        plain = methods.expanded(drawn, 10, 0.95)
        found = methods.beyond_bias(plain, drawn, value, 10)
        expected = naive.beyond_bias((plain.low, plain.high), drawn, value, 10)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
        assert (found.low < plain.low) == (value < 4) and (found.high > plain.high) == (value > 4)
        assert found.low <= value <= found.high


def test_units_for_an_interval_of_a_quantile() -> None:
    """As many as it takes for a value on each side of it."""
    needed = {q: methods.units_for_quantile(q, 0.95) for q in (0.5, 0.9, 0.05, 0.0, 1.0)}
    assert needed == {0.5: 6, 0.9: 36, 0.05: 72, 0.0: math.inf, 1.0: math.inf}
    assert 0.9**36 <= 0.025 < 0.9**35


def test_holm() -> None:
    p = [0.01, 0.04, 0.03, 0.005, 0.03, 1.0]
    assert holm(p) == pytest.approx(naive.holm(p))
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.03, 0.04, 0.04])


def test_an_interval_without_width_is_none() -> None:
    """It would be inside any limit; a few other draws do not show how far the truth may be."""
    draws = np.repeat([0.0, 0.1], [1995, 5])
    found = methods.unless_same(methods.expanded(draws, 20, 0.95), draws, "the score")
    assert found == NoBounds("the score is the same in nearly all draws")
    equal = methods.unless_same(Bounds(0.1, 0.1, "percentile"), 0 * draws + 0.1, "the difference")
    assert equal == NoBounds("the difference is the same in all draws")
    wide = methods.expanded(np.linspace(0, 1, 100), 20, 0.95)
    assert methods.unless_same(wide, np.linspace(0, 1, 100), "the score") is wide


@pytest.mark.parametrize("power", [-480, -360, -170])
def test_scores_whose_cubes_are_below_float64(power: int) -> None:
    """The sharpness of a tiny σ is such a score."""
    without = np.random.default_rng(0).uniform(1, 2, 12)
    plain = jackknife.LeftOut(1.5, without, [np.arange(12)], 12, 5)
    tiny = replace(plain, value=math.ldexp(1.5, power), without=np.ldexp(without, power))
    a, b = plain.spread(), tiny.spread()
    assert (a.degrees, a.skewness, math.ldexp(a.bias, power)) == (b.degrees, b.skewness, b.bias)
    assert tiny.standard_error() == pytest.approx(math.ldexp(plain.standard_error(), power))


@pytest.mark.parametrize("power", [170, 600, 1000])
def test_scores_whose_squares_exceed_float64(power: int) -> None:
    """An NLL with a tiny σ is such a score. A power of two changes no bit."""
    rng = np.random.default_rng(0)
    without = rng.uniform(1, 2, 12)
    members = [np.arange(5), np.arange(5, 12)]
    plain = jackknife.LeftOut(1.5, without, members, 12, 5)
    large = replace(plain, value=math.ldexp(1.5, power), without=np.ldexp(without, power))
    a, b = plain.spread(), large.spread()
    assert (a.degrees, a.skewness, math.ldexp(a.bias, power)) == (b.degrees, b.skewness, b.bias)
    assert large.standard_error() == pytest.approx(math.ldexp(plain.standard_error(), power))
    for formula in (jackknife.batch_means, partial(jackknife.jackknife_t, logit=False)):
        found = formula(large, 0.9)
        if power == 170:
            bounds = formula(plain, 0.9)
            assert isinstance(bounds, Bounds) and isinstance(found, Bounds)
            assert (found.low, found.high) == tuple(np.ldexp((bounds.low, bounds.high), power))
        else:
            assert isinstance(found, NoBounds) and "so large" in found.reason
    log = jackknife.jackknife_log(large, 0.9)
    assert isinstance(log, Bounds) and log.standard_error == large.standard_error()
    draws = rng.normal(size=100)
    for scale in (1.0, 2.0**-1000):
        assert methods.standard_deviation(draws * scale) == float((draws * scale).std())
    own = methods.expanded(np.ldexp(draws, power), 12, 0.9)
    assert own.standard_error == math.ldexp(float(draws.std()), power)
