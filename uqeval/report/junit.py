"""Verdicts as JUnit XML for CI systems: one suite per report, one test case per verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from uqeval.report.verdicts import by_store, message, title, unjudged_title, with_id

if TYPE_CHECKING:
    from uqeval.gate import Judgement, NotEvaluated, Verdict

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
    for store in dict.fromkeys([*groups, *(str(unjudged.address.store) for unjudged in lost)]):
        verdicts = groups.get(store, ())
        errors = [unjudged for unjudged in lost if str(unjudged.address.store) == store]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            _counts(verdicts, len(errors)) | {"name": _legal(f"uqeval.{store}")},
        )
        for verdict in verdicts:
            _case(suite, store, verdict)
        for unjudged in errors:
            _error(suite, store, unjudged)
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ElementTree.Element, store: str, verdict: Verdict) -> None:
    name = with_id(verdict.rule, title(verdict))
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": _legal(f"uqeval.{store}"), "name": _legal(name), "time": "0"},
    )
    properties = ElementTree.SubElement(case, "properties")
    for key, value in _about(verdict).items():
        ElementTree.SubElement(properties, "property", {"name": key, "value": _legal(value)})
    text = _legal(message(verdict))
    if verdict.counts_as == "fail":
        kind = "undefined" if verdict.reason and not verdict.inconclusive else verdict.status
        failure = ElementTree.SubElement(case, "failure", {"type": kind, "message": text})
        failure.text = _legal(
            f"{name}: {message(verdict)}\n{verdict.rule.file}:{verdict.rule.line}"
        )
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


def _error(suite: ElementTree.Element, store: str, lost: NotEvaluated) -> None:
    name = unjudged_title(lost)
    about = {"classname": _legal(f"uqeval.{store}"), "name": _legal(name), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", about)
    text = _legal(lost.why)
    error = ElementTree.SubElement(case, "error", {"type": "not evaluated", "message": text})
    error.text = _legal(f"{name}: not evaluated: {lost.why}\n{lost.rule.file}:{lost.rule.line}")


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


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
