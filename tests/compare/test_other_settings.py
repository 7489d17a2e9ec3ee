"""Settings that differ, and the scores that stay comparable."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from gate_reports import rules
from trained import save

from uqeval import Report, UsageError
from uqeval.compare import Choice, Comparison, compare, load_models
from uqeval.compare.other_settings import OtherSettings
from uqeval.gate import judge
from uqeval.gate.other_settings import OtherSetting
from uqeval.glossary import fields_changed
from uqeval.records.folder import Named
from uqeval.report.tables.scores import scores
from uqeval.statistics import resampler, swaps

ONE, OTHER = (1, 1.6), (0, 1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("adding")
    save(made / "plain.json", *ONE, metrics={"calibration": {"temperature": False}})
    kumar = {"estimator": "kumar-l1", "adaptive": False, "temperature_of": "mean"}
    save(made / "kumar.json", *OTHER, metrics={"calibration": kumar})
    return made


@pytest.fixture(autouse=True)
def few_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps, "MOST", 300)


def compared(folder: Path, *names: str, **choice: Any) -> Comparison:
    paths = [str(folder / f"{name}.json") for name in names]
    return compare(load_models(paths), Choice(**choice))


def test_scores_that_both_have_are_compared(folder: Path) -> None:
    found = compared(folder, "plain", "kumar", every=True)
    rows = {str(row.address): row for row in found.rows}
    assert {"calibration.ece", "calibration.nll", "calibration.brier"} <= rows.keys()
    assert not {"calibration.adaptive_ece", "calibration.kumar_l1"} & rows.keys()
    change = rows["calibration.nll"].cells[1].difference
    assert change is not None and change.interval is not None and change.p is not None
    warning, *_ = found.warnings
    assert warning.startswith("calibration.adaptive_ece: left out: adaptive is True in")
    assert found.incomparable == {"calibration.adaptive_ece"}


def test_a_requested_score_of_another_definition_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"adaptive_ece: left out: adaptive is True in .* False"):
        compared(folder, "plain", "kumar", metrics=("calibration.adaptive_ece",))
    with pytest.raises(UsageError, match=r"temperature\.value: no two models have it"):
        compared(folder, "plain", "kumar", metrics=("calibration.temperature.value",))


def test_the_gate_refuses_only_the_scores_that_the_option_changes(
    folder: Path, tmp_path: Path
) -> None:
    now, before = (
        Named(name, folder / f"{name}.json", Report.load(folder / f"{name}.json"))
        for name in ("kumar", "plain")
    )

    def verdicts(text: str) -> Any:
        given = rules(tmp_path, text)
        return judge([now], given, baseline=[before], resampler=resampler()).verdicts

    (sure,) = verdicts("calibration.nll: {max_rise: 9, confidence: 0.9}")
    (plain,) = verdicts("calibration.ece: {max_rise: 0.9}")
    assert sure.status == plain.status == "pass" and sure.interval is not None
    with pytest.raises(UsageError, match="adaptive is False in this report and True in"):
        verdicts("calibration.adaptive_ece: {max_rise: 0.9, undefined: pass}")


def test_tables_of_all_scores_mark_the_best_of_comparable_ones(folder: Path) -> None:
    """Both reports have the score `ece`; with other bins of equal mass, it is not that score."""
    reports = {name: Report.load(folder / f"{name}.json") for name in ("plain", "kumar")}
    reports["kumar"].results["calibration"]["adaptive_ece"] = 0.1
    found = compared(folder, "plain", "kumar", metrics=("calibration.ece",))
    best = {
        row.name: any(cell.best for cell in row.cells)
        for row in scores(reports, "calibration", found.incomparable).rows
    }
    assert best["ECE ↓"] and not best["adaptive ECE ↓"]


@pytest.mark.parametrize("order", list(permutations(("none", "m", "cm"))))
def test_each_pair_of_reports_has_the_same_units(order: tuple[str, ...]) -> None:
    """A report without units agrees with both others, which do not agree with each other."""
    reports = [
        Named(
            unit,
            Path(f"{unit}.json"),
            Report(
                uqeval_version="1", inputs={} if unit == "none" else {"units": unit}, items=[],
                settings={"regression": {}}, results={"regression": {"rmse": 1.0}},
            ),
        )
        for unit in order
    ]  # fmt: skip
    assert OtherSettings(reports[:2]).of_results.keys() == (
        set() if "none" in order[:2] else {"regression"}
    )
    (reason,) = OtherSettings(reports).of_results.values()
    first, second = (unit for unit in order if unit != "none")
    assert f"units is '{first}' in {first}.json and '{second}' in {second}.json" in reason


def test_an_option_changes_no_field_whose_name_only_begins_like_that_of_another() -> None:
    """`mtc_pooled` is pooled with each `--average`. A name counts wherever it is, to be safe."""
    average = OtherSetting("average", 0, 1, fields_changed("temporal", "average"))
    for field in ("mtc", "mtc_no_warp", "occluded.mtc", "per_class.mtc_pooled.mtc"):
        assert average.changes(field.split("."))
    for field in ("mtc_pooled", "mtc_frequency_weighted", "occluded.share", "per_class.mtc.iou"):
        assert not average.changes(field.split("."))
    distribution = OtherSetting("distribution", 0, 1, fields_changed("regression", "distribution"))
    assert distribution.changes(["nll"]) and distribution.changes(["coverage", "95"])
    assert distribution.changes(["sigma_scale", "nll"])
    assert not distribution.changes(["sigma_scale", "value"])
    bins = OtherSetting("bins", 0, 1, fields_changed("calibration", "bins"))
    assert bins.changes(["temperature", "held_out", "ece"])
    assert not bins.changes(["brier_decomposition", "uncertainty"])
    of_sets = OtherSetting("the sets", 0, 1, ("per_set",))
    assert of_sets.changes(["per_set", "fog", "images", "auroc"]) and not of_sets.changes(["auroc"])
