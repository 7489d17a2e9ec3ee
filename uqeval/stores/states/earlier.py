"""States of unchanged items that an earlier run saved at the same path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from uqeval.errors import StoreError
from uqeval.stores.states.entries import DAMAGED
from uqeval.stores.states.known import Layer
from uqeval.stores.states.saved import SavedStates, tally_key


class EarlierStates:
    """The states file of an earlier run, if there is one that can be read, and of which items its
    states are those of a run now.

    Items match by name, in any order; `stamps` say which are unchanged. Where
    there is no file, or none that can be read, nothing is known: its place is taken by the new one.
    """

    def __init__(
        self, path: str | Path, names: Sequence[str], stamps: Sequence[str | None]
    ) -> None:
        try:
            self._saved = SavedStates(path) if Path(path).is_file() else None
        except StoreError:
            self._saved = None
        index = self._saved.index if self._saved is not None else {}
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
        #: Whether all items are as they were, in the same order, and no others were there.
        self.unchanged = list(unchanged.values()) == list(range(len(index.get("items", ())))) and (
            len(unchanged) == len(names) > 0
        )

    def states(self) -> dict[str, Layer]:
        """Return the states by tally of items that are as they were."""
        if self._saved is None or not self._same:
            return {}
        keys = map(tally_key, self._saved.parameters())
        return {key: self._saved.layer(key, self._same) for key in keys}

    def total(self, key: str) -> bytes | None:
        """Return the packed state of all items together of a tally (`tally_key`), where it is
        known.
        """
        if self._saved is None or not self.unchanged:
            return None
        try:
            return self._saved.total(key)
        except DAMAGED:
            return None
