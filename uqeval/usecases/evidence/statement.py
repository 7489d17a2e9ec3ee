"""The in-toto Statement v1: which files the results are of, and which tests passed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from uqeval.disk.files import json_digest, json_text
from uqeval.report.verdicts import demand_of
from uqeval.usecases.evidence.collecting import Evidence

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
#: A store is a folder or a remote object: its digest is uqeval's fingerprint, no file's SHA-256.
FINGERPRINT = "uqevalFingerprint"


def name_of(verdict: Mapping[str, Any]) -> str:
    """Return the address of a rule after its id: `[PER-17] city/calibration.ece`."""
    rule_id = f"[{verdict['id']}] " if verdict.get("id") else ""
    return f"{rule_id}{verdict.get('address')}"


def title_of(verdict: Mapping[str, Any]) -> str:
    """Return the title of a verdict: `[PER-17] city/calibration.ece: at most 0.02`."""
    return f"{name_of(verdict)}: {demand_of(verdict['kind'], verdict['limit'])}"


def sorted_tests(evidence: Evidence) -> dict[str, list[str]]:
    """Return the titles of all tests by outcome: passed, warned, failed."""
    tests: dict[str, list[str]] = {"passed": [], "warned": [], "failed": []}
    record = evidence.verdicts or {}
    for verdict in record.get("verdicts", []):
        tests[outcome_of(verdict)].append(title_of(verdict))
    for lost in record.get("not_evaluated") or []:
        tests["failed"].append(f"{name_of(lost)}: not evaluated")
    passed = evidence.selftest.get("result") == "PASSED"
    tests["passed" if passed else "failed"].append("uqeval selftest")
    for name in evidence.reports:
        verification = evidence.verifications.get(name)
        title = f"uqeval verify {name}"
        if verification is None:
            tests["warned"].append(f"{title}: not verified")
        elif verification.get("result") != "PASSED":
            tests["failed"].append(title)
        elif keys := verification.get("not_recomputed"):
            tests["warned"].append(f"{title}: not recomputed: {', '.join(keys)}")
        else:
            tests["passed"].append(title)
    return tests


def outcome_of(verdict: Mapping[str, Any]) -> str:
    """Return whether a verdict counts as passed, warned (waived, or let pass) or failed."""
    status = verdict.get("status")
    if status == "pass":
        return "passed"
    return "warned" if status == "waived" or verdict.get("counts_as") == "pass" else "failed"


def waivers_of(evidence: Evidence) -> list[dict[str, Any]]:
    """Return each waived test with its value, who has waived it, until when and why."""
    return [
        {"test": title_of(verdict), "value": verdict.get("value")}
        | (verdict["waive"] if isinstance(verdict.get("waive"), dict) else {})
        for verdict in (evidence.verdicts or {}).get("verdicts", [])
        if verdict.get("status") == "waived"
    ]


def result_of(tests: Mapping[str, list[str]]) -> str:
    """Return PASSED, WARNED or FAILED."""
    return "FAILED" if tests["failed"] else "WARNED" if tests["warned"] else "PASSED"


def subjects_of(evidence: Evidence, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return the files and stores that the statement is about, each with its digest."""
    subjects: list[dict[str, Any]] = [
        {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}
        for name, data in files.items()
    ]
    subjects += [_file(f"states/{file.name}", file.sha256) for file in evidence.states.values()]
    if evidence.rules_file is None and evidence.rules_sha256 is not None:
        subjects.append(_file("rules", evidence.rules_sha256))
    names = {subject["name"] for subject in subjects}
    for report in evidence.reports.values():
        for role, store in stores_of(report.inputs):
            name = f"{role}: {store.get('path')}"
            # A web server may not tell enough for a fingerprint; a digest must not be empty.
            fingerprint = store.get("fingerprint") or "unknown"
            store_subject = {"name": name, "digest": {FINGERPRINT: str(fingerprint)}}
            if store_subject not in subjects:
                subjects.append(
                    store_subject
                    if name not in names
                    else store_subject | {"name": f"{name} (other)"}
                )
                names.add(name)
    return subjects


def stores_of(inputs: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the stores of a report by role."""
    stores = [("predictions", store) for store in inputs.get("predictions") or []]
    roles = ("frames", "labels", "target", "reference")
    stores += [(role, inputs[role]) for role in roles if inputs.get(role)]
    return stores + [("flow", store) for store in inputs.get("flow") or []]


def _file(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}


def statement(evidence: Evidence, files: Mapping[str, bytes]) -> bytes:
    """Return the statement as JSON; `files`: the other files of the evidence by name."""
    tests = sorted_tests(evidence)
    configuration = [
        _file(f"settings of {name}", json_digest(report.settings))
        for name, report in evidence.reports.items()
    ]
    if evidence.rules_sha256 is not None:
        configuration.insert(0, _file("rules", evidence.rules_sha256))
    record = {
        "_type": TYPE,
        "subject": subjects_of(evidence, files),
        "predicateType": PREDICATE,
        "predicate": {
            "result": result_of(tests),
            "configuration": configuration,
            "passedTests": tests["passed"],
            "warnedTests": tests["warned"],
            "failedTests": tests["failed"],
            **({"waivers": waived} if (waived := waivers_of(evidence)) else {}),
        },
    }
    return json_text(record).encode()
