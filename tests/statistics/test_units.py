"""Each score of a video has its own independent pairs and batches, against plain NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.compare import Choice, compare, load_models
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.statistics import no_interval
from uqeval.statistics.from_states import FromStates
from uqeval.statistics.paired_comparison import OpenedReport, paired_comparison
from uqeval.statistics.series import series_mean

PAIRS, SIDE = 150, 16


def save_drifting(path: Path, seed: int) -> np.ndarray:
    """Save a still video of two classes, and return its predictions. The number of wrong columns
    drifts slowly, so mIoU does; a few random flips, which hardly do, decide the consistency."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(np.random.default_rng(7).normal(size=PAIRS + 1)) / PAIRS**0.5
    labels = np.zeros((PAIRS + 1, SIDE, SIDE), np.uint8)
    labels[:, :, SIDE // 2 :] = 1
    predictions = labels.copy()
    for t, columns in enumerate(np.round(4 + 3 * np.tanh(drift + rng.normal() / 4)).astype(int)):
        predictions[t, :, SIDE // 2 : SIDE // 2 + columns] = 0
    is_flipped = rng.random(labels.shape) < 0.02
    predictions[is_flipped] = 1 - predictions[is_flipped]
    frames = np.zeros((*labels.shape, 3), np.uint8)
    flow = np.zeros((PAIRS, SIDE, SIDE, 2), np.float32)
    np.savez(path, frames=frames, predictions=predictions, labels=labels, flow=flow)
    return predictions


@pytest.fixture(scope="module")
def predictions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("drifting")
    found: dict[str, Any] = {"folder": folder}
    for name, seed in (("a", 1), ("b", 2)):
        found[name] = save_drifting(folder / f"{name}.npz", seed)
        report = uqeval.evaluate(
            video=folder / f"{name}.npz", metrics={"tc": {"flow": "file"}}, workers=1, ci=0.95,
            draws=100, states=folder / f"{name}.states.zip",
        )  # fmt: skip
        (folder / f"{name}.json").write_text(report.to_json())
        found[f"{name}.json"] = report
    return found


def expected_units(values: np.ndarray) -> tuple[float | None, float | None, int]:
    found = series_mean(values, ["v"] * PAIRS).resampling
    return found.lag1, found.effective, found.units


def units_in(record: dict[str, Any]) -> tuple[float, float, int]:
    return record["lag1"], record["effective"], record["units"]["drawn"]


def values_of(report: Report, field: str) -> np.ndarray:
    return np.array([item["temporal"][field] for item in report.items])


def test_each_mean_has_the_batches_of_its_own_series(predictions: dict[str, Any]) -> None:
    report = predictions["a.json"]
    for address, field in (("mtc", "tc"), ("pixel_agreement", "pixel_agreement")):
        record = report.intervals[f"temporal.{address}"]
        assert units_in(record) == pytest.approx(expected_units(values_of(report, field)))
    record, settings = report.intervals["temporal.mtc"], report.settings["intervals"]
    own = settings["lag1"], settings["effective"], settings["units"]
    assert units_in(record) == pytest.approx(own)

    # Frame 0 counts too: the first pair stands for both of its frames.
    record = report.intervals["temporal.miou_mean"]
    lag1, effective, units = expected_units(values_of(report, "miou"))
    assert units_in(record) == pytest.approx((lag1, effective, units), rel=0.1)
    assert units < settings["units"] and record["effective"] < settings["effective"] / 3
    (warning,) = [text for text in report.warnings if "drift more slowly than mTC" in text]
    assert f"temporal.miou_mean (about {effective:.0f})" in warning


def test_a_class_has_the_batches_of_what_pairs_add_to_its_score(
    predictions: dict[str, Any],
) -> None:
    ids, record = predictions["a"] == 1, predictions["a.json"].intervals["temporal.per_class.1.iou"]
    hits = (ids[1:] & ids[:-1]).sum(axis=(1, 2))
    either = (ids[1:] | ids[:-1]).sum(axis=(1, 2))
    without = (hits.sum() - hits) / (either.sum() - either)
    assert units_in(record) == pytest.approx(expected_units(-PAIRS * without))


def test_differences_have_the_batches_of_their_own_series(predictions: dict[str, Any]) -> None:
    folder, (a, b) = predictions["folder"], (predictions["a.json"], predictions["b.json"])
    paths = folder / "a.json", folder / "b.json"
    address = Address.parse("temporal.mtc")
    change = FromStates().change(*paths, address, 0.95, relative=False)
    difference = values_of(a, "tc") - values_of(b, "tc")
    units = change.units
    expected = expected_units(difference)
    assert (units.lag1, units.effective, units.drawn) == pytest.approx(expected)

    models = [[OpenedReport.of(path, Report.load(path))] for path in paths]
    addresses = ["temporal.mtc", "temporal.miou_mean"]
    paired = paired_comparison(models, models[0][0].scoring.names, addresses, 100, 0)
    for text, field in zip(addresses, ("tc", "miou"), strict=True):
        found = paired.difference(0, 1, text, 0.95)
        count = expected_units(values_of(a, field) - values_of(b, field))[2]
        assert found.interval.units.drawn == count  # type: ignore[union-attr]
        assert found.least == 2.0 ** (1 - count) and found.p is not None


def test_a_comparison_warns_of_the_pairs_of_its_differences(
    predictions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of those of the first model: 91 of the difference of mTC, 96 of that of mIoU."""
    monkeypatch.setattr(no_interval, "FEW", 95)
    files = [predictions["folder"] / f"{name}.json" for name in "ab"]
    found = compare(load_models(files), Choice(level=0.95))
    assert list(found.warnings) == [
        "intervals of differences come from fewer than 95 independent pairs: temporal.mtc (about "
        "91). They may be too narrow"
    ]


def test_a_score_that_drifts_over_a_whole_video_has_no_interval_alone(tmp_path: Path) -> None:
    """A reason of one score is none of the others, nor of the run."""
    frames = 11
    predictions = np.zeros((frames, SIDE, SIDE), np.uint8)
    predictions[:, :, SIDE // 2 :] = 1
    for t, flipped in enumerate((0, 1, 9, 12, 2, 3, 14, 5, 11, 10, 1)):
        predictions[t, 0, :flipped] ^= 1
    labels = predictions.copy()
    labels[frames // 2 :, : SIDE // 2] ^= 1  # half of the video is worse
    colours, flow = np.zeros((*labels.shape, 3), np.uint8), np.zeros((10, SIDE, SIDE, 2), "f4")
    path = tmp_path / "v.npz"
    np.savez(path, frames=colours, predictions=predictions, labels=labels, flow=flow)
    report = uqeval.evaluate(video=path, metrics={"tc": {"flow": "file"}}, workers=1, ci=0.95)
    assert report.intervals["temporal.mtc"]["low"] is not None
    assert "the video is too short" in report.intervals["temporal.miou_mean"]["reason"]
    assert not [text for text in report.warnings if text.startswith("no intervals")]
