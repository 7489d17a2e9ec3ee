"""States of tallies on disk: entries by tally and item, in a zip next to the report.

`tallies/<number>.json` has the id and parameters of a tally. `<number>/<item>`, or `<number>/<first
item>-<last item>` for consecutive items, has the packed states. `totals/<tally>` has the total of a
tally that is too large to be saved by item. The last entry, `index.json`, has the schema, the names
and records of items, the fingerprint of the data, and all that is needed to compute scores from the
states. The zip's comment is the digest of the file, which the report has too. During a run the file
is `.<name>.partial`. After a crash all its entries except the last are complete, and `--resume`
uses them.
"""

from __future__ import annotations

import errno
import weakref
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from uqeval.arrays import Ints
from uqeval.disk.files import open_file, parse_json
from uqeval.errors import StoreError, cut, quoted
from uqeval.spelling import for_caller
from uqeval.stores.states.blocks import Block, Blocks, Layer, PackedItems
from uqeval.stores.states.entries import (
    DAMAGED,
    INDEX,
    PLAIN,
    block_of,
    check_seal,
    digest_of,
    read_entry,
    tally_key,
    unpack_text,
)
from uqeval.unicode_names import in_one_spelling

SCHEMA = "uqeval.states/6"
#: Schemas that can be read. Up to 5, all states are wide and compressed by zlib; up to 4, the index
#: is not compressed; in 3, in addition, each item has an entry.
_READ = ("uqeval.states/3", "uqeval.states/4", "uqeval.states/5", SCHEMA)
_TOTALS = "totals"


