"""What is at a Zarr path (folder, zip file or URL): a group or an array, and its replacement that
`PredictionWriter(overwrite=True)` has begun beside it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uqeval.disk.files import is_file, resolved
from uqeval.errors import StoreError, cut
from uqeval.stores.attribute_arrays import DESCRIBING, of_uqeval
from uqeval.stores.axis_names import axis_of_coordinate
from uqeval.stores.coordinates import COMPARED
from uqeval.stores.kinds import KNOWN
from uqeval.stores.map_names import READ_BY_NAME
from uqeval.stores.orders import listed_in
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.metadata import (
    Document,
    Layout,
    check_format,
    load_json,
    load_layout,
    load_node,
)
from uqeval.stores.zarr.source import FolderSource, Source, ZipSource, array_place, is_url
from uqeval.stores.zarr.writer import HIDDEN

#: What is expected in place of a group of a name, which would be left out otherwise.
_NO_GROUPS = {name: (expected, "an array or an attribute") for name, expected in DESCRIBING.items()}
_NO_GROUPS["valid"] = "true and false for each pixel", "an array"
_CONTINUE = "Wait for its job, or run it again with {}, which continues it."


def open_source(path: str) -> Source:
    """Return the source at a local path or URL; raises `StoreError` if there is none."""
    if is_url(path):
        from uqeval.stores.zarr.object_source import ObjectSource

        return ObjectSource(path)
    if Path(path).is_dir():
        return FolderSource(path)
    if is_file(path) and zipfile.is_zipfile(path):
        return ZipSource(path)
    if Path(path).exists():
        raise StoreError(
            f"{cut(path)} is neither a folder nor a readable zip file, so it cannot hold a Zarr "
            "store. If it was copied here, copy it again."
        )
    raise StoreError(f"{cut(path)}: there is nothing here. {hint_of_missing(path)}")


@dataclass(frozen=True)
class ZarrGroup:
    """An opened Zarr group: its attributes, the arrays in it, and the names of its sub-groups.

    `unreadable`: why an array cannot be read, by name; the run may not need it. `unlisted`: whether
    there may be more arrays, because neither the source nor the metadata list them.
    """

    source: Source
    name: str
    attributes: dict[str, Any]
    arrays: dict[str, ZarrArray]
    groups: tuple[str, ...]
    unreadable: dict[str, StoreError]
    unlisted: bool = False

    def look_up(self, names: Sequence[str]) -> list[str]:
        """Add the arrays of these names, and return the names without one.

        At a server, several names at once: an array that is not there costs two requests.
        """

        def load(name: str) -> Layout | StoreError | None:
            place = f"{self.name}/{name}" if self.name else name
            try:
                node = load_node(self.source, place)
                where = array_place(self.source, place)
                layout = load_layout(self.source, place, where, node)
                if layout is None and name in _NO_GROUPS and self._is_group(place, node):
                    expected, kinds = _NO_GROUPS[name]
                    return StoreError(
                        f"{where} is a group, expected {expected}. Write {kinds} of this name, or "
                        "remove it."
                    )
                return layout
            except StoreError as error:
                return error

        others = []
        for name, layout in zip(names, self.source.each(load, names), strict=True):
            place = f"{self.name}/{name}" if self.name else name
            if isinstance(layout, StoreError):
                self.unreadable[name] = layout
            elif layout is not None:
                self.arrays[name] = ZarrArray(self.source, place, layout)
            else:
                others.append(name)
        return others

    def refuse_without_metadata(self, names: Sequence[str]) -> None:
        """Note folders of these names that have neither an array nor a group, if runs read arrays
        of such names: without the metadata of its mask, a store would be evaluated as one without
        a mask."""
        for name in sorted((KNOWN | DESCRIBING.keys()).intersection(names)):
            place = f"{self.name}/{name}" if self.name else name
            if not self._is_group(place, load_node(self.source, place)):
                self.unreadable[name] = StoreError(
                    f"{array_place(self.source, place)} has neither zarr.json nor .zarray, so its "
                    "numbers cannot be read. Write the array again, or remove the folder."
                )

    def _is_group(self, place: str, node: Document | None) -> bool:
        """Return whether there is a group; a server is not asked for one of version 2."""
        old = (
            None if node or not self.source.listable else load_json(self.source, f"{place}/.zgroup")
        )
        return (node or old) is not None


def open_zarr(source: Source | str, name: str = "") -> ZarrArray | ZarrGroup | None:
    """Return the array or group called `name` (empty: the root) in `source`; None if there is
    neither.

    Raises `StoreError` if the source cannot be opened, or its metadata are damaged or unsupported.
    """
    if isinstance(source, str):
        source = open_source(source)
    node = load_node(source, name)
    layout = load_layout(source, name, array_place(source, name), node)
    if layout is not None:
        return ZarrArray(source, name, layout)
    return _group(source, name, node)


def open_zarr_group(source: Source, name: str = "") -> ZarrGroup | None:
    """Return the group called `name` (empty: the root) in `source`; None if there is none.

    Raises `StoreError` if the group's own metadata are damaged.
    """
    return _group(source, name, load_node(source, name))


def group_around(path: str, array: ZarrArray) -> ZarrGroup | None:
    """Return the group around the array at `path`, with the arrays in it that describe others, are
    called like axes, dimensions or coordinates of this array, or that `uqeval` has written; None if
    it is in no group.

    At a server that lists nothing, names that are only those of axes are left out.
    """
    parent = path.rstrip("/").rpartition("/")[0]
    if not parent:
        return None
    # What is around the array need not be Zarr.
    with suppress(StoreError):
        source = open_source(parent)
        node = load_node(source, "")
        if node is None and load_json(source, ".zgroup") is None:
            return None
        own = node[0].get("attributes") if node else (load_json(source, ".zattrs") or ({},))[0]
        attributes = dict(own or {})
        dims = {*filter(None, array.dimension_names or ()), *listed_in([array])}
        children = source.children("") if source.listable else dims
        group = ZarrGroup(source, "", attributes, {}, (), {})
        names = {n for n in children if n and (axis_of_coordinate(n) in COMPARED or n in dims)}
        written = _recorded(source, "", node, attributes) - KNOWN - READ_BY_NAME
        described = {"names"} | (DESCRIBING.keys() & children)
        group.look_up(sorted(described | names | written))
        return group
    return None


def _group(source: Source, name: str, node: Document | None) -> ZarrGroup | None:
    """Return the group `name` with the arrays in it; `node` is its `zarr.json`."""
    start = f"{name}/" if name else ""
    if node is not None:
        attributes = dict(node[0].get("attributes") or {})
    else:
        old = load_json(source, f"{start}.zgroup")
        extra = load_json(source, f"{start}.zattrs")
        if old is None and extra is None:
            return None
        if old is not None:
            check_format(old[0], 2, array_place(source, name))
        attributes = extra[0] if extra else {}
    recorded: set[str] = set()
    if source.listable:
        children = source.children(name)
    else:
        recorded = _recorded(source, name, node, attributes)
        children = sorted(KNOWN | READ_BY_NAME | {"names"} | recorded)
    unlisted = not (source.listable or recorded)
    group = ZarrGroup(source, name, attributes, {}, (), {}, unlisted)
    groups = group.look_up(children)
    if source.listable:
        group.refuse_without_metadata(groups)
    return replace(group, groups=tuple(groups) if source.listable else ())


def _recorded(
    source: Source, name: str, node: Document | None, attributes: Mapping[str, Any]
) -> set[str]:
    """Return the names of arrays in a group that its metadata list: consolidated metadata, or the
    attribute `uqeval` of stores that `uqeval` has written.

    They are only names to look up: an array may have been removed since.
    """
    listed: Any = of_uqeval(attributes).get("arrays")
    names = (
        set(listed)
        if isinstance(listed, list) and all(isinstance(n, str) for n in listed)
        else set()
    )
    if node is not None:
        below = _members(node[0].get("consolidated_metadata"))
        names |= {key for key, value in below.items() if _is_array(value)}
    else:
        with suppress(StoreError):  # no reader of version 2 needs it
            old = load_json(source, f"{name}/.zmetadata" if name else ".zmetadata")
            below = _members(old[0] if old else None)
            names |= {key.removesuffix("/.zarray") for key in below if key.endswith("/.zarray")}
    return set(filter(is_child, names))


def is_child(name: str) -> bool:
    return name != "" and "/" not in name and not name.startswith(".")


def _is_array(value: object) -> bool:
    return isinstance(value, dict) and value.get("node_type") == "array"


def _members(consolidated: object) -> dict[str, Any]:
    """Return consolidated metadata by key; nothing if they have another form."""
    members = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    return members if isinstance(members, dict) else {}


def path_of_new(path: Path) -> Path:
    """Return where `PredictionWriter(overwrite=True)` writes the new store of `path`."""
    return path.with_name(f".{path.name}.new")


def is_unfinished(root: Path) -> bool:
    """Return whether a store at `root` is unfinished, with or without living writers; False if it
    cannot be read."""
    return os.path.isdir(root / HIDDEN)  # noqa: PTH112 - `Path.is_dir` raises without permission


def unfinished_new(path: str) -> Path | None:
    """Return the unfinished new store of a local path; None if there is none."""
    target = resolved(path)
    new = path_of_new(target) if target.name else None
    if new is None or not is_unfinished(new) or is_unfinished(target):
        return None  # a store that has just replaced `new` still has its hidden folder
    return new


def note_of_older(path: str) -> list[str]:
    """Return a warning if the store at a local path is older than an unfinished new one."""
    new = unfinished_new(path)
    if new is None:
        return []
    return [
        f"{cut(path)}: these are the old predictions: their replacement {cut(new.name)} beside "
        f"them is unfinished. {_CONTINUE.format('resume=True and overwrite=True')} To keep the old "
        f"predictions, remove {cut(new.name)}."
    ]


def hint_of_missing(path: str) -> str:
    """Return what to do about a local path without a store: continue its unfinished new store."""
    new = unfinished_new(path)
    if new is None:
        return "Check the path."
    advice = _CONTINUE.format("resume=True")
    return f"Its store {cut(new.name)}, in the same folder, is unfinished. {advice}"
