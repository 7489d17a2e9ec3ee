"""Recognize files that uqeval wrote, so that an output replaces only a file of its own kind."""

from __future__ import annotations

import re
import zipfile
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


def refuse_other_kind(path: str | Path, option: str, kind: str | None) -> None:
    """Raise `UsageError` if a file of uqeval of another kind is at the path of an output.

    `kind`: the kind of the output, a key of `KINDS`; None for CSV, HTML, XML and Markdown.
    """
    existing = kind_of(Path(path))
    if existing is not None and existing != kind:
        raise UsageError(
            f"{cut(path)} is {KINDS[existing]}, which {option} would overwrite; give {option} "
            "another name, or remove the file."
        )


def kind_of(path: Path) -> str | None:
    """Return the kind of a file that uqeval wrote; None for any other file."""
    try:
        with path.open("rb") as file:
            start = file.read(100)
        if match := _SCHEMA.match(start):
            kind = match[1].decode()
            return kind if kind in KINDS else None
        if start.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                return "states" if archive.namelist()[-1] in _INDEX else None
    except (OSError, LookupError, zipfile.BadZipFile, NotImplementedError, ValueError):
        pass  # unreadable or damaged: the file is of no kind
    return None
