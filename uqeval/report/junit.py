"""Verdicts as JUnit XML, which every CI system shows: a suite a report, a test case a verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from uqeval.report.verdicts import by_store, message, title

if TYPE_CHECKING:
    from uqeval.gate import Judgement, Verdict

#: Characters that no XML file may hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(judgement: Judgement) -> str:
    """The XML. An inconclusive verdict that passes is a skipped test, one that fails a failure."""
    root = ElementTree.Element("testsuites", _counts(judgement.verdicts) | {"name": "uqeval gate"})
    for store, verdicts in by_store(judgement).items():
        suite = ElementTree.SubElement(
            root, "testsuite", _counts(verdicts) | {"name": _legal(f"uqeval.{store}")}
        )
        for verdict in verdicts:
            _case(suite, store, verdict)
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


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    failed = sum(verdict.counts_as == "fail" for verdict in verdicts)
    skipped = sum(v.status == "inconclusive" and v.counts_as == "pass" for v in verdicts)
    return {"tests": str(len(verdicts)), "failures": str(failed), "errors": "0",
            "skipped": str(skipped)}  # fmt: skip


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
