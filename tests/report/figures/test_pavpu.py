"""Figures of patch scores over thresholds."""

from __future__ import annotations

import copy
import re
import warnings

import numpy as np
import pytest
from family_reports import of_classes

import uqeval
from uqeval.report.figures import figures_of
from uqeval.report.figures.style import inline_svg


@pytest.mark.parametrize("is_worse", [False, True])
def test_a_surplus_below_zero_leaves_place_for_the_panels(is_worse: bool) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (2, 16, 16))
    is_wrong = rng.random(labels.shape) < 0.2
    # Worse than chance: wrong pixels are the certain ones.
    is_certain = is_wrong if is_worse else ~is_wrong
    best = np.where(is_certain, 0.8, 0.6) + rng.random(labels.shape) / 100
    first = np.where(labels == (0 + is_wrong), best, 1 - best)
    probs = np.stack([first, 1 - first], axis=1)
    options = {"window": 1, "threshold": "p80"}
    report = uqeval.evaluate({"probs": probs}, labels, {"pavpu": options})
    surplus = report.results["pavpu"]["accuracy_curve"]["surplus"]
    assert (max(value for value in surplus if value is not None) < 0) == is_worse
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a layout that is not applied
        for figure in figures_of({"a": report})["pavpu"]:
            assert "chance" in inline_svg(figure) or "threshold" not in figure.name


def test_names_of_lines_are_in_the_titles_of_panels() -> None:
    """Beside the lines, they would cross the curves and the titles."""
    figures = figures_of({"a": of_classes(family="pavpu")})["pavpu"]
    svgs = {figure.name: inline_svg(figure) for figure in figures}
    assert "Surplus (line: chance)" in svgs["pavpu-classes"]
    assert "Surplus (dashes: chance)" in svgs["pavpu-threshold"]
    assert not any(re.search(">\\s*chance\\s*<", svg) for svg in svgs.values())


@pytest.mark.parametrize("operator", [">", ">="])
def test_the_caption_says_why_no_patch_is_accurate_at_1(operator: str) -> None:
    own = copy.deepcopy(of_classes(family="pavpu"))
    for key in own.results:
        if key.startswith("pavpu"):
            own.settings[key]["accuracy_op"] = operator
    captions = {figure.name: figure.caption for figure in figures_of({"a": own})["pavpu"]}
    says = "so at 1 no patch is accurate" in captions["pavpu-accuracy-threshold"]
    assert says == (operator == ">")
