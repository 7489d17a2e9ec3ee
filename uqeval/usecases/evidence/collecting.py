"""Collect reports and their files; refuse files that do not belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uqeval.disk.files import MOST_REPORT, open_file, parse_json, read_bytes
from uqeval.disk.forms import Flag, formed
from uqeval.errors import FormError, StoreError, UsageError, cut, listed, quoted
from uqeval.gate.saved_verdicts import KEY, SCHEMA, judgement_of
from uqeval.gate.verdict import Judgement
from uqeval.records.folder import load_reports, states_beside
from uqeval.records.lookup import Score, find
from uqeval.records.report import Report
from uqeval.version import VERSION


@dataclass(frozen=True)
class Input:
    """A file of the evidence: its name there, its SHA-256 and its content."""

    name: str
    path: Path
    sha256: str
    data: bytes | None = None


@dataclass
class Evidence:
    """The checked content of the folder, before it is written."""

    reports: dict[str, Report]
    report_files: dict[str, Input]
    states: dict[str, Input] = field(default_factory=dict)
    verdicts: dict[str, Any] | None = None
    verdicts_file: Input | None = None
    rules_file: Input | None = None
    rules_sha256: str | None = None
    selftest: dict[str, Any] = field(default_factory=dict)
    verifications: dict[str, dict[str, Any]] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)

    def inputs(self) -> list[Path]:
        """Return the paths of all that was read."""
        files = [*self.report_files.values(), *self.states.values(), self.verdicts_file,
                 self.rules_file]  # fmt: skip
        return [file.path for file in files if file is not None]


def collect(
    reports: Sequence[str | Path], verdicts: str | Path | None = None,
    rules: str | Path | None = None,
) -> Evidence:  # fmt: skip
    """Read reports with their states, verdicts and rules.

    Raises `UsageError` for partial reports, for states and verdicts of other reports, and for rules
    that the verdicts are not of; `StoreError` for files that cannot be read.
    """
    evidence = _reports(reports)
    for name, report in evidence.reports.items():
        _add_states(evidence, name, report)
        evidence.statements += _stated(name, report)
    if verdicts is not None:
        _add_verdicts(evidence, Path(verdicts))
    if rules is not None:
        _add_rules(evidence, Path(rules), verdicts is not None)
    elif evidence.rules_sha256 is not None:
        evidence.statements.append(
            "Only the SHA-256 of the rules is given; --rules FILE adds the file."
        )
    return evidence


def _reports(paths: Sequence[str | Path]) -> Evidence:
    evidence = Evidence({}, {})
    for path in paths:
        for named_report in load_reports(path):
            if named_report.name in evidence.reports:
                raise UsageError(
                    f"{named_report.path} and {evidence.report_files[named_report.name].path} are "
                    f"both called {named_report.name}; give each report its own name."
                )
            if named_report.report.partial or named_report.report.inputs.get("missing_parts"):
                raise UsageError(
                    f"{named_report.path} is a partial report; expected one of all items. Join "
                    "the parts with uqeval merge, or evaluate without --limit."
                )
            data = _read(named_report.path)
            evidence.reports[named_report.name] = named_report.report
            digest = hashlib.sha256(data).hexdigest()
            if digest != named_report.sha256:
                raise StoreError(
                    f"{named_report.path} changed while it was read. Wait until it is written, "
                    "and start again."
                )
            evidence.report_files[named_report.name] = Input(
                f"{named_report.name}.json", named_report.path, digest, data
            )
    return evidence


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, MOST_REPORT)
    except OSError as error:
        raise StoreError(f"{cut(path)} cannot be read: {error.strerror}. Check the path.") from None


def _stated(name: str, report: Report) -> list[str]:
    """Return the sentences on the origin of a report."""
    statements = []
    if report.uqeval_version != VERSION:
        statements.append(
            f"{name} was written by uqeval {report.uqeval_version}; the self-test is of uqeval "
            f"{VERSION}."
        )
    if is_merged(report):
        statements.append(f"{name} is merged from saved states, not evaluated in one run.")
    return statements


def is_merged(report: Report) -> bool:
    """Return whether a report was joined from saved states, without reading predictions."""
    return report.timing.get("passes") == 0


def _add_states(evidence: Evidence, name: str, report: Report) -> None:
    """Add the states next to a report. Raises `UsageError` for states of another report."""
    from uqeval.stores.states.saved import SavedStates

    path = states_beside(evidence.report_files[name].path, report)
    if path is None or report.states_digest is None:
        evidence.statements.append(f"{name}: no states of its items were saved.")
        return
    if not path.exists():
        evidence.statements.append(
            f"{name}: its states {path.name} are not next to the report, so only their digest is "
            f"given, {report.states_digest}."
        )
        return
    digest = SavedStates(path).digest
    if digest != report.states_digest:
        raise UsageError(
            f"{cut(path)} holds the states of another report: their digest is {str(digest)[:12]}…, "
            f"{evidence.report_files[name].path} names {report.states_digest[:12]}…. Put the "
            "report's own states next to it, or evaluate again."
        )
    evidence.states[name] = Input(path.name, path, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file of any size. Raises `StoreError`."""
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{cut(path)} cannot be read: {error.strerror}. Check the path.") from None


@dataclass
class Check:
    """One check of a self-test."""

    passed: Flag = False


