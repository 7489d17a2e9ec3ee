"""Hostile texts, and forged states files with correct checksums."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from uqeval.gate.saved_verdicts import KEY, checksum_of
from uqeval.stores.states.entries import PLAIN, pack_text, seal, unpack_text

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


def _packed(text: bytes) -> bytes:
    return pack_text(lambda: [text])


def write_entries(path: Path, entries: Mapping[str, bytes]) -> str:
    """Write a states file of these entries; return its digest."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            if name in PLAIN.values():
                name, data = f"{name}.z", _packed(data)
            archive.writestr(zipfile.ZipInfo(name), data)
    return reseal(path)


def reseal(path: Path) -> str:
    """Give a states file the checksum that fits; return it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b""
    with path.open("r+b") as file:
        return seal(file)
