"""States of tallies on disk: one entry a tally and item, in a zip beside the report.

What it holds: `tallies/<number>.json`, the id and parameters of each tally; `<number>/<item>`, the
states as the tally packed them; `totals/<tally>`, those of all items together of tallies that are
too large to be kept by item; and last `index.json` with the schema, the item names and records,
the fingerprint of what was counted and all that it takes to read scores off the states again. The
zip's comment holds the digest of the file, which the report names too.

While a run goes on the file grows as `.<name>.partial`; what a killed run has left there is whole
but for its last entry, and is what `--resume` goes on from.
"""

from __future__ import annotations

import hashlib
import json
import struct
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import open_file
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.states_entries import (
    INDEX,
    check_seal,
    read_entry,
)

if TYPE_CHECKING:
    pass

SCHEMA = "uqeval.states/3"
_RUN = "run.json"
_TOTALS = "totals"
#: What an index holds, as JSON has it.
_KINDS: dict[str, type] = {
    "items": list, "records": list, "settings": dict, "fitted": dict, "facts": dict,
    "metrics": dict, "inputs": dict, "results": dict, "stamps": list,
}  # fmt: skip
#: What reading a damaged file raises, which any bytes may be.
DAMAGED = (
    OSError, KeyError, ValueError, IndexError, struct.error, zipfile.BadZipFile, zlib.error,
    NotImplementedError, RuntimeError, OverflowError, RecursionError, EOFError,
)  # fmt: skip


def tally_key(parameters: Mapping[str, Any]) -> str:
    """Return a tally's parameters as text, the same for the same tally."""
    return json.dumps(dict(parameters), sort_keys=True)


def digest_of(key: str) -> str:
    """Return a tally's key as the name of an entry."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


class SavedStates:
    """A states file, opened: `index` as it was finished, and the packed states of each tally.

    `digest`: of the whole file, None for a file of an earlier version. Raises `StoreError` if it is
    no states file, of another schema, cut short, or changed after it was written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            file = open_file(self.path)
            weakref.finalize(self, file.close)
            self._file = file.fileno()
            self.digest = check_seal(file, self.path)
            self._zip = zipfile.ZipFile(file)
            index = json.loads(self._read(INDEX))
        except FileNotFoundError as error:
            raise StoreError(
                f"{cut(path)}: {error.strerror}; expected the states that a run leaves beside its "
                "report, as -o FILE.json writes it."
            ) from None
        except DAMAGED as error:
            raise StoreError(f"{cut(path)}: is no states file: {cut(error)}.") from None
        if not isinstance(index, dict) or index.get("schema") != SCHEMA:
            schema = index.get("schema") if isinstance(index, dict) else None
            raise StoreError(
                f"{cut(path)}: states of schema {quoted(schema)}; this uqeval reads {SCHEMA!r}."
            )
        if index.get("sealed") and self.digest is None:  # files of earlier versions have none
            raise StoreError(f"{cut(path)}: is no states file: it lacks its checksum, cut short.")
        for key, kind in _KINDS.items():
            if key in index and not isinstance(index[key], kind):
                raise StoreError(f"{cut(path)}: is damaged: `{key}` is {quoted(index[key])}.")
        self.index: dict[str, Any] = index
        #: Of items whose states were checked: the evaluated pixels, and the tally that said so.
        self.evaluated: dict[tuple[int, str], tuple[int, str]] = {}
        try:
            self._numbers = {
                self._read(name).decode(): name.removeprefix("tallies/").removesuffix(".json")
                for name in self._zip.namelist()
                if name.startswith("tallies/")
            }
            self._known = [json.loads(key) for key in self._numbers]
        except DAMAGED as error:
            raise StoreError(f"{cut(path)}: is no states file: {cut(error)}.") from None
        if not all(isinstance(parameters, dict) for parameters in self._known):
            raise StoreError(f"{cut(path)}: is no states file: a tally's parameters are no object.")

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether there are states of a tally of these parameters."""
        return tally_key(parameters) in self._numbers

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the packed states of a tally, in the order of items. Raises `StoreError`."""
        number = self._numbers.get(tally_key(parameters))
        if number is None:
            raise StoreError(
                f"{cut(self.path)}: holds no states of {parameters.get('id')} with these settings; "
                "run the evaluation again."
            )
        for item in range(len(self.index["items"])):
            try:
                yield self._read(f"{number}/{item}")
            except DAMAGED as error:
                raise StoreError(
                    f"{cut(self.path)}: has no state {number}/{item}: {cut(error)}. Run the "
                    "evaluation again."
                ) from None

    def state(self, key: str, item: int) -> bytes:
        """Return the packed state of the tally of a key (`tally_key`) for one item, by any thread.

        Raises what `zipfile` does, and `KeyError` or `ValueError`, where it is damaged.
        """
        return self._read(f"{self._numbers[key]}/{item}")

    def total(self, key: str) -> bytes:
        """Return the packed state of all items together of the tally of a key, as `state`."""
        return self._read(f"{_TOTALS}/{digest_of(key)}")

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of every tally that has states by item."""
        return list(self._known)

    def _read(self, name: str) -> bytes:
        return read_entry(self._file, self._zip.getinfo(name))
