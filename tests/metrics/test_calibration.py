"""Calibration of a run, against the oracle, scikit-learn and what published codes compute."""

from __future__ import annotations

import math
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
import scenes
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

import uqeval
from uqeval.errors import DataError, UsageError
from uqeval.metrics._columns import quantile
from uqeval.metrics.calibration_estimators import PUBLISHED
from uqeval.metrics.calibration_settings import DEFINITIONS

CLASSES = 4


def scene(seed: int = 0, items: int = 3, sharp: float = 2.0) -> tuple[Any, Any]:
    """One float32 sample [n, 1, c, y, x] with saturated and tied pixels, and labels with void."""
    p = scenes.softmax(seed, items, CLASSES, 11, 13, sharp=sharp)
    p[:, :, 0] = np.array([1, 0, 0, 0], "f4")[:, None]
    p[:, :, 1] = np.array([0.1, 0.7, 0.2, 0], "f4")[:, None]
    p[:, :, 2] = np.array([0.25, 0.25, 0.5, 0], "f4")[:, None]
    return p[:, None], scenes.labels(seed, items, 11, 13, classes=CLASSES)


def evaluated(probs: Any, label: Any, **options: Any) -> Any:
    return uqeval.evaluate(probs, label, {"calibration": {"temperature": False} | options})


def counted(probs: Any, label: Any) -> tuple[Any, Any, Any, Any]:
    p, y = naive.flatten(probs[:, 0], label)
    return p, y, *naive.top(p, y)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bins", [1, 2, 10, 15, 100])
def test_scores_are_those_of_the_oracle(seed: int, bins: int) -> None:
    probs, label = scene(seed)
    p, y, conf, hit = counted(probs, label)
    report = evaluated(probs, label, bins=bins)
    found = report.results["calibration"]
    ece, mce = naive.equal_width(conf, hit, bins)
    classes = naive.classwise_ece(p, y, bins)
    assert found["bins"] == bins
    assert found["ece"] == pytest.approx(ece, rel=1e-9)
    assert found["mce"] == pytest.approx(mce, rel=1e-9)
    assert found["adaptive_ece"] == pytest.approx(naive.adaptive_ece(conf, hit, bins), rel=1e-9)
    assert found["classwise_ece"] == pytest.approx(math.fsum(classes) / CLASSES, rel=1e-9)
    assert [row["ece"] for row in found["per_class"]] == pytest.approx(classes, rel=1e-9)
    assert [row["pixels"] for row in found["per_class"]] == np.bincount(y, minlength=4).tolist()
    mine = p[y, np.arange(y.size)]
    assert found["nll"] == pytest.approx(naive.nll(mine), rel=1e-9)
    assert found["brier"] == pytest.approx(naive.brier(p, y), rel=1e-7)  # the map is float32
    maps = scenes.read_maps(probs, label, wanted=["brier", "label"])
    brier = np.concatenate([m["brier"][m["label"] != 255] for m in maps])
    assert found["brier"] == pytest.approx(brier.mean(dtype=float), rel=1e-9)
    assert report.numerics["calibration"]["confidence_one"] == int((conf == 1).sum()) > 0
    assert report.numerics["calibration"]["clipped"] == int((mine < 2.0**-24).sum()) > 0
    for i, item in enumerate(report.items):
        p, y, conf, hit = counted(probs[i : i + 1], label[i : i + 1])
        own = item["calibration"]
        assert own["ece"] == pytest.approx(naive.equal_width(conf, hit, bins)[0], rel=1e-9)
        assert own["nll"] == pytest.approx(naive.nll(p[y, np.arange(y.size)]), rel=1e-9)


def test_samples_are_averaged() -> None:
    probs = scenes.softmax(5, 2, 3, CLASSES, 6, 7)
    label = scenes.labels(5, 2, 6, 7, classes=CLASSES)
    maps = scenes.read_maps(probs, label, wanted=["mean_probs", "label"])
    p, y = naive.flatten([m["mean_probs"] for m in maps], [m["label"] for m in maps])
    found = evaluated(probs, label).results["calibration"]
    assert found["ece"] == pytest.approx(naive.equal_width(*naive.top(p, y), 15)[0], rel=1e-9)
    assert found["classwise_ece"] == pytest.approx(np.mean(naive.classwise_ece(p, y, 15)), rel=1e-9)


