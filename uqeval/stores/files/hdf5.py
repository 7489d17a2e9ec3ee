"""HDF5 files, also of netCDF-4: `file.h5`, or `file.h5::/path` of an array or a group in it; needs
h5py.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import MOST_BYTES, open_descriptor
from uqeval.errors import StoreError, UqevalError, UsageError, cut
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.attribute_arrays import (
    DESCRIBING,
    OF_STORE,
    add_attribute,
    check_attributes,
    not_utf8,
    of_one_array,
    own_names,
    refuse_large_names,
    without_attributes,
)
from uqeval.stores.axis_names import axis_of_coordinate
from uqeval.stores.contents import (
    Contents,
    Opening,
    hdf5_path,
    refuse_nested,
    store_of_named,
    store_of_one,
)
from uqeval.stores.coordinates import COMPARED, Coordinate
from uqeval.stores.described import names_of
from uqeval.stores.files.hdf5_array import Hdf5Array, attributes_of, readable
from uqeval.stores.kinds import ALIASES, KNOWN, REGRESSION, known_as
from uqeval.stores.orders import listed_in, with_coordinates

#: Members that would be left out if they hold something else: what is expected, and an example.
_EXAMPLES = {
    "names": (DESCRIBING["names"], "['a', 'b']"),
    "class_names": (DESCRIBING["class_names"], "['road', 'car']"),
    "ignore_index": (DESCRIBING["ignore_index"], "255"),
    "valid": ("true and false for each pixel", "a mask"),
}
#: Names of members that are read where they are there.
_READ = KNOWN | ALIASES.keys() | OF_STORE | {"names", "invalid"}


class Hdf5Group:
    """The arrays of numbers in an HDF5 group by name, its item names, and its attributes.

    `members`: the names of those that are opened, all if it is None. `errors`: those about members
    of names that are read and that are links or hold something else, by name.
    """

    def __init__(self, path: str, group: Any, members: Iterable[str] | None = None) -> None:
        import h5py

        self._path, self._group = cut(path), group
        self.attributes = attributes_of(group)
        self.arrays: dict[str, Hdf5Array] = {}
        #: Coordinates of texts, by name.
        self.coordinates: dict[str, Coordinate] = {}
        self.warnings: list[str] = []
        self.errors: dict[str, StoreError] = {}
        for name in DESCRIBING.keys() & group.attrs.keys() - self.attributes.keys():
            self.errors[name] = StoreError(
                f"{self._path}: attribute {name} is empty or cannot be read, expected "
                f"{DESCRIBING[name]}. Write it again, or remove it."
            )
        for name in group if members is None else members:
            if not _is_inside(group, name):
                if name in _READ and (error := _link_error(path, group, name)) is not None:
                    self.errors[str(name)] = error
                else:
                    self.warnings.append(_left_out(path, name))
                continue
            member = group[name]
            if (error := _member_error(path, name, member)) is not None:
                self.errors[str(name)] = error
                continue
            if not isinstance(member, h5py.Dataset) or _is_placeholder(member):
                continue
            is_number = member.dtype.kind in "biuf" or name in REGRESSION  # `resolve` refuses texts
            if name in ("names", "class_names"):
                add_attribute(self.attributes, name, _names(path, member), self._path)
            elif _is_texts(member):
                own, *_ = names_of(member.dims, _rank(member)) or (None,)
                load = partial(_texts, path, member)
                if member.dtype.kind == "S":  # read now: bytes may be no text
                    if member.shape[0] not in _lengths(group):
                        continue  # along no axis of an array
                    try:
                        load = partial(np.asarray, load())
                    except StoreError as error:
                        self.warnings.append(f"left out: {error}")
                        continue
                self.coordinates[str(name)] = Coordinate(
                    f"{self._path}::{cut(name)}", load, {}, own, is_index=own == name
                )
            elif is_number and member.shape is not None:
                self.arrays[str(name)] = Hdf5Array(path, member)

    def left_out(self, unread: Collection[str]) -> list[str]:
        """Return warnings about links that are not followed. Raises `StoreError` for a member of a
        name that is read, so not among those that are `unread`, and that is a link or holds
        something else."""
        for name, error in self.errors.items():
            if ALIASES.get(name, name) not in unread:
                self._group.file.close()  # so that the user can repair it at once
                raise error
        return [*self.warnings, *(_left_out(self._path, name) for name in self.errors)]

    def groups_with_arrays(self) -> list[str]:
        """Return the addresses of groups inside, at any depth, that have arrays of numbers."""
        import h5py

        found: dict[str, None] = {}

        def note(_: str, node: Any) -> None:
            is_array = isinstance(node, h5py.Dataset) and node.dtype.kind in "biuf"
            if is_array and not _is_placeholder(node):
                found[node.parent.name] = None

        with readable(self._path):
            self._group.visititems(note)
        return list(found)


def _lengths(group: Any) -> set[int]:
    """Return the lengths of all axes of the numbers in a group of h5py."""
    import h5py

    members = [group[name] for name in group if _is_inside(group, name)]
    arrays = [own for own in members if isinstance(own, h5py.Dataset) and own.dtype.kind in "biuf"]
    return {length for own in arrays for length in own.shape or ()}


def _is_placeholder(dataset: Any) -> bool:
    """Return whether a dataset only stands for a dimension of netCDF without a coordinate."""
    name = dataset.attrs.get("NAME", "")
    start = "This is a netCDF dimension but not a netCDF variable"
    return (name if isinstance(name, bytes) else str(name).encode()).startswith(start.encode())


def _is_characters(dataset: Any) -> bool:
    """Return whether texts are rows of characters, [text, length], as in the classic netCDF."""
    return dataset.dtype == "S1" and _rank(dataset) == 2


def _is_texts(dataset: Any) -> bool:
    """Return whether a dataset is one axis of texts."""
    import h5py

    if not isinstance(dataset, h5py.Dataset):
        return False
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    return (is_text and _rank(dataset) == 1) or _is_characters(dataset)


def _names(path: str, dataset: Any) -> list[str]:
    """Return the texts of a dataset.

    Raises `StoreError` for more than names need: many texts may be one long text in the file; and
    for bytes that are not UTF-8.
    """
    array = Hdf5Array(path, dataset)
    refuse_large_names(array)
    if array._chunks is not None:
        array._chunks.check()
    at_once = max(MOST_BYTES // max(Path(path).stat().st_size, dataset.dtype.itemsize), 1)
    texts: list[str] = []
    length = 0
    for start in range(0, len(dataset), at_once):
        texts += _decoded(dataset, slice(start, start + at_once), array.where)
        length += sum(map(len, texts[start:]))
        if length > MOST_BYTES:
            raise StoreError(
                f"{array.where} holds names of more than {MOST_BYTES:,} letters, which is more "
                "than names need. Write them again."
            )
    return texts


def _decoded(dataset: Any, rows: slice, where: str) -> list[str]:
    """Return some texts of a dataset. Raises `StoreError` for bytes that are not UTF-8."""
    try:
        if not _is_characters(dataset):
            return list(map(str, dataset.asstr("utf-8")[rows].tolist()))
        return [b"".join(row).rstrip(b"\0").decode() for row in dataset[rows].tolist()]
    except UnicodeDecodeError:
        raise StoreError(not_utf8(where)) from None


def _texts(path: str, dataset: Any) -> Array:
    """Return the texts of a dataset as an array. Raises `StoreError`."""
    with readable(cut(path)):
        return np.array(_names(path, dataset), np.str_)


def open_hdf5(path: str, address: str) -> Hdf5Array | Hdf5Group:
    """Return the array or the group at an address in an HDF5 file.

    Raises `UsageError` without h5py, `StoreError` if there is nothing at the address, and for a
    damaged or another file.
    """
    try:
        import h5py
    except ImportError:
        raise UsageError(
            f"{cut(path)}: HDF5 files need h5py; install it with: pip install h5py."
        ) from None
    try:
        os.close(open_descriptor(path))  # a regular file, never a pipe
        file = h5py.File(path, "r", locking="best-effort")
    except OSError as error:
        _refuse_classic_netcdf(path)
        raise StoreError(
            f"{cut(path)} cannot be opened as an HDF5 file ({cut(error)}). Check the path, or "
            "copy it again."
        ) from error
    try:
        with readable(cut(path)):
            return _opened(path, address, file)
    except UqevalError:
        file.close()  # so that the user can repair it at once
        raise


def _refuse_classic_netcdf(path: str) -> None:
    """Raise `StoreError` for a file in the classic format of netCDF, which is not HDF5."""
    with suppress(OSError), Path(path).open("rb") as file:
        if file.read(3) == b"CDF":
            new = Path(path).with_suffix(".h5" if path.endswith(".nc4") else ".nc4")
            raise StoreError(
                f"{cut(path)} is a netCDF file in the classic format (version 3); expected "
                "netCDF-4, which is HDF5. Convert it: "
                f"nccopy -k nc4 {quote(path)} {quote(str(new))}"
            )


def _opened(path: str, address: str, file: Any) -> Hdf5Array | Hdf5Group:
    import h5py

    place = address.strip("/")
    node: Any = file
    for name in place.split("/") if place else ():
        if not _is_inside(node, name):
            if (error := _link_error(path, node, name)) is not None:
                raise error
            members = ", ".join(sorted(map(str, node))[:10]) if isinstance(node, h5py.Group) else ""
            raise StoreError(
                f"{cut(path)}::{address}: there is nothing here; {node.name} holds "
                f"{members or 'nothing'}. Give the address of an array or a group after `::`."
            )
        node = node[name]
    if isinstance(node, h5py.Dataset):
        if node.shape is None or node.dtype.kind not in "biuf":
            raise StoreError(f"{cut(path)}::{address} holds {node.dtype}; expected numbers.")
        return Hdf5Array(path, node)
    return Hdf5Group(path, node)


def _beside(path: str, dataset: Any) -> Hdf5Group:
    """Return what is called like an axis or a dimension of a dataset, and has one axis, in the
    group around it, and the members in `DESCRIBING`. Raises `StoreError` if one of these is a link
    or holds something else."""
    group = dataset.parent
    with readable(cut(path)):
        dims = {*(names_of(dataset.dims, len(dataset.shape)) or ())}
        dims |= listed_in([Hdf5Array(path, dataset)])
        axes = [name for name in group if axis_of_coordinate(name) in COMPARED or name in dims]
        members = [
            n for n in axes
            if _is_inside(group, n) and (_rank(group[n]) == 1 or _is_texts(group[n]))
        ]  # fmt: skip
        around = Hdf5Group(path, group, {*members, *(DESCRIBING.keys() & group.keys())})
        around.left_out(())
        return around


def _is_inside(group: Any, name: str) -> bool:
    """Return whether a member of a group is in its file; links are not followed."""
    import h5py

    return isinstance(group, h5py.Group) and isinstance(
        group.get(name, getlink=True), h5py.HardLink
    )


def _left_out(path: str, name: str) -> str:
    return f"left out: {cut(path)}::{cut(name)} is a link, which is not followed."


def _link_error(path: str, group: Any, name: str) -> StoreError | None:
    """Return the error about a member of a group that is a link, which is not followed; None for
    another one."""
    import h5py

    link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
    where = f"{cut(path)}::{cut(posixpath.join(group.name, name))}"
    if isinstance(link, h5py.ExternalLink):
        return StoreError(
            f"{where} is a link to {cut(link.filename)}::{cut(link.path)}, another file, and links"
            " are not followed. Copy what it leads to into this file."
        )
    if isinstance(link, h5py.SoftLink):
        own, target = repr(cut(name)), repr(cut(link.path))
        return StoreError(
            f"{where} is a soft link to {cut(link.path)}, and soft links are not followed. "
            f"Replace it by a hard link, in h5py: del group[{own}]; group[{own}] = group[{target}]"
        )
    return None


def _member_error(path: str, name: str, member: Any) -> StoreError | None:
    """Return the error about a mask `valid` or a member of a name in `DESCRIBING` that holds
    something else and would be left out; None if it holds what it should, and for other names."""
    import h5py

    if name not in _EXAMPLES:
        return None
    if not isinstance(member, h5py.Dataset):
        content = "is a group" if isinstance(member, h5py.Group) else "is a type without values"
    elif member.shape is None:
        content = "is empty"
    elif name == "valid":
        return None  # `resolve` checks its numbers
    else:
        kind, rank = member.dtype, len(member.shape)
        is_text = h5py.check_string_dtype(kind) is not None
        if name == "ignore_index":
            is_good = kind.kind in "biuf" and (rank < 2 or member.size == 1)  # MATLAB's rank is 2
        else:
            is_good = _is_texts(member)
        if is_good:
            return None
        noun = "texts" if is_text else "references" if h5py.check_ref_dtype(kind) else cut(kind)
        content = f"holds {noun} of shape {member.shape}"
    expected, example = _EXAMPLES[name]
    return StoreError(
        f"{cut(path)}::{cut(member.name)} {content}, expected {expected}. Write it "
        f"again (in h5py: del group['{name}']; group['{name}'] = {example}), or remove it."
    )


def _rank(member: Any) -> int:
    """Return the number of axes of a member of a group; 0 of one that is no array."""
    return len(getattr(member, "shape", None) or ())


class Hdf5Store(Contents):
    """An array without a name, or the arrays of a group."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        file, inside = hdf5_path(path) or (path, "/")
        self._shown = f"{file}::{inside}" if inside != "/" else file
        self._opened = open_hdf5(file, inside)
        if isinstance(self._opened, Hdf5Group):
            arrays = self._opened.arrays
            kinds = {known_as(kind, array) for kind, array in arrays.items()}
            self.kinds = frozenset(kinds | {ALIASES.get(n, n) for n in self._opened.errors} & KNOWN)
        else:
            self.unnamed = self._opened

    def store(self, opening: Opening) -> Store:
        opened = self._opened
        if not isinstance(opened, Hdf5Group):
            opened.fill_missing = opening.fill_missing
            one = store_of_one(opened, opening, self.described(None))
            one = with_coordinates(one, *self.beside())
            return replace(one, path=self._shown)
        warnings = opened.left_out(opening.unread(self.kinds))
        for array in opened.arrays.values():
            array.fill_missing = opening.fill_missing
        check_attributes(opened.attributes, self._shown)
        if not opened.arrays:
            file, _ = hdf5_path(self.path) or (self.path, "/")
            refuse_nested(self._shown, [f"{file}::{name}" for name in opened.groups_with_arrays()])
        store = store_of_named(
            self._shown, opened.arrays, opened.attributes, opening, opened.coordinates
        )
        return replace(store, warnings=(*store.warnings, *warnings))

    def beside(self) -> tuple[Mapping[str, StoredArray], Mapping[str, Coordinate]]:
        return self._around.arrays, self._around.coordinates

    def names_beside(self) -> tuple[str, ...] | None:
        return own_names(self._around.arrays, self._around.attributes, self._shown)

    def array(self, name: str | None, *, fill_missing: bool) -> Hdf5Array | None:
        opened = self._opened
        if isinstance(opened, Hdf5Group):
            found = None if name is None else opened.arrays.get(name)
        else:
            found = opened
        if found is not None:
            found.fill_missing = fill_missing
        return found

    def described(self, name: str | None) -> Store:
        group = self._around
        check_attributes(group.attributes, self._shown)
        _, attributes, warnings = without_attributes(group.arrays, group.attributes, self._shown)
        warnings += group.left_out(())
        if not isinstance(self._opened, Hdf5Group):
            attributes = of_one_array(self._opened, attributes)
        return Store(self._shown, {}, self.names_beside(), attributes, tuple(warnings))

    @cached_property
    def _around(self) -> Hdf5Group:
        """The group at the path, or what belongs to the array at the path in the group around
        it."""
        if isinstance(self._opened, Hdf5Group):
            return self._opened
        file, _ = hdf5_path(self.path) or (self.path, "/")
        return _beside(file, self._opened.dataset)
