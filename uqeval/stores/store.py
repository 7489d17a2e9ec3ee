"""Open a path, URL or array as a store of predictions or labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import open_descriptor
from uqeval.disk.suffixes import NIFTI, suffix_of
from uqeval.errors import IN_MEMORY, StoreError, cut, quoted
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.attribute_arrays import add_attribute, check_attributes
from uqeval.stores.contents import (
    Contents,
    Opening,
    Role,
    hdf5_path,
    store_of_named,
    store_of_one,
)
from uqeval.stores.described import (
    DescribedArray,
    attributes_of,
    coordinates_in,
    described,
    plain,
)
from uqeval.stores.kinds import KNOWN, Declared
from uqeval.stores.zarr.group import hint_of_missing
from uqeval.stores.zarr.source import is_url, is_zarr

#: The formats, in the order in which they are tried. Each has a function that recognises a path by
#: its name and kind of file, and the name of its class, which is imported on use.
FORMATS: tuple[tuple[Callable[[str], bool], str], ...] = (
    (lambda path: is_url(path) or is_zarr(path), "zarr.store.ZarrStore"),
    (lambda path: suffix_of(path) in NIFTI and Path(path).exists(), "files.numpy_store.ArrayStore"),
    (lambda path: hdf5_path(path) is not None, "files.hdf5.Hdf5Store"),
    (lambda path: Path(path).is_dir(), "files.folder_store.FolderStore"),
    (
        lambda path: suffix_of(path) == ".npy" and Path(path).exists(),
        "files.numpy_store.ArrayStore",
    ),
    (lambda path: suffix_of(path) == ".npz" and Path(path).exists(), "files.numpy_store.NpzStore"),
)


def has_chunks(path: str) -> bool:
    """Return whether a path is of a format whose chunks may be missing: Zarr or HDF5."""
    return is_url(path) or is_zarr(path) or hdf5_path(path) is not None


EXPECTED = (
    "a Zarr store (folder, zip or URL), an .npy or .npz file, a folder of them (one per item), a "
    "folder of label PNGs or NIfTI files, or an HDF5 or netCDF-4 file (file.h5::/path)"
)


class Unreadable(Contents):
    """A missing path, or a file of an unknown format.

    `store` raises, not the constructor, because outputs are checked and locked before inputs are
    opened.
    """

    def store(self, opening: Opening) -> Store:
        from uqeval.stores.files.foreign import how_to_convert

        path = self.path
        try:
            os.close(open_descriptor(path))
        except FileNotFoundError:
            raise StoreError(
                f"{cut(path)}: there is nothing here; expected {EXPECTED}. {hint_of_missing(path)}"
            ) from None
        except OSError as error:  # a device, a loop of links, no permission
            raise StoreError(
                f"{cut(path)} cannot be read: {error.strerror}; expected {EXPECTED}."
            ) from None
        raise StoreError(
            f"{cut(path)} is a {cut(Path(path).suffix) or 'plain'} file; expected {EXPECTED}."
            + how_to_convert(path)
        )


def contents_of(path: str | os.PathLike[str]) -> Contents:
    """Open `path` with the class of its format. Raises `StoreError` for a damaged file, and for an
    empty path, which would be the current folder."""
    if isinstance(path, Contents):
        return path
    text = os.fspath(path)
    if not text:
        raise StoreError("the path of a store is empty; expected a path, such as preds.zarr.")
    place = next((place for recognises, place in FORMATS if recognises(text)), None)
    if place is None:
        return Unreadable(text)
    module, _, name = place.rpartition(".")
    format_class: type[Contents] = getattr(import_module(f"uqeval.stores.{module}"), name)
    return format_class(text)


def open_store(
    path: str | os.PathLike[str] | Array | DescribedArray | Mapping[str, Any],
    *,
    role: Role,
    names: Sequence[str] | None = None,
    fill_missing: bool = False,
    label_map: str | None = None,
    kind: str | None = None,
    axes: str | None = None,
    annotator_folders: bool = False,
    maps: Collection[str] = (),
    called: str = "",
    noun: str = "",
    has_other_truth: bool = False,
) -> Store:
    """Return the store at `path`, with canonical axes and divided into items.

    `path` may also be `Contents` that are open, an array in memory, or a mapping of arrays by name.
    `role` is the expected content of an array without a name; `kind` and `axes` (letters of NTCHW)
    declare its content. `names` replace the names in the store; for a folder of label images they
    select items. With `annotator_folders`, each folder inside belongs to an annotator. With
    `fill_missing`, missing chunks of a Zarr store read as the fill value. `maps`: names of arrays
    to look up at a web server, which cannot list them. `called`: the argument that arrays in memory
    were given as, for messages; `noun`: what these call a file of an item, by default from the
    role. `has_other_truth`: labels or a target are read from another store. Raises `StoreError` for
    an invalid store, `UsageError` for a wrong declaration.
    """
    opening = Opening(
        role, names, fill_missing, label_map, Declared(kind, axes), annotator_folders, noun,
        frozenset(maps), has_other_truth,
    )  # fmt: skip
    if isinstance(path, np.ndarray | DescribedArray):
        where = _named(called, ARRAY)
        own = described(path, where)
        check_attributes(own.attributes, where)
        return store_of_one(own.stored(where), opening)
    if isinstance(path, Mapping):
        return _open_mapping(path, opening, _named(called, ARRAYS))
    return contents_of(path).store_once(opening)


#: Keys of a mapping that are not arrays of numbers.
_ATTRIBUTES = frozenset({"names", "class_names", "ignore_index", "sample_kind"})

#: Coordinates that a Dataset of xarray in memory may have, and that are read as in a store.
_ARRAYS_OF_COORDS = KNOWN | {"names"}

#: The names of arrays in memory, which have no path.
ARRAY, ARRAYS = f"array{IN_MEMORY}", f"arrays{IN_MEMORY}"


def _named(called: str, content: str) -> str:
    return f"{called} ({content})" if called else content


def _open_mapping(given: Mapping[str, Any], opening: Opening, where: str) -> Store:
    """Return arrays in memory by name, with `names`, `class_names`, `ignore_index` and
    `sample_kind`.

    Raises `StoreError` for an invalid store.
    """
    members: dict[str, StoredArray] = {}
    attributes = attributes_of(given)
    arrays = {name: own for name, own in coordinates_in(given).items() if name in _ARRAYS_OF_COORDS}
    for kind, values in {**arrays, **given}.items():
        if kind in _ATTRIBUTES:
            add_attribute(attributes, kind, plain(values), where)
        else:
            is_scale = kind == "scale" and isinstance(values, list | tuple) and len(values) == 1
            is_list = kind == "invalid" and isinstance(values, list | tuple)
            if isinstance(values, bool | int | float) or is_scale or is_list:
                values = np.asarray(values)
            own = described(values, f"{where}, {quoted(kind)}")
            members[str(kind)] = own.stored(f"{kind} of {where}")
    check_attributes(attributes, where)
    return store_of_named(where, members, attributes, opening)
