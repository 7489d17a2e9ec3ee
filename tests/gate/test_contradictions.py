"""Files of verdicts that were edited contradict themselves, and are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gate_reports import named

from uqeval.errors import StoreError
from uqeval.gate import Address, Limits, Rule, judge
from uqeval.gate.saved_verdicts import load_verdicts
from uqeval.report.verdict_files import to_json


def saved(path: Path, change: Any) -> Path:
    """Verdicts of two limits, one of which fails, with a change to the record."""
    limits = [Limits(min=0.0, id="a"), Limits(max=-1.0, id="b")]  # type: ignore[call-arg]
    rules = [Rule(Address.parse("pavpu.pavpu"), own, "gate.yaml", 1) for own in limits]
    record = json.loads(to_json(judge([named()], rules), {}))
    change(record, *record["verdicts"])
    path.write_text(json.dumps(record))
    return path


def edit(which: int, **fields: Any) -> Any:
    return lambda record, *own: own[which].update(fields)


INTERVAL = {"level": 0.9, "low": -1.0, "high": 1.0, "method": "expanded", "unit": "item",
            "units": 5, "approximate": False, "error": 0.1}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (edit(1, status="pass", counts_as="pass"), "contradicts itself: it is 'pass'"),
        (edit(1, counts_as="pass"), "it is 'fail' and counts as 'pass'"),
        (edit(0, value=-3.0), "-3 against min 0 is not"),
        (edit(0, interval=INTERVAL), "interval"),
        (edit(1, status="waived", counts_as="pass"), None),
        (
            lambda record, *own: record.update(passed=True),
            "`passed` is True, but the verdicts give False",
        ),
    ],
)
def test_edited_verdicts(tmp_path: Path, change: Any, says: str | None) -> None:
    path = saved(tmp_path / "v.json", change)
    with pytest.raises(StoreError, match=says):
        load_verdicts(path)


def test_unedited_verdicts(tmp_path: Path) -> None:
    found = load_verdicts(saved(tmp_path / "v.json", lambda *own: None))
    assert [own.status for own in found.verdicts] == ["pass", "fail"] and not found.passed


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(("now", "passes"), [(0.79, True), (0.7, False), (0.9, True)])
def test_a_drop_is_held_against_the_change(
    tmp_path: Path, relative: bool, now: float, passes: bool
) -> None:
    """`change` is the value minus the baseline: a drop is negative."""
    limits = Limits(**{"max_drop_relative" if relative else "max_drop": 0.05})
    rules = [Rule(Address.parse("pavpu.pavpu"), limits, "gate.yaml", 1)]
    judgement = judge([named(value=now)], rules, [named(value=0.8)])
    path = tmp_path / "v.json"
    path.write_text(to_json(judgement, {}))
    (verdict,) = load_verdicts(path).verdicts
    assert (verdict.status == "pass") == passes and load_verdicts(path).passed == passes
    record = json.loads(path.read_text())
    status = "fail" if passes else "pass"
    record["verdicts"][0].update(status=status, counts_as=status)
    path.write_text(json.dumps(record))
    with pytest.raises(StoreError, match=f"it is '{status}', but .* against max_drop"):
        load_verdicts(path)
