"""States that an earlier run has left at the same place, of items that are as they were."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from uqeval.errors import StoreError
from uqeval.stores.states import SavedStates, tally_key


def earlier_states(
    path: str | Path, names: Sequence[str], stamps: Sequence[str | None]
) -> dict[str, Mapping[int, bytes]]:
    """The packed states in a states file by tally and item, of items whose stamps have not changed.

    Items are told by their names, whatever their order. Nothing where there is no file, or one that
    cannot be read: its place is taken by the new one.
    """
    try:
        saved = SavedStates(path) if Path(path).is_file() else None
    except StoreError:
        saved = None
    if saved is None:
        return {}
    pairs = zip(saved.index.get("items", ()), saved.index.get("stamps", ()), strict=False)
    known = {name: (stamp, i) for i, (name, stamp) in enumerate(pairs) if isinstance(name, str)}
    same = {
        item: known[name][1]
        for item, (name, stamp) in enumerate(zip(names, stamps, strict=True))
        if stamp is not None and name in known and known[name][0] == stamp
    }
    if not same:
        return {}
    return {tally_key(own): _Earlier(saved, tally_key(own), same) for own in saved.parameters()}


class _Earlier(Mapping[int, bytes]):
    """The states of one tally by item; `places` says where an item was. One that is damaged is not
    there when it is asked for."""

    def __init__(self, saved: SavedStates, key: str, places: Mapping[int, int]) -> None:
        self._saved, self._key, self._places = saved, key, places

    def __getitem__(self, item: int) -> bytes:
        try:
            return self._saved.state(self._key, self._places[item])
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise KeyError(item) from error

    def __contains__(self, item: object) -> bool:
        return item in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
