"""Scores that rest on few wrong pixels, or on few images, have no interval, or a wider one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_reports import rules

import uqeval
from uqeval.gate import judge
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.records.resampling import NoInterval
from uqeval.statistics.from_states import FromStates

ITEMS, SIDE, CLASSES = 12, 8, 3
#: Images of which enough have accepted wrong pixels.
MANY = 100


def evaluated(folder: Path, name: str, errors: float) -> Report:
    """A report of items whose pixels are wrong with a probability of errors · (1 - confidence)²."""
    rng = np.random.default_rng(len(name))
    probs = rng.dirichlet((6, 1, 1), (MANY, 1, SIDE, SIDE)).transpose(0, 1, 4, 2, 3)
    labels = probs[:, 0].argmax(1)
    wrong = rng.random(labels.shape) < errors * (1 - probs[:, 0].max(1)) ** 2
    labels = np.where(wrong, (labels + 1) % CLASSES, labels).astype(np.uint8)
    report = uqeval.evaluate(
        probs.astype(np.float32), labels, {"failure": {}}, ci=0.95, draws=300,
        states=folder / f"{name}.states.zip",
    )  # fmt: skip
    report.save(folder / f"{name}.json")
    return report


@pytest.mark.parametrize("errors", [0.5, 1.5, 10.0])
def test_intervals(tmp_path: Path, errors: float) -> None:
    report = evaluated(tmp_path, "a", errors)
    results: Any = report.results["failure"]
    for risk in ("1", "5"):
        accepted = results["coverage_at_risk"][risk] * MANY * SIDE**2 * int(risk) / 100
        record = report.intervals[f"failure.coverage_at_risk.{risk}"]
        with_errors = sum(item["failure"]["errors"] > 0 for item in report.items)
        items = min(accepted / results["errors"], 1) * with_errors
        if items < 5:
            assert record["low"] is None
            assert f"rests on accepted wrong pixels of about {items:.2g} items" in record["reason"]
        else:
            # A coverage that no draw, or hardly any, lowers has no interval either.
            low, high = record["low"], record["high"]
            assert "the same in" in record["reason"] if low is None else low < high


def test_both_cases_occur(tmp_path: Path) -> None:
    few = evaluated(tmp_path, "a", 10.0).intervals["failure.coverage_at_risk.1"]
    many = evaluated(tmp_path, "b", 0.5).intervals["failure.coverage_at_risk.1"]
    assert few["low"] is None and many["low"] < many["high"]


@pytest.mark.parametrize(("errors", "has_interval"), [(10.0, False), (0.6, True)])
def test_differences(tmp_path: Path, errors: float, has_interval: bool) -> None:
    evaluated(tmp_path, "first", 0.5)
    evaluated(tmp_path, "second", errors)
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    address = Address.parse("failure.coverage_at_risk.1")
    if has_interval:
        change = FromStates().change(*paths, address, 0.95, False)
        assert change.low < change.high
    else:
        with pytest.raises(NoInterval, match=r"rests on accepted wrong pixels of .*; below 5"):
            FromStates().change(*paths, address, 0.95, False)


def with_errors(
    folder: Path, items: int, wrong: int, of: int = ITEMS, name: str = "a", seed: int = 2
) -> Report:
    """A report of images of 64 pixels, of which the first ones have some wrong pixels."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.6, 1.0, (of, 8, 8))
    labels = np.zeros(confidence.shape, np.uint8)
    labels[:items, 0, :wrong] = 1
    confidence[labels == 1] -= 0.1 * rng.random(np.count_nonzero(labels))
    report = uqeval.evaluate(
        np.stack([confidence, 1 - confidence], 1)[:, None], labels, ["failure"], ci=0.9, draws=300,
        states=folder / f"{name}.states.zip",
    )  # fmt: skip
    report.save(folder / f"{name}.json")
    return report


AREAS = ("auroc", "aupr_error", "aupr_success", "aurc", "e_aurc", "augrc")


@pytest.mark.parametrize("items", [1, 2, 4])
def test_areas_rest_on_the_items_with_errors(tmp_path: Path, items: int) -> None:
    intervals = with_errors(tmp_path, items, 3).intervals
    for name in AREAS:
        record = intervals[f"failure.{name}"]
        assert record["units"]["defined"] == items, name
        if items == 1:
            assert record["low"] is None and record["reason"].startswith("1 item has the rarer")
        else:
            assert record["low"] < record["high"], name


def test_without_errors_all_items_count(tmp_path: Path) -> None:
    record = with_errors(tmp_path, 0, 0).intervals["failure.aurc"]
    assert record["units"]["defined"] == ITEMS and record["low"] == 0 < record["high"] < 1


