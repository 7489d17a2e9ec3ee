"""The scores of four counts, against exact fractions, scikit-learn and the identities."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef

from uqeval.metrics import METRICS
from uqeval.metrics.patch_scores import BY_FIELD, COUNTS, records

COUNT = st.integers(0, 10**8) | st.integers(0, 3)
FOUR = st.tuples(COUNT, COUNT, COUNT, COUNT)


def scores(*four: int) -> dict[str, Any]:
    """Return the scores of one set."""
    (record,) = records([np.array([count]) for count in four], [""])
    return record


@given(st.lists(FOUR, min_size=1, max_size=5))
def test_sets_are_scored_apart(sets: list[tuple[int, int, int, int]]) -> None:
    counts = [np.array(column) for column in zip(*sets, strict=True)]
    assert records(counts, [""] * len(sets)) == [scores(*four) for four in sets]


@given(FOUR)
def test_scores_are_those_of_the_oracle(four: tuple[int, int, int, int]) -> None:
    found = scores(*four)
    assert tuple(found[name] for name in COUNTS) == four
    for name, value in naive.scores(*four).items():
        if value is None:
            assert found[name] is None
        else:
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-15)


@given(FOUR)
def test_undefined_values_have_a_reason(four: tuple[int, int, int, int]) -> None:
    found = scores(*four)
    for name in naive.SCORES:
        assert (found[name] is None) == (f"{name}_reason" in found)
        assert found[name] is None or math.isfinite(found[name])


@given(FOUR)
def test_values_lie_in_their_ranges(four: tuple[int, int, int, int]) -> None:
    found = scores(*four)
    for metric in BY_FIELD.values():
        low, high = metric.range
        value = found[metric.field]
        if value is not None:
            assert (low is None or low - 1e-15 <= value) and (high is None or value <= high + 1e-15)


@given(st.tuples(*[st.integers(1, 10**8)] * 4))
def test_phi_is_the_matthews_correlation(four: tuple[int, int, int, int]) -> None:
    expected = matthews_corrcoef([1, 1, 0, 0], [1, 0, 1, 0], sample_weight=four)
    assert scores(*four)["phi"] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(FOUR)
def test_the_identities_of_the_surplus(four: tuple[int, int, int, int]) -> None:
    found = scores(*four)
    if found["surplus"] is None:
        a = found["p_accurate"]
        assert a in (None, 0, 1)
        return
    ac, au, ic, iu = four
    n = sum(four)
    a, c = Fraction(ac + au, n), Fraction(ac + ic, n)
    top = Fraction(ac + iu, n) - 1 + a + c - 2 * a * c
    assert found["surplus"] == pytest.approx(
        float(top) / math.sqrt(a * (1 - a)), rel=1e-9, abs=1e-15
    )
    assert found["half_surplus"] == found["surplus"] / 2
    phi = found["phi"] or 0.0
    assert found["surplus"] == pytest.approx(2 * math.sqrt(c * (1 - c)) * phi, rel=1e-9, abs=1e-15)


@given(FOUR)
def test_the_surplus_says_whether_it_beats_chance(four: tuple[int, int, int, int]) -> None:
    found = scores(*four)
    if found["surplus"] is not None:
        ac, au, ic, iu = four
        assert (found["surplus"] > 0) == (ac * iu > au * ic)
        assert (found["surplus"] == 0) == (ac * iu == au * ic)


@pytest.mark.parametrize(
    ("four", "undefined"),
    [
        ((0, 0, 0, 0), set(naive.SCORES)),
        ((5, 3, 0, 0), {"p_uncertain_given_inaccurate", "phi", "surplus", "half_surplus"}),
        ((0, 0, 2, 1), {"phi", "surplus", "half_surplus"}),
        ((4, 0, 2, 0), {"phi"}),
        ((0, 4, 0, 2), {"p_accurate_given_certain", "phi"}),
    ],
)
def test_what_is_undefined(four: Any, undefined: set[str]) -> None:
    found = scores(*four)
    assert {name for name in naive.SCORES if found[name] is None} == undefined


def test_metrics_are_described() -> None:
    assert len({m.id for m in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.unit and metric.reference and metric.undefined
        assert metric.direction in ("higher", "lower", None)
        assert set(metric.record()) == {
            "label",
            "unit",
            "direction",
            "range",
            "interval",
            "reference",
            "meaning",
            "advice",
        }


def test_what_is_read_off_curves_has_a_record() -> None:
    known = {metric.id: metric.record() for metric in METRICS}
    for field in ("pavpu_peak.value", "surplus_peak.value", "surplus_auc", "per_class.pavpu"):
        assert known[f"pavpu.{field}"]["direction"] == "higher"
    assert known["pavpu.surplus_auc"]["unit"] == known["pavpu.surplus"]["unit"]
