"""States of unchanged items: of an earlier run saved at the same path, or of a run to resume."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from uqeval.errors import StoreError
from uqeval.stores.states.blocks import Layer
from uqeval.stores.states.entries import DAMAGED, tally_key
from uqeval.stores.states.saved import SavedStates


class EarlierStates:
    """The states file of an earlier run, and its items that have not changed.

    Items match by name, in any order; equal `stamps` mean unchanged. Without a readable file there
    are no such items, and the new file replaces it. Nor are there any if some were counted on a
    processor of other `last_digits` (a digest), such as on a worker.
    """

    def __init__(
        self,
        path: str | Path,
        names: Sequence[str],
        stamps: Sequence[str | None],
        last_digits: str,
    ) -> None:
        try:
            self._saved = SavedStates(path) if Path(path).is_file() else None
        except StoreError:
            self._saved = None
        index = self._saved.index if self._saved is not None else {}
        if not {last_digits}.issuperset(index.get("last_digits", ())):
            self._saved, index = None, {}
        pairs = zip(index.get("items", ()), index.get("stamps", ()), strict=False)
        earlier_stamps = {
            name: (stamp, i) for i, (name, stamp) in enumerate(pairs) if isinstance(name, str)
        }
        unchanged = {
            item: earlier_stamps[name][1]
            for item, (name, stamp) in enumerate(zip(names, stamps, strict=True))
            if stamp is not None and name in earlier_stamps and earlier_stamps[name][0] == stamp
        }
        self._same = unchanged
        #: Whether the earlier run had the same items in the same order, all unchanged.
        self.unchanged = list(unchanged.values()) == list(range(len(index.get("items", ())))) and (
            len(unchanged) == len(names) > 0
        )

    def states(self) -> dict[str, Layer]:
        """Return the states of unchanged items, by tally."""
        if self._saved is None or not self._same:
            return {}
        keys = map(tally_key, self._saved.parameters())
        places = None if self.unchanged else self._same
        return {key: self._saved.layer(key, places) for key in keys}

    def total(self, key: str) -> bytes | None:
        """Return the packed total of a tally (`tally_key`) over all items, if it is known."""
        if self._saved is None or not self.unchanged:
            return None
        try:
            return self._saved.total(key)
        except DAMAGED:
            return None


def taken_over(partial: bytes, head: bytes) -> tuple[bytes, frozenset[int]] | None:
    """Return the content of `run.json` of a resumed run, and the items that are counted again.

    `partial`: its content in the interrupted run; `head`: its content now. None if the runs differ,
    or an item's data changed. Stamps come from the first run, which read the items; items without
    one get a new stamp.
    """
    before, current = json.loads(partial), json.loads(head)
    old, new = before.pop("stamps", []), current.pop("stamps", [])
    if before != current or len(old) != len(new):
        return None
    if any(new_stamp not in (two, None) for new_stamp, two in zip(old, new, strict=True)):
        return None
    if not old:
        return partial, frozenset()
    stamps = [
        two if old_stamp is None else old_stamp for old_stamp, two in zip(old, new, strict=True)
    ]
    text = json.dumps(before | {"stamps": stamps}, sort_keys=True).encode()
    return text, frozenset(i for i, stamp in enumerate(old) if stamp is None)


def resume_warning(recounted: int, items: int) -> str:
    """Return the warning that some items of an interrupted run are counted again."""
    return (
        f"--resume: {recounted} of {items} items were counted again: uqeval cannot detect "
        "whether their data have changed since the interrupted run (tmpfs, a web server, arrays in "
        "memory, or files written within 20 ms before it). Keep the data on a disk to reuse all "
        "items."
    )