@pytest.mark.parametrize("bins", [5, 15])
def test_scikit_learn(bins: int) -> None:
    probs, label = scene(7)
    p, y, conf, hit = counted(probs, label)
    found = evaluated(probs, label, bins=bins).results["calibration"]
    accuracy, mean = calibration_curve(hit, conf.astype(float), n_bins=bins)
    columns = found["reliability"]
    filled = [b for b, n in enumerate(columns["count"]) if n]
    assert [columns["accuracy"][b] for b in filled] == pytest.approx(accuracy.tolist(), rel=1e-12)
    assert [columns["confidence"][b] for b in filled] == pytest.approx(mean.tolist(), rel=1e-12)
    weights = np.array(columns["count"])[filled] / conf.size
    assert found["ece"] == pytest.approx(float((weights * abs(accuracy - mean)).sum()), rel=1e-9)
    clipped = np.maximum(p.astype(float), 2.0**-24)
    mine = clipped[y, np.arange(y.size)]
    two = np.stack([1 - mine, mine], axis=1)  # log_loss renormalises what does not sum to 1
    expected = log_loss(np.ones(y.size), two, labels=[0, 1])
    assert found["nll"] == pytest.approx(expected, rel=1e-7)
    assert found["nll"] == pytest.approx(naive.nll(mine), rel=1e-9)


def test_the_reliability_diagram() -> None:
    probs, label = scene(1)
    conf = counted(probs, label)[2]
    columns = evaluated(probs, label, bins=4).results["calibration"]["reliability"]
    assert columns["lower"] == [0, 0.25, 0.5, 0.75]
    assert columns["upper"] == [0.25, 0.5, 0.75, 1]
    place = np.array([naive.bin_of(c, 4) for c in conf])
    assert columns["count"] == np.bincount(place, minlength=4).tolist()
    assert columns["count"][0] == 0  # a confidence of four classes is at least 1/4, or on the edge
    assert columns["accuracy"][0] is columns["confidence"][0] is None


PIXEL = st.sampled_from(
    [(1.0, 0, 0), (0.6, 0.4, 0), (0.5, 0.25, 0.25), (0.2, 0.2, 0.6)]
) | st.tuples(*[st.floats(2.0**-20, 1, width=32)] * 3).map(lambda v: tuple(x / sum(v) for x in v))


@given(
    st.lists(st.tuples(PIXEL, st.sampled_from([0, 1, 2, 255])), min_size=1, max_size=20),
    st.integers(1, 30),
    st.sampled_from(["lower", "upper", "upper-float32"]),
)
def test_any_pixels(pixels: list[Any], bins: int, edge: str) -> None:
    pixels = [*pixels, (pixels[0][0], 1)]  # at least one is not void
    probs = np.array([p for p, _ in pixels], "f4").T.reshape(1, 1, 3, 1, -1)
    label = np.array([y for _, y in pixels], "u1").reshape(1, 1, -1)
    p, y, conf, hit = counted(probs, label)
    found = evaluated(probs, label, bins=bins, edge=edge).results["calibration"]
    ece, mce = naive.equal_width(conf, hit, bins, edge)
    assert found["ece"] == pytest.approx(ece, rel=1e-9, abs=1e-15)
    assert found["mce"] == pytest.approx(mce, rel=1e-9, abs=1e-15)
    adaptive = naive.adaptive_ece(conf, hit, bins)
    assert found["adaptive_ece"] == pytest.approx(adaptive, rel=1e-9, abs=1e-15)
    classes = np.mean(naive.classwise_ece(p, y, bins, edge))
    assert found["classwise_ece"] == pytest.approx(classes, rel=1e-9, abs=1e-15)


def test_equal_confidences_stay_together() -> None:
    probs = np.array([[0.75] * 40 + [0.5] * 2, [0.25] * 40 + [0.5] * 2], "f4")
    probs = probs.reshape(1, 1, 2, 1, 42)
    label = (np.arange(42) % 3 == 0).astype("u1").reshape(1, 1, 42)
    report = evaluated(probs, label, bins=10)
    _, _, conf, hit = counted(probs, label)
    order = np.random.default_rng(0).permutation(42)
    other = evaluated(probs[..., order], label[..., order], bins=10)
    assert other.results["calibration"]["adaptive_ece"] == pytest.approx(
        report.results["calibration"]["adaptive_ece"], rel=1e-12
    )
    assert report.results["calibration"]["adaptive_ece"] == pytest.approx(
        naive.adaptive_ece(conf, hit, 10), rel=1e-9
    )
    assert report.numerics["calibration"]["ties_at_adaptive_edges"] == 40


# ---- definitions in use


