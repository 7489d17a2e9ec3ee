"""A threshold that its rule does not give is null, and so is everything that needs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.errors import UsageError
from uqeval.gate import Rule, judge
from uqeval.gate.rules import Limits
from uqeval.metrics.patch_scores import METRICS
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.report.markdown import to_markdown
from uqeval.report.page.html import to_html
from uqeval.report.tables.of_report import tables_of

C = 3
NEEDED = {m.field for m in METRICS} - {"p_accurate"} | {"n_ac", "n_au", "n_ic", "n_iu"}
SURPLUS = "no Surplus is defined"
MAX = {"threshold": "max-surplus"}


def data(right: list[bool], classes: Any = None) -> tuple[Any, Any]:
    """Return samples [item, 2, class, 8, 8] and labels; the predictions of an item are all right
    or all wrong."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, C, (len(right), 8, 8)) if classes is None else classes
    label = np.asarray(label).astype("u1")
    shown = np.where(np.array(right)[:, None, None], label, (label + 1) % C)
    z = rng.normal(size=(len(right), 2, C, 8, 8)) * 0.5
    z += 4 * (shown[:, None, None] == np.arange(C)[:, None, None])
    p = np.exp(z)
    return (p / p.sum(2, keepdims=True)).astype("f4"), label


def check_null(record: dict[str, Any], reason: str = SURPLUS) -> None:
    for name in NEEDED:
        assert record[name] is None, name
        assert reason in record[f"{name}_reason"], name


@pytest.mark.parametrize("right", [True, False])
def test_of_the_set(right: bool, tmp_path: Path) -> None:
    states = tmp_path / "r.states.zip"
    report = uqeval.evaluate(
        *data([right] * 3), {"pavpu": MAX, "failure": MAX}, states=states, ci=0.9, draws=100
    )
    found = report.results["pavpu"]
    for record in (found, *found["per_class"], *(item["pavpu"] for item in report.items)):
        check_null(record)
    assert found["p_accurate"] == float(right)
    assert found["uncertainty_threshold"] is None
    assert found["accuracy_curve"] is None and SURPLUS in found["accuracy_curve_reason"]
    assert found["ties"]["uncertainty"] is None and found["ties"]["accuracy"] == 0
    # The curve takes no fitted threshold.
    assert found["pavpu_peak"]["value"] == 1 and None not in found["curve"]["pavpu"]
    failure = report.results["failure"]
    for record in (failure, *failure["per_class"], *(item["failure"] for item in report.items)):
        assert record["undetected_error_rate"] is None
        assert SURPLUS in record["undetected_error_rate_reason"]
    assert failure["uncertainty_threshold"] is None
    assert failure["aurc"] == float(not right)
    assert not {a for a in report.intervals if a.split(".")[-1] in NEEDED}
    # Nothing that is made of a report takes the missing numbers for numbers.
    assert tables_of(report) and to_markdown(report) and to_html({"r": report})
    rule = Rule(Address.parse("pavpu.pavpu"), Limits(min=0.1), "gate.yaml", 1)
    (verdict,) = judge([Named("r", Path("r.json"), report)], [rule]).verdicts
    assert verdict.value is None and verdict.counts_as == "fail"
    again = json.loads(uqeval.merge(states, ci=0.9, draws=100).to_json())
    assert again["results"] == json.loads(report.to_json())["results"]


def test_of_some_items() -> None:
    """One item has both kinds of patches, the other has none that is wrong."""
    p, label = data([True, True])
    label[0, :4] = (label[0, :4] + 1) % C
    report = uqeval.evaluate(p, label, {"pavpu": MAX | {"threshold_scope": "item"}})
    both, sure = (item["pavpu"] for item in report.items)
    assert both["uncertainty_threshold"] is not None and both["surplus"] is not None
    assert sure["uncertainty_threshold"] is None and SURPLUS in sure["uncertainty_threshold_reason"]
    check_null(sure)
    check_null(report.results["pavpu"], "no threshold for some items")
    assert report.results["pavpu"]["p_accurate"] == 0.75


def test_of_some_classes() -> None:
    """Class 0 has both kinds of patches, class 1 only accurate ones, class 2 has no patch."""
    classes = np.zeros((2, 8, 8), int)
    classes[1] = 1
    p, label = data([True, True], classes)
    p[0, :, [0, 2], :4] = p[0, :, [2, 0], :4]
    report = uqeval.evaluate(p, label, {"pavpu": MAX | {"threshold_scope": "class"}})
    found = report.results["pavpu"]
    first, second, third, mixed = found["per_class"]
    assert first["uncertainty_threshold"] is not None and first["surplus"] is not None
    assert second["uncertainty_threshold"] is None
    check_null(second)
    for row in (third, mixed):
        assert row["uncertainty_threshold_reason"] == "no patch of this class"
        assert row["n_ac"] == 0
    check_null(found, "no threshold for class 1")
    assert report.items[0]["pavpu"]["surplus"] is not None
    check_null(report.items[1]["pavpu"])


