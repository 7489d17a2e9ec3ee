"""Waivers: their last day, the values that they cover, and invalid waivers."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gate_reports import named, rules

from uqeval.errors import UsageError
from uqeval.gate import FailedStore, Judgement, judge
from uqeval.gate.saved_verdicts import load_verdicts
from uqeval.gate.waivers import UNNEEDED, Waiver, use_of
from uqeval.report import verdicts as words
from uqeval.report.verdict_files import to_annotations, to_json, to_junit
from uqeval.report.verdict_table import table

DAY = date(2027, 1, 31)


def judged(folder: Path, limits: str, more: str = "", day: date = DAY, **options: str) -> Judgement:
    """The verdict on `pavpu.pavpu`, which is 0.8, interval 0.75 to 0.85."""
    given = {"until": "2027-01-31", "by": "A. Keller", "why": "camera B"} | options
    waive = ", ".join(f"{key}: {value}" for key, value in given.items())
    text = f"pavpu.pavpu: {{{limits}, waive: {{{waive}}}}}\n{more}"
    return judge([named()], rules(folder, text), today=day)


@pytest.mark.parametrize(
    ("limits", "options", "day", "status", "says"),
    [
        ("min: 0.9", {}, DAY, "waived", "by A. Keller until 2027-01-31: camera B; otherwise it "),
        ("min: 0.9", {}, date(2027, 2, 1), "fail", "until 2027-01-31, and today is 2027-02-01"),
        ("min: 0.9", {"at_least": "0.8"}, DAY, "waived", "for values of at least 0.8"),
        ("min: 0.9", {"at_least": "0.81"}, DAY, "fail", "at least 0.81 only, and the value is 0.8"),
        ("max: 0.7", {"at_most": "0.8"}, DAY, "waived", "for values of at most 0.8"),
        ("max: 0.7", {"at_most": "0.79"}, DAY, "fail", "covers values of at most 0.79 only"),
        ("min: 0.8", {}, DAY, "pass", "not needed"),
        ("min: 0.8", {}, date(2028, 1, 1), "pass", "not needed"),
        ("min: 0.78, confidence: 0.95", {}, DAY, "waived", "inconclusive and counts as fail"),
        ("min: 0.78, confidence: 0.95", {}, date(2027, 2, 1), "inconclusive", "expired"),
        ("min: 0.9, confidence: 0.95", {"at_least": "0.7"}, DAY, "waived", "otherwise it fails"),
    ],
)
def test_when_a_waiver_holds(
    tmp_path: Path, limits: str, options: dict[str, str], day: date, status: str, says: str
) -> None:
    found = judged(tmp_path, limits, day=day, **options)
    (verdict,) = found.verdicts
    assert verdict.status == status
    assert found.passed == (status in ("waived", "pass"))
    assert verdict.waiver is not None and says in verdict.waiver.note
    ((_, facts),) = words.findings(found)
    assert says in "; ".join(facts)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.8123456789012345, "0.8123"), (0.8000123456789, "0.80001")]
)
def test_a_value_beyond_a_waiver_has_as_many_digits_as_it_needs(value: float, shown: str) -> None:
    waiver = Waiver(until=DAY, by="A", why="B", at_most=0.8)
    use = use_of(waiver, "max", "fail", "fail", value, DAY)
    assert use.note.endswith(f"at most 0.8 only, and the value is {shown}")


def notes_by_place(found: Judgement) -> dict[tuple[str | None, str], str]:
    """The notes of the waivers, by store and kind of limit."""
    return {(v.address.store, v.kind): v.waiver.note for v in found.verdicts if v.waiver}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"a": 0.7, "b": 0.9}, "the waiver is not needed for b; a needs it"),
        ({"a": 0.7, "b": 0.9, "c": 0.7}, "the waiver is not needed for b; a, c need it"),
        ({"a": 0.9, "b": 0.9}, UNNEEDED),
    ],
)
def test_a_waiver_that_another_report_needs(
    tmp_path: Path, values: dict[str, float], says: str
) -> None:
    text = "pavpu.pavpu: {min: 0.8, waive: {until: 2027-01-31, by: A, why: B}}"
    reports = [named(name, value) for name, value in values.items()]
    found = judge(reports, rules(tmp_path, text), today=DAY)
    assert notes_by_place(found)["b", "min"] == says


def test_a_waiver_that_another_limit_needs(tmp_path: Path) -> None:
    notes = notes_by_place(judged(tmp_path, "min: 0.9, max: 0.95"))
    assert notes["city", "max"] == ("the waiver is not needed for city (max); city (min) needs it")


def test_a_waiver_that_a_report_which_was_not_evaluated_may_need(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0.8, waive: {until: 2027-01-31, by: A, why: B}}"
    failed = {"night": FailedStore("is gone.")}
    found = judge([named()], rules(tmp_path, text), failed_stores=failed, today=DAY)
    assert notes_by_place(found)["city", "min"] == (
        "the waiver is not needed for city; the rule was not evaluated for night"
    )


def test_undefined_values_are_not_waived(tmp_path: Path) -> None:
    text = "pavpu.phi: {min: 0, waive: {until: 2027-01-31, by: A, why: B}}"
    (verdict,) = judge([named()], rules(tmp_path, text), today=DAY).verdicts
    assert verdict.status == "fail" and verdict.waiver is not None
    assert "does not cover undefined values" in verdict.waiver.note


def test_what_is_not_evaluated_is_not_waived(tmp_path: Path) -> None:
    text = (
        "city/pavpu.pavpu: {min: 0}\ndepth/a.b: {min: 2, waive: {until: 2027-01-31, by: A, why: B}}"
    )
    failed = {"depth": FailedStore("is gone.")}
    found = judge([named()], rules(tmp_path, text), failed_stores=failed, today=DAY)
    assert len(found.not_evaluated) == 1 and not found.passed


def test_each_limit_has_its_own_bound(tmp_path: Path) -> None:
    """0.8 is above the most that is waived of `max`, not below the least of `min`."""
    text = "{min: 0.9, max: 0.95"
    found = judged(tmp_path, text[1:], at_least="0.7", at_most="0.99")
    assert [own.status for own in found.verdicts] == ["waived", "pass"]


def test_waived_first_in_every_output(tmp_path: Path) -> None:
    more = "pavpu.n_ac: {min: 8}\nfailure.auroc: {min: 0.5}\n"
    found = judged(tmp_path, "min: 0.9", more)
    assert words.summary(found) == "gate failed: 1 waived, 1 passed, 1 failed"
    assert table(found).texts[0][1] == "waived, until 2027-01-31"
    assert words.findings(found)[0][0] == "city/pavpu.pavpu: at least 0.9: waived:"
    assert to_annotations(found)[0].startswith("::notice ")
    case = next(ElementTree.fromstring(to_junit(found)).iter("testcase"))
    assert str(case.get("name")).startswith("city/pavpu.pavpu") and case.find("skipped") is not None
    file = tmp_path / "v.json"
    file.write_text(to_json(found, {}))
    record = json.loads(file.read_text())
    assert record["today"] == "2027-01-31" and record["verdicts"][0]["waive"] == {
        "until": "2027-01-31", "by": "A. Keller", "why": "camera B", "at_least": None,
        "at_most": None,
    }  # fmt: skip
    again = load_verdicts(file)
    assert table(again) == table(found) and again.today == DAY
    assert words.findings(again) == words.findings(found)


@pytest.mark.parametrize(
    ("waive", "says"),
    [
        ("{by: A, why: B}", "lacks the key 'until'"),
        ("{until: 2027-01-31, by: A}", "lacks the key 'why'"),
        ("{until: 2027-01-31, why: B}", "lacks the key 'by'"),
        ("{until: 2027-01-31, by: A, why: ' '}", "waive.why"),
        ("{until: 2027-02-30, by: A, why: B}", "there is no such day"),
        ("{until: 20270131, by: A, why: B}", "expected a day such as 2027-01-31"),
        ("{until: 2027-W05-1, by: A, why: B}", "expected a day such as 2027-01-31"),
        ("{until: 2027-01-31T00:00, by: A, why: B}", "expected a day such as 2027-01-31"),
        ("{until: soon, by: A, why: B}", "'soon'; expected a day"),
        ("{until: 2027-01-31, by: A, why: B, utnil: 1}", "unknown key; did you mean 'until'"),
        ("{until: 2027-01-31, by: A, why: B, at_most: 1}", "use at_least"),
        ("{until: 2027-01-31, by: A, why: B, at_least: 0.95}", "is above min 0.9"),
        ("{until: 2027-01-31, by: A, why: B, at_least: .nan}", "finite number"),
        ("yes", "waive"), ("[]", "waive"),
    ],
)  # fmt: skip
def test_what_is_no_waiver(tmp_path: Path, waive: str, says: str) -> None:
    with pytest.raises(UsageError, match=r"rules\.yaml:1: pavpu\.pavpu") as caught:
        rules(tmp_path, f"pavpu.pavpu: {{min: 0.9, waive: {waive}}}")
    assert says in str(caught.value)


def test_a_bound_of_the_wrong_side(tmp_path: Path) -> None:
    waive = "waive: {until: 2027-01-31, by: A, why: B, at_least: 0.1}"
    with pytest.raises(UsageError, match="use at_most"):
        rules(tmp_path, f"pavpu.pavpu: {{max: 0.9, {waive}}}")
    most = waive.replace("at_least: 0.1", "at_most: 0.8")
    with pytest.raises(UsageError, match=r"is below max 0\.9"):
        rules(tmp_path, f"pavpu.pavpu: {{max: 0.9, {most}}}")
