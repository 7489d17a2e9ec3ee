"""A metric is one record: whoever reads a report finds in it what the number means."""

from __future__ import annotations

import pytest

from uqeval.metrics import METRICS, Metric


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_a_metric_says_what_it_means_and_what_to_do(metric: Metric) -> None:
    assert metric.meaning[:1].isupper() and metric.meaning.endswith(".")
    assert len(metric.meaning.split()) <= 20
    assert metric.undefined and metric.reference and metric.unit
    assert bool(metric.advice) == (metric.direction is not None)
    record = metric.record()
    assert (record["meaning"], record["advice"]) == (metric.meaning, metric.advice)


def test_no_two_metrics_have_one_address() -> None:
    assert len({metric.id for metric in METRICS}) == len(METRICS)
