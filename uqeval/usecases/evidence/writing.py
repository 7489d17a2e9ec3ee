"""Write the folder of the evidence, whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from uqeval.disk.files import resolved
from uqeval.disk.publishing import beside, publish_folder, sync_tree
from uqeval.errors import OutputError, UsageError, cut
from uqeval.usecases.evidence.collecting import Evidence
from uqeval.usecases.evidence.environment import environment
from uqeval.usecases.evidence.readme import STATEMENT, readme
from uqeval.usecases.evidence.statement import statement


def check_folder(path: str | Path, inputs: list[Path]) -> None:
    """Raise `UsageError` or `OutputError` for a folder that holds an input or something else."""
    target = resolved(path)
    for source in inputs:
        own = resolved(source)
        if own == target or target in own.parents:
            raise UsageError(f"{cut(path)}: holds the input {cut(source)}; give -o another folder.")
    if not target.parent.is_dir():
        raise OutputError(
            f"{cut(path)}: the folder {target.parent} does not exist; make it, or name another."
        )
    if target.is_dir():
        if any(target.iterdir()) and not (target / STATEMENT).is_file():
            raise OutputError(
                f"{cut(path)}: holds other files; give -o an empty folder, or one that an earlier "
                "uqeval evidence has written."
            )
    elif target.exists():
        raise OutputError(f"{cut(path)}: is a file; give the name of a folder.")


def write_evidence(found: Evidence, folder: str | Path) -> list[str]:
    """Write all files into `folder`, in place of an earlier evidence there; return their names.

    Raises `UsageError`, and `OutputError` for a folder that cannot be written.
    """
    check_folder(folder, found.inputs())
    files, meanings = _files(found)
    made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    meanings |= {STATEMENT: "in-toto Statement v1, predicate test-result v0.1: to be signed"}
    files["README.md"] = readme(found, meanings, made)
    files[STATEMENT] = statement(found, files)
    _put(files, resolved(folder), str(folder))
    return list(files)


def _files(found: Evidence) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the content of each file but README and statement, and what it is."""
    files: dict[str, bytes] = {}
    meanings: dict[str, str] = {}

    def add(name: str, data: bytes, what: str) -> None:
        if name in files:
            raise UsageError(
                f"a report is called {name}, as another file is; give it another name."
            )
        files[name], meanings[name] = data, what

    add("selftest.json", _json(found.selftest), "the self-test of uqeval")
    add("environment.cdx.json", environment(), "the environment, CycloneDX 1.6")
    for own, what in ((found.verdicts_file, "the verdicts of uqeval gate"),
                      (found.rules_file, "the rules that were judged by")):  # fmt: skip
        if own is not None and own.data is not None:
            add(own.name, own.data, what)
    for name, record in found.verifications.items():
        add(f"verification-{name}.json", _json(record), f"the independent recomputation of {name}")
    for name, own in found.report_files.items():
        add(own.name, own.data or b"", f"the report of {name}")
    return files, meanings


def _json(record: Mapping[str, object]) -> bytes:
    return (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()


def _put(files: Mapping[str, bytes], target: Path, shown: str) -> None:
    new = beside(target)
    try:
        new.mkdir()
        for name, data in files.items():
            (new / name).write_bytes(data)
        sync_tree(new)
        publish_folder(new, target)
    except OSError as error:
        raise OutputError(f"{shown}: cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(new, ignore_errors=True)
