"""Opened arrays as a store: their kinds, axes and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from uqeval.disk.files import MOST_BYTES
from uqeval.errors import StoreError, cut, listed, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.declared import Declared, kind_of_bare, not_one_of, with_scale
from uqeval.stores.files.numpy_array import NumpyArray
from uqeval.stores.kinds import (
    FLOWS,
    KNOWN,
    PREDICTIONS_EXPECTED,
    REGRESSION,
    known_as,
    resolve,
)
from uqeval.stores.names import checked_names, refuse_reordered
from uqeval.stores.one_pixel import with_pixel

Role: TypeAlias = Literal["predictions", "labels", "target", "frames", "flow", "flow_forward"]

#: What a bare array is expected to be, by role.
_BARE_EXPECTED = {
    "predictions": "[N, T, C, H, W] or [N, C, H, W] probabilities (of images without pixels "
    "[N, C] or [N, T, C]), or [N, H, W] predicted ids",
    "labels": "[N, H, W] integers for labels (of images without pixels [N])",
    "target": "[N, H, W], [H, W] or [N] numbers for a target",
}
_VIDEO_RANKS = {
    "frames": "[N, H, W, 3] bytes for frames",
    "flow": "[N-1, H, W, 2] numbers for optical flow",
    "flow_forward": "[N-1, H, W, 2] numbers for optical flow",
}


@dataclass(frozen=True)
class Opening:
    """How a store is opened; see `uqeval.stores.store.open_store`."""

    role: Role
    names: Sequence[str] | None = None
    fill_missing: bool = False
    label_map: str | None = None
    declared: Declared = field(default_factory=Declared)


def store_of_named(
    path: str, members: Mapping[str, StoredArray], attributes: dict[str, Any], opening: Opening
) -> Store:
    """Return a store of named arrays that lie in one file, or in memory."""
    arrays: dict[str, StoredArray] = {}
    for kind, array in members.items():
        kinds = known_as(kind, array)
        if kinds in arrays:
            raise StoreError(
                f"{cut(path)}: holds {quoted(kinds)} twice, once as {quoted(kind)}. Keep one of "
                "them."
            )
        if array.dtype.kind != "U" and kind != "names":
            arrays[kinds] = array
    arrays = opening.declared.of_named(with_scale(arrays), path)
    arrays, is_single = _one_item(arrays)
    names = None if is_single else own_names(members, attributes, path)
    return assemble(
        path, arrays, opening.names, names, attributes, is_single=is_single, kinds=tuple(members)
    )


def _one_item(arrays: dict[str, StoredArray]) -> tuple[dict[str, StoredArray], bool]:
    """Return arrays of numbers with a target as those of one image where they have no item axis.

    Tables, [N] or members [M, N], become images of one row.
    """
    ranks = {kind: len(array.shape) for kind, array in arrays.items() if kind in REGRESSION}
    planes = [rank for kind, rank in ranks.items() if kind != "samples"]
    least = min(planes, default=ranks.get("samples", 4) - 1)
    if not ranks or least > 2:
        return arrays, False
    if least == 1:
        return {
            kind: a.reshaped((*a.shape[:-1], 1, a.shape[-1])) if isinstance(a, NumpyArray) else a
            for kind, a in arrays.items()
        }, True
    return arrays, True


def store_of_one(array: StoredArray, opening: Opening) -> Store:
    """Return a store of one array that has no name, so that its role and rank say what it is."""
    role, rank = opening.role, len(array.shape)
    kind: str | None = role
    if role in _VIDEO_RANKS:
        expected = _VIDEO_RANKS[role]
        good = rank == 4 and array.dtype.kind in "biuf"
    else:
        opening.declared.name_axes(array)
        kind = kind_of_bare(array, role, opening.declared)
        good, expected = kind is not None, _BARE_EXPECTED[role]
    if not good or kind is None:
        raise not_one_of(array, expected)
    is_single = role == "target" and rank < 3
    if is_single and rank == 1 and isinstance(array, NumpyArray):
        array = array.reshaped((1, *array.shape))
    return assemble(
        array.where, {kind: array}, opening.names, None, dict(array.attributes), is_single=is_single
    )


def assemble(
    path: str,
    arrays: Mapping[str, StoredArray],
    given: Sequence[str] | None,
    stored_names: tuple[str, ...] | None,
    attributes: dict[str, Any],
    warnings: Sequence[str] = (),
    is_single: bool = False,
    kinds: Sequence[str] = (),
) -> Store:
    """Return arrays as a store, once their axes, counts and names agree; `is_single`: of one item.

    `kinds`: what the store calls its arrays, if not as they are called here.
    """
    kinds = tuple(kinds or arrays)
    parts: dict[str, tuple[ItemArray, ...]] = {}
    warned = list(warnings)
    for kind, array in arrays.items():
        if kind not in KNOWN and len(array.shape) < (2 if is_single else 3):
            continue  # coordinates and the like, which xarray stores beside the data
        try:
            array = with_pixel(array, kind, is_single=is_single)
            resolve(array, kind, is_single=is_single)
        except StoreError as error:
            if kind in KNOWN:
                raise
            warned.append(f"left out: {error}")
            continue
        if "item" in array.axes:
            count = array.shape[array.axes.index("item")]
            parts[kind] = tuple(ItemArray(array, index) for index in range(count))
        else:
            parts[kind] = (ItemArray(array, None),)
    if not parts:
        content = f"only {listed(sorted(kinds))}" if kinds else "no arrays"
        raise StoreError(f"{cut(path)}: holds {content}; expected {PREDICTIONS_EXPECTED}.")
    count = _count(parts, path)
    if given is not None:
        names: tuple[str, ...] | None = checked_names(list(given), f"{path}: --names", count)
        refuse_reordered(names or (), stored_names, path)
    else:
        names = None if stored_names is None else checked_names(stored_names, path, count)
    return Store(path, parts, names, attributes, tuple(warned), held=kinds)


def _count(parts: Mapping[str, tuple[ItemArray, ...]], path: str) -> int:
    # Flow lies between items and says nothing about their number, unless it is alone.
    only_flows = parts.keys() <= FLOWS
    counts = {kind: len(items) for kind, items in parts.items() if only_flows or kind not in FLOWS}
    first, count = next(iter(counts.items()))
    for kind, other in counts.items():
        if other != count:
            raise StoreError(
                f"{cut(path)}: {quoted(first)} has {count} items and {quoted(kind)} has {other}. "
                "Write both for the same items, in the same order."
            )
    if count == 0:
        raise StoreError(f"{cut(path)}: {quoted(first)} has no items. Was anything written?")
    return count


def own_names(
    arrays: Mapping[str, StoredArray], attributes: Mapping[str, Any], path: str
) -> tuple[str, ...] | None:
    """Return the names of the items: the array `names`, else the attribute, else None.

    Raises `StoreError` for names that are no texts, one an item.
    """
    array = arrays.get("names")
    if array is None:
        values = attributes.get("names")
        return None if values is None else checked_names(values, f"{path}: attribute names")
    if len(array.shape) != 1 or (array.dtype.kind not in "UO"):
        raise StoreError(
            f"{array.where}: holds {array.dtype} of shape {array.shape}, expected one text an item."
        )
    array.check_claims()
    if max(array.chunk_bytes, array.shape[0] * array.dtype.itemsize) > MOST_BYTES:
        raise StoreError(
            f"{array.where}: claims {array.shape[0]:,} names of {array.dtype} in chunks of "
            f"{array.chunks[0]:,}, more than names take. Write them again."
        )
    return checked_names([str(v) for v in array.read((slice(None),)).tolist()], array.where)