@dataclass
class Selftest:
    """The parts of a self-test that the evidence repeats."""

    result: str
    uqeval_version: str
    finished: str = ""
    checks: list[Check] = field(default_factory=list)


@dataclass
class Verification:
    """The parts of a verification that the evidence repeats."""

    result: str
    report: dict[str, Any]
    verified: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)
    not_recomputed: dict[str, str] = field(default_factory=dict)


def record_of(
    path: Path, schema: str, made_by: str, form: Any = None
) -> tuple[dict[str, Any], bytes]:
    """Read a JSON file of a schema and a form. Raises `StoreError` for anything else."""
    data = _read(path)
    try:
        record = parse_json(data)
        schema_of_file = record.get("schema") if isinstance(record, dict) else None
    except ValueError as error:
        raise StoreError(
            f"{cut(path)} is not JSON ({error}); expected what {made_by} writes."
        ) from None
    if schema_of_file != schema:
        raise StoreError(
            f"{cut(path)}: schema {quoted(schema_of_file)}; expected {quoted(schema)}, as "
            f"{made_by} writes it."
        )
    if form is not None:
        try:
            formed(form, record)
        except FormError as error:
            raise StoreError(f"{cut(path)}: {error}. Write it again with {made_by}.") from None
    return record, data


def _add_verdicts(evidence: Evidence, path: Path) -> None:
    record, data = record_of(path, SCHEMA, "uqeval gate -o FILE")
    digests = record.get("sha256")
    if not isinstance(digests, dict) or not isinstance(digests.get("reports"), dict):
        raise UsageError(
            f"{cut(path)} does not give the SHA-256 of the reports that it judges. Judge them "
            "again with uqeval gate -o of this version."
        )
    names_of_digests = {file.sha256: name for name, file in evidence.report_files.items()}
    judged: Mapping[str, Any] = digests["reports"]
    lost = [name for name, digest in judged.items() if digest not in names_of_digests]
    if lost:
        raise UsageError(
            f"{cut(path)} judges {listed(lost)}, but no given report has its SHA-256: the "
            "verdicts are of other reports, or a report was written again. Judge these reports "
            "again with uqeval gate -o, or give the reports that were judged."
        )
    unjudged = [name for name, file in evidence.report_files.items()
                if file.sha256 not in judged.values()]  # fmt: skip
    evidence.statements += [f"{name}: the verdicts do not judge this report." for name in unjudged]
    if not isinstance(record.get("verdicts"), list) or not all(
        isinstance(verdict, dict) for verdict in record["verdicts"]
    ):
        raise StoreError(f"{cut(path)} holds no list of verdicts; write it with uqeval gate -o.")
    _check_verdicts(evidence, judgement_of(record, path), record, path)
    evidence.verdicts = record
    evidence.statements += _stated_verdicts(record)
    rules = digests.get("rules")
    evidence.rules_sha256 = rules if isinstance(rules, str) else None
    evidence.verdicts_file = Input("verdicts.json", path, hashlib.sha256(data).hexdigest(), data)


def _check_verdicts(
    evidence: Evidence, judgement: Judgement, record: Mapping[str, Any], path: Path
) -> None:
    """Raise `UsageError` for verdicts without a checksum, or with a value that is in no report."""
    if KEY not in record:
        raise UsageError(
            f"{cut(path)} has no checksum, so that edits cannot be noticed. Judge again with "
            "uqeval gate -o of this version."
        )
    names = {file.sha256: name for name, file in evidence.report_files.items()}
    for verdict in judgement.verdicts:
        address = verdict.address
        digest = record["sha256"]["reports"].get(address.store)
        score = find(evidence.reports[names[digest]], address) if digest in names else None
        value = score.value if isinstance(score, Score) else None
        if value != verdict.value:
            raise UsageError(
                f"{cut(path)}: the verdict on {cut(address)} is of the value {verdict.value!r}; "
                f"the report has {value!r}. The file was edited; judge again with uqeval gate -o."
            )


def _stated_verdicts(record: Mapping[str, Any]) -> list[str]:
    """Return the sentences on verdicts: their warnings and expired waivers."""
    warnings = record.get("warnings")
    statements = [f"Verdicts: {text}" for text in warnings] if isinstance(warnings, list) else []
    today = datetime.now(UTC).date().isoformat()
    for verdict in record["verdicts"]:
        waive = verdict.get("waive") if verdict.get("status") == "waived" else None
        until = str(waive.get("until")) if isinstance(waive, dict) else today
        if until < today:
            statements.append(
                f"Verdicts: the waiver of {verdict.get('address')} was valid until {until} and has "
                "expired; judge again."
            )
    return statements


def _add_rules(evidence: Evidence, path: Path, judged: bool) -> None:
    data = _read(path)
    digest = hashlib.sha256(data).hexdigest()
    if not judged:
        raise UsageError(
            f"--rules {cut(path)}: rules need their verdicts. Judge with these rules (uqeval gate "
            "-o FILE), and give --verdicts FILE."
        )
    if evidence.rules_sha256 != digest:
        raise UsageError(
            f"{cut(path)} does not hold the rules of the verdicts: its SHA-256 is {digest[:12]}…, "
            f"the verdicts name {str(evidence.rules_sha256)[:12]}…. Give the rules that the "
            "verdicts used, or judge again with uqeval gate -o."
        )
    evidence.rules_file = Input(f"rules{path.suffix or '.yaml'}", path, digest, data)
