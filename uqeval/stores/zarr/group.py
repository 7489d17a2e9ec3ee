"""Zarr groups, and the root of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqeval.errors import StoreError
from uqeval.stores.kinds import KNOWN
from uqeval.stores.zarr.array import ZarrArray, array_place
from uqeval.stores.zarr.metadata import Document, load_json, load_layout, load_node
from uqeval.stores.zarr.source import Source
from uqeval.stores.zarr.sources import open_source


@dataclass(frozen=True)
class ZarrGroup:
    """An opened Zarr group: its attributes, the arrays in it, and the names of its sub-groups.

    `unreadable` holds why an array that is there cannot be read: the run may not need it.
    """

    source: Source
    name: str
    attributes: dict[str, Any]
    arrays: dict[str, ZarrArray]
    groups: tuple[str, ...]
    unreadable: dict[str, StoreError]


def open_zarr(
    source: Source | str, name: str = "", *, fill_missing: bool = False
) -> ZarrArray | ZarrGroup | None:
    """Return the array or group called `name` (empty: the root) in `source`; None if there is
    neither.

    Raises `StoreError` if the source cannot be opened, or its metadata are damaged or ask for
    what is not supported.
    """
    if isinstance(source, str):
        source = open_source(source)
    node = load_node(source, name)
    layout = load_layout(source, name, array_place(source, name), node)
    if layout is not None:
        return ZarrArray(source, name, layout, fill_missing=fill_missing)
    return _group(source, name, node, fill_missing)


def open_zarr_group(
    source: Source, name: str = "", *, fill_missing: bool = False
) -> ZarrGroup | None:
    """Return the group called `name` (empty: the root) in `source`; None if there is none.

    Raises `StoreError` if the group's own metadata are damaged.
    """
    return _group(source, name, load_node(source, name), fill_missing)


def _group(
    source: Source, name: str, node: Document | None, fill_missing: bool
) -> ZarrGroup | None:
    """Return the group `name` with the arrays in it; `node` is its `zarr.json`."""
    start = f"{name}/" if name else ""
    if node is not None:
        attributes = dict(node[0].get("attributes") or {})
    else:
        old = load_json(source, f"{start}.zgroup")
        extra = load_json(source, f"{start}.zattrs")
        if old is None and extra is None:
            return None
        attributes = extra[0] if extra else {}
    arrays: dict[str, ZarrArray] = {}
    groups: list[str] = []
    unreadable: dict[str, StoreError] = {}
    if source.listable:
        children = source.children(name)
    else:
        children = sorted(KNOWN | {"names"} | _consolidated(node[0] if node else {}))
    for child in children:
        place = f"{start}{child}"
        try:
            layout = load_layout(
                source, place, array_place(source, place), load_node(source, place)
            )
        except StoreError as error:
            unreadable[child] = error
            continue
        if layout is not None:
            arrays[child] = ZarrArray(source, place, layout, fill_missing=fill_missing)
        elif source.listable:
            groups.append(child)
    return ZarrGroup(source, name, attributes, arrays, tuple(groups), unreadable)


def _consolidated(document: dict[str, Any]) -> set[str]:
    """Return the names below a group that its metadata lists."""
    below = (document.get("consolidated_metadata") or {}).get("metadata") or {}
    return {str(key).split("/", 1)[0] for key in below}
