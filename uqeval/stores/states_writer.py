"""Writes a states file: it grows beside its place while a run goes on, and is put there when all is
done."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from uqeval.disk.leftovers import clear, hold, own_name
from uqeval.disk.locks import held_beside, lock, release
from uqeval.disk.publishing import mend_states, put_file
from uqeval.errors import OutputError, UsageError, cut
from uqeval.stores.resuming import taken_over
from uqeval.stores.states_entries import (
    INDEX,
    LOCAL,
    Kept,
    entries_of,
    seal,
)

if TYPE_CHECKING:
    from uqeval.stores.earlier_states import EarlierStates

from uqeval.stores.states import SCHEMA, digest_of, tally_key

_RUN = "run.json"
_TOTALS = "totals"


def partial_path(path: str | Path) -> Path:
    """Return where the states of a run lie that is not done yet."""
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
        self,
        path: str | Path,
        run: Mapping[str, Any] | None = None,
        resume: bool = False,
        before: EarlierStates | None = None,
    ) -> None:
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
        name, partial = next(earlier, (_RUN, head))
        going = taken_over(partial, head) if name == _RUN else None
        if going is None:
            raise UsageError(
                f"--resume: {self.partial} is of another run: other stores, items, settings or "
                "version. Remove it, or repeat the command that was interrupted."
            )
        head, self._unstamped = going
        self.stamps: list[str | None] = json.loads(head).get("stamps", [])
        self._lock = lock(self.path)
        lock_name = own_name(self.partial)
        try:
            mend_states(self.path, self._reports())
            # Written anew, so that what was cut short at its end is gone.
            clear(self.partial)
            self._file = lock_name.open("w+b")
            hold(self._file.fileno())
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
            self._write(_RUN, head)
            for key, state in (before.states() if before else {}).items():
                self.found[key] = Kept(self._file.fileno(), state)
            self._totals: Kept[str] = Kept(self._file.fileno())
            self._take(earlier)
            self._file.flush()
            self._ino = os.fstat(self._file.fileno()).st_ino
            lock_name.replace(self.partial)
        except BaseException:  # an interrupt, too: no run continues from this file
            if hasattr(self, "_zip"):
                self._let_go()
            elif self._lock is not None:
                release(self._lock)
            lock_name.unlink(missing_ok=True)
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
            self._keep(f"{_TOTALS}/{digest_of(tally_key(parameters))}", data)

    def total(self, parameters: Mapping[str, Any]) -> bytes | None:
        """Return the state of all items together, if it is known."""
        key = tally_key(parameters)
        own = self._totals.get(digest_of(key))
        return own if own is not None or self._before is None else self._before.total(key)

    @property
    def unchanged(self) -> bool:
        """Return whether an earlier run was of the very same items."""
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
        full_index = {"schema": SCHEMA, "stamps": self.stamps, **index, "sealed": True}
        text = json.dumps(full_index, allow_nan=False)
        with _writing(self.path):
            self._write(INDEX, text.encode())
            self._zip.close()
            return seal(self._file)

    def put(self) -> None:
        """Rename the sealed file into place.

        Older states whose report this process replaces are kept until it has (`put_file`).
        """
        if not self._is_mine():
            raise OutputError(f"{cut(self.path)}: another run writes to it; give each its own -o.")
        with _writing(self.path):
            put_file(self._file, self.partial, self.path, keep_older=bool(self._reports()))
            self._file.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_mine = self._is_mine()
        self._let_go()
        interrupted = error is not None and not isinstance(error, Exception)
        if interrupted and self._resumable and self._held:
            assert error is not None
            error.add_note(f"{self.partial} has what was counted; --resume goes on from it.")
        elif is_mine:  # else it is of another run, which goes on
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
        raise OutputError(f"{cut(path)}: cannot be written: {error.strerror}.") from error
