"""Rules of thresholds, as users write them."""

from __future__ import annotations

import pytest

from uqeval.errors import UsageError
from uqeval.metrics.thresholds import Rule


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
