"""Verdicts for other programs: JSON with a checksum, JUnit XML and GitHub annotations.

JUnit is for CI systems: one suite per report, one test case per verdict. Annotations are log lines
that GitHub shows at the lines of the rules.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from uqeval.disk.files import as_given, json_text
from uqeval.errors import printable
from uqeval.gate import Address, Judgement, NotEvaluated, Rule, Verdict
from uqeval.gate.saved_verdicts import KEY, SCHEMA, checksum_of
from uqeval.report.verdicts import (
    STATUSES,
    by_store,
    message,
    outcome,
    title,
    unjudged_title,
    with_id,
)

#: The statuses of verdicts that JUnit shows as skipped if they let the gate pass.
_SKIPPED = ("waived", "inconclusive")
#: Characters that XML forbids, even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(judgement: Judgement) -> str:
    """Return the XML, waived verdicts first. Waived test cases, and inconclusive ones that pass,
    are skipped.
    """
    lost = judgement.not_evaluated
    counts = _counts(judgement.verdicts, len(lost))
    root = ElementTree.Element("testsuites", counts | {"name": "uqeval gate"})
    groups = by_store(judgement)
    for store in dict.fromkeys([*groups, *(unjudged.address.store for unjudged in lost)]):
        verdicts = groups.get(store or "", ())
        errors = [unjudged for unjudged in lost if unjudged.address.store == store]
        suite = ElementTree.SubElement(
            root, "testsuite", _counts(verdicts, len(errors)) | {"name": _suite(store)}
        )
        for verdict in verdicts:
            _case(suite, store, verdict)
        for unjudged in errors:
            _error(suite, store, unjudged)
    if judgement.warnings and len(root):  # of the gate: a report cannot have them all
        texts = [_legal(f"warning: {text}") for text in judgement.warnings]
        ElementTree.SubElement(root[0], "system-err").text = "\n".join(texts)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(store: str | None) -> str:
    """Return the name of the suite of a report; None: of rules that match no report."""
    return _legal("uqeval" if store is None else f"uqeval.{store}")


def _case(suite: ElementTree.Element, store: str | None, verdict: Verdict) -> None:
    name = with_id(verdict.rule, title(verdict))
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": _suite(store), "name": _legal(name), "time": "0"},
    )
    properties = ElementTree.SubElement(case, "properties")
    for key, value in _about(verdict).items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": _legal(value)})
    text = _legal(message(verdict))
    if verdict.counts_as == "fail":
        kind = "undefined" if verdict.reason and not verdict.inconclusive else verdict.status
        if verdict.status == "inconclusive":  # no limit is broken: say why it is a failure
            text = f"{outcome(verdict)}: {text}"
        failure = ElementTree.SubElement(case, "failure", {"type": kind, "message": text})
        failure.text = _with_place(f"{name}: {text}", verdict.rule)
    elif verdict.status in _SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": f"{verdict.status}: {text}"})
    else:
        ElementTree.SubElement(case, "system-out").text = text


def _about(verdict: Verdict) -> dict[str, str]:
    """Return the properties of a test case: the rule's id, the units, and the waiver."""
    limits = verdict.rule.limits
    properties = {"id": limits.id, "why": limits.why}
    if (units := verdict.units) is not None:
        defined = None if units.defined is None else str(units.defined)
        properties |= {
            "units": units.name,
            "units_drawn": str(units.drawn),
            "units_defined": defined,
        }
        if units.effective is not None:
            properties["effective_pairs"] = f"{units.effective:.3g}"
    if limits.waive is not None:
        waive = limits.waive.for_kind(verdict.kind).record()
        properties |= {
            f"waive_{key}": None if units is None else str(units) for key, units in waive.items()
        }
    return {key: value for key, value in properties.items() if value}


