"""The figure of errors by bins of σ: on the page and as a file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import uqeval
from uqeval.report.figures.of_reports import write_figures
from uqeval.report.page.html import to_html


@pytest.mark.parametrize("zero", [False, True])
def test_bins_of_sigma(zero: bool, tmp_path: Path) -> None:
    """σ of one bin may be 0, which no logarithmic axis shows; without --ence there is no figure."""
    rng = np.random.default_rng(3)
    sigma = rng.choice([0.0 if zero else 0.01, 1.0, 4.0], (2, 20, 30))
    mean, target = sigma * rng.normal(size=sigma.shape), np.zeros(sigma.shape)
    data = {"mean": mean, "std": sigma, "target": target, "names": ["a", "b"]}
    report = uqeval.evaluate(data, None, {"regression": {"ence": True}})
    write_figures({"r": report}, tmp_path, "svg")
    shown = "".join(ET.parse(tmp_path / "sigma-bins.svg").getroot().itertext())
    assert f"ENCE {'undefined' if zero else '0.0'}" in shown
    html = to_html({"r": report})
    figure = html[html.index('<figure id="figure-sigma-bins"') :]
    figure = figure[: figure.index("</figure>")]
    assert "root of the mean σ² (RMV)" in figure and "mathdefault" not in figure
    assert (">0.01<" in figure) == (not zero)
    without = uqeval.evaluate(data, None, "regression")
    assert "figure-sigma-bins" not in to_html({"r": without})