@pytest.mark.parametrize(("items", "has_interval"), [(58, False), (59, True)])
def test_a_quantile_of_the_errors_needs_some_items_on_each_side(
    tmp_path: Path, items: int, has_interval: bool
) -> None:
    """The wrong pixels of an item are alike: how many it has does not count."""
    record = with_errors(tmp_path, items, 3, of=64).intervals["failure.fpr95"]
    address, resampler = Address.parse("failure.fpr95"), FromStates()
    if has_interval:  # 0.95^59 < 5 %, so that one of 59 items is likely below the 5 % quantile
        found = resampler.interval(tmp_path / "a.json", address, 0.9)
        assert (found.low, found.high) == (record["low"], record["high"])
        return
    reason = "58 items have the rarer kind"
    assert record["low"] is None and reason in record["reason"]
    with pytest.raises(NoInterval, match=reason):
        resampler.interval(tmp_path / "a.json", address, 0.9)
    with_errors(tmp_path, items, 3, of=64, name="b", seed=3)
    with pytest.raises(NoInterval, match=reason):
        resampler.change(tmp_path / "b.json", tmp_path / "a.json", address, 0.9, False)
    same = resampler.change(tmp_path / "a.json", tmp_path / "a.json", address, 0.9, False)
    assert (same.low, same.high, same.method) == (0, 0, "identical")


def outside(items: int, seed: int) -> np.ndarray:
    """Probabilities of images [item, sample, class, y, x]."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet((2, 1), (items, 1, 8, 8)).transpose(0, 1, 4, 2, 3).astype(np.float32)


@pytest.mark.parametrize("items", [1, 3])
def test_ood_pixels_of_few_images(items: int) -> None:
    mask = np.zeros((ITEMS, 8, 8), np.uint8)
    mask[:items, :1, :1] = 1
    intervals = uqeval.evaluate(outside(ITEMS, 1), mask, ["ood"], ood_mask=1, ci=0.9).intervals
    for name in ("auroc", "aupr_in", "aupr_out", "fpr95", "detection_error"):
        assert intervals[f"ood.{name}"]["units"]["defined"] == items
    assert (intervals["ood.auroc"]["low"] is None) == (items == 1)
    if items > 1:
        assert intervals["ood.fpr95"]["reason"].startswith("3 items have the rarer")
        reason = "rests on OUT pixels of about 3 items; below 60"
        assert reason in intervals["ood.detection_error"]["reason"]


@pytest.mark.parametrize("items", [2, 3])
def test_each_set_needs_three_images(items: int) -> None:
    report = uqeval.evaluate(outside(8, 1), None, ["ood"], out=[outside(items, 2)], ci=0.9)
    for name in ("auroc", "images.auroc"):
        record = report.intervals[f"ood.{name}"]
        assert record["units"] == {"name": "item", "drawn": 8 + items, "defined": items}
        if items == 2:
            reason = "one of the sets has 2 items with this score; 3 are needed in each"
            assert record["low"] is None and record["reason"] == reason
        else:
            assert record["low"] < record["high"]


@pytest.mark.parametrize("items", [9, 10])
def test_aupr_of_in_images_needs_ten_images_of_each_set(items: int) -> None:
    """It falls most with a confident OUT image, of which a small set has none."""
    report = uqeval.evaluate(outside(12, 1), None, ["ood"], out=[outside(items, 2)], ci=0.9)
    record = report.intervals["ood.images.aupr_in"]
    assert report.intervals["ood.images.aupr_out"]["low"] is not None
    if items == 9:
        reason = "one of the sets has 9 items with this score; 10 are needed in each"
        assert record["low"] is None and record["reason"] == reason
    else:
        assert record["low"] < record["high"]


@pytest.mark.parametrize("limit", ["median", "0.9"])
def test_risk_of_images_needs_a_failed_one(tmp_path: Path, limit: str) -> None:
    """Without an image above the limit, the set shows nothing of those that fail."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, (ITEMS, 8, 8)).astype(np.uint8)
    options = {"risk": "accuracy", "risk_limit": limit}
    report = uqeval.evaluate(
        outside(ITEMS, 1), labels, {"image_failure": options}, ci=0.9,
        states=tmp_path / "a.states.zip",
    )  # fmt: skip
    report.save(tmp_path / "a.json")
    for name in ("mean_risk", "augrc"):
        record = report.intervals[f"image_failure.{name}"]
        if limit == "median":
            assert record["low"] < record["high"]
        else:
            reason = "the score rests on risks above the limit of about 0 items; below 1"
            assert record["low"] is None and record["reason"].startswith(reason)
            with pytest.raises(NoInterval, match="limit of about 0 items"):
                address = Address.parse(f"image_failure.{name}")
                FromStates().interval(tmp_path / "a.json", address, 0.9)
    assert report.intervals["image_failure.aurc"]["low"] is not None


