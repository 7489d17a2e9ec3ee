"""The next step of the findings follows from the data first, and is advised only if it helps."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from gate_reports import named, rules
from small_report import report

from uqeval.gate import judge
from uqeval.glossary import metric_of
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
    record["isotonic"] = record["vector"] = {"ece": 0.1}
    assert next_step(results={"calibration": record}).startswith(
        "ECE is 0.080. The fitted temperature does not lower the ECE (0.080 before, 0.090 after). "
        "Fit on more images."
    )


def fitted(after: float, items: int = 31, **fit: Any) -> dict[str, Any]:
    """A fit on other items, after which the ECE of the held-out items is `after`."""
    scores = {"before": {"ece": 0.09}, "after": {"ece": after}}
    return {"ece": after, "held_out": {"items": items} | scores} | fit


@pytest.mark.parametrize(("fits", "settings", "advice"), [
    ({"temperature": fitted(0.04, value=1.6)}, {}, "Divide the logits by T = 1.6: the ECE of the "
     "31 other items falls from 0.090 to 0.040."),
    ({"temperature": fitted(0.04, value=1.6)}, {"temperature_of": "samples"},
     "Divide the logits of each sample by T = 1.6: "),
    # More parameters have to halve what the temperature leaves.
    ({"temperature": fitted(0.04, value=1.6), "isotonic": fitted(0.03)}, {}, "by T = 1.6"),
    ({"temperature": fitted(0.04, value=1.6), "isotonic": fitted(0.01)}, {},
     "Apply the fitted isotonic regression (calibration.isotonic.curve in the report): the ECE of "
     "the 31 other items falls from 0.090 to 0.010."),
    ({"temperature": fitted(0.1, value=1.6), "vector": fitted(0.05)}, {},
     "Apply the fitted vector scaling (calibration.vector in the report): the ECE"),
    ({"temperature": fitted(0.1, value=1.6), "vector": fitted(0.1)}, {},
     "does not lower the ECE (0.090 before, 0.100 after). Fit more parameters on other images "
     "(--isotonic)."),
])  # fmt: skip
def test_a_fit_on_other_items_is_used_if_it_helps(
    fits: dict[str, Any], settings: dict[str, Any], advice: str
) -> None:
    own = {"results": {"calibration": {"ece": 0.08} | fits}}
    text = next_step(**own, settings={"calibration": settings})
    assert advice in text and "--fit-on" not in text


@pytest.mark.parametrize(("fits", "advice"), [
    ({"temperature": {"ece": 0.066}}, "Fit a temperature on other images (--fit-on)"),
    ({"temperature": {"ece": 0.066}, "isotonic": {"ece": 0.06}},
     "Fit a temperature on other images (--fit-on)"),
    ({"temperature": {"ece": 0.066}, "isotonic": {"ece": 1e-8}},
     "Fit an isotonic regression on other images (--isotonic, --fit-on)"),
    ({"temperature": {"ece": 0.09}, "vector": {"ece": 0.01}},
     "Fit vector scaling on other images (--vector, --fit-on)"),
])  # fmt: skip
def test_the_best_fit_on_the_evaluated_items_is_advised_on_others(
    fits: dict[str, Any], advice: str
) -> None:
    for gap, after in ((bins(0.8, 0.85), ", or train with label"), (bins(0.8, 0.81), ". ")):
        record = {"ece": 0.085, "reliability": gap, **fits}
        assert f"{advice}{after}" in next_step(results={"calibration": record})
    record = of_two_sides(0.36, 0.34) | fits | {"ece": 0.085}
    if "Fit a temperature" not in advice:
        both = next_step(results={"calibration": record})
        assert f"harms the others. {advice}." in both


def test_a_fit_on_other_items_is_used_for_a_slice() -> None:
    """It has no held-out items of its own."""
    metric = metric_of("calibration", "ece")
    assert metric is not None
    advise = metric.advice_for
    fit = {"value": 1.24, "fitted_on": "fit.json", "ece": 0.107}
    record = {"ece": 0.159, "reliability": bins(0.54, 0.7), "temperature": fit}
    text = advise(record, {}, of_slice=True)
    assert "Divide the logits by T = 1.24: the ECE of these items falls from 0.159 to 0.107" in text
    fit["fitted_on"] = "all items"
    assert "Fit a temperature on other images" in advise(record, {}, of_slice=True)
    fit |= {"fitted_on": "fit.json", "held_out": None}  # all items are in the file
    assert "Fit a temperature on other images" in advise(record, {})


def bins(accuracy: float, confidence: float) -> dict[str, Any]:
    """A bin of all pixels, and an empty one."""
    return {"count": [0, 9], "accuracy": [None, accuracy], "confidence": [None, confidence]}


@pytest.mark.parametrize(("accuracy", "confidence", "temperature", "side", "training"), [
    (0.959, 0.531, None, "under-confident (accuracy 0.959, mean confidence 0.531)", "with less"),
    (0.959, 0.531, 0.16, "under-confident (accuracy 0.959, mean confidence 0.531)", "with less"),
    (0.531, 0.959, 1.9, "over-confident (accuracy 0.531, mean confidence 0.959)", "train with lab"),
    (0.8, 0.81, 1.9, "over-confident (temperature 1.9)", "train with lab"),
    (0.8, 0.81, 0.5, "under-confident (temperature 0.5)", "with less"),
    (0.8, 0.81, 1.01, "", ""), (0.959, 0.531, 1.5, "", ""),
])  # fmt: skip
def test_label_smoothing_is_advised_to_over_confident_models_only(
    accuracy: float, confidence: float, temperature: float | None, side: str, training: str
) -> None:
    record: dict[str, Any] = {"ece": 0.42, "reliability": bins(accuracy, confidence)}
    if temperature is not None:
        record["temperature"] = {"value": temperature, "ece": 0.01}
    items = [{"name": str(i)} for i in range(40)]
    own = report(items=items, settings={}, results={"calibration": record})
    main, *_, last = findings_of(own)
    of_side = f": the model is {side}." if side else "."
    assert main.text.endswith(f"This gap is large{of_side}")
    assert (f"The model is {side}. Fit" in last.text) == bool(side)
    assert ("smoothing" in last.text) == bool(training) and training in last.text
    # The bins of class 1 hold frequencies, not accuracies, and a temperature alone does not tell.
    own.settings["calibration"] = {"binary": "positive"}
    assert all("-confident" not in own.text for own in findings_of(own))


def test_a_large_gap_without_an_interval_says_whether_ci_was_given() -> None:
    own: dict[str, Any] = {"results": {"calibration": {"ece": 0.2, "brier": 0.3}}}
    only = "this applies to these items only."
    assert next_step(**own).endswith(f"Without --ci, {only}")
    brier = {"level": 0.95, "low": 0.2, "high": 0.4}
    without = {"low": None, "high": None, "reason": "the score is the same in all draws"}
    own["intervals"] = {"calibration.brier": brier, "calibration.ece": without}
    assert next_step(**own).endswith(
        f"ECE has no interval (the score is the same in all draws), so {only}"
    )
    del own["intervals"]["calibration.ece"]
    assert next_step(**own).endswith(f"ECE has no interval, so {only}")


def of_two_sides(over: float, under: float) -> dict[str, Any]:
    """Two filled bins of as many pixels, the first with too low and the second with too high
    confidence; a temperature fits both no better than one."""
    return {
        "ece": (over + under) / 2, "ece_debiased": (over + under) / 2 - 0.01,
        "reliability": {
            "count": [9, 0, 9], "accuracy": [0.6 + under, None, 0.95 - over],
            "confidence": [0.6, None, 0.95],
        },
        "temperature": {"value": 1.7, "ece": (over + under) / 2 + 0.05},
    }  # fmt: skip


def test_gaps_on_both_sides_are_not_corrected_by_a_temperature() -> None:
    """The temperature of the least NLL is above 1, because confident errors cost most."""
    record = of_two_sides(0.36, 0.34)
    items = [{"name": str(i)} for i in range(40)]
    main, *_, last = findings_of(report(items=items, settings={}, results={"calibration": record}))
    both = (
        "the model is over-confident for some pixels and under-confident for others "
        "(0.180 and 0.170 of the ECE)."
    )
    assert main.text.endswith(f"This gap is large: {both}")
    assert f"T{both[1:]} The fitted temperature does not lower the ECE" in last.text
    del record["temperature"]
    text = next_step(results={"calibration": record})
    assert "Look at the ECE of each class" in text and "Fit a temperature" not in text
    # Some temperatures lower the ECE nevertheless.
    record["temperature"] = fitted(0.04, value=1.6)
    text = next_step(results={"calibration": record})
    assert "for others (0" in text and "falls from 0.090 to 0.040" in text
    assert "corrects" not in text
    record["temperature"] = {"value": 1.6, "ece": 0.1}  # fitted on the evaluated items
    text = next_step(results={"calibration": record})
    assert "for others (0" in text and "Fit a temperature on other images" in text
    assert "corrects" not in text
    # Most of the gap is on one side.
    assert "is over-confident (acc" in next_step(results={"calibration": of_two_sides(0.5, 0.1)})


@pytest.mark.parametrize("debiased", [0.019, None])
def test_bins_of_few_items_are_on_both_sides_by_chance(debiased: float | None) -> None:
    """An exactly calibrated model has such an ECE in 12 images; without --ci, nothing tells."""
    record = of_two_sides(0.08, 0.07)
    del record["temperature"]
    assert "for others" in next_step(results={"calibration": record})
    record["ece_debiased"] = debiased
    text = next_step(results={"calibration": record})
    assert "-confident" not in text and "Fit a temperature" in text


def test_a_small_gap_on_both_sides_may_be_chance(tmp_path: Path) -> None:
    own = named(results={"calibration": of_two_sides(0.02, 0.019)})
    judgement = judge((own,), rules(tmp_path, "calibration.ece: {max: 0.001}"))
    (text,) = (f.text for f in findings_of(own.report, judgement) if f.title == "Next")
    assert "fails its rule" in text and "-confident" not in text


def test_a_failed_rule_of_a_slice_has_the_advice_for_the_slice(tmp_path: Path) -> None:
    # A slice has the temperature of the whole set, which does not show its side.
    fit = {"temperature": {"value": 0.6, "fitted_on": "all items"}}
    night = {"ece": 0.42, "mce": 0.42, "reliability": bins(0.531, 0.959)} | fit
    whole = {"ece": 0.42, "mce": 0.42, "reliability": bins(0.959, 0.531)} | fit
    slices = {"light=night": {"items": 9, "results": {"calibration": night}}}
    own = named(results={"calibration": whole}, slices=slices)
    for address, side in (("calibration.mce", "under"), ("calibration.mce@light=night", "over")):
        judgement = judge((own,), rules(tmp_path, f"{address}: {{max: 0.1}}"))
        (text,) = (f.text for f in findings_of(own.report, judgement) if f.title == "Next")
        assert f"{address} fails its rule. The model is {side}-confident" in text


@pytest.mark.parametrize(("after", "advice"), [
    (1.86, "Multiply σ by 1.703: the NLL of the 31 other items falls from 2.290 to 1.860."),
    (2.3, "The factor of σ fitted on other items (1.703) does not lower the NLL of the 31 other "
     "items (2.290 before, 2.300 after). Look at the worst items first."),
])  # fmt: skip
def test_a_factor_of_sigma_fitted_on_other_items_is_used_if_it_helps(
    after: float, advice: str
) -> None:
    held_out = {"items": 31, "nll_before": 2.29, "nll": after}
    record = {"auce": 0.12, "sigma_scale": {"value": 1.7032, "held_out": held_out}}
    settings = {"regression": {"distribution": "gaussian"}}
    assert next_step(results={"regression": record}, settings=settings).startswith(
        f"AUCE is 0.120. {advice}"
    )


@pytest.mark.parametrize(("over", "under", "inside", "proportion", "side"), [
    (0.12, 0.0, 0.727, "interval",
     ": the intervals are too narrow (those of 90 % contain 72.7 % of the targets)."),
    (0.0, 0.12, 0.99, "interval",
     ": the intervals are too wide (those of 90 % contain 99.0 % of the targets)."),
    (0.12, 0.0, 0.91, "interval", ": most intervals are too narrow."),
    (0.07, 0.05, 0.91, "interval", "."), (0.12, 0.0, 0.727, "quantile", "."),
])  # fmt: skip
def test_the_side_of_a_gap_of_coverage(
    over: float, under: float, inside: float, proportion: str, side: str
) -> None:
    record = {"auce": 0.12, "auce_over": over, "auce_under": under, "coverage": {"90": inside}}
    settings = {"regression": {"proportion": proportion}}
    found = findings_of(report(results={"regression": record}, settings=settings))
    assert found[0].text.endswith(f"This gap is large{side}")


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
