"""Curves of a sweep: a panel for each M, with all draws (Gustafsson et al. 2020, Figures 22-35)."""

from __future__ import annotations

import numpy as np
import pytest

import uqeval
from uqeval import Report
from uqeval.report.figures import figures_of
from uqeval.report.figures.contract import lines_of
from uqeval.report.figures.style import render
from uqeval.report.figures.sweep_curves import _CURVES, _draws, _mean


@pytest.fixture(scope="module")
def report() -> Report:
    rng = np.random.default_rng(0)
    target = rng.normal(size=(1, 8, 9))
    samples = target[:, None] + rng.normal(size=(1, 3, 8, 9))
    data = {"samples": samples, "target": target}
    return uqeval.sweep(data, None, ["regression", "sparsification"], samples=[2, 3], repeats=2)


def test_a_panel_for_each_m_and_one_of_means(report: Report) -> None:
    import matplotlib.figure

    figures = {own.name: own for own in figures_of({"a": report, "b": report})["sweep"]}
    assert list(figures) == [
        "sweep", "sweep-sparsification", "sweep-sparsification-error", "sweep-calibration",
    ]  # fmt: skip
    canvas = matplotlib.figure.Figure()
    figures["sweep-sparsification-error"].draw(canvas)
    shown = [axes for axes in canvas.axes if axes.get_visible()]
    assert [axes.get_title("left") or axes.get_title() for axes in shown] == [
        "M = 2", "M = 3", "means, a", "means, b",
    ]  # fmt: skip
    # Two draws and their mean for each report; of all 3 samples there is one subset.
    assert [len(axes.lines) for axes in shown] == [6, 4, 2, 2]
    drawn = np.asarray(shown[0].lines[0].get_ydata())
    values = report.results["sweep"]["sparsification.error_curve"]["values"]
    assert (drawn == values[0][0]).all()
    ause = report.results["sweep"]["sparsification.ause"]["mean"]
    assert f"a: ause {ause[0]:.4g} at M = 2" in figures["sweep-sparsification"].alt
    assert b"M = 2" in render(figures["sweep-calibration"], "svg")


def test_means_skip_what_is_undefined(report: Report) -> None:
    both = _mean([[1.0, float("nan"), float("nan")], [3.0, 5.0, float("nan")]])
    assert both[:2] == [2.0, 5.0] and both[2] != both[2]
    (line,) = lines_of({"a": report})["sweep"]
    (curve,) = (own for own in _CURVES if own.name == "sweep-calibration")
    assert _draws(line, curve, curve.x, 7) == []


def swept(right: int) -> Report:
    """The sweep over single samples of 3, of which the first `right` are right at all pixels, so
    that they have no sparsification curve."""
    probs = np.full((1, 3, 2, 2, 2), 0.2)
    probs[:, :, 0] = 0.8
    probs[0, right:, :, 0, 0] = [0.4, 0.6]
    data = {"probs": probs, "labels": np.zeros((1, 2, 2), np.uint8)}
    metrics = {"sparsification": {"error": "zero-one"}}
    return uqeval.sweep(data, metrics=metrics, samples=[1], repeats=3)


def test_subsets_without_a_curve_are_left_out_and_counted() -> None:
    import matplotlib.figure

    figures = {own.name: own for own in figures_of({"a": swept(1)})["sweep"]}
    for name, of_oracle in (("sweep-sparsification", 1), ("sweep-sparsification-error", 0)):
        assert figures[name].caption.endswith(" Subsets without a curve: 1 of 3 at M = 1.")
        canvas = matplotlib.figure.Figure()
        figures[name].draw(canvas)
        # Two draws and their mean.
        assert len(canvas.axes[0].lines) == 3 + of_oracle
    assert b"M = 1" in render(figures["sweep-sparsification"], "svg")
    both = figures_of({"a": swept(1), "b": swept(3)})["sweep"]
    assert all(b"M = 1" in render(figure, "svg") for figure in both[1:])


def test_a_sweep_without_any_curve_has_no_figure_of_it() -> None:
    assert "sweep" not in figures_of({"a": swept(3)})
