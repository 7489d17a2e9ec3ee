"""Verdicts as JUnit XML, which every CI system shows: a suite a report, a test case a verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from uqeval.report.verdicts import by_store, message, title, unjudged_title

if TYPE_CHECKING:
    from uqeval.gate import Judgement, NotEvaluated, Verdict

#: Characters that no XML file may hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(judgement: Judgement) -> str:
    """The XML. An inconclusive verdict that passes is a skipped test, one that fails a failure."""
    lost = judgement.not_evaluated
    counts = _counts(judgement.verdicts, len(lost))
    root = ElementTree.Element("testsuites", counts | {"name": "uqeval gate"})
    groups = by_store(judgement)
    for store in dict.fromkeys([*groups, *(str(own.address.store) for own in lost)]):
        verdicts = groups.get(store, ())
        errors = [own for own in lost if str(own.address.store) == store]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            _counts(verdicts, len(errors)) | {"name": _legal(f"uqeval.{store}")},
        )
        for verdict in verdicts:
            _case(suite, store, verdict)
        for own in errors:
            _error(suite, store, own)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ElementTree.Element, store: str, verdict: Verdict) -> None:
    limits = verdict.rule.limits
    name = f"[{limits.id}] {title(verdict)}" if limits.id else title(verdict)
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": _legal(f"uqeval.{store}"), "name": _legal(name), "time": "0"},
    )
    told = {"id": limits.id, "why": limits.why}
    if any(told.values()):
        properties = ElementTree.SubElement(case, "properties")
        for key, value in told.items():
            if value:
                ElementTree.SubElement(
                    properties, "property", {"name": key, "value": _legal(value)}
                )
    said = _legal(message(verdict))
    if verdict.counts_as == "fail":
        kind = "undefined" if verdict.reason else verdict.status
        failure = ElementTree.SubElement(case, "failure", {"type": kind, "message": said})
        failure.text = _legal(
            f"{name}: {message(verdict)}\n{verdict.rule.file}:{verdict.rule.line}"
        )
    elif verdict.status == "inconclusive":
        ElementTree.SubElement(case, "skipped", {"message": f"inconclusive: {said}"})
    else:
        ElementTree.SubElement(case, "system-out").text = said


def _error(suite: ElementTree.Element, store: str, lost: NotEvaluated) -> None:
    name = unjudged_title(lost)
    about = {"classname": _legal(f"uqeval.{store}"), "name": _legal(name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", about)
    said = _legal(lost.why)
    error = ElementTree.SubElement(case, "error", {"type": "not evaluated", "message": said})
    error.text = _legal(f"{name}: not evaluated: {lost.why}\n{lost.rule.file}:{lost.rule.line}")


def _counts(verdicts: Sequence[Verdict], errors: int) -> dict[str, str]:
    failed = sum(verdict.counts_as == "fail" for verdict in verdicts)
    skipped = sum(v.status == "inconclusive" and v.counts_as == "pass" for v in verdicts)
    tests = len(verdicts) + errors
    return {"tests": str(tests), "failures": str(failed), "errors": str(errors),
            "skipped": str(skipped)}  # fmt: skip


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