class SavedStates:
    """An open states file: its `index`, and the packed states of each tally.

    `digest`: of the whole file, None for a file of an earlier version. Raises `StoreError` for
    another kind of file, another schema, and a file that was truncated or changed after it was
    written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            file = open_file(self.path)
            weakref.finalize(self, file.close)
            self._file = file.fileno()
            self.digest = check_seal(file, self.path)
            self._zip = zipfile.ZipFile(file)
            index = parse_json(self._text(INDEX))
        except FileNotFoundError as error:
            raise StoreError(
                f"{cut(path)}: {error.strerror}; expected the states file that "
                + for_caller(
                    "a run with -o FILE.json writes next to its report.", "states= writes."
                )
            ) from None
        except DAMAGED as error:
            raise self._no_states(error) from None
        if not isinstance(index, dict) or index.get("schema") not in _READ:
            schema = index.get("schema") if isinstance(index, dict) else None
            raise StoreError(
                f"{cut(path)}: states of schema {quoted(schema)}; this uqeval reads {SCHEMA!r}."
            )
        if index.get("sealed") and self.digest is None:  # files of earlier versions have none
            raise StoreError(
                f"{cut(path)} is not a states file: it has no checksum, so it is cut short."
            )
        self.index: dict[str, Any] = index
        self._check_form(allow_missing=True)
        _spell_names(index)
        #: The evaluated pixels of each item, by view; set by `checked_states`.
        self.evaluated: dict[str, tuple[Ints, str]] = {}
        try:
            self._numbers = {
                self._read(name).decode(): name.removeprefix("tallies/").removesuffix(".json")
                for name in self._zip.namelist()
                if name.startswith("tallies/")
            }
            self._known = [parse_json(key) for key in self._numbers]
            self._blocks: dict[str, Blocks] = {n: Blocks() for n in self._numbers.values()}
            for name in self._zip.namelist():
                number, first, items = block_of(name) or ("", 0, 0)
                if number in self._blocks and first + items <= len(index.get("items", ())):
                    self._blocks[number].add(Block(first, items, partial(self._read, name)))
        except DAMAGED as error:
            raise self._no_states(error) from None
        if not all(isinstance(parameters, dict) for parameters in self._known):
            raise StoreError(
                f"{cut(path)} is not a states file: a tally's parameters are not an object."
            )

    def _no_states(self, error: Exception) -> StoreError:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            return StoreError(
                f"{cut(self.path)} cannot be read: {error.strerror}. Check the disk and the "
                "permissions."
            )
        reason = "it is damaged"
        if type(error) is ValueError:  # of uqeval
            reason = cut(error)
        elif isinstance(error, OSError):
            reason = cut(error.strerror)
        elif isinstance(error, zipfile.BadZipFile):
            reason = "it is not a zip file, or cut short"
        return StoreError(
            f"{cut(self.path)} is not a states file: {reason}. Run the evaluation again."
        )

    @classmethod
    def of_run(cls, path: str | Path) -> SavedStates:
        """Open the states of a run, whose index has all that scoring requires."""
        states = cls(path)
        states._check_form()
        return states

    def _check_form(self, allow_missing: bool = False) -> None:
        """Raise `StoreError` for an index that uqeval does not write."""
        from uqeval.stores.states.form import check_index

        try:
            check_index(self.index, allow_missing)
        except ValueError as error:
            raise StoreError(
                f"{cut(self.path)} is damaged: {error}. Run the evaluation again."
            ) from None

    def blocks(self, parameters: Mapping[str, Any]) -> Iterator[PackedItems]:
        """Yield the packed states of a tally, in the order of items. Raises `StoreError`."""
        number = self._numbers.get(tally_key(parameters))
        if number is None:
            raise StoreError(
                f"{cut(self.path)} holds no states of {parameters.get('id')} with these settings; "
                "run the evaluation again."
            )
        items = len(self.index["items"])
        if not self._blocks[number].cover(items):
            raise StoreError(
                f"{cut(self.path)} does not have the states {number} of each of its {items} items "
                "once. Run the evaluation again."
            )
        for block in self._blocks[number]:
            try:
                yield PackedItems(block.read(), block.items)
            except DAMAGED as error:
                raise StoreError(
                    f"{cut(self.path)} has no state {number}/{block.first}: {cut(error)}. Run the "
                    "evaluation again."
                ) from None

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        """Yield the state of each item of a tally, of at most `most` bytes, in the order of items.

        Raises `StoreError`, and `ValueError` for a damaged block of states.
        """
        for block in self.blocks(parameters):
            yield from block.states(most)

    def layer(self, key: str, places: Mapping[int, int] | None) -> Layer:
        """Return the states of the tally with a key (`tally_key`). `places`: the index in this file
        of each item; None if the indices are equal.
        """
        return Layer(self._blocks[self._numbers[key]], places)

    def total(self, key: str) -> bytes:
        """Return the packed total of the tally with a key.

        If it is damaged, raises the errors of `zipfile`, `KeyError` or `ValueError`.
        """
        return self.total_named(digest_of(key))

    def total_named(self, name: str) -> bytes:
        """Return the packed total of a tally by name, as `total` does."""
        return self._read(f"{_TOTALS}/{name}")

    def has_total(self, key: str) -> bool:
        """Return whether there is a total of the tally with a key."""
        return f"{_TOTALS}/{digest_of(key)}" in self._zip.NameToInfo

    def totals(self) -> list[str]:
        """Return the names (`digest_of` a key) of tallies with a total."""
        names = self._zip.namelist()
        return [name.removeprefix(f"{_TOTALS}/") for name in names if name.startswith(_TOTALS)]

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of each tally with states by item."""
        return list(self._known)

    def _text(self, name: str) -> bytes:
        """Return the text of an entry; entries of earlier versions are uncompressed."""
        if name not in self._zip.NameToInfo:
            return self._read(PLAIN[name])
        return unpack_text(self._read(name))

    def _read(self, name: str) -> bytes:
        if name not in self._zip.NameToInfo:
            raise ValueError(f"it has no entry {quoted(name)}")
        return read_entry(self._file, self._zip.getinfo(name))


def _spell_names(index: dict[str, Any]) -> None:
    """Spell the names of items as names of stores: earlier versions kept their spelling."""
    items = index.get("items", [])
    names = list(in_one_spelling(items))
    if names == items:
        return
    index["items"] = names
    for record, name in zip(index.get("records", ()), names, strict=False):
        record["name"] = name
    if "names" in (facts := index.get("facts", {})):
        facts["names"] = list(in_one_spelling(facts["names"]))
