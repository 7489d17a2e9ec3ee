"""Zarr stores: one array, a group of arrays, or one group per item in `items/<name>/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.attribute_arrays import (
    DESCRIBING,
    check_attributes,
    of_one_array,
    own_names,
    refuse_large_names,
    without_attributes,
)
from uqeval.stores.contents import (
    Contents,
    Opening,
    assemble,
    other_kinds,
    refuse_nested,
    store_of_one,
)
from uqeval.stores.coordinates import Coordinate, coordinates_of
from uqeval.stores.kinds import IDS, KNOWN, REGRESSION, Declared, resolve
from uqeval.stores.map_names import READ_BY_NAME
from uqeval.stores.names import checked_names, two_orders
from uqeval.stores.orders import with_coordinates
from uqeval.stores.shared_attributes import Declaring, shared_attributes
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.group import (
    ZarrGroup,
    group_around,
    is_child,
    is_unfinished,
    note_of_older,
    open_source,
    open_zarr,
    open_zarr_group,
)
from uqeval.stores.zarr.metadata import load_json, load_node
from uqeval.stores.zarr.source import is_url
from uqeval.stores.zarr.writer import item_folder


class ZarrStore(Contents):
    """The root of a Zarr hierarchy, in a folder, a zip file, or at a URL."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._source = open_source(path)
        self._array: ZarrArray | None = None
        self._group: ZarrGroup | None = None
        self._items: dict[str, ZarrArray | ZarrGroup | None] = {}
        #: The arrays that were looked up only because options name them.
        self._named: set[str] = set()
        try:
            opened = open_zarr(self._source)
        except StoreError as error:
            if is_url(path) or not is_unfinished(Path(path)):
                raise
            raise StoreError(
                f"{error} Or, as the store is unfinished, run its job again with resume=True, "
                "which repairs this and keeps the items."
            ) from error
        if isinstance(opened, ZarrArray):
            self._array = self.unnamed = opened
        elif opened is not None:
            self._group = opened
            kinds = {*opened.arrays, *opened.unreadable}
            if not kinds and "items" in opened.groups:
                kinds = self._kinds_of_first_item()
            self.kinds = frozenset(kinds)

    def store(self, opening: Opening) -> Store:
        path = self.path
        if self._array is not None:
            around = {} if self._around is None else self._around.arrays
            for stored in (self._array, *around.values()):
                stored.fill_missing = opening.fill_missing
            one = store_of_one(self._array, opening, self.described(None))
            return with_coordinates(one, *self.beside())
        group = self._group
        if group is None and is_url(path) and path.lower().endswith(".zip"):
            raise StoreError(
                f"{cut(path)}: a zip file at a URL is not read; expected a Zarr folder. Copy the "
                "file to a disk, or unpack it at the server."
            )
        if group is None:
            raise StoreError(
                f"{cut(path)} holds no Zarr metadata at its root; expected a Zarr array or group. "
                "Check the path, or write the store again."
            )
        check_attributes(group.attributes, path)
        if not self._source.listable:
            tried = group.arrays.keys() | group.unreadable.keys()
            named = set(filter(is_child, opening.maps - tried))
            group.look_up(sorted(named))
            self._named |= named
        if "items" in group.groups:
            if opening.declared != Declared():
                raise UsageError(f"{cut(path)} names its arrays; leave out --kind and --axes.")
            return self._store_of_items(group, opening)
        needed = KNOWN | DESCRIBING.keys()
        if not self._source.listable:  # the server may fail for a map that is there
            needed |= READ_BY_NAME | opening.maps
        for kind in sorted(needed & group.unreadable.keys()):
            raise group.unreadable[kind]
        arrays: dict[str, StoredArray] = {}
        for stored in group.arrays.values():
            stored.fill_missing = opening.fill_missing
        members, attributes, warnings = without_attributes(group.arrays, group.attributes, path)
        for kind, array in members.items():
            is_text = array.dtype.kind == "U" and kind not in REGRESSION  # `resolve` refuses these
            if not is_text and kind not in self._named - opening.maps:
                arrays[kind] = array
        names = self.names_beside()
        if not group.arrays and not self._source.listable and self._has_items():
            raise StoreError(
                f"{cut(path)} has a group for each item, and a web server cannot list them. Copy "
                "the store to a disk, or to an object store (s3://, gs://, az://)."
            )
        if not group.arrays and not group.unreadable and not path.endswith(".zip"):
            refuse_nested(path, [f"{path}/{name}" for name in self._groups_with_arrays(group)])
        warnings += [f"left out: {error}" for error in group.unreadable.values()]
        warnings += self._warnings()
        arrays = opening.declared.of_named(arrays, path)
        store = assemble(
            path, arrays, opening.names, names, attributes, warnings, maps=opening.maps
        )
        looked_up = frozenset(self._named & arrays.keys())
        store = replace(store, looked_up=looked_up, unlisted=group.unlisted)
        return with_coordinates(store, *self.beside())

    def beside(self) -> tuple[Mapping[str, StoredArray], Mapping[str, Coordinate]]:
        group = self._around
        if group is None:
            return {}, {}
        return group.arrays, coordinates_of(group.attributes, self.path)

    def names_beside(self) -> tuple[str, ...] | None:
        group = self._around
        if group is None:
            return None
        for name in DESCRIBING.keys() & group.unreadable.keys():
            raise group.unreadable[name]
        if "names" in group.arrays:
            refuse_large_names(group.arrays["names"])
            group.arrays["names"].watch_with(group.name)
        return own_names(group.arrays, group.attributes, self.path)

    @cached_property
    def _around(self) -> ZarrGroup | None:
        """The group at the path, or what belongs to the array at the path in the group around
        it."""
        return self._group if self._array is None else group_around(self.path, self._array)

    def array(self, name: str | None, *, fill_missing: bool) -> ZarrArray | None:
        array: object = self._array
        if name is not None:
            known = {} if self._group is None else self._group.arrays
            array = known[name] if name in known else open_zarr(self._source, name)
        if isinstance(array, ZarrArray):
            array.fill_missing = fill_missing
            return array
        if name is not None:
            raise StoreError(f"{cut(self.path)} holds no array called {quoted(name)}.")
        return None

    def described(self, name: str | None) -> Store:
        around, names = self._around, None
        attributes, warnings = dict[str, Any](), list[str]()
        if around is not None:
            check_attributes(around.attributes, self.path)
            _, attributes, warnings = without_attributes(
                around.arrays, around.attributes, self.path
            )
        attributes.pop("uqeval", None)  # describes all arrays together
        if self._array is not None:
            attributes = of_one_array(self._array, attributes)
        if self._array is not None or (self._group is not None and name in self._group.arrays):
            names = self.names_beside()
        return Store(self.path, {}, names, attributes, (*warnings, *self._warnings()))

    def _groups_with_arrays(self, group: ZarrGroup) -> list[str]:
        """Return the names of groups inside a group, at any depth, that have arrays."""
        start = f"{group.name}/" if group.name else ""
        inside = [open_zarr_group(self._source, f"{start}{name}") for name in group.groups]
        return [
            name
            for own in inside
            if own is not None
            for name in ([own.name] if own.arrays else self._groups_with_arrays(own))
        ]

    def _warnings(self) -> list[str]:
        beside = [] if is_url(self.path) else note_of_older(self.path)
        return [*beside, *self._source.warnings()]

    def _has_items(self) -> bool:
        """Return whether there is a group `items`, at a server that cannot list groups."""
        source = self._source
        return (load_node(source, "items") or load_json(source, "items/.zgroup")) is not None

    def _kinds_of_first_item(self) -> set[str]:
        first = next(iter(self._source.children("items")), None)
        item = self._item(first) if first else None
        return set(getattr(item, "arrays", ()))

    def _item(self, name: str) -> ZarrArray | ZarrGroup | None:
        """Return the group at `items/<name>`, opened once."""
        if name not in self._items:
            self._items[name] = open_zarr(self._source, f"items/{name}")
        return self._items[name]

    def _store_of_items(self, root: ZarrGroup, opening: Opening) -> Store:
        path, names = self.path, opening.names
        children = {name: self._item(name) for name in self._source.children("items")}
        groups = {name: at for name, at in children.items() if not isinstance(at, ZarrArray)}
        stored = self.names_beside()
        order = tuple(names) if names is not None else stored or tuple(sorted(groups))
        order = checked_names(order, path, len(groups))
        # `PredictionWriter` quotes characters that a folder's name may not have; names by other
        # writers are used unchanged.
        folders = {name: q if (q := item_folder(name)) in groups else name for name in order}
        if unknown := sorted(set(folders.values()) - set(groups)):
            raise StoreError(
                f"{cut(path)}: there is no group items/{unknown[0]} for the item of this name."
            )
        parts: dict[str, list[ItemArray]] = {}
        left_out: dict[str, str] = {}
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
                    array.fill_missing = opening.fill_missing
                    if kind in IDS and "ignore_index" in group.attributes:
                        of_group = {"ignore_index": group.attributes["ignore_index"]}
                        array.attributes = of_group | array.attributes
                    single: StoredArray = array
                    try:
                        single = resolve(array, kind, is_single=True)
                    except StoreError as error:
                        if kind in KNOWN or kind in opening.maps:
                            raise
                        left_out.setdefault(kind, f"left out: {error}")
                    parts.setdefault(kind, []).append(ItemArray(single, None))
        others = other_kinds(parts, opening.maps)
        for kind, members in parts.items():
            if len(members) != len(order):
                message = (
                    f"{cut(path)}: only {len(members)} of {len(order)} items have {quoted(kind)}. "
                    "Write it for all of them or for none."
                )
                if kind not in others:
                    raise StoreError(message)
                left_out.setdefault(kind, f"left out: {message}")
        for kind in left_out:
            del parts[kind]
        if not order or not parts:
            raise StoreError(
                f"{cut(path)}: items/ is empty; expected a group for each item. Write it again."
            )
        attributes, of_attributes = _attributes_of(root, [groups[folders[n]] for n in order], path)
        warnings = (*left_out.values(), *of_attributes, *self._warnings())
        is_listed = names is None and stored is None
        return Store(
            path, {k: tuple(v) for k, v in parts.items()}, order, attributes, warnings,
            unsure_order=two_orders(order) if is_listed else "",
        )  # fmt: skip


def _attributes_of(
    root: ZarrGroup, groups: Sequence[ZarrGroup | None], path: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes of a store of items, with those that the groups of items declare, and
    warnings."""
    parts = [
        Declaring(f"{path}/{group.name}", group.attributes, not IDS.isdisjoint(group.arrays))
        for group in groups if group is not None
    ]  # fmt: skip
    parts += [
        Declaring(array.where, {"class_names": array.attributes["class_names"]})
        for group in groups if group is not None
        for array in group.arrays.values() if "class_names" in array.attributes
    ]  # fmt: skip
    shared, warnings = shared_attributes(
        [Declaring(path, root.attributes), *parts], path, "groups of items"
    )
    return root.attributes | shared, warnings
