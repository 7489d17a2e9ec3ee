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
from uqeval.stores.source import is_url, is_zarr
from uqeval.stores.zarr_writer import item_folder

if TYPE_CHECKING:
    from uqeval.stores.zarr_array import ZarrArray
    from uqeval.stores.zarr_group import ZarrGroup


class ZarrStore(Contents):
    """What is at the root of a Zarr hierarchy: in a folder, a zip file, or at a URL."""

    def __init__(self, path: str) -> None:
        from uqeval.stores.sources import open_source
        from uqeval.stores.zarr_array import ZarrArray
        from uqeval.stores.zarr_group import open_zarr

        super().__init__(path)
        self._source = open_source(path)
        self._array: ZarrArray | None = None
        self._group: ZarrGroup | None = None
        opened = open_zarr(self._source)
        if isinstance(opened, ZarrArray):
            self._array = self.bare = opened
        elif opened is not None:
            self._group = opened
            kinds = {*opened.arrays, *opened.unreadable}
            if not kinds and "items" in opened.groups:
                kinds = _kinds_of_first_item(opened)
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
            return _store_of_items(group, path, how.names, how.fill_missing)
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


def _kinds_of_first_item(root: ZarrGroup) -> set[str]:
    from uqeval.stores.zarr_group import open_zarr_group

    first = next(iter(root.source.children("items")), None)
    group = open_zarr_group(root.source, f"items/{first}") if first else None
    return set(group.arrays) if group else set()


def _store_of_items(
    root: ZarrGroup, path: str, names: Sequence[str] | None, fill_missing: bool
) -> Store:
    from uqeval.stores.zarr_group import open_zarr_group

    items = open_zarr_group(root.source, "items", fill_missing=fill_missing)
    groups = items.groups if items else root.source.children("items")
    stored = own_names(root.arrays, root.attributes, path)
    order = tuple(names) if names is not None else stored or tuple(sorted(groups))
    order = checked_names(order, path, len(groups))
    # A writer quotes what a folder's name may not hold; other people's names are taken as they are.
    folders = {name: q if (q := item_folder(name)) in groups else name for name in order}
    if unknown := sorted(set(folders.values()) - set(groups)):
        raise StoreError(
            f"{cut(path)}: there is no group items/{unknown[0]} for the item named so."
        )
    parts: dict[str, list[ItemArray]] = {}
    for name in order:
        folder = f"items/{folders[name]}"
        group = open_zarr_group(root.source, folder, fill_missing=fill_missing)
        if group is None or not (group.arrays or group.unreadable):
            raise StoreError(f"{cut(path)}: {cut(folder)} holds no arrays. Write it again.")
        for error in group.unreadable.values():
            raise error
        for kind, array in group.arrays.items():
            if kind in KNOWN or len(array.shape) == 2:
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
    warnings = tuple(root.source.warnings())
    return Store(path, {k: tuple(v) for k, v in parts.items()}, order, root.attributes, warnings)
