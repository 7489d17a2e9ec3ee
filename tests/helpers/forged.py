"""Hostile texts, and forged states files with correct checksums."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.gate.saved_verdicts import KEY, checksum_of
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import PLAIN, block_of, pack_text, seal, unpack_text
from uqeval.tallies._contract import Tally

#: Words and marks without order: no word repeats, and none is long.
VARIED = "".join(
    f"{hashlib.sha256(bytes([n])).hexdigest()[: 3 + n % 7]}{'.,;:()[]{}'[n % 10]} "
    for n in range(250)
)


def repeated(text: str) -> bool:
    """Return whether a text repeats more than 200 characters of `VARIED`."""
    return any(VARIED[at : at + 201] in text for at in range(len(VARIED) - 200))


def with_checksum(data: bytes) -> bytes:
    """Return a JSON record with the checksum that fits, if it has one."""
    try:
        record = json.loads(data)
        if isinstance(record, dict) and KEY in record:
            record[KEY] = checksum_of(record)
            return json.dumps(record).encode()
    except (ValueError, RecursionError):  # the checksum of such a record is not defined
        pass
    return data


def entries_of(path: Path) -> dict[str, bytes]:
    """The entries of a states file, in their order; compressed texts by their plain names."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    return {
        PLAIN.get(name, name): unpack_text(data) if name in PLAIN else data
        for name, data in entries.items()
    }


def write_entries(path: Path, entries: Mapping[str, bytes]) -> str:
    """Write a states file of these entries; return its digest."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            if name in PLAIN.values():
                name, data = f"{name}.z", pack_text(lambda text=data: [text])
            archive.writestr(zipfile.ZipInfo(name), data)
    return reseal(path)


def reseal(path: Path) -> str:
    """Give a states file the checksum that fits; return it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b""
    with path.open("r+b") as file:
        return seal(file)


def forge(
    path: Path, tally: Tally, change: Callable[[dict[str, np.ndarray[Any, Any]]], None]
) -> str:
    """Change the state of the first item of a tally; return the new digest of the file."""
    from uqeval.stores.states.entries import tally_key
    from uqeval.stores.states.saved import SavedStates

    saved = SavedStates(path)
    number = saved._numbers[tally_key(tally.parameters())]
    entries = entries_of(path)
    name = next(name for name in entries if block_of(name) and name.startswith(f"{number}/0"))
    _, _, items = block_of(name)
    states = PackedItems(entries[name], items).states(tally.most_bytes)
    state = tally.unpack(states[0])
    change(state)
    entries[name] = PackedItems.of([tally.pack(state), *states[1:]]).data
    return write_entries(path, entries)
