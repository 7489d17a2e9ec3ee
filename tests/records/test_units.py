"""Units of a class, and of a video, without an interval: counted from the saved states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from saved_runs import CLASS_NAMES, C, stack

import uqeval
from uqeval.gate import Address, Judgement, Limits, Resampler, Rule, Units, judge
from uqeval.records.folder import load_reports
from uqeval.statistics import resampler


def judged(path: Path, address: str, answers: Resampler | None) -> Judgement:
    rule = Rule(Address.parse(address), Limits(min=0.001), "gate.yaml", 1)
    return judge(load_reports(str(path)), [rule], resampler=answers)


def test_units_of_a_class_are_the_items_that_contain_it(tmp_path: Path) -> None:
    probs, truth = stack(6)
    truth[4:][truth[4:] == C - 1] = 0
    probs[4:, :, C - 1] = 0
    probs[4:] /= probs[4:].sum(axis=2, keepdims=True)
    path = tmp_path / "report.json"
    states = tmp_path / "report.states.zip"
    report = uqeval.evaluate(
        {"probs": probs, "labels": truth, "class_names": CLASS_NAMES}, None, ["segmentation"],
        states=states,
    )  # fmt: skip
    report.save(path)
    name = report.results["segmentation"]["per_class"][C - 1]["name"]
    address = f'segmentation.per_class."{name}".iou'
    (found,) = judged(path, address, resampler()).verdicts
    assert found.units == Units("item", 6, 4)
    (found,) = judged(path, address, None).verdicts
    assert found.units == Units("item", 6, None)
    states.unlink()
    (found,) = judged(path, address, resampler()).verdicts
    assert found.units == Units("item", 6, None)  # nobody has counted them
    assert np.isfinite(float(found.value or 0))