def test_few_units_with_a_score_are_named() -> None:
    """Of 40 images, 11 have OUT pixels: the interval of a score of these is one of 11 images."""
    mask = np.zeros((40, 8, 8), np.uint8)
    mask[:11, :2, :2] = 1
    (text,) = (
        own for own in uqeval.evaluate(outside(40, 1), mask, ["ood"], ood_mask=1, ci=0.9).warnings
        if "intervals" in own
    )  # fmt: skip
    assert text.startswith("intervals of some scores come from few units, and may be too narrow: ")
    assert "ood.auroc (11 of 40 items have the rarer kind)" in text
    mask[:30, :2, :2] = 1
    report = uqeval.evaluate(outside(40, 1), mask, ["ood"], ood_mask=1, ci=0.9)
    assert not [own for own in report.warnings if "intervals" in own]


def test_classes_of_few_units_are_named(tmp_path: Path) -> None:
    """Intervals of means over classes show little of a class that 2 of 12 images have, and nothing
    of one that none has; a verdict on such a mean says so, with and without intervals."""
    labels = np.random.default_rng(0).integers(0, 2, (ITEMS, SIDE, SIDE)).astype(np.uint8)
    labels[:2, :4, :4] = 2
    probs = np.full((ITEMS, 1, 8, SIDE, SIDE), 0.01, np.float32)
    np.put_along_axis(probs, labels[:, None, None], 0.93, 2)
    for level in (0.9, None):
        report = uqeval.evaluate(
            probs, labels, "segmentation", ci=level, states=tmp_path / "a.states.zip"
        )
        report.save(tmp_path / "a.json")
        named = [own for own in report.warnings if "labels in fewer" in own]
        assert len(named) == (level is not None)
        expected = (
            "6 classes have labels in fewer than 5 items: 3 (0), 4 (0), 5 (0), 6 (0), 7 (0) and 1 "
            "more"
        )
        for warning in named:
            means = "segmentation.mean_accuracy and segmentation.miou"
            assert warning.startswith(f"{means}: {expected}.")
        rule = "segmentation.{}: {{min: 0.1, confidence: 0.9}}\n"
        text = "".join(map(rule.format, ("miou", "mean_accuracy", "pixel_accuracy")))
        own = Named("a", tmp_path / "a.json", report)
        found = judge([own], rules(tmp_path, text), resampler=FromStates())
        notes = [any(note.startswith(expected) for note in one.notes) for one in found.verdicts]
        assert notes == [True, True, False]


@pytest.mark.parametrize(("alpha", "needed"), [(95, 59), (80, 14), (100, None)])
def test_scores_at_a_percentile_of_the_errors_need_as_many_items(
    tmp_path: Path, alpha: float, needed: int | None
) -> None:
    """0.95^59 and 0.8^14 are below 5 %; draws have no error above the largest one."""
    rng = np.random.default_rng(0)
    for items in (58, 59) if needed is None else (needed - 1, needed):
        shape = (items, 4, 4)
        std, target = rng.random(shape) + 0.1, rng.normal(size=shape)
        report = uqeval.evaluate(
            {"mean": 0 * target, "std": std, "target": target}, ci=0.9, draws=100, workers=1,
            metrics={"nmerci": {"alpha": [alpha, 50]}}, region=["box:0:0.5,0:1"],
        )  # fmt: skip
        for key in ("nmerci", "nmerci@box:0:0.5,0:1"):
            for name in ("lambda", "merci", "max_alpha"):
                record = report.intervals[Address.of_key(key, (name,)).within]
                assert (record["low"] is not None) == (items == needed), (items, name)
                expected = "the score is the largest value" if alpha == 100 else f"needs {needed}"
                assert items == needed or expected in record["reason"]
            for name in ("nmerci", "mae_trimmed"):
                assert report.intervals[Address.of_key(key, (name,)).within]["low"] is not None


def test_an_interval_score_needs_items_with_targets_outside(tmp_path: Path) -> None:
    """Of 30 rows of a table: 4 or 5 have a target outside the interval of 95 %, 10 that of 50 %."""
    for outside in (4, 5):
        target = np.full((30, 1, 1), 0.1) + np.arange(30)[:, None, None] / 1000
        target[:10], target[:outside] = 1.0, 3.0
        report = uqeval.evaluate(
            {"mean": 0 * target, "std": 0 * target + 1, "target": target}, metrics="regression",
            ci=0.9, draws=100, workers=1, states=tmp_path / f"{outside}.states.zip",
        )  # fmt: skip
        report.save(tmp_path / f"{outside}.json")
        record = report.intervals["regression.interval_score.95"]
        assert (record["low"] is not None) == (outside == 5)
        assert report.intervals["regression.interval_score.50"]["low"] is not None
    paths = tmp_path / "5.json", tmp_path / "4.json"
    with pytest.raises(NoInterval, match="targets outside the intervals of about 4 items; below 5"):
        FromStates().change(*paths, Address.parse("regression.interval_score.95"), 0.9, False)
