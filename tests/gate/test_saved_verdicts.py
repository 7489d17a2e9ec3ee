"""Verdicts written as JSON and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gate_reports import named, rules

from uqeval.errors import StoreError
from uqeval.gate import Units, judge
from uqeval.gate.saved_verdicts import load_verdicts, of_stores
from uqeval.report import verdicts as words
from uqeval.report.verdict_files import to_json
from uqeval.report.verdict_table import table

RULES = """
pavpu.pavpu: {min: 0.7, max: 0.75, id: PER-1, why: it is asked for}
pavpu.per_class."traffic.light".pavpu: {min: 0.5}
pavpu.pavpu@weather=night: {min: 0.1}
pavpu[window=7].pavpu: {min: 0.6}
city/pavpu.pavpu: {min: 0.1, confidence: 0.95}
"""


def saved(folder: Path) -> Path:
    judgement = judge((named(),), rules(folder, RULES))
    path = folder / "verdicts.json"
    path.write_text(to_json(judgement, {"report": "r"}), "utf-8")
    return path


def test_what_is_read_says_what_was_written(tmp_path: Path) -> None:
    judgement = judge((named(),), rules(tmp_path, RULES))
    found = load_verdicts(saved(tmp_path))
    assert table(found) == table(judgement)
    assert words.summary(found) == words.summary(judgement)
    assert words.findings(found) == words.findings(judgement)
    assert of_stores(found, {"city"}).verdicts == found.verdicts
    assert of_stores(found, {"town"}).verdicts == ()


def test_verdicts_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    """They have the number of units in the interval alone, no waivers and no day."""
    text = "pavpu.pavpu@weather=night: {min: 0.1, confidence: 0.9}"
    judgement = judge((named(),), rules(tmp_path, text))
    record = json.loads(to_json(judgement, {}))
    del record["today"], record["checksum"]
    for verdict in record["verdicts"]:
        del verdict["units"], verdict["waive"], verdict["waiver"]
        verdict["interval"] |= {"unit": "group", "units": 4}
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps(record), "utf-8")
    (verdict,) = load_verdicts(path).verdicts
    assert verdict.interval is not None and verdict.units is None
    assert verdict.interval.units == Units("group", 4, 4) and verdict.interval.low == 0.4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "uqeval.report/1"}, "schema"),
        ({"verdicts": [{}]}, "is not a file of verdicts"),
        ({"verdicts": None}, "is not a file of verdicts"),
        ({"verdicts": [1]}, "is not a file of verdicts"),
    ],
)
def test_invalid_verdicts(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = saved(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(StoreError, match=says):
        load_verdicts(path)
    path.write_text("{", "utf-8")
    with pytest.raises(StoreError, match="is not JSON"):
        load_verdicts(path)
    path.unlink()
    with pytest.raises(StoreError, match="No such file"):
        load_verdicts(path)
