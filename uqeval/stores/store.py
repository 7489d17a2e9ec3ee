"""Opening whatever a user gives as a store of predictions or labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError, listed
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.attributes import check_attributes
from uqeval.stores.kinds import (
    FLOWS,
    KNOWN,
    PREDICTIONS_EXPECTED,
    REGRESSION,
    known_as,
    resolve,
)
from uqeval.stores.label_folder import open_label_folder, png_files
from uqeval.stores.names import checked_names, read_names_file
from uqeval.stores.numpy_array import NumpyArray, in_memory, open_npy, open_npz
from uqeval.stores.sources import is_url
from uqeval.stores.target_folder import open_target_folder, target_files
from uqeval.stores.truth import is_zarr, looks_like_labels, looks_like_truth
from uqeval.stores.zarr_writer import item_folder

if TYPE_CHECKING:
    from uqeval.stores.zarr_group import ZarrGroup

__all__ = ["Role", "looks_like_labels", "looks_like_truth", "open_store", "read_names_file"]

Role: TypeAlias = Literal["predictions", "labels", "target", "frames", "flow", "flow_forward"]

_EXPECTED = "a Zarr store (folder, zip or URL), an .npy or .npz file, or a folder of label PNGs"


def open_store(
    path: str | Path | NDArray[Any],
    *,
    role: Role,
    names: Sequence[str] | None = None,
    fill_missing: bool = False,
    label_map: str | None = None,
) -> Store:
    """The store at `path`, its arrays with their axes resolved and cut into items.

    `role` says what a bare array stands for. `names` override the store's own; for a folder of
    label images they say which items to look for. With `fill_missing`, chunks that a Zarr store
    does not hold read as the fill value. Raises `StoreError` for anything that is no sound store.
    """
    if isinstance(path, np.ndarray):
        return _bare(in_memory(path), role, names)
    text = str(path)
    if is_url(text) or is_zarr(text):
        return _open_zarr(text, role, names, fill_missing)
    local = Path(text)
    if local.is_dir():
        return _open_folder(text, role, names, label_map)
    if not local.exists():
        raise StoreError(f"{text}: there is nothing here; expected {_EXPECTED}. Check the path.")
    if local.suffix == ".npy":
        return _bare(open_npy(text), role, names)
    if local.suffix == ".npz":
        return _open_npz(text, role, names)
    raise StoreError(f"{text}: is a {local.suffix or 'plain'} file; expected {_EXPECTED}.")


def _open_zarr(path: str, role: Role, names: Sequence[str] | None, fill_missing: bool) -> Store:
    from uqeval.stores.zarr_array import ZarrArray
    from uqeval.stores.zarr_group import open_zarr

    opened = open_zarr(path, fill_missing=fill_missing)
    if opened is None:
        raise StoreError(f"{path}: holds no Zarr metadata at its root; expected {_EXPECTED}.")
    if isinstance(opened, ZarrArray):
        return _bare(opened, role, names)
    check_attributes(opened.attributes, path)
    if "items" in opened.groups:
        return _open_items(opened, path, names, fill_missing)
    for kind in sorted(opened.unreadable):
        if kind in KNOWN or kind == "names":
            raise opened.unreadable[kind]
    arrays: dict[str, StoredArray] = {k: a for k, a in opened.arrays.items() if not a.text}
    own = _own_names(opened.arrays, opened.attributes, path)
    warnings = [f"left out: {error}" for error in opened.unreadable.values()]
    return _assemble(path, arrays, names, own, opened.attributes, warnings)


def _open_items(
    root: ZarrGroup, path: str, names: Sequence[str] | None, fill_missing: bool
) -> Store:
    from uqeval.stores.zarr_group import open_zarr_group

    items = open_zarr_group(root.source, "items", fill_missing=fill_missing)
    found = items.groups if items else root.source.children("items")
    own = _own_names(root.arrays, root.attributes, path)
    order = tuple(names) if names is not None else own or tuple(sorted(found))
    order = checked_names(order, path, len(found))
    # A writer quotes what a folder's name may not hold; other people's names are taken as they are.
    folders = {name: q if (q := item_folder(name)) in found else name for name in order}
    if unknown := sorted(set(folders.values()) - set(found)):
        raise StoreError(f"{path}: there is no group items/{unknown[0]} for the item named so.")
    parts: dict[str, list[ItemArray]] = {}
    for name in order:
        folder = f"items/{folders[name]}"
        group = open_zarr_group(root.source, folder, fill_missing=fill_missing)
        if group is None or not (group.arrays or group.unreadable):
            raise StoreError(f"{path}: {folder} holds no arrays. Write it again.")
        for error in group.unreadable.values():
            raise error
        for kind, array in group.arrays.items():
            if kind in KNOWN or len(array.shape) == 2:
                resolve(array, kind, single=True)
                parts.setdefault(kind, []).append(ItemArray(array, None))
    for kind, members in parts.items():
        if len(members) != len(order):
            raise StoreError(
                f"{path}: only {len(members)} of {len(order)} items have {kind!r}. Write it for "
                "all of them or for none."
            )
    if not order or not parts:
        raise StoreError(f"{path}: items/ is empty. Was anything written?")
    return Store(path, {k: tuple(v) for k, v in parts.items()}, order, root.attributes)


def _open_folder(
    path: str, role: Role, names: Sequence[str] | None, label_map: str | None
) -> Store:
    if role == "target" and target_files(path):
        return open_target_folder(path, names)
    if png_files(path):
        if role == "labels":
            return open_label_folder(path, names, label_map=label_map)
        raise StoreError(
            f"{path}: is a folder of PNG files, which can be labels but not predictions. Give a "
            "Zarr store, .npy or .npz file of predictions first."
        )
    kinds = Counter(file.suffix.lower() or "plain" for file in Path(path).iterdir())
    what = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(3))
    raise StoreError(
        f"{path}: is a folder with {f'{what} files' if what else 'nothing in it'}; expected "
        f"{_EXPECTED}."
    )


def _open_npz(path: str, role: Role, names: Sequence[str] | None) -> Store:
    members = open_npz(path)
    if not members:
        raise StoreError(f"{path}: holds no arrays. Save it with numpy.savez.")
    if set(members) == {"arr_0"}:
        return replace(_bare(members["arr_0"], role, names), path=path)
    arrays: dict[str, StoredArray] = {}
    for kind, array in members.items():
        known = known_as(kind, array)
        if known in arrays:
            raise StoreError(f"{path}: holds {known!r} twice, once as {kind!r}. Keep one of them.")
        if array.dtype.kind != "U":
            arrays[known] = array
    arrays, single = _one_item(arrays)
    own = None if single else _own_names(members, {}, path)
    return _assemble(path, arrays, names, own, {}, single=single, held=tuple(members))


def _one_item(arrays: dict[str, StoredArray]) -> tuple[dict[str, StoredArray], bool]:
    """Arrays of numbers with a target as those of one image where they have no item axis.

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


