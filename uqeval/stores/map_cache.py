"""Cache of maps on disk between runs, so that sample stacks are read once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from uqeval.stores.checked_npy import folder_for, read_checked, write_checked

#: Shape and dtype of a map, by its name and item.
Form: TypeAlias = "Callable[[str, int], tuple[tuple[int, ...], str]]"


class MapCache:
    """Maps of items, a file each, by what they depend on.

    `stamps` change when an item's maps do (`usecases.saved_states.stamps_of`); maps of items
    without a stamp are not cached. Runs of other metrics, and of other stores, may share the
    folder; `uqeval` never removes a file. Raises `OutputError` if the folder cannot be written.
    """

    def __init__(
        self, folder: str | Path, names: Sequence[str], stamps: Sequence[str | None], form: Form
    ) -> None:
        self.folder = folder_for("maps", folder)
        self._names, self._stamps, self._form = names, stamps, form
        #: Items whose maps were to be kept and are not.
        self.unstamped = {i for i, stamp in enumerate(stamps) if stamp is None}
        self.refused: set[int] = set()

    def read(self, item: int, names: Collection[str]) -> dict[str, NDArray[Any]] | None:
        """Return the wanted maps of an item; None where one of them is not there, or damaged."""
        if item in self.unstamped:
            return None
        maps = {}
        for name in names:
            values = read_checked(self._path(item, name), *self._form(name, item))
            if values is None:
                return None
            maps[name] = values
        return maps

    def write(self, item: int, maps: dict[str, NDArray[Any]]) -> bool:
        """Keep the maps of an item; returns whether all of them are there."""
        if item in self.unstamped:
            return False
        stored = all(write_checked(self._path(item, name), values) for name, values in maps.items())
        if not stored:
            self.refused.add(item)
        return stored

    def warnings(self) -> list[str]:
        """Return warnings about maps that are not cached."""
        reasons = (
            (self.unstamped, "changes to them cannot be detected, or they were changed just now"),
            (self.refused, "the disk is full (1 GiB is left free), or cannot be written"),
        )
        return [
            f"--map-cache {self.folder}: the maps of {len(items)} of {len(self._names)} items are "
            f"not kept: {reason}."
            for items, reason in reasons
            if items
        ]

    def _path(self, item: int, name: str) -> Path:
        key = [self._names[item], self._stamps[item], name]
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.npy"
