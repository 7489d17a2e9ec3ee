"""The oracles themselves against scikit-learn, SciPy, the paper's example and the identities."""

import json
import math
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.metrics import confusion_matrix, jaccard_score, matthews_corrcoef

GOLDEN = json.loads((Path(__file__).parent / "golden" / "figure2.json").read_text())
VOID = 255


def softmax(seed: int, t: int, c: int, h: int, w: int) -> Any:
    """Random class probabilities [T, C, H, W] in float64."""
    z = np.exp(2 * np.random.default_rng(seed).normal(size=(t, c, h, w)))
    return z / z.sum(axis=1, keepdims=True)


def scene(seed: int, n: int = 3, h: int = 19, w: int = 14, c: int = 4) -> tuple[Any, Any, Any, Any]:
    """labels with void, predictions, right, float32 uncertainty: larger where wrong."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.repeat(rng.integers(0, c, (n, h, w)), 3, 1), 3, 2)[:, :h, :w]
    predictions = np.where(rng.random(labels.shape) < 0.5, labels, rng.integers(0, c, labels.shape))
    right = labels == predictions
    uncertainty = (0.05 + rng.random(labels.shape) * (1 + ~right)).astype(np.float32)
    labels = np.where(rng.random(labels.shape) < 0.1, VOID, labels)
    return labels, predictions, right & (labels != VOID), uncertainty


# Maps


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("base", [math.e, 2.0, 5.0])
def test_maps_match_scipy(dtype: Any, base: float) -> None:
    probs = softmax(0, 6, 5, 4, 3).astype(dtype)
    got = naive.maps(probs, log_base=base)
    p = probs.astype(np.float64)
    # SciPy renormalises; the definition does not, so undo it: H(p/s) = H(p)/s + log s
    s, st = p.mean(0).sum(0), p.sum(1)
    total = (entropy(p.mean(0), base=base, axis=0) - np.log(s) / np.log(base)) * s
    each = ((entropy(p, base=base, axis=1) - np.log(st) / np.log(base)) * st).mean(0)
    np.testing.assert_allclose(got["entropy"], total, atol=1e-12)
    np.testing.assert_allclose(got["expected_entropy"], each, atol=1e-12)
    np.testing.assert_allclose(got["mutual_information"], total - each, atol=1e-12)
    np.testing.assert_allclose(got["mean_probs"], p.mean(0), atol=1e-15)
    np.testing.assert_array_equal(got["prediction"], p.mean(0).argmax(0))
    np.testing.assert_allclose(got["confidence"], p.mean(0).max(0), atol=1e-15)
    of_predicted = np.take_along_axis(p, got["prediction"][None, None], 1)[:, 0]
    np.testing.assert_allclose(got["std"], of_predicted.std(0), atol=1e-12)
    votes = np.stack([(p.argmax(1) == c).sum(0) for c in range(5)]).max(0)
    np.testing.assert_allclose(got["variation_ratio"], 1 - votes / 6, atol=1e-15)


def test_mutual_information_is_the_mean_divergence() -> None:
    p = softmax(1, 7, 4, 3, 3)
    mean = np.broadcast_to(p.mean(0), p.shape)
    expected = entropy(p, mean, axis=1).mean(0)
    np.testing.assert_allclose(naive.maps(p)["mutual_information"], expected, atol=1e-12)


@pytest.mark.parametrize("t", [2, 3, 7, 11, 49])
def test_identical_samples(t: int) -> None:
    got = naive.maps(np.repeat(softmax(2, 1, 6, 4, 4), t, 0))
    for name in ("mutual_information", "variation_ratio", "std"):
        assert (got[name] == 0).all()


def test_saturated_is_positive_zero() -> None:
    probs = np.zeros((2, 3, 1, 2), np.float16)
    probs[:, 1] = 1
    got = naive.maps(probs)
    for name in ("entropy", "expected_entropy", "mutual_information", "std", "variation_ratio"):
        assert (got[name] == 0).all()
        assert not np.signbit(got[name]).any()
    assert (naive.uncertainty(got, "confidence") == 0).all()


def test_one_sample_and_ties() -> None:
    got = naive.maps(np.full((1, 4, 1, 1), 0.25), np.array([[2]]))
    assert got["prediction"][0, 0] == 0
    assert got["label_rank"][0, 0] == 2
    assert got["brier"][0, 0] == 0.75
    assert got["entropy"][0, 0] == pytest.approx(math.log(4))
    for name in ("mutual_information", "variation_ratio", "std"):
        assert got[name] is None
        with pytest.raises(ValueError, match="one sample"):
            naive.uncertainty(got, name)


def test_label_maps() -> None:
    p = softmax(3, 4, 5, 6, 6)
    labels = np.random.default_rng(3).integers(0, 5, (6, 6))
    labels[0, :3] = VOID
    got = naive.maps(p, labels)
    void = labels == VOID
    known = np.where(void, 0, labels)
    mean = p.mean(0)
    of_label = np.take_along_axis(mean, known[None], 0)[0]
    onehot = np.eye(5)[known].transpose(2, 0, 1)
    np.testing.assert_allclose(got["label_probability"], np.where(void, np.nan, of_label))
    np.testing.assert_allclose(got["brier"], np.where(void, np.nan, ((mean - onehot) ** 2).sum(0)))
    np.testing.assert_array_equal(got["label_rank"], np.where(void, -1, (mean > of_label).sum(0)))
    np.testing.assert_array_equal((got["label_rank"] == 0), ~void & (got["prediction"] == labels))


# Segmentation scores


def test_segmentation_matches_sklearn() -> None:
    labels, predictions, *_ = scene(4)
    got = naive.segmentation(labels, predictions, 6, VOID)
    keep = labels != VOID
    y, p = labels[keep], predictions[keep]
    matrix = confusion_matrix(y, p, labels=range(6))
    np.testing.assert_array_equal(naive.confusion(labels, predictions, 6, VOID), matrix)
    assert got["miou"] == pytest.approx(jaccard_score(y, p, average="macro"), abs=1e-12)
    iou = jaccard_score(y, p, labels=range(4), average=None)
    assert [row["iou"] for row in got["per_class"][:4]] == pytest.approx(list(iou), abs=1e-12)
    assert got["pixels"] == keep.sum()
    assert got["pixel_accuracy"] == (y == p).mean()
    assert got["mean_accuracy"] == pytest.approx((matrix.diagonal()[:4] / matrix.sum(1)[:4]).mean())
    assert got["per_class"][5] == {"class": 5, "iou": None, "accuracy": None, "pixels": 0}
    assert naive.segmentation(list(labels), list(predictions), 6, VOID) == got


def test_segmentation_undefined() -> None:
    got = naive.segmentation([np.array([[0, 0, VOID]])], [np.array([[0, 1, 2]])], 3, VOID)
    assert [row["iou"] for row in got["per_class"]] == [0.5, 0.0, None]
    assert [row["accuracy"] for row in got["per_class"]] == [0.5, None, None]
    assert (got["miou"], got["mean_accuracy"], got["pixels"]) == (0.25, 0.5, 2)
    got = naive.segmentation(np.full((1, 2, 2), VOID), np.zeros((1, 2, 2), int), 1, VOID)
    assert (got["miou"], got["mean_accuracy"], got["pixel_accuracy"]) == (None, None, None)


# Patches


def golden_patches(dtype: Any) -> list[naive.Patch]:
    """The patches of the worked example."""
    labels, predictions = np.array([GOLDEN["labels"]]), np.array([GOLDEN["predictions"]])
    u = np.array([GOLDEN["uncertainty"]], dtype)
    return naive.patches(labels == predictions, u, labels, GOLDEN["window"], GOLDEN["stride"], VOID)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_figure_2(dtype: Any) -> None:
    found = golden_patches(dtype)
    wanted = [{**p, "item": 0, "mean": np.float32(p["mean"])} for p in GOLDEN["patches"]]
    assert found == wanted
    limits = GOLDEN["accuracy_threshold"], GOLDEN["uncertainty_threshold"]
    got = naive.scored(found, *limits)
    assert got["ties"] == GOLDEN["expected"]["ties"]
    for key, value in GOLDEN["expected"].items():
        if key != "ties":
            assert got[key] == pytest.approx(value, abs=1e-15)
    for variant in GOLDEN["variants"]:
        ops = variant["accuracy_op"], variant["uncertain_op"]
        got = naive.scored(found, *limits, *ops)
        assert {k: got[k] for k in variant if not k.endswith("_op")} == {
            k: v for k, v in variant.items() if not k.endswith("_op")
        }


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_patches_match_strided_views(stride: int) -> None:
    labels, _, right, u = scene(5)
    found = naive.patches(right, u, labels, 3, stride, VOID)
    views = np.lib.stride_tricks.sliding_window_view

    def window(a: Any) -> Any:
        return views(a, (3, 3), axis=(1, 2))[:, ::stride, ::stride]

    keep = window(labels != VOID)
    valid, hits = keep.sum((-1, -2)), window(right).sum((-1, -2))
    sums = (window(u.astype(np.float64)) * keep).sum((-1, -2))
    where = [(p["item"], p["y"] // stride, p["x"] // stride) for p in found]
    assert where == [tuple(i) for i in np.argwhere(valid > 0).tolist()]
    assert [p["valid"] for p in found] == [valid[i] for i in where]
    assert [p["right"] for p in found] == [hits[i] for i in where]
    np.testing.assert_allclose(
        [p["mean"] for p in found], [sums[i] / valid[i] for i in where], rtol=1e-7
    )
    for p, i in zip(found, where, strict=True):
        classes = set(window(labels)[i].ravel().tolist()) - {VOID}
        assert p["category"] == (classes.pop() if len(classes) == 1 else "mixed")


def test_borders() -> None:
    assert naive.starts(10, 4, 4, "drop") == [0, 4]
    assert naive.starts(10, 4, 4, "partial") == [0, 4, 8]
    assert naive.starts(10, 4, 4, "pad") == [-1, 3, 7]
    assert naive.starts(9, 4, 4, "pad") == [-1, 3, 7]
    assert naive.starts(8, 4, 4, "pad") == naive.starts(8, 4, 4, "drop") == [0, 4]
    assert naive.starts(4, 3, 1, "pad") == [-1, 0, 1, 2]
    assert naive.starts(3, 4, 4, "drop") == []
    one = np.ones((1, 3, 3))
    args = one == 1, one, np.zeros((1, 3, 3), int), 2, 2, VOID
    assert [p["valid"] for p in naive.patches(*args, "drop")] == [4]
    got = naive.patches(*args, "partial")
    assert [(p["right"], p["valid"], float(p["mean"])) for p in got] == [
        (4, 4, 1.0),
        (2, 2, 1.0),
        (2, 2, 1.0),
        (1, 1, 1.0),
    ]
    got = naive.patches(*args, "pad")
    assert [(p["right"], p["valid"], float(p["mean"])) for p in got] == [
        (4, 4, 1.0),
        (2, 4, 0.5),
        (2, 4, 0.5),
        (1, 4, 0.25),
    ]
    assert {p["category"] for p in got} == {0}


def test_void() -> None:
    labels = np.array([[[VOID, VOID, 1, VOID], [VOID, VOID, 1, 1]]])
    right = np.ones(labels.shape, bool)
    u = np.array([[[1.0, 1.0, 2.0, 10.0], [1.0, 1.0, 2.0, 2.0]]])
    (only,) = naive.patches(right, u, labels, 2, 2, VOID)
    assert only == {
        "item": 0,
        "y": 0,
        "x": 2,
        "right": 3,
        "valid": 3,
        "mean": np.float32(2),
        "category": 1,
    }
    first, second = naive.patches(right, u, labels, 2, 2, VOID, void="inaccurate")
    assert (first["right"], first["valid"], first["mean"]) == (0, 4, 1.0)
    assert first["category"] == "mixed"
    assert (second["right"], second["valid"], second["mean"]) == (3, 4, 4.0)
    assert second["category"] == 1
    assert naive.pixel_uncertainties(u, labels, VOID).tolist() == [2.0, 2.0, 2.0]


def test_zero_stays_zero_under_sliding() -> None:
    u = np.zeros((1, 8, 8), np.float32)
    u[0, 0, 0] = 3.3
    found = naive.patches(u == 0, u, np.zeros((1, 8, 8), int), 3, 1, VOID)
    assert [p["mean"] > 0 for p in found].count(True) == 1


def test_thresholds() -> None:
    labels, _, right, u = scene(6)
    found = naive.patches(right, u, labels, 3, 3, VOID)
    pixels = naive.pixel_uncertainties(u, labels, VOID)
    means = [float(p["mean"]) for p in found]
    assert naive.threshold("mean", found, pixels) == pytest.approx(pixels.mean(), rel=1e-14)
    assert naive.threshold("median", found, pixels) == np.median(means)
    assert naive.threshold("p50", found, pixels) == np.median(means)
    assert naive.threshold("p97.5", found, pixels) == np.percentile(means, 97.5)
    assert naive.threshold("range:0", found, pixels) == pixels.min()
    assert naive.threshold("range:1", found, pixels) == pytest.approx(pixels.max())
    assert naive.threshold("0.25", found, pixels) == naive.threshold(0.25, found, pixels) == 0.25
    curve = naive.curve(found, pixels)
    limit = naive.threshold("max-surplus", found, pixels)
    best = naive.peak(curve, "surplus")
    assert best is not None
    assert limit == best["threshold"] == curve["threshold"][curve["t"].index(best["t"])]
    assert best["value"] == max(curve["surplus"])
    assert best["t"] == curve["t"][curve["surplus"].index(best["value"])]
    assert naive.scored(found, 0.5, limit)["surplus"] == best["value"]
    with pytest.raises(ValueError, match="undefined"):
        naive.threshold("max-surplus", [p for p in found if p["right"] == p["valid"]], pixels)


def test_scores_match_sklearn_and_identity() -> None:
    rng = np.random.default_rng(7)
    for n in [*rng.integers(0, 9, (200, 4)).tolist(), [5, 0, 0, 7], [0, 3, 4, 0]]:
        ac, au, ic, iu = n
        got: dict[str, Any] = naive.scores(ac, au, ic, iu)
        total = sum(n)
        if total == 0:
            assert set(got.values()) == {None}
            continue
        accurate = np.repeat([1, 1, 0, 0], n)
        certain = np.repeat([1, 0, 1, 0], n)
        a, c = accurate.mean(), certain.mean()
        assert (got["p_accurate"], got["p_certain"]) == (a, c)
        assert got["pavpu"] == (accurate == certain).mean()
        assert got["pavpu_chance"] == pytest.approx(a * c + (1 - a) * (1 - c))
        both = 0 < a < 1 and 0 < c < 1
        if both:
            phi = matthews_corrcoef(accurate, certain)
            assert got["phi"] == pytest.approx(phi, abs=1e-12)
            assert got["phi"] == pytest.approx(np.corrcoef(accurate, certain)[0, 1], abs=1e-12)
            assert got["surplus"] == pytest.approx(2 * certain.std() * phi, abs=1e-12)
        else:
            assert got["phi"] is None
        if 0 < a < 1:
            identity = (got["pavpu"] - 1 + a + c - 2 * a * c) / math.sqrt(a * (1 - a))
            assert got["surplus"] == pytest.approx(identity, abs=1e-12)
            assert got["half_surplus"] == got["surplus"] / 2
            assert both or got["surplus"] == 0
        else:
            assert got["surplus"] is got["half_surplus"] is None
        assert (got["p_accurate_given_certain"] is None) == (ac + ic == 0)
        assert (got["p_uncertain_given_inaccurate"] is None) == (ic + iu == 0)
    assert naive.scores(5, 0, 0, 7)["phi"] == 1.0
    assert naive.scores(0, 3, 4, 0)["phi"] == -1.0
    huge = naive.scores(3 * 10**12, 10**12, 10**12, 2 * 10**12)
    assert huge == naive.scores(3, 1, 1, 2)


def test_curve_ends() -> None:
    labels, _, right, u = scene(8)
    pixels = naive.pixel_uncertainties(u, labels, VOID)
    found = naive.patches(right, u, labels, 4, 4, VOID)
    assert all(p["mean"] > np.float32(pixels.min()) for p in found)
    curve = naive.curve(found, pixels)
    assert curve["t"] == [i / 100 for i in range(101)]
    assert {len(v) for v in curve.values()} == {101}
    accurate = naive.scored(found, 0.5, 0.0)["p_accurate"]
    assert 0 < accurate < 1
    assert curve["p_uncertain_given_inaccurate"][0] == 1
    assert curve["p_accurate_given_certain"][0] is None
    assert curve["pavpu"][0] == pytest.approx(1 - accurate, abs=1e-15)
    assert curve["p_accurate_given_certain"][100] == curve["pavpu"][100] == accurate
    assert curve["p_uncertain_given_inaccurate"][100] == 0
    assert curve["pavpu"][0] + curve["pavpu"][100] == pytest.approx(1, abs=1e-15)
    assert curve["surplus"][0] == curve["surplus"][100] == 0
    area = np.trapezoid(curve["surplus"], curve["t"])
    assert naive.surplus_auc(curve) == pytest.approx(area, abs=1e-14)
    # the hole of the paper: a patch of saturated pixels is certain at t = 0
    u[0, :4, :4] = pixels.min()
    found = naive.patches(right, u, labels, 4, 4, VOID)
    curve = naive.curve(found, naive.pixel_uncertainties(u, labels, VOID))
    assert curve["p_accurate_given_certain"][0] is not None
    assert curve["pavpu"][0] + curve["pavpu"][100] != 1


def test_undefined_curve() -> None:
    labels = np.zeros((1, 4, 4), int)
    found = naive.patches(labels == 0, labels / 2, labels, 2, 2, VOID)
    curve = naive.curve(found, [0.0, 1.0])
    assert set(curve["surplus"]) == {None}
    assert naive.surplus_auc(curve) is None
    assert naive.peak(curve, "surplus") is None
    assert naive.peak(curve, "pavpu") == {"t": 0.0, "threshold": 0.0, "value": 1.0}


def test_accuracy_curve() -> None:
    labels, _, right, u = scene(9)
    found = naive.patches(right, u, labels, 4, 4, VOID)
    got = naive.accuracy_curve(found, 0.7)
    for key in naive.SCORES:
        assert got[key][50] == naive.scored(found, 0.5, 0.7)[key]
    assert got["p_accurate"] == sorted(got["p_accurate"], reverse=True)
    assert got["p_accurate"][100] == 0
    assert len(set(got["p_certain"])) == 1
    assert naive.accuracy_curve(found, 0.7, ">=")["p_accurate"][0] == 1


def test_accuracy_by_uncertainty() -> None:
    labels, predictions, right, u = scene(10)
    got = naive.accuracy_by_uncertainty(labels, predictions, u, 5, VOID)
    keep = labels != VOID
    values, p, hit = u[keep], predictions[keep], right[keep]
    edges = np.percentile(values.astype(np.float64), range(10, 100, 10)).astype(np.float32)
    assert got["percentiles"] == list(range(10, 100, 10))
    assert got["thresholds"] == edges.tolist()
    bins = np.searchsorted(edges, values, side="left")
    for c, row in enumerate(got["rows"]):
        assert row["class"] == c
        assert row["pixels"] == [int(((p == c) & (bins == b)).sum()) for b in range(10)]
        for b in range(10):
            here = hit[(p == c) & (bins == b)]
            assert row["accuracy"][b] == (here.mean() if here.size else None)
    mass = np.sum([row["pixels"] for row in got["rows"]], axis=0)
    assert mass.sum() == keep.sum()
    assert mass.max() - mass.min() <= 1
    flat = naive.accuracy_by_uncertainty(labels, predictions, np.ones_like(u), 5, VOID)
    assert np.sum([row["pixels"] for row in flat["rows"]], axis=0)[1:].sum() == 0


def test_per_class() -> None:
    labels, _, right, u = scene(11)
    found = naive.patches(right, u, labels, 2, 2, VOID)
    rows = naive.per_class(found, 0.5, 0.7)
    assert [row["class"] for row in rows] == [0, 1, 2, 3, "mixed"]
    whole = naive.scored(found, 0.5, 0.7)
    for key in ("n_ac", "n_au", "n_ic", "n_iu"):
        assert sum(row[key] for row in rows) == whole[key]
    assert sum(row["ties"]["accuracy"] for row in rows) == whole["ties"]["accuracy"] > 0
    rows = naive.per_class(found, 0.5, 0.7, classes=6)
    assert [row["class"] for row in rows] == [0, 1, 2, 3, 4, 5, "mixed"]
    assert rows[5]["pavpu"] is None
    assert rows[5]["n_ac"] == 0
