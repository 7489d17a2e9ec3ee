"""`.npy`, `.npz` and NIfTI files as stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uqeval.disk.suffixes import NIFTI, suffix_of
from uqeval.errors import StoreError, cut, listed, quoted
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.attribute_arrays import own_names, without_attributes
from uqeval.stores.contents import Contents, Opening, store_of_named, store_of_one
from uqeval.stores.coordinates import Coordinate
from uqeval.stores.files.nifti import open_nifti
from uqeval.stores.files.numpy_files import open_npy, open_npz
from uqeval.stores.kinds import ALIASES, with_scale


class ArrayStore(Contents):
    """A .npy or NIfTI file: one array without a name."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._array = self.unnamed = (open_nifti if suffix_of(path) in NIFTI else open_npy)(path)

    def store(self, opening: Opening) -> Store:
        return store_of_one(self._array, opening)


class NpzStore(Contents):
    """Arrays by name; a single array `arr_0` counts as one without a name."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.members = open_npz(path)
        if set(self.members) == {"arr_0"}:
            self.unnamed = self.members["arr_0"]
        else:
            self.kinds = frozenset(ALIASES.get(name, name) for name in self.members)

    def store(self, opening: Opening) -> Store:
        if not self.members:
            raise StoreError(f"{cut(self.path)} holds no arrays. Save it with numpy.savez.")
        if self.unnamed is not None:
            return replace(store_of_one(self.unnamed, opening), path=self.path)
        return store_of_named(self.path, self.members, {}, opening)

    def beside(self) -> tuple[Mapping[str, StoredArray], Mapping[str, Coordinate]]:
        return self.members, {}

    def names_beside(self) -> tuple[str, ...] | None:
        return own_names(self.members, {}, self.path)

    def array(self, name: str | None, *, fill_missing: bool) -> StoredArray | None:
        if name is None:
            return self.unnamed
        if name not in self.members:
            raise StoreError(
                f"{cut(self.path)} holds {listed(sorted(self.members))}; no {quoted(name)}. Give "
                "--key NAME."
            )
        return with_scale(self.members).get(name, self.members[name])

    def described(self, name: str | None) -> Store:
        _, attributes, warnings = without_attributes(self.members, {}, self.path)
        return Store(self.path, {}, self.names_beside(), attributes, tuple(warnings))
