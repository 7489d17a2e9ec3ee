"""Refuse outputs over files of another kind, so that a mistyped name costs no file."""

from __future__ import annotations

import re
from pathlib import Path

from uqeval.errors import UsageError, cut

#: Kinds of files, by the schema that they hold, with the words of messages.
KINDS = {
    "report": "a report",
    "states": "the states of a report",
    "fitted": "the sums of shards",
    "verdicts": "verdicts",
    "verification": "a verification",
    "selftest": "a self-test",
    "comparison": "a comparison",
}
#: The start of a JSON file of uqeval: its first key is its schema.
_SCHEMA = re.compile(rb'\{\s*"schema": "uqeval\.([a-z]+)/[0-9]+"')
#: The last entry of a file of states.
_INDEX = ("index.json", "index.json.z")
#: The ending of states next to a report. Those that are damaged are replaced.
_STATES = ".states.zip"
_START = 1000  # bytes


def refuse_other_kind(path: str | Path, option: str, kind: str | None) -> None:
    """Raise `UsageError` if the file at the path of an output is of another kind.

    JSON and states replace only files of their own kind. Other texts replace any text, except those
    of uqeval of another kind. A missing or empty file may be replaced, and so may what is no
    regular file (a pipe).

    `kind`: the kind of the output, a key of `KINDS`; None for CSV, HTML, XML and Markdown.
    """
    existing = _words_of(Path(path), kind)
    if existing is not None:
        raise UsageError(
            f"{cut(path)} is {existing}, which {option} would overwrite; give {option} another "
            "name, or remove the file."
        )


def _words_of(path: Path, kind: str | None) -> str | None:
    """Return what is at the path in words; None for what an output of `kind` may replace."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            start = file.read(_START)
    except (OSError, ValueError):  # unreadable: the writer reports the error
        return None
    found = _kind_of(path, start)
    if not start or (found is not None and found == kind):
        return None
    if found is not None:
        return KINDS[found]
    if kind == "states":
        return None if path.name.endswith(_STATES) else "not a states file"
    if b"\0" in start:
        return "a binary file"
    return None if kind is None or not start.strip() else f"a file that is not {KINDS[kind]}"


def _kind_of(path: Path, start: bytes) -> str | None:
    """Return the kind of a file that uqeval wrote; None for any other file."""
    import zipfile

    if match := _SCHEMA.match(start):
        kind = match[1].decode()
        return kind if kind in KINDS else None
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                return "states" if archive.namelist()[-1] in _INDEX else None
        except (OSError, LookupError, zipfile.BadZipFile, NotImplementedError, ValueError):
            pass  # damaged
    return None