def at_the_edges() -> tuple[Any, Any]:
    """Two classes, confidences on float32 edges, beside them, and exactly 1."""
    edges = np.concatenate([np.arange(6, 11) / 10, np.arange(8, 16) / 15, [0.7, 0.9, 1, 1]])
    conf = edges.astype("f4")
    beside = [np.nextafter(conf, np.float32(to)) for to in (0.5, 1)]
    conf = np.concatenate([conf, *beside])
    probs = np.stack([conf, np.float32(1) - conf]).reshape(1, 1, 2, 1, -1)
    return probs, np.random.default_rng(1).integers(0, 2, (1, 1, conf.size)).astype("u1")


@pytest.mark.parametrize("where", ["edges", "anywhere"])
def test_presets_compute_what_the_codes_compute(where: str) -> None:
    probs, label = at_the_edges() if where == "edges" else scene(3)
    _, _, conf, hit = counted(probs, label)
    found = evaluated(probs, label, definition=list(DEFINITIONS)).results
    # Of two classes, scikit-learn and netcal bin the positive one.
    score, right = (
        (probs[0, 0, 1].reshape(-1), label.reshape(-1)) if where == "edges" else (conf, hit)
    )
    accuracy, mean = calibration_curve(right, score.astype(float), n_bins=5)
    places = np.maximum(np.ceil(score.astype(float) * 5), 1)
    filled = np.histogram(places, np.arange(0.5, 6))[0]
    expected = {
        "calibration": naive.equal_width(conf, hit, 15)[0],
        "calibration[gustafsson-code]": naive.gustafsson_ece(conf, hit),
        "calibration[torchmetrics]": naive.torchmetrics_ece(conf, hit)[0],
        "calibration[torch-uncertainty-0.13]": naive.torchmetrics_ece(conf, hit, 10)[0],
        "calibration[scikit-learn]": (filled[filled > 0] * abs(accuracy - mean)).sum() / conf.size,
        "calibration[mapie]": naive.mapie_ece(conf, hit),
        "calibration[netcal]": naive.netcal_ece(score, right),
        "calibration[values]": naive.equal_width(conf, hit, 20)[0],
        **{f"calibration[{name}]": naive.equal_width(conf, hit, 15)[0] for name in PUBLISHED},
    }
    ace = found["calibration[values]"]["ace"]
    assert ace == pytest.approx(naive.values_ace(conf, hit), rel=1e-6)
    assert {k: v["ece"] for k, v in found.items() if k != "segmentation"} == {
        k: pytest.approx(v, rel=1e-6) for k, v in expected.items()
    }
    if where == "edges":
        counts = {str(found[key]["reliability"]["count"]) for key in expected}
        assert len(counts) == len(expected) - len(PUBLISHED)
    assert found["calibration[torchmetrics]"]["mce"] == pytest.approx(
        naive.torchmetrics_ece(conf, hit)[1], rel=1e-9
    )


def test_what_becomes_of_confidence_one() -> None:
    probs = np.array([[1, 1, 1, 0.75], [0, 0, 0, 0.25]], "f4").reshape(1, 1, 2, 1, 4)
    label = np.array([0, 0, 1, 0], "u1").reshape(1, 1, 4)
    columns = {
        at: evaluated(probs, label, bins=2, edge="upper", at_one=at).results["calibration"]
        for at in ("last", "own", "drop")
    }
    assert columns["last"]["reliability"]["count"] == [0, 4]
    assert columns["own"]["reliability"]["count"] == [0, 1, 3]
    assert columns["own"]["reliability"]["lower"] == [0, 0.5, 1]
    assert columns["own"]["reliability"]["upper"] == [0.5, 1, 1]
    assert columns["drop"]["reliability"]["count"] == [0, 1]
    assert columns["last"]["ece"] == pytest.approx(3.75 / 4 - 3 / 4)
    assert columns["own"]["ece"] == pytest.approx(0.25 / 4 + 1 / 4)
    assert columns["drop"]["ece"] == pytest.approx(0.25 / 4)
    assert columns["own"]["mce"] == pytest.approx(1 / 3)


def test_nothing_in_any_bin() -> None:
    probs = np.array([[1, 1], [0, 0]], "f4").reshape(1, 1, 2, 1, 2)
    label = np.zeros((1, 1, 2), "u1")
    found = evaluated(probs, label, definition="gustafsson-code").results["calibration"]
    assert found["ece"] == 0 and found["mce"] is None
    assert "no bin" in found["mce_reason"]


# ---- undefined and bad input