def test_of_parts(tmp_path: Path) -> None:
    """Two runs without a Surplus may have one together: what they counted cannot be added."""
    p, label = data([True, False])
    options = {"pavpu": MAX | {"curve_range": "0:1"}}
    parts = [tmp_path / f"{k}.states.zip" for k in (0, 1)]

    def evaluate_each() -> None:
        for k, path in enumerate(parts):
            own = slice(k, k + 1)
            run = uqeval.evaluate(p[own], label[own], options, states=path, names=[f"i{k}"])
            assert run.results["pavpu"]["uncertainty_threshold"] is None

    evaluate_each()
    with pytest.raises(UsageError, match="fitted on their own items") as refused:
        uqeval.merge(parts)
    whole = uqeval.evaluate(p, label, options).results["pavpu"]["uncertainty_threshold"]
    assert whole is not None and f"threshold={whole!r}" in str(refused.value)
    # And where all of them together have none, neither has the whole.
    p, label = data([True, True])
    evaluate_each()
    check_null(uqeval.merge(parts).results["pavpu"])


@pytest.mark.parametrize(
    ("options", "side"), [({"threshold": "median"}, 3), (MAX, 8)], ids=["no patches", "no Surplus"]
)
def test_a_merge_of_runs_without_a_threshold_warns_as_they_do(
    options: dict[str, Any], side: int, tmp_path: Path
) -> None:
    """The ranks of failure are read off the saved counts; the warning is that of each run."""
    p, label = data([True, True])
    p[:, :, :, 0, 0], p[:, :, :, 0, 1], label[:, 0, :2] = [1, 0, 0], [0.5, 0.25, 0.25], 0
    parts, warnings = [tmp_path / f"{k}.states.zip" for k in (0, 1)], []
    for k, path in enumerate(parts):
        own = (slice(k, k + 1), ..., slice(side), slice(side))
        run = uqeval.evaluate(
            p[own], label[own], {"failure": options}, states=path, names=[f"i{k}"]
        )
        warnings.append([text for text in run.warnings if "threshold is undefined" in text])
    assert len(warnings[0]) == 1 and warnings[0] == warnings[1]
    merged = uqeval.merge(parts)
    assert [text for text in merged.warnings if "threshold is undefined" in text] == warnings[0]
    found = merged.results["failure"]
    assert found["uncertainty_threshold"] is None and found["uncertainty_threshold_reason"]


def test_of_saved_states(tmp_path: Path) -> None:
    """`merge --threshold max-surplus` of a run at the mean, and back to a step of the curve."""
    states, other = tmp_path / "s.states.zip", tmp_path / "o.states.zip"
    data_ = data([True, True])
    uqeval.evaluate(*data_, {"pavpu": {}}, states=states)
    report = uqeval.merge(states, threshold="max-surplus", states=other)
    for record in (report.results["pavpu"], *(item["pavpu"] for item in report.items)):
        check_null(record)
    assert any("at the threshold null (max-surplus)" in text for text in report.warnings)
    uqeval.evaluate(*data_, {"pavpu": MAX}, states=other)
    back = uqeval.merge(other, threshold="range:0.5").results["pavpu"]
    expected = uqeval.evaluate(*data_, {"pavpu": {"threshold": "range:0.5"}}).results["pavpu"]
    assert [back[name] for name in NEEDED] == [expected[name] for name in NEEDED]
    check_null(uqeval.merge(other, threshold="max-surplus").results["pavpu"])


def test_of_a_sweep() -> None:
    swept = uqeval.sweep(*data([True, True]), {"pavpu": MAX}).results["sweep"]
    for name in ("pavpu.pavpu", "pavpu.uncertainty_threshold", "pavpu.n_ac"):
        assert swept[name]["mean"] == [None, None]
        assert SURPLUS in swept[name]["mean_reason"]
    assert swept["pavpu.p_accurate"]["mean"] == [1.0, 1.0]


def test_median_without_patches_in_failure() -> None:
    """Images too small for a patch: all scores but the undetected errors are defined."""
    p, label = data([True, False])
    report = uqeval.evaluate(
        p[..., :3, :3], label[..., :3, :3], {"failure": {"threshold": "median"}}
    )
    found = report.results["failure"]
    assert found["uncertainty_threshold"] is None and found["undetected_error_rate"] is None
    assert "no patches" in found["undetected_error_rate_reason"]
    assert found["auroc"] is not None
