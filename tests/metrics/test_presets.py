"""Each preset against a plain rewriting of the code whose rule it follows.

The rules are those of reference/metrics.md, §2.2: borders, void pixels, operators, units.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scenes

import uqeval
from uqeval.errors import UsageError

Four = tuple[int, int, int, int]


@pytest.fixture(scope="module", params=[(4, 0), (2, 0), (4, 16), (2, 16)], ids=str)
def scene(request: Any) -> tuple[Any, Any]:
    """Samples [n, t, c, y, x], surer from left to right and often right; labels with void.

    Of 4 or 2 classes; of 16 parts, the last ones ties, and some exactly 1.
    """
    classes, parts = request.param
    rng = np.random.default_rng(0)
    truth = scenes.labels(0, 2, 37, 42, classes=classes, void=0.15)
    z = rng.normal(size=(2, 1, classes, 37, 42)) + 0.3 * rng.normal(size=(2, 3, classes, 37, 42))
    z += truth[:, None, None] == np.arange(classes)[:, None, None]
    p = np.exp(z * np.linspace(0.3, 8, 42))
    p /= p.sum(2, keepdims=True)
    if parts:
        p = np.floor(p[:, :1] * parts) / parts  # one sample, so that means are exact
        p[:, :, 0] = 1 - p[:, :, 1:].sum(2)
        assert (p == 1).sum() > 20 and (p.max(2) == 0.5).sum() > 5
    return p.astype("f4"), truth


def means(p: Any) -> Any:
    return p.astype(np.float64).mean(1)


def nats(q: Any) -> Any:
    return -(q * np.log(np.where(q > 0, q, 1))).sum(1)


def torch_uncertainty(p: Any, truth: Any, side: int = 16) -> Four:
    """0.13, patch_accuracy_vs_uncertainty.py: ceil mode, means over valid pixels, 1 - max p."""
    n = [0, 0, 0, 0]
    for q, label in zip(means(p), truth, strict=True):
        correct, unsure = q.argmax(0) == label, 1 - q.max(0)
        for y in range(0, label.shape[0], side):
            for x in range(0, label.shape[1], side):
                box = (slice(y, y + side), slice(x, x + side))
                valid = label[box] != 255
                if valid.any():
                    accurate = correct[box][valid].mean() > 0.5
                    uncertain = unsure[box][valid].mean() > 0.5
                    n[2 * (not accurate) + uncertain] += 1
    return tuple(n)  # type: ignore[return-value]


def uncertainty_baselines(p: Any, truth: Any, window: int = 2) -> Four:
    """robust_segvit/uncertainty_metrics.py: SAME zero padding, void wrong, entropy unmasked."""
    n = [0, 0, 0, 0]
    for q, label, h in zip(means(p), truth, nats(means(p)), strict=True):
        correct = ((q.argmax(0) == label) & (label != 255)).astype(float)
        pads = []
        for size in label.shape:
            missing = (math.ceil(size / window) - 1) * window + window - size
            pads.append((missing // 2, missing - missing // 2))
        sums = []
        for plane in (correct, h):
            padded = np.pad(plane, pads)
            rows, columns = (k // window for k in padded.shape)
            sums.append(padded.reshape(rows, window, columns, window).sum((1, 3)) / window**2)
        accurate, uncertain = sums[0] > 0.5, sums[1] > 0.5
        for a in (True, False):
            for u in (False, True):
                n[2 * (not a) + u] += int(((accurate == a) & (uncertain == u)).sum())
    return tuple(n)  # type: ignore[return-value]


def a_klass(p: Any, truth: Any, kernel: int = 2) -> Four:
    """A-Klass/pavpu: entropy in bits, complete windows, threshold 0.4; it knows no void."""
    n = [0, 0, 0, 0]
    for q, label, h in zip(means(p), truth, nats(means(p)) / math.log(2), strict=True):
        for y in range(0, label.shape[0] - kernel + 1, kernel):
            for x in range(0, label.shape[1] - kernel + 1, kernel):
                box = (slice(y, y + kernel), slice(x, x + kernel))
                accurate = (q.argmax(0) == label)[box].mean() > 0.5
                n[2 * (not accurate) + (h[box].mean() > 0.4)] += 1
    return tuple(n)  # type: ignore[return-value]


def ma(p: Any, truth: Any) -> tuple[Four, float, float]:
    """Ma et al. 2024, §4.2 and §5: w = 3, median of the patches, accurate from ½ on."""
    accuracy, unsure = [], []
    for q, label, h in zip(means(p), truth, nats(means(p)).astype("f4"), strict=True):
        for y in range(0, label.shape[0] - 2, 3):
            for x in range(0, label.shape[1] - 2, 3):
                box = (slice(y, y + 3), slice(x, x + 3))
                valid = label[box] != 255
                if valid.any():
                    accuracy.append((q.argmax(0) == label)[box][valid].mean())
                    unsure.append(np.float32(h[box][valid].astype(float).mean()))
    limit = float(np.median(np.array(unsure, float)))
    accurate, certain = np.array(accuracy) >= 0.5, np.array(unsure) <= np.float32(limit)
    n = [int((accurate & c).sum()) for c in (certain, ~certain)]
    n += [int((~accurate & c).sum()) for c in (certain, ~certain)]
    cov = np.cov(accurate, certain, bias=True)
    surplus = cov[0, 1] / accurate.std() + cov[0, 1] / (~accurate).std()
    return tuple(n), limit, float(surplus)  # type: ignore[return-value]


def counts(report: Any) -> Four:
    found = report.results["pavpu"]
    return tuple(found[k] for k in ("n_ac", "n_au", "n_ic", "n_iu"))  # type: ignore[return-value]


def evaluated(scene: Any, **settings: Any) -> Any:
    return uqeval.evaluate(*scene, {"pavpu": settings})


def test_torch_uncertainty(scene: Any) -> None:
    expected = torch_uncertainty(*scene)
    assert sum(expected) == 2 * 3 * 3
    assert counts(evaluated(scene, definition="torch-uncertainty-0.13")) == expected
    smaller = evaluated(scene, definition="torch-uncertainty-0.13", window=4)
    assert counts(smaller) == torch_uncertainty(*scene, side=4)


@pytest.mark.parametrize("window", [2, 4])
def test_uncertainty_baselines(scene: Any, window: int) -> None:
    report = evaluated(scene, definition="uncertainty-baselines", window=window)
    assert counts(report) == uncertainty_baselines(*scene, window)


def test_a_klass(scene: Any) -> None:
    p, truth = scene
    known = np.where(truth == 255, 0, truth).astype("u1")
    report = evaluated((p, known), definition="a-klass")
    assert counts(report) == a_klass(p, known)
    assert report.settings["pavpu"]["log_base"] == 2


def test_ma(scene: Any) -> None:
    report = evaluated(scene, definition="ma")
    expected, limit, surplus = ma(*scene)
    assert counts(report) == expected
    assert report.results["pavpu"]["uncertainty_threshold"] == pytest.approx(limit, rel=1e-6)
    assert report.results["pavpu"]["surplus"] == pytest.approx(surplus, rel=1e-9)


def test_every_preset_counts_something_else(scene: Any) -> None:
    names = ["paper", "ma", "torch-uncertainty-0.13", "uncertainty-baselines", "a-klass"]
    report = evaluated(scene, definition=names)
    keys = ["pavpu", *(f"pavpu[definition={name}]" for name in names[1:])]
    found = [tuple(report.results[k][n] for n in ("n_ac", "n_au", "n_ic", "n_iu")) for k in keys]
    assert len(set(found)) == len(names)
    assert [report.settings[key]["definition"] for key in keys] == names


def test_what_is_given_goes_before_the_preset(scene: Any) -> None:
    own = evaluated(scene, definition="ma", window=4, threshold="mean", accuracy_op=">")
    assert counts(own) == counts(evaluated(scene))
    said = own.settings["pavpu"]
    assert (said["definition"], said["window"], said["threshold"]) == ("ma", 4, "mean")


def test_the_preset_of_the_paper_is_the_default(scene: Any) -> None:
    said = evaluated(scene).settings["pavpu"]
    assert said == evaluated(scene, definition="paper").settings["pavpu"]
    assert said["window"] == said["stride"] == 4
    assert (said["accuracy_op"], said["uncertainty_op"]) == (">", ">")
    assert (said["border"], said["void"], said["threshold"]) == ("drop", "exclude", "mean")


def test_the_window_of_a_preset_must_fit() -> None:
    p, truth = scenes.softmax(0, 1, 1, 3, 2, 2), np.zeros((1, 2, 2), "u1")
    with pytest.raises(UsageError, match="window=3 is larger"):
        uqeval.evaluate(p, truth, {"pavpu": {"definition": "ma"}})


def test_the_keys_of_variants_do_not_depend_on_the_order_of_the_options() -> None:
    p = scenes.softmax(1, 2, 1, 3, 8, 8)
    truth = scenes.labels(1, 2, 8, 8, classes=3)
    options = {"window": [2, 4], "stride": [1, 2], "uncertainty": ["entropy", "confidence"]}
    reports = [
        uqeval.evaluate(p, truth, {"pavpu": {name: options[name] for name in order}})
        for order in (list(options), list(reversed(options)))
    ]
    assert reports[0].results == reports[1].results
    assert "pavpu[confidence,window=4,stride=2]" in reports[0].results
