"""Write a states file: `.<name>.partial` during a run, renamed at the end."""

from __future__ import annotations

import functools
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uqeval.disk.files import as_given
from uqeval.disk.locks import clear, held_beside, hidden, hold, lock, own_name, release
from uqeval.disk.publishing import put_file, repair_states, writing
from uqeval.errors import ClusterError, OutputError, UsageError, cut
from uqeval.stores.states.blocks import Block, Blocks, ItemBlocks, KnownStates, Layer, PackedItems
from uqeval.stores.states.earlier import EarlierStates, taken_over
from uqeval.stores.states.entries import (
    INDEX,
    LOCAL,
    RUN,
    block_name,
    block_of,
    digest_of,
    entries_of,
    json_pieces,
    pack_text,
    seal,
    unpack_text,
)
from uqeval.stores.states.saved import SCHEMA
from uqeval.threads import uninterrupted

_TOTALS = "totals"


def partial_path(path: str | Path) -> Path:
    """Return the path of the states of an unfinished run."""
    return hidden(Path(path), "partial")


class StatesWriter:
    """Collects states in a file next to `path`, and renames the file at the end.

    `run` describes what is counted (stores, settings); its `stamps` change when an item's data do.
    With `resume`, the states of an interrupted run of the same data are `known` by tally and item.
    So are the states of an earlier run `before`. They stay in the file, not in memory. As a
    context: an interrupt keeps the collected states, so that the run can be resumed; other
    exceptions remove them. Raises `OutputError` if the file cannot be written, `UsageError` if
    `resume` finds the states of another run.
    """

    def __init__(
        self,
        path: str | Path,
        run: Mapping[str, Any] | None = None,
        resume: bool = False,
        before: EarlierStates | None = None,
        blocks: ItemBlocks | None = None,
    ) -> None:
        self.path = Path(path)
        self._blocks = blocks
        self._before = before
        self.partial = partial_path(path)
        #: States of an interrupted run, then those of an earlier one, by key of the tally.
        self._known: dict[str, list[Layer]] = {}
        self._resumable = run is not None
        #: Items of the interrupted run that this run counts again.
        self.recounted: set[int] = set()
        self._numbers: dict[str, int] = {}
        #: The numbers of the tallies in the file.
        self._named: set[int] = set()
        #: By number of the tally: 1 for each item whose state is in the file, else 0.
        self._held: dict[int, bytearray] = {}
        #: By number of the tally and first item of a block: the states of an incomplete block.
        self._waiting: dict[tuple[int, int], dict[int, PackedItems]] = {}
        self._totals: dict[str, tuple[int, int]] = {}
        record = dict(run or {})
        head = as_given(json.dumps(record, sort_keys=True)).encode()
        earlier: Iterator[tuple[str, bytes]] = iter(())
        #: Items of an interrupted run whose changes cannot be detected.
        self._unstamped: frozenset[int] = frozenset()
        if resume and self.partial.exists():
            earlier = entries_of(self.partial)
            head, self._unstamped = self._interrupted(*next(earlier, (RUN, b"")), head)
            record = json.loads(head)
        self._items = len(record.get("items", ()))
        self.stamps: list[str | None] = record.get("stamps", [])
        self._lock = lock(self.path)
        self._begin(head, earlier)

    def _interrupted(self, name: str, partial: bytes, head: bytes) -> tuple[bytes, frozenset[int]]:
        """Return `run.json` and the unstamped items of the run to resume; see `taken_over`.

        `name` and `partial`: the first entry of its file, if any. Raises `UsageError` for another
        run.
        """
        going = None if partial else (head, frozenset[int]())
        with suppress(ValueError):
            if name == RUN:
                going = taken_over(unpack_text(partial), head)
        if going is None:
            raise UsageError(
                f"--resume: {self.partial} is of another run: other stores, items, settings or "
                "version. Remove it, or repeat the command that was interrupted."
            )
        return going

    def _begin(self, head: bytes, earlier: Iterator[tuple[str, bytes]]) -> None:
        """Start the file: first what is counted, then the entries of an interrupted run."""
        before = self._before
        lock_name = own_name(self.partial)
        try:
            repair_states(self.path, self._reports())
            # A new file, so a truncated last entry is dropped.
            clear(self.partial)
            self._file = lock_name.open("w+b")
            hold(self._file.fileno())
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
            self._write(RUN, pack_text(lambda: [head]))
            self._take(earlier)
            for key, layer in (before.states() if before else {}).items():
                self._known.setdefault(key, []).append(layer)
            self._file.flush()
            self._ino = os.fstat(self._file.fileno()).st_ino
            lock_name.replace(self.partial)
        except BaseException:  # also for an interrupt: no run continues from this file
            if hasattr(self, "_zip"):
                self._let_go()
            elif self._lock is not None:
                release(self._lock)
            lock_name.unlink(missing_ok=True)
            with writing(self.path):
                raise

    def __enter__(self) -> StatesWriter:
        return self

    def known(self, key: str, most: int) -> KnownStates:
        """Return the known states of the tally with a key (`tally_key`).

        `most`: the largest number of bytes of a state.
        """
        return KnownStates(self._known.get(key, ()), most)

    def add(self, key: str, first: int, states: PackedItems) -> None:
        """Add the states of the tally with a key for consecutive items, from `first` on.

        The items are in one block of `blocks`, which is written once it is complete. States that
        are already in the file are skipped.
        """
        with writing(self.path):
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
            self._add(self._numbers[key], first, states)

    def add_total(self, key: str, state: bytes) -> None:
        """Add the total of the tally with a key."""
        self.add_packed_total(digest_of(key), PackedItems.of([state]).data)

    def add_packed_total(self, name: str, data: bytes) -> None:
        """Add the packed total of a tally by name (`digest_of` its key)."""
        if name not in self._totals:
            with writing(self.path):
                self._totals[name] = self._write(f"{_TOTALS}/{name}", data)
                self._file.flush()

    def total(self, key: str, most: int) -> bytes | None:
        """Return the packed total of the tally with a key, if it is known."""
        name = digest_of(key)
        if name in self._totals:
            data = self._at(*self._totals[name])
        elif self._before is not None and (before := self._before.total(key)) is not None:
            data = before
        else:
            return None
        return PackedItems(data, 1).states(most)[0]

    @property
    def unchanged(self) -> bool:
        """Return whether an earlier run had the same items, all unchanged."""
        return self._before is not None and self._before.unchanged

    def _add(self, number: int, first: int, states: PackedItems) -> None:
        if all(self._held_of(number, first + states.items)[first : first + states.items]):
            return
        block = self._block_of(first, states)
        waiting = self._waiting.setdefault((number, block.start), {})
        waiting[first] = states
        if sum(part.items for part in waiting.values()) >= len(block):
            self._write_waiting(number, block.start)
            self._file.flush()

    def _block_of(self, first: int, states: PackedItems) -> range:
        return self._blocks.of(first) if self._blocks else range(first, first + states.items)

    def _write_waiting(self, number: int, block: int) -> None:
        """Write the collected states of a block; consecutive items become one entry."""
        rows: list[tuple[int, list[PackedItems]]] = []
        end = -1
        for first, states in sorted(self._waiting.pop((number, block)).items()):
            if first != end:
                rows.append((first, []))
            rows[-1][1].append(states)
            end = first + states.items
        for first, parts in rows:
            self._write_block(number, first, PackedItems.joined(parts))

    def _held_of(self, number: int, items: int) -> bytearray:
        held = self._held.setdefault(number, bytearray())
        held.extend(bytes(max(items - len(held), 0)))
        return held

    def _write_block(self, number: int, first: int, states: PackedItems) -> tuple[int, int]:
        if number not in self._named:
            self._named.add(number)
            key = next(key for key, of in self._numbers.items() if of == number)
            self._write(f"tallies/{number}.json", key.encode())
        place = self._write(block_name(number, first, states.items), states.data)
        end = first + states.items
        self._held_of(number, end)[first:end] = b"\1" * states.items
        return place

    def _at(self, at: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, at)

    def finish(self, index: Mapping[str, Any]) -> str:
        """Write the index and rename the file into place; return the digest of the file."""
        digest = self.seal(index)
        self.put()
        return digest

    def seal(self, index: Mapping[str, Any]) -> str:
        """Write the index, which completes `partial`; return its digest."""
        full_index = {"schema": SCHEMA, "stamps": self.stamps, **index, "sealed": True}
        text = pack_text(lambda: json_pieces(full_index))
        with writing(self.path):
            self._write(INDEX, text)
            self._zip.close()
            return seal(self._file)

    def put(self) -> None:
        """Rename the sealed file into place.

        Older states are kept until this process has replaced their report (`put_file`).
        """
        if not self._is_mine():
            raise OutputError(
                f"{cut(self.path)}: another run writes to it; give each run its own output."
            )
        with writing(self.path):
            put_file(self._file, self.partial, self.path, keep_older=bool(self._reports()))
            self._file.close()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        is_mine = self._is_mine()
        interrupted = isinstance(error, ClusterError) or (
            error is not None and not isinstance(error, Exception)
        )
        if interrupted and self._resumable and is_mine:
            with suppress(OSError, ValueError):
                for number, block in list(self._waiting):
                    self._write_waiting(number, block)
        self._let_go()
        if interrupted and self._resumable and (any(map(any, self._held.values())) or self._totals):
            assert error is not None
            error.add_note(f"{self.partial} has the finished items; --resume continues from it.")
        elif is_mine:  # otherwise it belongs to another run, which continues
            self.partial.unlink(missing_ok=True)

    def _reports(self) -> list[Path]:
        """Return the files that this process replaces, except the states: the report, a table."""
        return held_beside(self.path, self.path.name.removesuffix(".states.zip"))

    def _is_mine(self) -> bool:
        try:
            return self.partial.stat().st_ino == self._ino
        except OSError:
            return False

    def _let_go(self) -> None:
        # Without its file, the archive writes nothing when it is deleted.
        self._zip.fp = None
        with suppress(OSError):  # the disk refuses it again
            self._file.close()
        if self._lock is not None:
            release(self._lock)
            self._lock = None

    def _write(self, name: str, data: bytes) -> tuple[int, int]:
        """Append an entry; return the position of its data in the file, and its size."""
        # A fixed date, so that equal states give equal files.
        info = zipfile.ZipInfo(name)
        with uninterrupted():  # an archive whose entry is half open prints a traceback at the end
            self._zip.writestr(info, data)
        return info.header_offset + LOCAL.size + len(name.encode()), len(data)

    def _take(self, entries: Iterator[tuple[str, bytes]]) -> None:
        """Copy the entries of an interrupted run, up to the first that is invalid."""
        keys: dict[int, str] = {}
        blocks: dict[int, Blocks] = {}
        for name, data in entries:
            head, _, last = name.partition("/")
            if head == _TOTALS:
                if not self._unstamped:
                    self._totals[last] = self._write(name, data)
                continue
            if head == "tallies":
                number = last.removesuffix(".json")
                if not number.isdecimal():
                    return
                keys[int(number)] = key = data.decode()
                self._numbers[key], blocks[int(number)] = int(number), Blocks()
                self._known[key] = [Layer(blocks[int(number)])]
                continue
            block = block_of(name)
            if block is None or (tally := int(block[0])) not in keys:
                return
            _, first, items = block
            if first + items > self._items:
                return
            if unstamped := self._unstamped.intersection(range(first, first + items)):
                self.recounted |= unstamped
            elif not any(self._held_of(tally, first + items)[first : first + items]):
                self._take_block(tally, first, PackedItems(data, items), blocks[tally])

    def _take_block(self, tally: int, first: int, states: PackedItems, known: Blocks) -> None:
        """Reuse the states of some items: a complete block is copied to the file."""
        block = self._block_of(first, states)
        if len(block) == states.items:
            place = self._write_block(tally, first, states)
            known.add(Block(first, states.items, functools.partial(self._at, *place)))
        else:
            self._waiting.setdefault((tally, block.start), {})[first] = states
            known.add(Block(first, states.items, lambda: states.data))
