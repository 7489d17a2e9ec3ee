"""Smooth ECE against a plain oracle and relplot, within its bound; one value on every route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
from saved_runs import run, scoring

import uqeval
from uqeval.metrics import smooth_ece as smooth
from uqeval.metrics.smooth_ece import bandwidths, smooth_ece
from uqeval.statistics.weighting import Subset
from uqeval.tallies.fine_gaps import FineGaps


def counted(conf: Any, hit: Any) -> tuple[float, float]:
    """The smooth ECE of pixels, and its bound."""
    tally = FineGaps(2)
    state, value = tally.empty(), np.asarray(conf, np.float32)[None]
    known = {"label": np.ones(value.shape, "u1"), "prediction": np.asarray(hit, "u1")[None]}
    tally.update(state, known | {"confidence": value})
    pixels = int(state["pixels"][0])
    found = smooth_ece(state["gaps"], pixels)
    assert found is not None
    bound = smooth._bound(np.array([found]), state["absolute"] / pixels, len(state["gaps"]))
    return found, float(bound[0])


def drawn(name: str) -> tuple[Any, Any]:
    """Confidences and hits [i]."""
    rng = np.random.default_rng(0)
    conf = rng.uniform(0.5, 1, 20_000).astype("f4")
    if name == "ties":
        conf = np.round(rng.uniform(0.3, 1, 5000) * 8).astype("f4") / 8
    elif name == "ones":
        return np.ones(1000, "f4"), np.arange(1000) % 10 > 0
    elif name == "all_right":
        return np.ones(1000, "f4"), np.ones(1000, bool)
    elif name == "few":
        conf = conf[:50]
    shift = 0.1 if name == "overconfident" else 0.0
    return conf, rng.random(conf.size) < conf - shift


#: What relplot 1.0.3 says of `drawn`; it stops after ten bisections.
RELPLOT = {
    "calibrated": 0.00887726994250811,
    "overconfident": 0.09791004304354638,
    "ties": 0.008536844783221031,
    "all_right": 0.0,
    "few": 0.06015956324061952,
}


@pytest.mark.parametrize("name", RELPLOT)
def test_relplot(name: str) -> None:
    conf, hit = drawn(name)
    assert counted(conf, hit)[0] == pytest.approx(RELPLOT[name], abs=1e-3)


def test_known_values() -> None:
    assert counted(*drawn("all_right")) == (0.0, 0.0)
    assert counted(*drawn("ones"))[0] == pytest.approx(0.1, abs=1e-9)  # all at one confidence
    assert smooth_ece(np.zeros(4097), 0) is None


@pytest.mark.parametrize("name", ["few", "ties", "sharp"])
def test_the_bound_holds_against_the_oracle(name: str) -> None:
    conf, hit = drawn("few" if name == "sharp" else name)
    if name == "sharp":  # errors that cancel nearby leave a small bandwidth
        conf = np.tile(np.float32([0.7071, 0.7113, 0.9041]), 100)
        hit = np.arange(300) % 10 < 8
    found, bound = counted(conf, hit)
    assert bound < 1e-3
    assert abs(found - naive.smooth_ece(conf, hit)) <= bound + 1e-7


def test_many_sets_are_each_alone() -> None:
    rng = np.random.default_rng(1)
    gaps = np.concatenate([rng.normal(0, scale, (3, 4097)) for scale in (1e-7, 1e-5, 1e-4)])
    gaps = np.concatenate([gaps, np.zeros((1, 4097)), gaps[4:5] + 2e-5])
    alone = [float(bandwidths(row[None])[0]) for row in gaps]
    assert bandwidths(gaps).tolist() == pytest.approx(alone, abs=1e-9)
    assert alone[-2] == 0 and max(alone) > 1 / 16 and 0 < min(alone[:3]) < 1 / 64
    for row, sigma in zip(gaps, alone, strict=True):
        if sigma:
            spectrum = smooth._spectrum(row[None], 4097)
            own = smooth._error(spectrum, np.array([sigma]), 4096)
            assert own[0] == pytest.approx(sigma, rel=1e-5)


@pytest.mark.parametrize("sigma", [0.2, 1 / 16, 0.05, 1 / 64, 0.002])
def test_smoothed_gaps_need_few_cosines(sigma: float) -> None:
    """Those that are left out are below rounding at each bandwidth."""
    gaps = np.random.default_rng(3).normal(size=(2, 4097))
    whole = smooth._smoothed(smooth._spectrum(gaps, 4097), np.full(2, sigma), 4096)
    np.testing.assert_allclose(smooth._tested(gaps, sigma), whole[:, ::8], atol=1e-12)


def test_intervals_slices_and_merges(tmp_path: Path) -> None:
    options: dict[str, Any] = {"adaptive": False, "temperature": False}
    whole, path = run(tmp_path / "a", 8, {"calibration": options}, ci=0.9, draws=200)
    own = whole.results["calibration"]
    interval = whole.intervals["calibration.smooth_ece"]
    assert interval["method"] == "expanded"
    assert interval["low"] < own["smooth_ece"] < interval["high"]
    assert own["smooth_ece_bandwidth"] == own["smooth_ece"] > 10 * own["smooth_ece_bound"] > 0

    states = scoring(path)
    ones = Subset(range(8), 8)
    found = states.table(ones, ["calibration.smooth_ece"])
    assert found[0, 0] == pytest.approx(own["smooth_ece"], abs=1e-9)
    assert states.whole([])["calibration"]["smooth_ece"] is None
    key, gaps = states.gaps("calibration.smooth_ece") or ("", None)
    assert gaps is not None and not gaps.largest
    of_all = {t: states.stacked(t).sets(ones) for t in states.evaluations[key].tallies()}
    value = (np.abs(gaps.signed(of_all)[0]) * gaps.weights(of_all)[0]).sum()
    assert value == pytest.approx(own["smooth_ece"], rel=1e-3)

    merged = uqeval.merge(tmp_path / "a" / "report.states.zip")
    assert merged.results["calibration"]["smooth_ece"] == own["smooth_ece"]


def test_two_classes_of_which_one_is_positive() -> None:
    rng = np.random.default_rng(2)
    p = (rng.integers(1, 24, (2, 12, 14)) / 24).astype("f4")
    probs = np.stack([1 - p, p], axis=1)
    label = (rng.random(p.shape) < p**1.3).astype("u1")
    options = {"calibration": {"binary": ["top", "positive"], "temperature": False}}
    found = uqeval.evaluate(probs, label, options).results
    positive = found["calibration[binary=positive]"]["smooth_ece"]
    flat, hit = p.reshape(-1), label.reshape(-1) == 1
    assert positive == pytest.approx(naive.smooth_ece(flat, hit), rel=1e-5)
    conf, right = np.maximum(flat, 1 - flat), (flat > 1 - flat) == hit
    top = found["calibration"]["smooth_ece"]
    assert top == pytest.approx(naive.smooth_ece(conf, right), rel=1e-5)


@pytest.mark.parametrize("pixels", [300, 10_000, 1_000_000])
def test_many_sets_at_once(pixels: int) -> None:
    """Coarse nodes and one finer step find what the single set finds."""
    rng = np.random.default_rng(pixels)
    rows = []
    for bias in (0.0, 0.002, 0.02, 0.3, -0.3):
        conf = rng.beta(4, 2, pixels)
        hit = rng.random(pixels) < np.clip(conf - bias, 0, 1)
        at = np.round(conf * 4096).astype(int)
        rows.append(np.bincount(at, hit - conf, 4097) / pixels)
    rows.append(np.abs(rows[-1]))  # of one sign: the mean gap at every bandwidth
    gaps = np.array(rows)
    each = [float(bandwidths(own[None])[0]) for own in gaps]
    assert bandwidths(gaps, coarse=True) == pytest.approx(each, abs=1e-7)
    assert each[-1] == pytest.approx(gaps[-1].sum(), abs=1e-12)


def test_one_sign_ends_at_the_first_level(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[int] = []
    error = smooth._error
    monkeypatch.setattr(
        smooth, "_error", lambda s, at, count: nodes.append(count) or error(s, at, count)
    )
    gaps = np.zeros((50, 4097))
    gaps[:, 1000:3000] = np.random.default_rng(0).random((50, 2000)) / 4000
    bandwidths(gaps)
    assert set(nodes) == {512}
