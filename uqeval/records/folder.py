"""Load one report, or a folder of reports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from uqeval.disk.files import MOST_REPORT, is_file, noted_digest, read_bytes, read_json, readable
from uqeval.disk.publishing import older_file
from uqeval.errors import StoreError, cut
from uqeval.records.report import Report, load_with_sha256
from uqeval.spelling import for_caller


@dataclass(frozen=True)
class Named:
    """A report and the name of its store, which is the name of its file.

    `sha256`: of the bytes that the report was read from; None for one that this process made.
    """

    name: str
    path: Path
    report: Report
    sha256: str | None = None

    @classmethod
    def load(cls, path: Path) -> Named:
        """Load a report, and check that the states next to it, if any, are of the same run.

        Only the digest that the states record is compared; readers of the states check all bytes.
        Raises `StoreError`.
        """
        named = cls(path.stem, path, *load_with_sha256(path))
        digest = named.report.states_digest
        for states in named.files[1:]:
            if digest is not None and is_file(states) and noted_digest(states) != digest:
                raise foreign_states(states, path, digest)
        return named

    @property
    def files(self) -> list[Path]:
        """Return the report's file, and that of its states."""
        states = states_beside(self.path, self.report)
        return [self.path] if states is None else [self.path, states]

    def is_same_file(self, other: Named) -> bool:
        """Return whether both reports are one file of one folder. Two folders may have links to one
        file, as tools that store versions of data make them: then there are two equal reports."""
        paths = self.path, other.path
        return (
            all(path.exists() for path in paths)
            and paths[0].samefile(paths[1])
            and paths[0].parent.samefile(paths[1].parent)
        )


def states_beside(path: Path, report: Report) -> Path | None:
    """Return the file of the states of the report at `path`; None for a report without states.

    It has the name that the report records. Of this only the name is used: a path in a report may
    lead out of the report's folder. Of a report that was copied to a new name, it is
    `NAME.states.zip` beside `NAME.json` if these are its states by the digest that it records, and
    if those of the recorded name are not: the next run may have written them anew.
    """
    if not report.states:
        return None
    recorded, renamed = path.parent / Path(report.states).name, _states_of_name(path)
    digest = report.states_digest
    if renamed == recorded or digest is None:
        return recorded
    is_at_new_name = is_file(renamed) and noted_digest(renamed) == digest
    is_foreign = is_file(recorded) and noted_digest(recorded) != digest
    return renamed if is_at_new_name or is_foreign else recorded


def why_without_states(path: Path, report: Report) -> str | None:
    """Return why a report has no file of states, and what to do; None if it has one."""
    states = states_beside(path, report)
    if states is None:
        return f"{path} has no saved states; {saving_states(path)}"
    if is_file(states):
        return None
    missing = f"{cut(states)} does not exist, but {path} needs these states. "
    renamed = _states_of_name(path)
    if not is_file(renamed):
        return f"{missing}Put the file there, or {saving_states(path)}"
    if None not in (report.states_digest, noted_digest(renamed)):  # else they were chosen
        return f"{missing}{cut(renamed)} are of another run: put the right file there, or " + (
            saving_states(path)
        )
    command = f"mv {quote(str(renamed))} {quote(str(states))}"
    return f"{missing}If {cut(renamed)} are these, rename the file ({command})."


def saving_states(report: Path) -> str:
    """Return how to evaluate again so that the states are saved, for the end of a message."""
    return (
        "evaluate again with -o FILE, without --no-states; in Python, give "
        f"states={str(report.with_suffix('.states.zip'))!r}."
    )


def _states_of_name(report: Path) -> Path:
    """Return the file of states that has the name of a report."""
    return report.with_name(f"{report.stem}.states.zip")


def foreign_states(states: Path, report: Path, digest: str | None) -> StoreError:
    """Return the error for states that are not those of the report next to them.

    If a killed run has left the older states, the message names them.
    """
    older = older_file(states)
    if digest is not None and older.is_file() and noted_digest(older) == digest:
        return StoreError(
            f"{states} are not the states of {report}, but of a newer run that was killed before "
            f"it wrote its report. Evaluate again, or: mv {quote(str(older))} {quote(str(states))}"
        )
    return StoreError(
        f"{states} are not the states of {report}, but of another run; a report and its states "
        "are moved together. Evaluate again, or move the states elsewhere."
    )


def load_reports(path: str | Path) -> list[Named]:
    """Return the report at `path`, or every report of the folder, by name; raises `StoreError`.

    A folder may hold other JSON files, such as verdicts. A file that is not JSON is an error,
    because it may be half a report.
    """
    place = Path(path)
    if not place.is_dir():
        return [Named.load(place)]
    files = sorted(file for file in place.glob("*.json") if file.is_file() and _is_report(file))
    if not files:
        raise StoreError(
            f"{cut(path)}: no report in this folder; expected what "
            f"{for_caller('-o FILE.json', 'Report.save')} writes."
        )
    return [Named.load(file) for file in files]


def digests_of(
    reports: Sequence[Named], baseline: Sequence[Named], rules: str | None
) -> dict[str, Any]:
    """Return the SHA-256 of the files behind verdicts as they were when they were read: reports and
    baseline by name, and `rules`, that of the rules."""
    return {
        "reports": {own.name: own.sha256 or _sha256(own.path) for own in reports},
        "baseline": {own.name: own.sha256 or _sha256(own.path) for own in baseline},
        "rules": rules,
    }


def _sha256(path: str | Path) -> str:
    with readable(path):
        return hashlib.sha256(read_bytes(path, most=MOST_REPORT)).hexdigest()


def _is_report(path: Path) -> bool:
    try:
        with readable(path):
            record: Any = read_json(path)
    except ValueError as error:
        raise StoreError(f"{cut(path)} is not JSON: {error}. Move it, or write it again.") from None
    schema = record.get("schema") if isinstance(record, dict) else None
    return isinstance(schema, str) and schema.startswith("uqeval.report/")
