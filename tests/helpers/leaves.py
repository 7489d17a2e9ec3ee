"""Replace every entry of reports, verdicts and saved states by hostile values.

The checksums are correct, so the test is about how a reader handles the value.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forged

from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import MOST, block_of

Address = tuple[Any, ...]

#: Replacements of a value of a document.
VALUES: tuple[Any, ...] = (-1, 10**300, float("nan"), {"a": 1}, "A" * 10**5, None, [[]], True)
#: Replacements of a number of a packed state, integers and floats.
COUNTS = (
    *(struct.pack("<q", n) for n in (-1, -(10**9), 2**53, 2**62)),
    *(struct.pack("<d", x) for x in (float("nan"), float("inf"), -1.0)),
)
#: Bytes of a packed state before its numbers, and of a number.
_MARK, _WORD = 4, 8

_CI = "--ci 0.9 --draws 100"
_VERIFIED = "--selftest selftest.json --verify verification.json"
#: Commands that read a report and its states, by the report.
COMMANDS: dict[str, tuple[str, ...]] = {
    "r": (
        "gate r.json gate.yaml", "compare r.json b.json --draws 100", f"merge r.json {_CI} -o -",
        "report r.json -o out/p.html", f"evidence r.json {_VERIFIED} -o out/e",
        "verify r.json c3.zarr", "merge r.json -o -", "select r.json",
    ),
    "n": (
        "gate n.json gate_n.yaml", "compare n.json n2.json --all --per-class --draws 100",
        f"merge n.json {_CI} -o -", "report n.json -o out/p.html",
        f"evidence n.json {_VERIFIED} -o out/e", "verify n.json d3.zarr",
    ),
    "t": (
        "gate t.json gate_t.yaml", "report t.json --verdicts v.json -o out/p.html",
        f"merge t.json {_CI} -o -", "verify t.json video video/predictions", "select t.json",
        f"evidence t.json {_VERIFIED} -o out/e",
    ),
    "v": (
        "report t.json --verdicts v.json -o out/p.html",
        f"evidence t.json --verdicts v.json {_VERIFIED} -o out/e",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """One entry of a file, and a value for it."""

    file: str
    entry: str
    address: Address
    number: int
    commands: tuple[str, ...]
    change: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.entry}: {'.'.join(map(str, self.address))}"


def addresses(value: Any, above: Address = ()) -> Iterator[Address]:
    """The addresses of all values that hold no other values; of a list, of the first and last."""
    if isinstance(value, dict) and value:
        for key in value:
            yield from addresses(value[key], (*above, key))
    elif isinstance(value, list) and value:
        for key in sorted({0, len(value) - 1}):
            yield from addresses(value[key], (*above, key))
    else:
        yield above


def replaced(document: Any, address: Address, value: Any) -> bytes:
    """A JSON document with one other value."""
    document = deepcopy(document)
    holder = document
    for key in address[:-1]:
        holder = holder[key]
    holder[address[-1]] = value
    return json.dumps(document).encode()


def leaves(base: Path, turn: int) -> Iterator[Leaf]:
    """All leaves of the files in `base`; each turn gives them other values and other commands."""
    number = turn
    for name, commands in COMMANDS.items():
        for make in (_of_report, _of_index, _of_counts):
            for file, entry, address, change in make(base, name):
                yield Leaf(file, entry, address, number, commands, change(number))
                number += 1


_Found = Iterator[tuple[str, str, Address, Callable[[int], Callable[[Path], None]]]]


def _of_report(base: Path, name: str) -> _Found:
    document = json.loads((base / f"{name}.json").read_bytes())
    for address in addresses(document):

        def change(number: int, at: Address = address) -> Callable[[Path], None]:
            value = VALUES[number % len(VALUES)]
            return lambda work: _write(
                work / f"{name}.json", forged.with_checksum(replaced(document, at, value))
            )

        yield f"{name}.json", "report", address, change


def _of_index(base: Path, name: str) -> _Found:
    path = base / f"{name}.states.zip"
    entries = forged.entries_of(path) if path.exists() else {}
    for entry, data in entries.items():
        if not entry.endswith(".json"):
            continue
        document = json.loads(data)
        for address in addresses(document):

            def change(
                number: int, entry: str = entry, document: Any = document, at: Address = address
            ) -> Callable[[Path], None]:
                value = VALUES[number % len(VALUES)]
                return lambda work: _reseal(
                    work, name, entries | {entry: replaced(document, at, value)}
                )

            yield path.name, entry, address, change


def _of_counts(base: Path, name: str) -> _Found:
    path = base / f"{name}.states.zip"
    entries = forged.entries_of(path) if path.exists() else {}
    for entry, data in entries.items():
        _, first, items = block_of(entry) or ("", -1, 1)
        if first != 0 and not entry.startswith("totals/"):
            continue
        states = PackedItems(data, items).states(MOST)
        for item in sorted({0, items - 1}):
            for word in spread((len(states[item]) - _MARK) // _WORD):

                def change(
                    number: int,
                    entry: str = entry,
                    states: list[bytes] = states,
                    item: int = item,
                    at: int = _MARK + _WORD * word,
                ) -> Callable[[Path], None]:
                    value = COUNTS[number % len(COUNTS)]
                    changed = states[item][:at] + value + states[item][at + _WORD :]
                    packed = PackedItems.of([*states[:item], changed, *states[item + 1 :]]).data
                    return lambda work: _reseal(work, name, entries | {entry: packed})

                yield path.name, entry, (item, word), change


def spread(count: int) -> Sequence[int]:
    """Return at most 12 of the numbers, including the first and the last."""
    return sorted({round(i * (count - 1) / 11) for i in range(12)}) if count > 0 else []


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _reseal(work: Path, name: str, entries: dict[str, bytes]) -> None:
    digest = forged.write_entries(work / f"{name}.states.zip", entries)
    report = work / f"{name}.json"
    document = json.loads(report.read_bytes())
    report.write_text(json.dumps(document | {"states_digest": digest}))
