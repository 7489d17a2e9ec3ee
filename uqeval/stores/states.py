"""States of tallies on disk: one entry a tally and item, in a zip beside the report.

What it holds: `index.json` with the schema, the item names, the fingerprint of what was counted and
the id and parameters of every tally; then `<tally>/<item>`, each as the tally packed it.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from uqeval.errors import OutputError, StoreError

SCHEMA = "uqeval.states/1"


class StatesWriter:
    """Collects states beside `path` and puts the file in place when all is done.

    Used as a context: leaving it by an exception removes what was collected. Raises `OutputError`
    if the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
            self._temporary = Path(name)
            self._file = os.fdopen(handle, "wb")
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}.") from error
        self._tallies: list[dict[str, Any]] = []

    def __enter__(self) -> StatesWriter:
        return self

    def add(self, number: int, parameters: dict[str, Any], item: int, data: bytes) -> None:
        """Keep the state of one tally, the `number`-th of the run, for one item."""
        if number == len(self._tallies):
            self._tallies.append(parameters)
        try:
            # A fixed date, so that the same states give the same file.
            self._zip.writestr(zipfile.ZipInfo(f"{number}/{item}"), data)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}.") from error

    def finish(self, names: Sequence[str], fingerprint: str) -> None:
        """Write the index and rename the file into place."""
        index = {
            "schema": SCHEMA,
            "items": list(names),
            "fingerprint": fingerprint,
            "tallies": self._tallies,
        }
        try:
            self._zip.writestr(zipfile.ZipInfo("index.json"), json.dumps(index, allow_nan=False))
            self._zip.close()
            self._file.close()
            mask = os.umask(0)
            os.umask(mask)
            self._temporary.chmod(0o666 & ~mask)
            self._temporary.replace(self.path)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}.") from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Without its file the archive has nothing to finish when it is collected.
        self._zip.fp = None
        with suppress(OSError):  # what the disk refused is refused again
            self._file.close()
        self._temporary.unlink(missing_ok=True)


def read_index(path: str | Path) -> dict[str, Any]:
    """The index of a states file. Raises `StoreError` if it is none, or of another schema."""
    try:
        with zipfile.ZipFile(path) as file:
            index = json.loads(file.read("index.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path}: is no states file: {error}.") from None
    if not isinstance(index, dict) or index.get("schema") != SCHEMA:
        raise StoreError(f"{path}: expected states of schema {SCHEMA!r}.")
    return index


def read_state(path: str | Path, number: int, item: int) -> bytes:
    """One packed state. Raises `StoreError` where there is none."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.read(f"{number}/{item}")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path}: has no state {number}/{item}: {error}.") from None
