"""Zarr stores: one array, a group of arrays, or a group an item in `items/<name>/`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.assembled import Opening, assemble, own_names, store_of_one
from uqeval.stores.attributes import check_attributes
from uqeval.stores.contents import Contents
from uqeval.stores.declared import Declared
from uqeval.stores.kinds import KNOWN, resolve
from uqeval.stores.names import checked_names
from uqeval.stores.one_pixel import with_pixel
from uqeval.stores.zarr.source import is_url, is_zarr
from uqeval.stores.zarr.writer import item_folder

if TYPE_CHECKING:
    from uqeval.stores.zarr.array import ZarrArray
    from uqeval.stores.zarr.group import ZarrGroup


class ZarrStore(Contents):
    """What is at the root of a Zarr hierarchy: in a folder, a zip file, or at a URL."""

    def __init__(self, path: str) -> None:
        from uqeval.stores.zarr.array import ZarrArray
        from uqeval.stores.zarr.group import open_zarr
        from uqeval.stores.zarr.sources import open_source

        super().__init__(path)
        self._source = open_source(path)
        self._array: ZarrArray | None = None
        self._group: ZarrGroup | None = None
        self._items: dict[str, ZarrArray | ZarrGroup | None] = {}
        opened = open_zarr(self._source)
        if isinstance(opened, ZarrArray):
            self._array = self.bare = opened
        elif opened is not None:
            self._group = opened
            kinds = {*opened.arrays, *opened.unreadable}
            if not kinds and "items" in opened.groups:
                kinds = self._kinds_of_first_item()
            self.kinds = frozenset(kinds)

    @staticmethod
    def recognises(path: str) -> bool:
        return is_url(path) or is_zarr(path)

    def store(self, how: Opening) -> Store:
        path = self.path
        if self._array is not None:
            self._array.fill_missing = how.fill_missing
            one = store_of_one(self._array, how)
            return replace(one, warnings=(*one.warnings, *self._source.warnings()))
        group = self._group
        if group is None:
            raise StoreError(
                f"{cut(path)}: holds no Zarr metadata at its root; expected a Zarr array or group. "
                "Check the path, or write the store again."
            )
        check_attributes(group.attributes, path)
        if "items" in group.groups:
            if how.declared != Declared():
                raise UsageError(f"{cut(path)}: names its arrays; leave out --kind and --axes.")
            return self._store_of_items(group, how.names, how.fill_missing)
        for kind in sorted(group.unreadable):
            if kind in KNOWN or kind == "names":
                raise group.unreadable[kind]
        arrays: dict[str, StoredArray] = {}
        for kind, array in group.arrays.items():
            if not array.text:
                array.fill_missing = how.fill_missing
                arrays[kind] = array
        names = own_names(group.arrays, group.attributes, path)
        warnings = [f"left out: {error}" for error in group.unreadable.values()]
        warnings += self._source.warnings()
        arrays = how.declared.of_named(arrays, path)
        return assemble(path, arrays, how.names, names, group.attributes, warnings)

    def array(self, key: str | None, *, fill_missing: bool = False) -> ZarrArray | None:
        """Return the array called `key`, or the one at the root; None for a whole group.

        Raises `StoreError` where there is no array called `key`.
        """
        from uqeval.stores.zarr.array import ZarrArray
        from uqeval.stores.zarr.group import open_zarr

        array: object = self._array
        if key is not None:
            known = {} if self._group is None else self._group.arrays
            array = known[key] if key in known else open_zarr(self._source, key)
        if isinstance(array, ZarrArray):
            array.fill_missing = fill_missing
            return array
        if key is not None:
            raise StoreError(f"{cut(self.path)}: holds no array called {quoted(key)}.")
        return None

    def _kinds_of_first_item(self) -> set[str]:
        first = next(iter(self._source.children("items")), None)
        item = self._item(first) if first else None
        return set(getattr(item, "arrays", ()))

    def _item(self, name: str) -> ZarrArray | ZarrGroup | None:
        """Return what is at `items/<name>`, opened once."""
        from uqeval.stores.zarr.group import open_zarr

        if name not in self._items:
            self._items[name] = open_zarr(self._source, f"items/{name}")
        return self._items[name]

    def _store_of_items(
        self, root: ZarrGroup, names: Sequence[str] | None, fill_missing: bool
    ) -> Store:
        from uqeval.stores.zarr.array import ZarrArray

        path = self.path
        children = {name: self._item(name) for name in self._source.children("items")}
        groups = {name: at for name, at in children.items() if not isinstance(at, ZarrArray)}
        stored = own_names(root.arrays, root.attributes, path)
        order = tuple(names) if names is not None else stored or tuple(sorted(groups))
        order = checked_names(order, path, len(groups))
        # A writer quotes what a folder's name may not hold; other people's names are taken as they
        # are.
        folders = {name: q if (q := item_folder(name)) in groups else name for name in order}
        if unknown := sorted(set(folders.values()) - set(groups)):
            raise StoreError(
                f"{cut(path)}: there is no group items/{unknown[0]} for the item named so."
            )
        parts: dict[str, list[ItemArray]] = {}
        for name in order:
            group = groups[folders[name]]
            if group is None or not (group.arrays or group.unreadable):
                raise StoreError(
                    f"{cut(path)}: {cut(f'items/{folders[name]}')} holds no arrays. Write it again."
                )
            for error in group.unreadable.values():
                raise error
            for kind, array in group.arrays.items():
                if kind in KNOWN or len(array.shape) == 2:
                    array.fill_missing = fill_missing
                    single = with_pixel(array, kind, is_single=True)
                    resolve(single, kind, is_single=True)
                    parts.setdefault(kind, []).append(ItemArray(single, None))
        for kind, members in parts.items():
            if len(members) != len(order):
                raise StoreError(
                    f"{cut(path)}: only {len(members)} of {len(order)} items have {quoted(kind)}. "
                    "Write it for all of them or for none."
                )
        if not order or not parts:
            raise StoreError(f"{cut(path)}: items/ is empty. Was anything written?")
        warnings = tuple(self._source.warnings())
        return Store(
            path, {k: tuple(v) for k, v in parts.items()}, order, root.attributes, warnings
        )
