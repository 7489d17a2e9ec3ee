"""Tempered probabilities and the derivatives of their NLL, against plain float64."""

from __future__ import annotations

from typing import Any

import naive_calibration as naive
import numpy as np
import pytest

from uqeval.kernels.tempering import (
    BLOCK,
    add_label_logs,
    add_slopes,
    finish_label_logs,
    temper,
    temper_samples,
)


def scene(seed: int, classes: int, n: int, sharp: float, zeros: float = 0.2) -> tuple[Any, Any]:
    """Probabilities with zeros and saturated pixels, and labels with void."""
    rng = np.random.default_rng(seed)
    p = np.exp(sharp * rng.normal(size=(classes, n)))
    p[rng.random(p.shape) < zeros] = 0
    p[0, p.sum(axis=0) == 0] = 1
    p[:, :: max(n // 5, 1)] = np.eye(classes)[:, :1]
    label = rng.integers(0, classes, n).astype("u1")
    label[rng.random(n) < 0.1] = 255
    return (p / p.sum(axis=0)).astype("f4"), label


def worked_in(classes: int) -> tuple[Any, Any]:
    """The arrays that the kernels work in, as full of nothing as can be."""
    return np.full((classes, BLOCK), np.nan), np.full((3, BLOCK), np.nan)


def slopes(p: Any, label: Any, lowest: float, step: float, count: int) -> tuple[Any, Any]:
    slope, curvature, pixels = np.zeros((1, count)), np.zeros((1, count)), np.zeros((1, 2), int)
    first = np.array([0, label.size])
    add_slopes(first, p, label, 255, lowest, step, slope, curvature, pixels)
    return np.concatenate([slope, curvature]), pixels[0]


def exact(p: Any, label: Any, beta: float) -> tuple[float, float]:
    """Σ E_β[ln p] - ln p_y and Σ Var_β[ln p] of the pixels that enter."""
    slope = curvature = 0.0
    for q, y in zip(p.T.astype(float), label, strict=True):
        if y != 255 and q[y] > 0:
            logs = np.log(q[q > 0])
            w = np.exp(beta * (logs - logs.max()))
            w /= w.sum()
            mean = (w * logs).sum()
            slope += mean - np.log(q[y])
            curvature += (w * (logs - mean) ** 2).sum()
    return slope, curvature


@pytest.mark.parametrize(("classes", "n", "sharp"), [(2, 1, 1), (4, 40, 2), (3, 2 * BLOCK + 7, 8)])
@pytest.mark.parametrize(
    ("lowest", "step", "count"), [(1 / 32, 0.0, 11), (0.9, 0.01, 5), (3, 0.5, 3)]
)
def test_slopes(classes: int, n: int, sharp: float, lowest: float, step: float, count: int) -> None:
    p, label = scene(n, classes, n, sharp)
    found, pixels = slopes(p, label, lowest, step, count)
    betas = [lowest + j * step if step else lowest * 2**j for j in range(count)]
    for j, beta in enumerate(betas):
        assert found[:, j] == pytest.approx(exact(p, label, beta), rel=1e-11, abs=1e-11)
    known = label != 255
    mine = p[np.where(known, label, 0), np.arange(n)][known]
    assert pixels.tolist() == [int((mine > 0).sum()), int((mine == 0).sum())]


def test_subnormal_probabilities() -> None:
    p = np.array([[1, 1, 1], [2.0**-149, 1e-40, 1e-30]], "f4")
    label = np.array([1, 1, 0], "u1")
    found, _ = slopes(p, label, 1 / 32, 0.0, 11)
    assert np.isfinite(found).all()
    for j in range(11):
        assert found[:, j] == pytest.approx(exact(p, label, 2.0 ** (j - 5)), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("beta", [1 / 32, 0.7, 1.0, 32.0])
@pytest.mark.parametrize(("classes", "n"), [(2, 3), (5, BLOCK + 3)])
def test_temper(beta: float, classes: int, n: int) -> None:
    p, label = scene(n, classes, n, 2)
    confidence, probability = np.empty(n, "f4"), np.empty(n)
    temper(p, label, 255, beta, *worked_in(classes), confidence, probability)
    known = label != 255
    expected = naive.tempered(p, 1 / beta)
    np.testing.assert_allclose(confidence[known], expected.max(axis=0)[known], rtol=6e-8)
    mine = expected[np.where(known, label, 0), np.arange(n)]
    np.testing.assert_allclose(probability, np.where(known, mine, 0), rtol=1e-12)


def test_nothing_at_all() -> None:
    """Maps that a user made may hold pixels without any probability."""
    p, label = np.zeros((3, 2), "f4"), np.array([0, 2], "u1")
    found, pixels = slopes(p, label, 1.0, 0.1, 2)
    assert not found.any() and pixels.tolist() == [0, 2]
    confidence, probability = np.empty(2, "f4"), np.empty(2)
    temper(p, label, 255, 1.0, *worked_in(3), confidence, probability)
    assert not confidence.any() and not probability.any()


def samples(seed: int, count: int, classes: int, n: int) -> tuple[Any, Any]:
    """Probabilities [sample, class, i] with zeros, and labels with void."""
    found = [scene(seed + t, classes, n, 4.0) for t in range(count)]
    return np.stack([p for p, _ in found]), found[0][1]


@pytest.mark.parametrize("beta", [0.03, 1.0, 2.5, 32.0])
def test_samples_are_tempered_each_by_itself(beta: float) -> None:
    p, _ = samples(1, 3, 4, BLOCK + 9)
    found = p.copy()
    temper_samples(found, beta, worked_in(4)[0], np.full(BLOCK, np.nan))
    for own, one in zip(found, p, strict=True):
        np.testing.assert_allclose(own, naive.tempered(one, 1 / beta), rtol=2e-7, atol=1e-38)


@pytest.mark.parametrize("n", [1, 40, BLOCK + 9])
@pytest.mark.parametrize(("lowest", "step", "count"), [(1 / 32, 0.0, 11), (0.6, 0.07, 5)])
def test_label_logs(n: int, lowest: float, step: float, count: int) -> None:
    p, label = samples(n, 4, 5, n)
    top, sums = np.zeros((2, count, n))
    logs, work = worked_in(5)
    z = np.full((count, BLOCK), np.nan)
    for part in (p[:1], p[1:]):
        add_label_logs(part, label, 255, lowest, step, logs, work, z, top, sums)
    nll = np.full((count, n), np.nan, np.float32)
    finish_label_logs(4, top, sums, nll)
    known = np.flatnonzero(label != 255)
    for j in range(count):
        beta = lowest + j * step if step else lowest * 2**j
        mean = np.zeros(n)
        with np.errstate(divide="ignore"):
            for one in p:
                log = beta * np.log(one.astype(float))
                log -= log.max(axis=0)
                mean[known] += np.exp(log[label[known], known] - np.log(np.exp(log).sum(0))[known])
            expected = -np.log(mean[known] / 4)
        np.testing.assert_allclose(nll[j, known], expected, rtol=3e-7, atol=1e-7)
