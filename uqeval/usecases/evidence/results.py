"""The self-test and the verifications that go into the evidence: taken from files, or run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from uqeval.errors import UqevalError, UsageError, cut
from uqeval.usecases.evidence.collecting import (
    Evidence,
    Selftest,
    Verification,
    is_merged,
    record_of,
)
from uqeval.version import VERSION


def add_selftest(evidence: Evidence, path: str | Path | None) -> None:
    """Add the self-test of a file, or run one. Raises `StoreError` for another file."""
    if path is not None:
        evidence.selftest, _ = record_of(
            Path(path), "uqeval.selftest/1", "uqeval selftest -o FILE", Selftest
        )
    else:
        from uqeval.usecases.selftest.record import selftest

        evidence.selftest = json.loads(selftest().to_json())
    tested = evidence.selftest.get("uqeval_version")
    if tested != VERSION:
        evidence.statements.append(f"The self-test is of uqeval {tested}, not of this one.")


#: The default number of items that a verification recomputes.
ITEMS = 5


def add_verifications(evidence: Evidence, paths: Sequence[str | Path], items: int | None) -> None:
    """Add the verifications from files; run one for each report without a file.

    `items`: how many items a run recomputes (None: `ITEMS`). Raises `UsageError` if `items` is
    given and no verification is run.
    """
    for path in map(Path, paths):
        record, _ = record_of(path, "uqeval.verification/1", "uqeval verify -o FILE", Verification)
        digest = record["report"].get("sha256")
        names = [name for name, file in evidence.report_files.items() if file.sha256 == digest]
        if not names:
            raise UsageError(
                f"{cut(path)} verifies a report, but no given report has its SHA-256. Verify "
                "these reports again with uqeval verify -o, or give the report that was verified."
            )
        evidence.verifications[names[0]] = record
    unverified = [name for name in evidence.report_files if name not in evidence.verifications]
    if items is not None and not unverified:
        raise UsageError(
            f"--items {items} has no effect: --verify gives a verification of every report. Leave "
            "out --items, or leave out --verify to verify here."
        )
    for name in unverified:
        _verify(evidence, name, evidence.report_files[name].path, ITEMS if items is None else items)


def _verify(evidence: Evidence, name: str, path: Path, items: int) -> None:
    from uqeval.usecases.verify.opening import command_of, roles_of, why_missing, why_outside
    from uqeval.usecases.verify.verifying import verify

    report = evidence.reports[name]
    try:
        verification = verify(path, items=items)
    except UqevalError as error:
        if not is_merged(report) and report.uqeval_version == VERSION:
            roles = roles_of(report)
            reason = why_outside(roles) or why_missing(roles) or str(error)
            raise UsageError(
                f"{cut(path)} cannot be verified here: {reason} "
                f"Where its stores are, run: {command_of(str(path), roles)} "
                "-o verification.json; then give --verify verification.json to uqeval evidence."
            ) from None
        evidence.statements.append(f"{name}: not verified: {error}")
        return
    evidence.verifications[name] = json.loads(verification.to_json())
