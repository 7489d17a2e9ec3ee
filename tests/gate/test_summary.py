"""The one line that sums up a gate says what decided."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from uqeval.gate import Address, Judgement, Limits, Rule
from uqeval.gate.verdict import Status, Verdict
from uqeval.gate.waivers import Kind
from uqeval.records.resampling import Interval, Mover
from uqeval.report.terminal import fitted
from uqeval.report.verdict_files import to_annotations, to_json, to_junit
from uqeval.report.verdict_table import table, to_markdown
from uqeval.report.verdicts import sentences, summary


def judgement(*statuses: Status, forgiven: int = 0) -> Judgement:
    """Verdicts of these statuses; the first `forgiven` inconclusive ones count as pass."""
    verdicts = []
    for status in statuses:
        passes = status in ("pass", "waived") or (status == "inconclusive" and forgiven > 0)
        forgiven -= status == "inconclusive"
        address = Address.parse("city/pavpu.pavpu")
        rule = Rule(address, Limits(min=0.5, confidence=0.95), "gate.yaml", 1)
        counts = "pass" if passes else "fail"
        verdicts.append(Verdict(rule, address, "min", 0.5, 0.6, status, counts))  # type: ignore[arg-type]
    return Judgement(tuple(verdicts))


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (judgement("pass", "inconclusive", "pass"),
         "gate not passed: 1 of 3 verdicts is inconclusive and counts as fail "
         "(2 passed, 0 failed)"),
        (judgement("inconclusive"),
         "gate not passed: 1 of 1 verdict is inconclusive and counts as fail "
         "(0 passed, 0 failed)"),
        (judgement("waived", "inconclusive", "inconclusive"),
         "gate not passed: 2 of 3 verdicts are inconclusive and count as fail "
         "(1 waived, 0 passed, 0 failed)"),
        (judgement("inconclusive", "inconclusive", forgiven=1),
         "gate not passed: 2 of 2 verdicts are inconclusive and 1 of these counts as fail "
         "(0 passed, 0 failed)"),
        (judgement("pass", "inconclusive", forgiven=1),
         "gate passed: 1 passed, 0 failed, 1 inconclusive"),
        (judgement("fail", "inconclusive"), "gate failed: 0 passed, 1 failed, 1 inconclusive"),
    ],
)  # fmt: skip
def test_the_line_says_what_decided(found: Judgement, line: str) -> None:
    assert summary(found) == line
    assert to_markdown(found).startswith(f"## uqeval {line}\n")


@pytest.mark.parametrize(
    ("limit", "demanded"),
    [(0.00001, "0.00001"), (0.5, "0.5"), (20.0, "20"), (1500, "1500"), (-0.0, "0"),
     (1e-300, "1e-300"), (1e300, "1e+300"), (0.1 + 0.2, "0.30000000000000004")],
)  # fmt: skip
def test_a_limit_has_all_digits_and_is_written_as_a_value(limit: float, demanded: str) -> None:
    verdict = replace(judgement("fail").verdicts[0], kind="max", limit=limit, value=0.00002)
    row = to_markdown(Judgement((verdict,)))
    assert f"| at most {demanded} |" in row and "| 0.00002" in row


@pytest.mark.parametrize(
    ("limit", "demanded"),
    [(0.01, "1 %"), (0.07, "7 %"), (1, "100 %"), (9.5, "950 %"), (1e-5, "0.001 %"), (0, "0 %"),
     (0.123456789, "12.3456789 %"), (-0.1, "-10 %")],
)  # fmt: skip
def test_a_relative_limit_and_change_are_in_percent_in_all_texts(
    limit: float, demanded: str
) -> None:
    kind: Kind = "max_rise_relative"
    limits = Limits(**{kind: limit}, confidence=0.95)
    verdict = replace(
        judgement("fail").verdicts[0], kind=kind, limit=limit, baseline=0.1, change=0.6601,
        rule=Rule(Address.parse("city/pavpu.pavpu"), limits, "gate.yaml", 1),
        interval=Interval(0.95, 0.5, 0.7),
    )  # fmt: skip
    found = Judgement((verdict,))
    texts = [to_markdown(found), to_junit(found), *to_annotations(found), *sentences(verdict)]
    asked = f"rise at most {demanded} of the baseline"
    markdown, junit, annotation, *facts = (text.replace("%25", "%") for text in texts)
    assert asked in markdown and asked in junit and asked in annotation
    assert "a change of +66.0 % of it" in facts[0] and "| +66.0 %" in markdown
    assert facts[1] == "interval of the change at level 0.95: +50.0000 % to +70.0000 %"
    assert not any("0.66" in text for text in texts)


@pytest.mark.parametrize(
    ("value", "baseline", "says"),
    [
        (0.3171, 0.29098612, "the value is 0.3171, 0.2910 in the baseline, a change of +0.0261"),
        (0.31712, 0.31714, "the value is 0.3171, 0.317140 in the baseline, a change of -0.00002"),
        (0.3171, 0.3171, "the value is 0.3171, 0.3171 in the baseline, a change of 0.0000"),
    ],
)
def test_a_value_and_its_baseline_have_as_many_digits(
    value: float, baseline: float, says: str
) -> None:
    verdict = judgement("fail").verdicts[0]
    changed = replace(
        verdict, kind="max_rise", limit=0.01, value=value, baseline=baseline,
        change=value - baseline,
    )  # fmt: skip
    assert sentences(changed)[0] == says


@pytest.mark.parametrize(
    ("kind", "limit", "change", "ends", "says"),
    [
        ("max_rise", 0.03, 0.0349, (0.01521, 0.0584), "+0.0349 [+0.0152, +0.0584]"),
        ("max_drop", 0.01, -0.0098, (-0.02, 0.00996), "-0.0098 [-0.0200, +0.00996]"),
        ("max_rise_relative", 0.07, 0.105, (0.07, 0.139), "+10.5 % [+7.0 %, +13.9 %]"),
        ("max_drop_relative", 0.1, -0.1, (-0.1004, 0.0), "-10.0 % [-10.04 %, 0.0 %]"),
        ("max_rise_relative", 0.05, 0.02, None, "+2.0 %"),
    ],
)  # fmt: skip
def test_an_interval_of_a_change_is_beside_the_change(
    kind: Kind, limit: float, change: float, ends: tuple[float, float] | None, says: str
) -> None:
    verdict = replace(
        judgement("fail").verdicts[0], kind=kind, limit=limit, value=0.3660, change=change,
        baseline=0.3311, interval=None if ends is None else Interval(0.95, *ends),
    )  # fmt: skip
    found = table(Judgement((verdict,)))
    heading = "change" if ends is None else "change, 95 % interval"
    assert dict(zip(found.columns, found.texts[0], strict=True))[heading] == says


def test_every_output_has_the_warnings_of_the_gate() -> None:
    found = replace(judgement("pass"), warnings=("no report of\u202e b",))
    root = ElementTree.fromstring(to_junit(found))
    assert [own.text for own in root.iter("system-err")] == [r"warning: no report of\u202e b"]
    assert to_annotations(found) == [r"::warning title=uqeval gate::no report of\u202e b"]
    assert r"- warning: no report of\\u202e b" in to_markdown(found)
    assert "no report of" in to_json(found, {})


def test_junit_has_no_marks_that_change_the_direction_of_text() -> None:
    verdict = judgement("fail").verdicts[0]
    rule = replace(verdict.rule, limits=Limits(min=0.5, id="\u202eR", why="\u2066w"))
    text = to_junit(Judgement((replace(verdict, rule=rule),)))
    assert r"\u202eR" in text and "\u202e" not in text and "\u2066" not in text


def test_an_influence_of_zero_has_no_minus() -> None:
    mover = Mover("a", change=-0.0, influence=0.0)
    verdict = replace(judgement("fail").verdicts[0], items=(mover,))
    assert "a (+0 since the baseline, +0 if removed)" in " ".join(sentences(verdict))


def test_junit_says_why_an_inconclusive_verdict_is_a_failure() -> None:
    root = ElementTree.fromstring(to_junit(judgement("inconclusive")))
    failure = next(root.iter("failure"))
    assert failure.get("type") == "inconclusive"
    assert str(failure.get("message")).startswith("inconclusive, counts as fail: the value is 0.6")
    assert "at least 0.5: inconclusive, counts as fail: the value is 0.6" in str(failure.text)


def test_a_terminal_of_100_columns_shows_the_verdict_with_its_value() -> None:
    found = judgement("inconclusive", "pass")
    (first, *_) = fitted(table(found), 100)
    assert {"verdict", "demand", "is"} <= {*first.columns}
    assert "inconclusive, counts as fail" in first.texts[0]