def test_a_void_item_has_reasons() -> None:
    probs, label = scene(2)
    label[1] = 255
    report = evaluated(probs, label)
    item = report.items[1]["calibration"]
    for name in ("ece", "mce", "classwise_ece", "brier", "nll"):
        assert item[name] is None and item[f"{name}_reason"]
        assert report.results["calibration"][name] is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bins": 0}, "bins=0"),
        ({"bins": 1001}, "bins=1001"),
        ({"bins": 7.5}, "bins=7.5; expected a whole number"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"clip": 1.0}, "clip=1.0"),
        ({"edge": "left"}, "edge='left'"),
        ({"at_one": "own"}, "at_one own has an effect only with edge upper"),
        ({"definition": "mine"}, "definition='mine'"),
        ({"fit_on": "x"}, "temperature=False"),
        ({"strange": 1}, "strange"),
        ({"bins": []}, "empty list"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        evaluated(*scene(), **options)


@pytest.mark.parametrize("name", ["confidence", "mean_probs", "label_probability"])
def test_maps_that_are_no_probabilities(name: str, tmp_path: Any) -> None:
    maps = {k: np.full((1, 4, 4), 0.5, "f4") for k in ("confidence", "label_probability", "brier")}
    maps["mean_probs"] = np.full((1, 2, 4, 4), 0.5, "f4")
    ids = {"predictions": np.zeros((1, 4, 4), "u1"), "labels": np.zeros((1, 4, 4), "u1")}
    good = scenes.zarr_group(tmp_path / "good.zarr", maps | ids)
    assert evaluated(good, None).results["calibration"]["ece"] == 0.5
    maps[name][..., 0] = 90.0
    bad = scenes.zarr_group(tmp_path / "bad.zarr", maps | ids)
    with pytest.raises(DataError, match=f"map {name} are negative or above 2"):
        evaluated(bad, None)


def test_items_have_their_own_adaptive_bins() -> None:
    probs, label = scene(5)
    label[1] = 255
    for bins in (1, 15):
        report = evaluated(probs, label, bins=bins)
        for i in (0, 2):
            _, _, conf, hit = counted(probs[i : i + 1], label[i : i + 1])
            found = report.items[i]["calibration"]["adaptive_ece"]
            assert found == pytest.approx(naive.adaptive_ece(conf, hit, bins), rel=1e-9)
            alone = evaluated(probs[i : i + 1], label[i : i + 1], bins=bins)
            assert found == alone.results["calibration"]["adaptive_ece"]
        assert report.items[1]["calibration"]["adaptive_ece"] is None
        assert report.items[1]["calibration"]["adaptive_ece_reason"]


def test_workers_and_memory_do_not_change_a_bit() -> None:
    probs, label = scene(4, items=5)
    base = uqeval.evaluate(probs, label, ("calibration",), workers=1)
    other = uqeval.evaluate(probs, label, ("calibration",), workers=3, memory=200_000)
    assert base.results == other.results and base.items == other.items


def test_the_brier_score_is_its_parts() -> None:
    """Of probabilities that are the same inside each bin, nothing remains."""
    rng = np.random.default_rng(4)
    rows = np.array([[0.62, 0.23, 0.15], [0.1, 0.1, 0.8], [0.3, 0.45, 0.25]], "f4")
    probs = rows[rng.integers(0, 3, (2, 6, 9))].transpose(0, 3, 1, 2)[:, None].copy()
    label = rng.integers(0, 3, (2, 6, 9)).astype("u1")
    record = uqeval.evaluate(probs, label, ["calibration"]).results["calibration"]
    parts = record["brier_decomposition"]
    whole = parts["reliability"] - parts["resolution"] + parts["uncertainty"]
    assert record["brier"] == pytest.approx(whole, rel=1e-6)
    assert parts["remainder"] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("images", [9, 129, 300])
def test_quantiles_of_weighted_images_are_those_of_repeated_ones(images: int) -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=images).round(1), rng.integers(0, 4, (30, images))
    values[4] = np.nan
    weights[0] = 0
    weights[1:9] *= rng.random(images) < 0.02
    for share in (0.0, 0.5, 0.9, 1.0):
        with np.errstate(all="ignore"):
            found = quantile(share, weights, values)
        for own, value in zip(weights, found, strict=True):
            kept = np.repeat(values, own)
            kept = kept[np.isfinite(kept)]
            expected = np.quantile(kept, share) if kept.size else np.nan
            assert value == pytest.approx(expected, nan_ok=True)
