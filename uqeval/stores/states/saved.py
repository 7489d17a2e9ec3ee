"""States of tallies on disk: entries by tally and item, in a zip beside the report.

What it holds: `tallies/<number>.json`, the id and parameters of each tally; `<number>/<item>`, or
`<number>/<first item>-<last item>` of several in a row, the packed states; `totals/<tally>`, those
of all items together of tallies that are too large to be kept by item; and last `index.json` with
the schema, the item names and records, the fingerprint of what was counted and all that it takes to
read scores off the states again. The zip's comment holds the digest of the file, which the report
names too.

While a run goes on the file grows as `.<name>.partial`; what a killed run has left there is whole
but for its last entry, and is what `--resume` goes on from.
"""

from __future__ import annotations

import hashlib
import json
import weakref
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import open_file
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.states.blocks import Block, Blocks, Layer, PackedItems
from uqeval.stores.states.entries import (
    DAMAGED,
    INDEX,
    PLAIN,
    block_of,
    check_seal,
    read_entry,
    unpack_text,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = "uqeval.states/5"
#: The schema that packs the states of items alike: they are used again.
ITEMS_SCHEMA = "uqeval.states/4"
#: Schemas that are read. In 4 the index is not compressed; in 3 also each item has an entry.
_READ = ("uqeval.states/3", "uqeval.states/4", SCHEMA)
_TOTALS = "totals"
#: What an index holds, as JSON has it.
_KINDS: dict[str, type] = {
    "items": list, "records": list, "settings": dict, "fitted": dict, "facts": dict,
    "metrics": dict, "inputs": dict, "results": dict, "stamps": list, "rounds": dict,
}  # fmt: skip


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
            index = json.loads(self._text(INDEX))
        except FileNotFoundError as error:
            raise StoreError(
                f"{cut(path)}: {error.strerror}; expected the states that a run leaves beside its "
                "report, as -o FILE.json writes it."
            ) from None
        except DAMAGED as error:
            raise StoreError(f"{cut(path)}: is no states file: {cut(error)}.") from None
        if not isinstance(index, dict) or index.get("schema") not in _READ:
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
        #: By view: the evaluated pixels of each item, as `checked_states` has them.
        self.evaluated: dict[str, tuple[NDArray[np.int64], str]] = {}
        try:
            self._numbers = {
                self._read(name).decode(): name.removeprefix("tallies/").removesuffix(".json")
                for name in self._zip.namelist()
                if name.startswith("tallies/")
            }
            self._known = [json.loads(key) for key in self._numbers]
            self._blocks: dict[str, Blocks] = {n: Blocks() for n in self._numbers.values()}
            for name in self._zip.namelist():
                number, first, items = block_of(name) or ("", 0, 0)
                if number in self._blocks and first + items <= len(index.get("items", ())):
                    self._blocks[number].add(Block(first, items, partial(self._read, name)))
        except DAMAGED as error:
            raise StoreError(f"{cut(path)}: is no states file: {cut(error)}.") from None
        if not all(isinstance(parameters, dict) for parameters in self._known):
            raise StoreError(f"{cut(path)}: is no states file: a tally's parameters are no object.")

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether there are states of a tally of these parameters."""
        return tally_key(parameters) in self._numbers

    def blocks(self, parameters: Mapping[str, Any]) -> Iterator[PackedItems]:
        """Yield the packed states of a tally, in the order of items. Raises `StoreError`."""
        number = self._numbers.get(tally_key(parameters))
        if number is None:
            raise StoreError(
                f"{cut(self.path)}: holds no states of {parameters.get('id')} with these settings; "
                "run the evaluation again."
            )
        items = len(self.index["items"])
        if not self._blocks[number].cover(items):
            raise StoreError(
                f"{cut(self.path)}: does not have the states {number} of each of its {items} items "
                "once. Run the evaluation again."
            )
        for block in self._blocks[number]:
            try:
                yield PackedItems(block.read(), block.items)
            except DAMAGED as error:
                raise StoreError(
                    f"{cut(self.path)}: has no state {number}/{block.first}: {cut(error)}. Run the "
                    "evaluation again."
                ) from None

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        """Yield the state of each item of a tally, of `most` bytes at most, in the order of items.

        Raises `StoreError`, and `ValueError` for a block of states that is damaged.
        """
        for block in self.blocks(parameters):
            yield from block.states(most)

    def layer(self, key: str, places: Mapping[int, int] | None) -> Layer:
        """Return the states of the tally of a key (`tally_key`), of items that had the `places`
        (None: those that they have)."""
        return Layer(self._blocks[self._numbers[key]], places)

    def total(self, key: str) -> bytes:
        """Return the packed state of all items together of the tally of a key.

        Raises what `zipfile` does, and `KeyError` or `ValueError`, where it is damaged.
        """
        return self.total_named(digest_of(key))

    def total_named(self, name: str) -> bytes:
        """Return the packed state of all items together of a tally by name, as `total` does."""
        return self._read(f"{_TOTALS}/{name}")

    def has_total(self, key: str) -> bool:
        """Return whether there is a state of all items together of the tally of a key."""
        return f"{_TOTALS}/{digest_of(key)}" in self._zip.NameToInfo

    def totals(self) -> list[str]:
        """Return the names (`digest_of` a key) of tallies with a state of all items together."""
        names = self._zip.namelist()
        return [name.removeprefix(f"{_TOTALS}/") for name in names if name.startswith(_TOTALS)]

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of every tally that has states by item."""
        return list(self._known)

    def _text(self, name: str) -> bytes:
        """Return the text of an entry, which earlier versions did not compress."""
        if name not in self._zip.NameToInfo:
            return self._read(PLAIN[name])
        return unpack_text(self._read(name))

    def _read(self, name: str) -> bytes:
        return read_entry(self._file, self._zip.getinfo(name))
