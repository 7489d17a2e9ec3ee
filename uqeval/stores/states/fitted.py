"""The file of `uqeval merge --fit`: the sums of all shards of a run so far.

It has the total of each tally of the finished passes. From these, each shard computes what the next
pass needs: thresholds, bins of ranks, temperatures. It has no states of items, so its size does not
grow with their number. States of the next pass record its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqeval.disk.files import json_text, read_json
from uqeval.errors import FormError, StoreError, cut, quoted
from uqeval.stores.states.blocks import PackedItems

SCHEMA = "uqeval.fitted/1"


@dataclass(frozen=True)
class PackedTotal:
    """The packed total of a tally over all items, and over some items by `name_of_items`."""

    total: bytes
    of_items: Mapping[str, bytes]

    def state(self, most: int, items: Sequence[int] | None = None) -> bytes:
        """Return the total over all items or some, of at most `most` bytes.

        Raises `ValueError` for damaged bytes, `KeyError` for items without a total.
        """
        data = self.total if items is None else self.of_items[name_of_items(items)]
        return PackedItems(data, 1).states(most)[0]

    def record(self) -> dict[str, Any]:
        """Return the JSON of the totals."""
        texts = {name: _text(data) for name, data in self.of_items.items()}
        return {"total": _text(self.total)} | ({"of_items": texts} if texts else {})


@dataclass(frozen=True)
class FittedFile:
    """The content of a file of fits.

    `passes`: the number of passes that all shards have counted. `unfinished`: the keys of results
    that need another pass. `shards`: the digests of their states files, in order. `run`: what was
    evaluated. `totals`: by `digest_of` a tally's key. `digest`: of the file. `warnings`: about the
    shards; the file does not have them.
    """

    path: Path
    passes: int
    unfinished: tuple[str, ...]
    shards: tuple[str, ...]
    run: Mapping[str, Any]
    totals: Mapping[str, PackedTotal]
    digest: str = ""
    warnings: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the file as JSON, with its digest."""
        record = {
            "schema": SCHEMA, "passes": self.passes, "unfinished": list(self.unfinished),
            "shards": list(self.shards), "run": self.run,
            "totals": {name: total.record() for name, total in self.totals.items()},
        }  # fmt: skip
        return json_text(record | {"digest": _digest(record)}, indent=1)

    @classmethod
    def load(cls, path: str | Path) -> FittedFile:
        """Read a file. Raises `StoreError` for another kind of file, and for one that was changed
        after it was written.
        """
        try:
            record = read_json(path)
        except OSError as error:
            raise StoreError(
                f"{cut(path)}: {error.strerror}; expected the file that `uqeval merge --fit SHARDS "
                "-o FILE` writes."
            ) from None
        except ValueError as error:
            raise _no_fits(path, str(error)) from None
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            schema = record.get("schema") if isinstance(record, dict) else None
            raise _no_fits(path, f"its schema is {quoted(schema)}, not {SCHEMA!r}")
        from uqeval.disk.forms import formed
        from uqeval.stores.states.form import Fits

        try:
            formed(Fits, record)
        except FormError as error:
            raise _no_fits(path, str(error)) from None
        digest = record.pop("digest")
        if digest != _digest(record):
            raise _no_fits(path, "it was changed after it was written: its digest does not match")
        try:
            totals = {name: _packed(total) for name, total in record["totals"].items()}
        except ValueError:
            raise _no_fits(path, "its totals are damaged: they are not in base 64") from None
        return cls(
            Path(path), record["passes"], tuple(record["unfinished"]), tuple(record["shards"]),
            record["run"], totals, digest,
        )  # fmt: skip


def name_of_items(items: Sequence[int]) -> str:
    """Return a name for a set of items by their indices, equal for equal sets."""
    return hashlib.sha256(json.dumps(list(items)).encode()).hexdigest()[:32]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _packed(record: Mapping[str, Any]) -> PackedTotal:
    of_items = {name: _bytes(text) for name, text in record.get("of_items", {}).items()}
    return PackedTotal(_bytes(record["total"]), of_items)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True)  # NaN in a file that was changed is another text
    return hashlib.sha256(text.encode()).hexdigest()


def _no_fits(path: str | Path, reason: str) -> StoreError:
    return StoreError(
        f"{cut(path)} is not a file of `uqeval merge --fit`: {cut(reason)}. Make it again from "
        f"the "
        "states of all shards."
    )