def _bare(array: StoredArray, role: Role, names: Sequence[str] | None) -> Store:
    """A store of one array that has no name, so that its role and rank say what it is."""
    rank = len(array.shape)
    if role == "target":
        kind, good = "target", rank in (1, 2, 3) and array.dtype.kind in "biuf"
        expected = "[N, H, W], [H, W] or [N] numbers for a target"
    elif role == "labels":
        kind, good = "labels", rank == 3 and array.dtype.kind in "biu"
        expected = "[N, H, W] integers for labels"
    elif role == "frames":
        kind, good = "frames", rank == 4 and array.dtype.kind in "biuf"
        expected = "[N, H, W, 3] bytes for frames"
    elif role in FLOWS:
        kind, good = role, rank == 4 and array.dtype.kind in "biuf"
        expected = "[N-1, H, W, 2] numbers for optical flow"
    else:
        kind = "predictions" if rank == 3 else "probs"
        good = rank in (4, 5) or (rank == 3 and array.dtype.kind in "biu")
        expected = "[N, T, C, H, W] or [N, C, H, W] probabilities, or [N, H, W] predicted ids"
    if not good:
        raise StoreError(
            f"{array.where}: has the shape {array.shape} of {array.dtype}, expected {expected}. "
            "Add the axes that are missing, or save a Zarr group that names its arrays."
        )
    single = role == "target" and rank < 3
    if single and rank == 1 and isinstance(array, NumpyArray):
        array = array.reshaped((1, *array.shape))
    return _assemble(array.where, {kind: array}, names, None, dict(array.attributes), single=single)


def _assemble(
    path: str,
    arrays: Mapping[str, StoredArray],
    given: Sequence[str] | None,
    own: tuple[str, ...] | None,
    attributes: dict[str, Any],
    warnings: Sequence[str] = (),
    single: bool = False,
    held: Sequence[str] = (),
) -> Store:
    """Arrays as a store, once their axes, counts and names agree; `single`: of one item.

    `held`: what the store calls its arrays, if not as they are called here.
    """
    held = tuple(held or arrays)
    parts: dict[str, tuple[ItemArray, ...]] = {}
    warned = list(warnings)
    for kind, array in arrays.items():
        if kind not in KNOWN and len(array.shape) < (2 if single else 3):
            continue  # coordinates and the like, which xarray stores beside the data
        try:
            resolve(array, kind, single=single)
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
        found = f"only {listed(sorted(held))}" if held else "no arrays"
        raise StoreError(f"{path}: holds {found}; expected {PREDICTIONS_EXPECTED}.")
    count = _count(parts, path)
    if given is not None:
        names: tuple[str, ...] | None = checked_names(list(given), f"{path}: --names", count)
    else:
        names = None if own is None else checked_names(own, path, count)
    return Store(path, parts, names, attributes, tuple(warned), held)


def _count(parts: Mapping[str, tuple[ItemArray, ...]], path: str) -> int:
    # Flow lies between items and says nothing about their number, unless it is alone.
    alone = parts.keys() <= FLOWS
    counts = {kind: len(part) for kind, part in parts.items() if alone or kind not in FLOWS}
    first, count = next(iter(counts.items()))
    for kind, other in counts.items():
        if other != count:
            raise StoreError(
                f"{path}: {first!r} has {count} items and {kind!r} has {other}. Write both for the "
                "same items, in the same order."
            )
    if count == 0:
        raise StoreError(f"{path}: {first!r} has no items. Was anything written?")
    return count


def _own_names(
    arrays: Mapping[str, StoredArray], attributes: Mapping[str, Any], path: str
) -> tuple[str, ...] | None:
    array = arrays.get("names")
    if array is None:
        values = attributes.get("names")
        return None if values is None else checked_names(values, f"{path}: attribute names")
    if len(array.shape) != 1 or (array.dtype.kind not in "UO"):
        raise StoreError(
            f"{array.where}: holds {array.dtype} of shape {array.shape}, expected one text an item."
        )
    return checked_names([str(v) for v in array.read((slice(None),)).tolist()], array.where)
