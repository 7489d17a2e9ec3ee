"""HDF5 files as stores: `file.h5`, or `file.h5::/path` of an array or a group."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uqeval.stores.array import Store
from uqeval.stores.assembled import Opening, store_of_named, store_of_one
from uqeval.stores.attributes import check_attributes
from uqeval.stores.contents import Contents
from uqeval.stores.files.hdf5_array import Hdf5Group, hdf5_path, open_hdf5
from uqeval.stores.kinds import known_as


class Hdf5Store(Contents):
    """An array without a name, or the arrays of a group."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        file, inside = hdf5_path(path) or (path, "/")
        self._shown = f"{file}::{inside}" if inside != "/" else file
        self._opened = open_hdf5(file, inside)
        if isinstance(self._opened, Hdf5Group):
            arrays = self._opened.arrays
            self.kinds = frozenset(known_as(kind, array) for kind, array in arrays.items())
        else:
            self.bare = self._opened

    @staticmethod
    def recognises(path: str) -> bool:
        place = hdf5_path(path)
        return place is not None and Path(place[0]).exists() and not Path(path).is_dir()

    def store(self, how: Opening) -> Store:
        opened = self._opened
        if not isinstance(opened, Hdf5Group):
            opened.fill_missing = how.fill_missing
            return replace(store_of_one(opened, how), path=self._shown)
        for array in opened.arrays.values():
            array.fill_missing = how.fill_missing
        check_attributes(opened.attributes, self._shown)
        store = store_of_named(self._shown, opened.arrays, opened.attributes, how)
        return replace(store, warnings=(*store.warnings, *opened.warnings))
