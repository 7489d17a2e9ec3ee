"""A metric is one record, and the report contains the meaning of each number."""

from __future__ import annotations

import pytest

from uqeval import glossary
from uqeval.metrics import FAMILIES, METRICS, Family, Metric


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_a_metric_says_what_it_means_and_what_to_do(metric: Metric) -> None:
    assert metric.meaning[:1].isupper() and metric.meaning.endswith(".")
    assert len(metric.meaning.split()) <= 20
    assert metric.undefined and metric.reference and metric.unit
    assert bool(metric.advice) == (metric.direction is not None)
    record = metric.record()
    assert (record["meaning"], record["advice"]) == (metric.meaning, metric.advice)
    assert record["label"] == metric.label != ""
    assert len(metric.heading) <= len(metric.label)


def test_no_two_metrics_have_one_address() -> None:
    assert len({metric.id for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_headlines_are_those_of_the_records(family: Family) -> None:
    chosen = sorted(own.headline for own in family.metrics if own.headline)
    assert chosen == list(range(1, len(chosen) + 1)) != []
    key = family.in_reports
    assert glossary.headlines(key) == family.headlines
    assert glossary.family_label(key) == family.label != ""
    for metric in family.metrics:
        assert glossary.label(key, metric.field) == metric.label


def test_labels_of_fields_that_are_no_metric() -> None:
    assert glossary.label("pavpu", "n_ac") == "accurate, certain"
    assert glossary.label("pavpu", "per_class.n_ac") == "by class, accurate, certain"
    assert (
        glossary.label("calibration", "temperature.per_class.ece") == "temperature, by class, ECE"
    )
    assert glossary.label("unknown", "a_b") == "a b"
    assert glossary.family_label("sweep") == "Number of samples"
