"""Rules of a failed store are listed as not evaluated in every output, and never pass."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from gate_reports import named

from uqeval.errors import UsageError
from uqeval.gate import Address, FailedStore, Judgement, Limits, Rule, judge
from uqeval.gate.saved_verdicts import load_verdicts, of_stores
from uqeval.records import suggestions
from uqeval.records.lookup import addresses_in
from uqeval.report import verdicts
from uqeval.report.verdict_files import to_annotations, to_json, to_junit
from uqeval.report.verdict_table import to_markdown

FAILED = {"depth": FailedStore("depth.zarr: chunk 3 is damaged.", frozenset({"temporal"}))}


def rule(address: str, line: int, **limits: float) -> Rule:
    return Rule(Address.parse(address), Limits(id=f"R{line}", **limits), "gate.yaml", line)


def judged(*rules: Rule) -> Judgement:
    return judge([named()], rules, failed_stores=FAILED)


@pytest.mark.parametrize(
    ("address", "verdict_of", "lost"),
    [
        ("pavpu.pavpu", ["city"], []),
        ("city/pavpu.pavpu", ["city"], []),
        ("temporal.mtc", [], ["depth"]),
        ("depth/pavpu.pavpu", None, None),
        ("depth/temporal.mtc", [], ["depth"]),
    ],
)
def test_what_can_be_judged_is(
    address: str, verdict_of: list[str] | None, lost: list[str] | None
) -> None:
    demanded = rule(address, 1, min=0.0)
    if verdict_of is None:
        with pytest.raises(UsageError):
            judged(demanded)
        return
    found = judged(demanded)
    assert [own.address.store for own in found.verdicts] == verdict_of
    assert [own.address.store for own in found.not_evaluated] == lost
    assert found.passed == (not lost)


def test_a_store_that_did_not_open_may_have_any_metric() -> None:
    failed = {"depth": FailedStore("is gone.")}
    found = judge([named()], [rule("pavpu.pavpu", 1, min=0.0)], failed_stores=failed)
    assert [str(own.address) for own in found.not_evaluated] == ["depth/pavpu.pavpu"]


def test_every_output_lists_it(tmp_path: Path) -> None:
    found = judged(rule("pavpu.pavpu", 1, min=0.0), rule("temporal.mtc", 2, max=0.5))
    title = "[R2] depth/temporal.mtc: at most 0.5"
    assert verdicts.summary(found) == "gate incomplete: 1 passed, 0 failed, 1 not evaluated"
    text = to_markdown(found)
    assert "| not evaluated |" in text and "chunk 3 is damaged" in text
    (line,) = to_annotations(found)
    assert line.startswith("::error file=gate.yaml,line=2,") and "not evaluated: depth.zarr" in line
    root = ElementTree.fromstring(to_junit(found))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "0", "1")
    case = root.find("testsuite[@name='uqeval.depth']/testcase")
    assert case is not None and case.get("name") == title
    error = case.find("error")
    assert error is not None and error.get("type") == "not evaluated"
    file = tmp_path / "verdicts.json"
    file.write_text(to_json(found, {}))
    assert json.loads(file.read_text())["passed"] is False
    assert load_verdicts(file).not_evaluated == found.not_evaluated
    assert not of_stores(load_verdicts(file), {"city"}).not_evaluated


def test_a_rule_that_matches_no_report_has_no_store_in_outputs() -> None:
    found = judge([named()], [rule("pavpu.pavpu", 1, min=0.5), rule("pavpu.pavp", 2, min=0.5)])
    root = ElementTree.fromstring(to_junit(found))
    assert [suite.get("name") for suite in root] == ["uqeval.city", "uqeval"]
    assert [case.get("classname") for case in root.iter("testcase")] == ["uqeval.city", "uqeval"]
    assert "Did you mean pavpu.pavpu?\n" in to_markdown(found)


def test_a_failed_rule_is_said_first() -> None:
    found = judged(rule("pavpu.pavpu", 1, min=2.0), rule("temporal.mtc", 2, max=0.5))
    assert verdicts.summary(found) == "gate failed: 0 passed, 1 failed, 1 not evaluated"


def test_a_reason_does_not_repeat_the_place_of_its_rule() -> None:
    """Not even if the place has characters that a message escapes, or is long."""
    for file in ("gate\x1b.yaml", f"{'folder/' * 50}gate.yaml"):
        rules = [rule("pavpu.pavpu", 1, min=0.5), rule("pavpu.pavp", 2, min=0.5)]
        rules += [rule("pavpu.pavpu", 3, max_drop=0.1)]
        found = judge([named()], [replace(own, file=file) for own in rules])
        starts = ("the address matches nothing in the reports: ", "max_drop needs a baseline; ")
        for own, start in zip(found.not_evaluated, starts, strict=True):
            assert own.why.startswith(start)


def test_all_rules_are_named_if_none_can_be_judged() -> None:
    wrong = ("pavpu.pavpuu", "failure.aurok", "calibration.ecee")
    with pytest.raises(UsageError) as caught:
        judged(*(rule(address, line, min=0.1) for line, address in enumerate(wrong, 1)))
    for line, address in enumerate(wrong, 1):
        assert f"gate.yaml:{line}: {address}: the address matches nothing" in str(caught.value)
    many = [rule(f"pavpu.pavpu{n}", n, min=0.1) for n in range(1, 31)]
    with pytest.raises(UsageError, match="There are 10 more"):
        judged(*many)


def test_the_addresses_of_a_report_are_found_once_for_all_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each rule that matches nothing names the nearest address, of thousands in a report."""
    found: list[str] = []

    def counted(key: str, record: Any) -> Any:
        found.append(key)
        return addresses_in(key, record)

    monkeypatch.setattr(suggestions, "addresses_in", counted)

    def calls(rules: int) -> int:
        found.clear()
        wrong = [rule(f"pavpu.pavpu{n}", n, min=0.1) for n in range(2, rules + 2)]
        outcome = judged(rule("pavpu.pavpu", 1, min=0.0), *wrong)
        assert all("Did you mean pavpu.pavpu?" in own.why for own in outcome.not_evaluated)
        assert len(outcome.not_evaluated) == rules
        return len(found)

    assert calls(6) == calls(2) > 0
