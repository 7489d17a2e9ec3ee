"""Opening whatever a user gives as a store of predictions or labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError, UsageError, cut, listed, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.assembled import (
    Opening,
    Role,
    assemble,
    own_names,
    store_of_named,
    store_of_one,
)
from uqeval.stores.attributes import check_attributes
from uqeval.stores.declared import Declared
from uqeval.stores.foreign import how_to_convert
from uqeval.stores.hdf5_array import hdf5_path
from uqeval.stores.item_folder import kinds_in_folder, open_item_folder
from uqeval.stores.kinds import KNOWN, resolve
from uqeval.stores.label_folder import open_label_folder, open_predicted_ids, png_files
from uqeval.stores.mapping import open_mapping
from uqeval.stores.names import checked_names, read_names_file
from uqeval.stores.numpy_array import in_memory, open_npy, open_npz
from uqeval.stores.one_pixel import with_pixel
from uqeval.stores.source import is_url
from uqeval.stores.target_folder import open_target_folder, target_files
from uqeval.stores.truth import is_zarr, looks_like_labels, looks_like_truth, may_be_predictions
from uqeval.stores.zarr_writer import item_folder

if TYPE_CHECKING:
    from uqeval.stores.zarr_group import ZarrGroup

__all__ = [
    "Role",
    "looks_like_labels",
    "looks_like_truth",
    "may_be_predictions",
    "open_store",
    "read_names_file",
]

_EXPECTED = (
    "a Zarr store (folder, zip or URL), an .npy or .npz file, a folder of them (one an item), or a "
    "folder of label PNGs, or an HDF5 file (file.h5::/path)"
)


def open_store(
    path: str | Path | NDArray[Any] | Mapping[str, Any],
    *,
    role: Role,
    names: Sequence[str] | None = None,
    fill_missing: bool = False,
    label_map: str | None = None,
    kind: str | None = None,
    axes: str | None = None,
) -> Store:
    """The store at `path`, its arrays with their axes resolved and cut into items.

    `path` may be an array in memory, or a mapping of such by name. `role` says what a bare array
    stands for; `kind` and `axes` (letters of NTCHW) declare what it does not say. `names` override
    the store's own; for a folder of label images they say which items to look for. With
    `fill_missing`, chunks that a Zarr store does not hold read as the fill value. Raises
    `StoreError` for anything that is no sound store, `UsageError` for what is declared wrongly.
    """
    how = Opening(role, names, fill_missing, label_map, Declared(kind, axes))
    if isinstance(path, np.ndarray):
        return store_of_one(in_memory(path), how)
    if isinstance(path, Mapping):
        return open_mapping(path, how)
    text = str(path)
    if is_url(text) or is_zarr(text):
        return _open_zarr(text, how)
    if (inside := hdf5_path(text)) is not None and not Path(text).is_dir():
        return _open_hdf5(*inside, how)
    local = Path(text)
    if local.is_dir():
        return _open_folder(text, how)
    if not local.exists():
        raise StoreError(
            f"{cut(text)}: there is nothing here; expected {_EXPECTED}. Check the path."
        )
    if local.suffix == ".npy":
        return store_of_one(open_npy(text), how)
    if local.suffix == ".npz":
        return _open_npz(text, how)
    raise StoreError(
        f"{cut(text)}: is a {cut(local.suffix) or 'plain'} file; expected {_EXPECTED}."
        + how_to_convert(text)
    )


def _open_zarr(path: str, how: Opening) -> Store:
    from uqeval.stores.sources import open_source
    from uqeval.stores.zarr_array import ZarrArray
    from uqeval.stores.zarr_group import open_zarr

    source = open_source(path)
    opened = open_zarr(source, fill_missing=how.fill_missing)
    if opened is None:
        raise StoreError(f"{cut(path)}: holds no Zarr metadata at its root; expected {_EXPECTED}.")
    if isinstance(opened, ZarrArray):
        one = store_of_one(opened, how)
        return replace(one, warnings=(*one.warnings, *source.warnings()))
    check_attributes(opened.attributes, path)
    if "items" in opened.groups:
        if how.declared != Declared():
            raise UsageError(f"{cut(path)}: names its arrays; leave out --kind and --axes.")
        return _open_items(opened, path, how.names, how.fill_missing)
    for kind in sorted(opened.unreadable):
        if kind in KNOWN or kind == "names":
            raise opened.unreadable[kind]
    arrays: dict[str, StoredArray] = {k: a for k, a in opened.arrays.items() if not a.text}
    own = own_names(opened.arrays, opened.attributes, path)
    warnings = [f"left out: {error}" for error in opened.unreadable.values()]
    warnings += source.warnings()
    arrays = how.declared.of_named(arrays, path)
    return assemble(path, arrays, how.names, own, opened.attributes, warnings)


def _open_items(
    root: ZarrGroup, path: str, names: Sequence[str] | None, fill_missing: bool
) -> Store:
    from uqeval.stores.zarr_group import open_zarr_group

    items = open_zarr_group(root.source, "items", fill_missing=fill_missing)
    found = items.groups if items else root.source.children("items")
    own = own_names(root.arrays, root.attributes, path)
    order = tuple(names) if names is not None else own or tuple(sorted(found))
    order = checked_names(order, path, len(found))
    # A writer quotes what a folder's name may not hold; other people's names are taken as they are.
    folders = {name: q if (q := item_folder(name)) in found else name for name in order}
    if unknown := sorted(set(folders.values()) - set(found)):
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
                shown = with_pixel(array, kind, single=True)
                resolve(shown, kind, single=True)
                parts.setdefault(kind, []).append(ItemArray(shown, None))
    for kind, members in parts.items():
        if len(members) != len(order):
            raise StoreError(
                f"{cut(path)}: only {len(members)} of {len(order)} items have {quoted(kind)}. "
                "Write it for all of them or for none."
            )
    if not order or not parts:
        raise StoreError(f"{cut(path)}: items/ is empty. Was anything written?")
    told = tuple(root.source.warnings())
    return Store(path, {k: tuple(v) for k, v in parts.items()}, order, root.attributes, told)


def _open_folder(path: str, how: Opening) -> Store:
    kinds = kinds_in_folder(path)
    if how.role == "target" and target_files(path) and kinds <= {"target", "labels"}:
        return open_target_folder(path, how.names)
    if kinds & KNOWN or (kinds and how.declared != Declared()):
        return open_item_folder(path, how)
    if png_files(path):
        if how.role == "labels":
            return open_label_folder(path, how.names, label_map=how.label_map)
        if how.role == "predictions":
            return open_predicted_ids(path, how.names, how.declared)
    files = Counter(file.suffix.lower() or "plain" for file in Path(path).iterdir())
    what = listed(f"{count} {kind}" for kind, count in files.most_common(3))
    raise StoreError(
        f"{cut(path)}: is a folder with {f'{what} files' if what else 'nothing in it'}; expected "
        f"{_EXPECTED}." + how_to_convert(path)
    )


def _open_hdf5(path: str, inside: str, how: Opening) -> Store:
    from uqeval.stores.hdf5_array import Hdf5Group, open_hdf5

    if not Path(path).exists():
        raise StoreError(
            f"{cut(path)}: there is nothing here; expected {_EXPECTED}. Check the path."
        )
    opened = open_hdf5(path, inside, how.fill_missing)
    shown = f"{path}::{inside}" if inside != "/" else path
    if not isinstance(opened, Hdf5Group):
        return replace(store_of_one(opened, how), path=shown)
    check_attributes(opened.attributes, shown)
    store = store_of_named(shown, opened.arrays, opened.attributes, how)
    return replace(store, warnings=(*store.warnings, *opened.warnings))


def _open_npz(path: str, how: Opening) -> Store:
    members = open_npz(path)
    if not members:
        raise StoreError(f"{cut(path)}: holds no arrays. Save it with numpy.savez.")
    if set(members) == {"arr_0"}:
        return replace(store_of_one(members["arr_0"], how), path=path)
    return store_of_named(path, members, {}, how)