def _error(suite: ElementTree.Element, store: str | None, lost: NotEvaluated) -> None:
    name = unjudged_title(lost)
    about = {"classname": _suite(store), "name": _legal(name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", about)
    text = _legal(lost.why)
    error = ElementTree.SubElement(case, "error", {"type": "not evaluated", "message": text})
    error.text = _with_place(f"{name}: not evaluated: {lost.why}", lost.rule)


def _counts(verdicts: Sequence[Verdict], errors: int) -> dict[str, str]:
    failed = sum(verdict.counts_as == "fail" for verdict in verdicts)
    skipped = sum(v.status in _SKIPPED and v.counts_as == "pass" for v in verdicts)
    tests = len(verdicts) + errors
    return {
        "tests": str(tests),
        "failures": str(failed),
        "errors": str(errors),
        "skipped": str(skipped),
    }


def _with_place(text: str, rule: Rule) -> str:
    """Return a text, and the place of a rule in a second line."""
    return f"{_legal(text)}\n{_legal(f'{rule.file}:{rule.line}')}"


def _legal(text: str) -> str:
    """Return a text in one line that XML allows, without marks that change its direction."""
    return _ILLEGAL.sub("\ufffd", printable(text))


def to_json(judgement: Judgement, files: Mapping[str, Any]) -> str:
    """Return the verdicts as strict JSON with a checksum; `files`: records of the files, by key."""
    record = {
        "schema": SCHEMA,
        "passed": judgement.passed,
        "today": None if judgement.today is None else judgement.today.isoformat(),
        **files,
        "counts": {status: judgement.count(status) for status, _ in STATUSES}
        | {"not_evaluated": len(judgement.not_evaluated)},
        "verdicts": [_record(verdict) for verdict in judgement.verdicts],
        "not_evaluated": [_unjudged(lost) for lost in judgement.not_evaluated],
        "warnings": list(judgement.warnings),
    }
    record = json.loads(as_given(json.dumps(record, allow_nan=False)))
    return json_text(record | {KEY: checksum_of(record)})


def _unjudged(lost: NotEvaluated) -> dict[str, Any]:
    fields = {"limits": dict(lost.rule.limits.kinds_and_values()), "reason": lost.why}
    return _named_rule(lost.rule) | _address_fields(lost.address) | fields


def _named_rule(rule: Rule) -> dict[str, Any]:
    limits = rule.limits
    waive = None if limits.waive is None else limits.waive.record()
    named = {"id": limits.id, "why": limits.why, "waive": waive, "rule": str(rule.address)}
    return named | {"file": rule.file, "line": rule.line}


def _address_fields(address: Address) -> dict[str, Any]:
    return {"store": address.store, "address": str(address)}


def _record(verdict: Verdict) -> dict[str, Any]:
    fields = dataclasses.asdict(dataclasses.replace(verdict, rule=None, address=None))  # type: ignore[arg-type]
    del fields["rule"], fields["address"]
    if (interval := fields["interval"]) is not None:
        counted = interval["units"]
        fields["interval"] = interval | {"unit": counted["name"], "units": counted["defined"]}
    alone = dataclasses.replace(verdict.rule, limits=verdict.rule.limits.only(verdict.kind))
    return _named_rule(alone) | _address_fields(verdict.address) | fields


#: GitHub shows ten errors and ten warnings of a step; the last line counts the rest.
_MOST = 9


def to_annotations(judgement: Judgement) -> list[str]:
    """Return one line for each rule that is waived, not evaluated, failed or inconclusive."""
    lost = [
        (unjudged.rule, unjudged_title(unjudged), f"not evaluated: {unjudged.why}")
        for unjudged in judgement.not_evaluated
    ]
    failed = [v for v in judgement.verdicts if v.counts_as == "fail"]
    doubtful = [v for v in judgement.verdicts if v.status == "inconclusive" and v not in failed]
    waived = [_finding_of(v) for v in judgement.verdicts if v.status == "waived"]
    errors = [*lost, *map(_finding_of, failed)]
    of_gate = [(None, "uqeval gate", text) for text in judgement.warnings]
    return [
        *_lines("notice", waived),
        *_lines("error", errors),
        *_lines("warning", [*map(_finding_of, doubtful), *of_gate]),
    ]


def _finding_of(verdict: Verdict) -> tuple[Rule, str, str]:
    """Return the rule of a verdict, its title, and the finding."""
    name = with_id(verdict.rule, title(verdict))
    return verdict.rule, name, f"{outcome(verdict)}: {message(verdict)}"


def _lines(level: str, findings: Sequence[tuple[Rule | None, str, str]]) -> Iterator[str]:
    """Yield the annotations of rules with their lines, and of the whole gate (rule None)."""
    for rule, name, text in findings[:_MOST]:
        place = "" if rule is None else f"file={_property(rule.file)},line={rule.line},"
        yield f"::{level} {place}title={_property(name)}::{_data(text)}"
    if len(findings) > _MOST:
        yield f"::{level} title=uqeval gate::and {len(findings) - _MOST} more"


def _data(text: str) -> str:
    """Return text for the part after the second `::`, with control characters escaped."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
