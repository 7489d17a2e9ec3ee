"""Rules of thresholds, as users write them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from small_stores import labels, probs

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics.thresholds import Rule, check_ends, check_threshold, ends_text, rule_text
from uqeval.tallies._values import Uncertainty


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("mean", Rule("mean")),
        ("Mean ", Rule("mean")),
        ("median", Rule("percentile", 50)),
        ("p0", Rule("percentile", 0)),
        ("p99.9", Rule("percentile", 99.9)),
        ("P100", Rule("percentile", 100)),
        ("range:0", Rule("range", 0)),
        ("range:0.35", Rule("range", 0.35)),
        ("max-surplus", Rule("max-surplus")),
        ("0.4", Rule("value", 0.4)),
        ("-1e-3", Rule("value", -0.001)),
        ("0", Rule("value", 0)),
    ],
)
def test_rules(text: str, rule: Rule) -> None:
    assert Rule.parse(text) == rule


@pytest.mark.parametrize(
    "text", ["", "p", "p-1", "p100.1", "pnan", "range", "range:", "range:-0.1", "range:2", "inf",
             "nan", "max", "mean+1", "0,4"]
)  # fmt: skip
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected mean, median, pNN .* or a number"):
        Rule.parse(text)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((1, 1.0, "1", "1.0", " 1e0"), "1"),
        ((0.5, ".5", "0.50"), "0.5"),
        (("-0.0", 0), "0"),
        (("median", "Median", "p50", "P50.0"), "median"),
        (("p90", "p90.0"), "p90"),
        (("range:0.5", "range:.50"), "range:0.5"),
        (("mean", " MEAN"), "mean"),
        (("max-surplus",), "max-surplus"),
    ],
)
def test_a_rule_has_one_spelling(texts: tuple[str | float, ...], expected: str) -> None:
    assert {rule_text(text) for text in texts} == {expected}


def test_ends_of_a_curve_have_one_spelling() -> None:
    assert {ends_text(text) for text in ("0:2", "0.0:2.0", "-0.:2e0")} == {"0:2"}


FIVE: Any = SimpleNamespace(classes=5)


@pytest.mark.parametrize(
    ("name", "base", "inside", "outside"),
    [
        ("entropy", math.e, ("0", "1.6", repr(math.log(5) + 1e-7), "p99"), ("-1", "1.62", "9")),
        ("entropy", 5.0, ("1", "range:1"), ("1.1",)),
        ("confidence", math.e, ("0", "1"), ("-0.1", "1.1")),
        ("learned", math.e, ("-3", "9"), ()),
    ],
)
def test_numbers_that_an_uncertainty_can_pass(
    name: str, base: float, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    for text in inside:
        check_threshold(text, Uncertainty(name, base), FIVE)
    for text in outside:
        with pytest.raises(UsageError, match=f"--threshold {text} is out of range: {name} of 5"):
            check_threshold(text, Uncertainty(name, base), FIVE)


def test_ends_with_values_between_them() -> None:
    for text in ("0:2", "-1:0.5", "1:9", None):
        check_ends(text, Uncertainty("entropy"), FIVE)
    for text in ("5:9", "-2:-1", "1.7:2"):
        with pytest.raises(UsageError, match=f"--curve-range {text} is out of range"):
            check_ends(text, Uncertainty("entropy"), FIVE)
        check_ends(text, Uncertainty("learned"), FIVE)
    with pytest.raises(UsageError, match="--curve-range 1:1 is empty"):
        check_ends("1:1", Uncertainty("learned"), FIVE)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("failure", {}), ("image_failure", {"confidence": "share"}),
        ("image_failure", {"definition": "values-threshold"}), ("pavpu", {"window": 1}),
    ],
)  # fmt: skip
def test_all_families_refuse_a_number_out_of_range(family: str, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="threshold=9 is out of range: entropy of"):
        uqeval.evaluate(probs(3), labels(3), {family: settings | {"threshold": 9}})
