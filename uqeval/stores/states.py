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
import os
import struct
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from uqeval.errors import OutputError, StoreError, UsageError
from uqeval.files import open_file
from uqeval.publishing import mend_states, put_file
from uqeval.stores.leftovers import clear, hold, own_name
from uqeval.stores.locks import held_beside, lock, release
from uqeval.stores.resuming import taken_over
from uqeval.stores.states_entries import (
    INDEX,
    LOCAL,
    Kept,
    check_seal,
    entries_of,
    read_entry,
    seal,
)

if TYPE_CHECKING:
    from uqeval.stores.earlier import Earlier

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


def partial_path(path: str | Path) -> Path:
    """Where the states of a run lie that is not done yet."""
    final = Path(path)
    return final.with_name(f".{final.name}.partial")


class StatesWriter:
    """Collects states beside `path` and puts the file in place when all is done.

    `run` says what is being counted (stores, settings), its `stamps` of what each item is read;
    with `resume`, states that an interrupted run of the same has left are in `found` by tally and
    item (`resuming`), and stay in the file, not in memory; likewise those that an earlier run had
    counted `before`. Used as a context: an interrupt leaves what a `run` has collected to be
    resumed, any other exception removes it.

    Raises `OutputError` if the file cannot be written, `UsageError` where `resume` finds the states
    of another run.
    """

    def __init__(
        self, path: str | Path, run: Mapping[str, Any] | None = None, resume: bool = False,
        before: Earlier | None = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self._before = before
        self.partial = partial_path(path)
        self.found: dict[str, Kept[int]] = {}
        self._resumable = run is not None
        #: Items that an interrupted run has counted, and this one counts again (`resuming`).
        self.recounted: set[int] = set()
        self._numbers: dict[str, int] = {}
        self._held: set[str] = set()
        head = json.dumps(dict(run or {}), sort_keys=True).encode()
        earlier = entries_of(self.partial) if resume and self.partial.exists() else iter(())
        name, left = next(earlier, (_RUN, head))
        going = taken_over(left, head) if name == _RUN else None
        if going is None:
            raise UsageError(
                f"--resume: {self.partial} is of another run: other stores, items, settings or "
                "version. Remove it, or repeat the command that was interrupted."
            )
        head, self._unstamped = going
        self.stamps: list[str | None] = json.loads(head).get("stamps", [])
        self._lock = lock(self.path)
        beside = own_name(self.partial)
        try:
            mend_states(self.path, self._reports())
            # Written anew, so that what was cut short at its end is gone.
            clear(self.partial)
            self._file = beside.open("w+b")
            hold(self._file.fileno())
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
            self._write(_RUN, head)
            for key, own in (before.states() if before else {}).items():
                self.found[key] = Kept(self._file.fileno(), own)
            self._totals: Kept[str] = Kept(self._file.fileno())
            self._take(earlier)
            self._file.flush()
            self._ino = os.fstat(self._file.fileno()).st_ino
            beside.replace(self.partial)
        except BaseException:  # an interrupt, too: nobody goes on from this name
            if hasattr(self, "_zip"):
                self._let_go()
            elif self._lock is not None:
                release(self._lock)
            beside.unlink(missing_ok=True)
            with _writing(self.path):
                raise

    def __enter__(self) -> StatesWriter:
        return self

    def add(self, parameters: Mapping[str, Any], item: int, data: bytes) -> None:
        """Keep the state of a tally of these parameters for one item."""
        key = tally_key(parameters)
        with _writing(self.path):
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                self._write(f"tallies/{self._numbers[key]}.json", key.encode())
            self._keep(f"{self._numbers[key]}/{item}", data)

    def add_total(self, parameters: Mapping[str, Any], data: bytes) -> None:
        """Keep the state of a tally of these parameters for all items together."""
        with _writing(self.path):
            self._keep(f"{_TOTALS}/{_digest(tally_key(parameters))}", data)

    def total(self, parameters: Mapping[str, Any]) -> bytes | None:
        """The state of all items together, if it is known."""
        key = tally_key(parameters)
        own = self._totals.get(_digest(key))
        return own if own is not None or self._before is None else self._before.total(key)

    @property
    def unchanged(self) -> bool:
        """Whether an earlier run was of the very same items."""
        return self._before is not None and self._before.unchanged

    def _keep(self, name: str, data: bytes) -> None:
        if name not in self._held:  # a plan may ask for what was counted before
            self._held.add(name)
            self._write(name, data)
            self._file.flush()

    def finish(self, index: Mapping[str, Any]) -> str:
        """Write the index and rename the file into place; return the digest of the file."""
        digest = self.seal(index)
        self.put()
        return digest

    def seal(self, index: Mapping[str, Any]) -> str:
        """Write the index, with which `partial` is a whole states file; return its digest."""
        whole = {"schema": SCHEMA, "stamps": self.stamps, **index, "sealed": True}
        text = json.dumps(whole, allow_nan=False)
        with _writing(self.path):
            self._write(INDEX, text.encode())
            self._zip.close()
            return seal(self._file)

    def put(self) -> None:
        """Rename the sealed file into place.

        Older states whose report this process replaces are kept until it has (`put_file`).
        """
        if not self._is_mine():
            raise OutputError(f"{self.path}: another run writes to it; give each its own -o.")
        with _writing(self.path):
            put_file(self._file, self.partial, self.path, keep_older=bool(self._reports()))
            self._file.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        mine = self._is_mine()
        self._let_go()
        interrupted = error is not None and not isinstance(error, Exception)
        if interrupted and self._resumable and self._held:
            assert error is not None
            error.add_note(f"{self.partial} has what was counted; --resume goes on from it.")
        elif mine:  # else it is of another run, which goes on
            self.partial.unlink(missing_ok=True)

    def _reports(self) -> list[Path]:
        """Return what this process replaces beside the states: the report, a table."""
        return held_beside(self.path, self.path.name.removesuffix(".states.zip"))

    def _is_mine(self) -> bool:
        try:
            return self.partial.stat().st_ino == self._ino
        except OSError:
            return False

    def _let_go(self) -> None:
        # Without its file the archive has nothing to finish when it is collected.
        self._zip.fp = None
        with suppress(OSError):  # what the disk refused is refused again
            self._file.close()
        if self._lock is not None:
            release(self._lock)
            self._lock = None

    def _write(self, name: str, data: bytes) -> tuple[int, int]:
        """Append an entry; returns where its data begins in the file, and its size."""
        # A fixed date, so that the same states give the same file.
        info = zipfile.ZipInfo(name)
        self._zip.writestr(info, data)
        return info.header_offset + LOCAL.size + len(name.encode()), len(data)

    def _take(self, entries: Iterator[tuple[str, bytes]]) -> None:
        """Copy what an interrupted run has left, as far as it is in order."""
        keys: dict[str, str] = {}
        for name, data in entries:
            first, _, last = name.partition("/")
            if first == _TOTALS and self._unstamped:
                continue
            if first == _TOTALS:
                self._totals.places[last] = self._write(name, data)
                self._held.add(name)
                continue
            number = last.removesuffix(".json")
            if not number.isdecimal() or (first != "tallies" and first not in keys):
                return
            if first != "tallies" and int(number) in self._unstamped:
                self.recounted.add(int(number))
                continue
            place = self._write(name, data)
            if first == "tallies":
                keys[number] = key = data.decode()
                self._numbers[key] = int(number)
                self.found.setdefault(key, Kept(self._file.fileno()))
            else:
                self.found[keys[first]].places[int(number)] = place
                self._held.add(name)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` into an `OutputError` that names the states file."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}.") from error


def tally_key(parameters: Mapping[str, Any]) -> str:
    """A tally's parameters as text, the same for the same tally."""
    return json.dumps(dict(parameters), sort_keys=True)


def _digest(key: str) -> str:
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
                f"{path}: {error.strerror}; expected the states that a run leaves beside its "
                "report, as -o FILE.json writes it."
            ) from None
        except DAMAGED as error:
            raise StoreError(f"{path}: is no states file: {error}.") from None
        if not isinstance(index, dict) or index.get("schema") != SCHEMA:
            said = index.get("schema") if isinstance(index, dict) else None
            raise StoreError(f"{path}: states of schema {said!r}; this uqeval reads {SCHEMA!r}.")
        if index.get("sealed") and self.digest is None:  # files of earlier versions have none
            raise StoreError(f"{path}: is no states file: it lacks its checksum, cut short.")
        for key, kind in _KINDS.items():
            if key in index and not isinstance(index[key], kind):
                raise StoreError(f"{path}: is damaged: `{key}` is {index[key]!r:.60}.")
        self.index: dict[str, Any] = index
        #: Of items whose states were checked: the evaluated pixels, and the tally that said so.
        self.evaluated: dict[int, tuple[int, str]] = {}
        try:
            self._numbers = {
                self._read(name).decode(): name.removeprefix("tallies/").removesuffix(".json")
                for name in self._zip.namelist()
                if name.startswith("tallies/")
            }
            self._known = [json.loads(key) for key in self._numbers]
        except DAMAGED as error:
            raise StoreError(f"{path}: is no states file: {error}.") from None
        if not all(isinstance(own, dict) for own in self._known):
            raise StoreError(f"{path}: is no states file: a tally's parameters are no object.")

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Whether there are states of a tally of these parameters."""
        return tally_key(parameters) in self._numbers

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """The packed states of a tally, in the order of items. Raises `StoreError`."""
        number = self._numbers.get(tally_key(parameters))
        if number is None:
            raise StoreError(
                f"{self.path}: holds no states of {parameters.get('id')} with these settings; run "
                "the evaluation again."
            )
        for item in range(len(self.index["items"])):
            try:
                yield self._read(f"{number}/{item}")
            except DAMAGED as error:
                raise StoreError(
                    f"{self.path}: has no state {number}/{item}: {error}. Run the evaluation again."
                ) from None

    def state(self, key: str, item: int) -> bytes:
        """The packed state of the tally of a key (`tally_key`) for one item, by any thread.

        Raises what `zipfile` does, and `KeyError` or `ValueError`, where it is damaged.
        """
        return self._read(f"{self._numbers[key]}/{item}")

    def total(self, key: str) -> bytes:
        """The packed state of all items together of the tally of a key, as `state`."""
        return self._read(f"{_TOTALS}/{_digest(key)}")

    def parameters(self) -> list[dict[str, Any]]:
        """Id and parameters of every tally that has states by item."""
        return list(self._known)

    def _read(self, name: str) -> bytes:
        return read_entry(self._file, self._zip.getinfo(name))
