"""The next step of the findings follows from the data first, and is advised only if it helps."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import pytest
from small_report import report

from uqeval.report.findings import findings_of


def next_step(**changes: Any) -> str:
    """Return the next step for a report of 40 items."""
    items = [{"name": str(i)} for i in range(40)]
    own = report(**{"items": items, "settings": {}} | changes)
    return next(found.text for found in findings_of(own) if found.title == "Next")


def test_the_largest_gap_of_a_bin_alone_has_no_advice() -> None:
    own = {"results": {"calibration": {"ece": 0.006, "mce": 0.064}}}
    assert "--ci" in next_step(**own)


def gaussian_coverage(factor: float) -> dict[str, Any]:
    """The plot of coverages where every σ is too large by a factor."""
    normal, levels = NormalDist(), [k / 100 for k in range(1, 100)]
    observed = [2 * normal.cdf(factor * normal.inv_cdf((p + 1) / 2)) - 1 for p in levels]
    return {"p": levels, "observed": observed}


@pytest.mark.parametrize("proportion", ["interval", "quantile"])
def test_a_factor_of_sigma_is_advised_only_if_it_lowers_the_gap(proportion: str) -> None:
    """Few errors of many σ decide the factor with the least NLL."""
    settings = {"regression": {"distribution": "gaussian", "proportion": proportion}}
    plot = gaussian_coverage(1.6)
    if proportion == "quantile":
        normal = NormalDist()
        plot["observed"] = [normal.cdf(1.6 * normal.inv_cdf(p)) for p in plot["p"]]
    for factor, words in (
        (1 / 1.6, "Scale σ"), (32.17, "would raise it (to about"),
        (1.01, "errors have another distribution. Compare --distribution laplace"),
        (0.99, "would hardly change it"),
    ):  # fmt: skip
        record = {"auce": 0.12, "calibration": plot, "sigma_scale": {"value": factor}}
        text = next_step(results={"regression": record}, settings=settings)
        assert words in text
        assert ("Scale σ" in text) == (words == "Scale σ")
        assert ("worst items" in text) == (factor > 2)
    del record["sigma_scale"]
    assert "Scale σ" in next_step(results={"regression": record}, settings=settings)


def test_a_temperature_is_advised_only_if_it_lowers_the_gap() -> None:
    record: dict[str, Any] = {"ece": 0.08, "temperature": {"ece": 0.03}}
    assert "Fit a temperature" in next_step(results={"calibration": record})
    record["temperature"]["ece"] = 0.09
    assert "--isotonic" in next_step(results={"calibration": record})
    record["temperature"]["held_out"] = {"before": {"ece": 0.08}, "after": {"ece": 0.04}}
    assert "Fit a temperature" in next_step(results={"calibration": record})


def test_doubtful_data_are_looked_at_first() -> None:
    rows = [{"class": c, "name": str(c), "iou": 0.01, "pixels": 9} for c in range(19)]
    labels_off_by_one = {"pixel_accuracy": 0.013, "per_class": rows}
    other_unit = {"rmse": 20.0, "nmse": 4.0, "auce": 0.4}
    for results, words in (
        ({"failure": {"auroc": 0.5}, "segmentation": labels_off_by_one}, "labels may begin at 1"),
        ({"nmerci": {"nmerci": 0.1}, "regression": other_unit}, "metres and millimetres"),
    ):
        text = next_step(results=results)
        assert text.startswith("Check the data first: the ") and words in text
        found = findings_of(report(results=results), path="my report.json")[-1]
        command = "uqeval report 'my report.json' --gallery 3 --predictions preds.zarr"
        assert found.command == command
        found = findings_of(report(results=results), path="r.json", page="out/my r.html")[-1]
        assert "--gallery 3 -o 'out/my r-pictures.html' --predictions" in found.command
    assert "of predicting the mean of the targets (10)" in text
    for nmse in (0.9, 1.01):  # that of a constant fitted on other data
        good = next_step(results={"regression": other_unit | {"nmse": nmse}})
        assert "Scale σ" in good
