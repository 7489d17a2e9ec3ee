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
from uqeval.statistics.units import resampling_of_video

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


def expected_units(
    values: np.ndarray, most: float = np.inf
) -> tuple[float | None, float | None, int]:
    found = series_mean(values, ["v"] * PAIRS).resampling
    assert found.effective is not None
    effective = min(found.effective, most)
    return found.lag1, effective, int(np.clip(effective // 5, 3, 10))


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
    units, most = change.units, min(r.settings["intervals"]["effective"] for r in (a, b))
    expected = expected_units(difference, most)
    assert (units.lag1, units.effective, units.drawn) == pytest.approx(expected)

    models = [[OpenedReport.of(path, Report.load(path))] for path in paths]
    addresses = ["temporal.mtc", "temporal.miou_mean"]
    paired = paired_comparison(models, models[0][0].scoring.names, addresses, 100, 0)
    for text, field in zip(addresses, ("tc", "miou"), strict=True):
        found = paired.difference(0, 1, text, 0.95)
        count = expected_units(values_of(a, field) - values_of(b, field), most)[2]
        assert found.interval.units.drawn == count  # type: ignore[union-attr]
        assert found.least == 2.0 ** (1 - count) and found.p is not None


def test_pairs_without_the_score_do_not_count() -> None:
    """Labels of every 8th frame say as much as a video of these frames."""
    rng, names = np.random.default_rng(0), ["v"] * 200
    own = np.convolve(rng.normal(size=40), np.ones(16), "valid")
    sparse = np.full(200, np.nan)
    sparse[::8] = own
    alone, found = (resampling_of_video([values], ["v"] * len(values)) for values in (own, sparse))
    assert (found.lag1, found.effective) == (alone.lag1, alone.effective)
    assert alone.effective is not None and alone.effective < 10
    assert found.unit_of[::8] == alone.unit_of
    counts = np.unique(found.codes[::8], return_counts=True)[1]
    assert len(counts) == found.units == 3 and counts.min() >= 8

    # The first tenth of a video is one stretch, if pairs are alike over a tenth.
    first = np.where(np.arange(200) < 20, rng.normal(size=200), np.nan)
    few = resampling_of_video([first], names, most_effective=10)
    assert few.effective == 1 and few.problem is not None and "with this score" in few.problem
    every = np.concatenate([first[:20]] * 10)
    assert resampling_of_video([every], names, most_effective=10).effective == 10


def test_no_score_has_more_independent_pairs_than_the_headline(
    predictions: dict[str, Any],
) -> None:
    report = predictions["a.json"]
    found = [record.get("effective") for record in report.intervals.values()]
    assert max(found) == pytest.approx(report.settings["intervals"]["effective"])


def test_a_comparison_warns_of_the_pairs_of_its_differences(
    predictions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of those of the first model, whose mTC has more."""
    most = predictions["a.json"].settings["intervals"]["effective"]
    assert most > 60
    monkeypatch.setattr(no_interval, "FEW", 60)
    files = [predictions["folder"] / f"{name}.json" for name in "ab"]
    found = compare(load_models(files), Choice(level=0.95))
    assert list(found.warnings) == [
        "intervals of differences come from fewer than 60 independent pairs: temporal.mtc (about "
        "49), temporal.miou_mean (about 49). They may be too narrow"
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
