"""The self-test and the verifications that go into the evidence: taken from files, or run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from uqeval.errors import UqevalError, UsageError, cut
from uqeval.usecases.evidence.collecting import Evidence, is_merged, record_of


def add_selftest(found: Evidence, path: str | Path | None) -> None:
    """Add the self-test of a file, or run one. Raises `StoreError` for another file."""
    if path is not None:
        found.selftest, _ = record_of(Path(path), "uqeval.selftest/1", "uqeval selftest -o FILE")
    else:
        from uqeval.usecases.selftest import selftest

        found.selftest = json.loads(selftest().to_json())
    tested = found.selftest.get("uqeval_version")
    if tested != version("uqeval"):
        found.statements.append(f"The self-test is of uqeval {tested}, not of this one.")


#: Items that a verification recomputes where nothing else is asked for.
ITEMS = 5


def add_verifications(found: Evidence, paths: Sequence[str | Path], items: int | None) -> None:
    """Add verifications from files, each of a given report; run those that no file is of.

    `items`: how many items the latter recompute (None: `ITEMS`). Raises `UsageError` where it is
    given and none is run.
    """
    for path in map(Path, paths):
        record, _ = record_of(path, "uqeval.verification/1", "uqeval verify -o FILE")
        said = record.get("report")
        digest = said.get("sha256") if isinstance(said, dict) else None
        names = [name for name, own in found.report_files.items() if own.sha256 == digest]
        if not names:
            raise UsageError(
                f"{cut(path)}: verifies a report whose SHA-256 is that of no given report. Verify "
                "these reports again with uqeval verify -o, or give the report that was verified."
            )
        found.verifications[names[0]] = record
    left = [name for name in found.report_files if name not in found.verifications]
    if items is not None and not left:
        raise UsageError(
            f"--items {items} has no effect: --verify gives a verification of every report. Leave "
            "out --items, or leave out --verify to verify here."
        )
    for name in left:
        _verify(found, name, found.report_files[name].path, ITEMS if items is None else items)


def _verify(found: Evidence, name: str, path: Path, items: int) -> None:
    from uqeval.usecases.verify import verify

    report = found.reports[name]
    try:
        done = verify(path, items=items)
    except UqevalError as error:
        if not is_merged(report) and report.uqeval_version == version("uqeval"):
            raise UsageError(
                f"{cut(path)}: cannot be verified here: {error} Where its stores are, run uqeval "
                f"verify {cut(path)} -o verification.json; then give --verify verification.json."
            ) from None
        found.statements.append(f"{name}: is not verified: {error}")
        return
    found.verifications[name] = json.loads(done.to_json())


def canonical_sha256(value: object) -> str:
    """Return the SHA-256 of a value as JSON with sorted keys and no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
