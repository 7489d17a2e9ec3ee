"""The content of a path, opened once: whether it is ground truth, and its arrays as a store."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from uqeval.errors import StoreError, cut, listed, quoted
from uqeval.stores.array import ItemArray, ItemsOf, Store, StoredArray, arrays_of
from uqeval.stores.attribute_arrays import (
    of_one_array,
    own_names,
    with_class_names,
    with_names,
    without_attributes,
)
from uqeval.stores.axis_names import axis_called
from uqeval.stores.coordinates import Coordinate
from uqeval.stores.files.numpy_array import NumpyArray
from uqeval.stores.kinds import (
    FLOWS,
    KNOWN,
    PREDICTIONS,
    REGRESSION,
    Declared,
    kind_of_bare,
    known_once,
    not_one_of,
    predictions_expected,
    resolve,
    with_scale,
)
from uqeval.stores.map_names import READ_BY_NAME
from uqeval.stores.names import checked_names, refuse_reordered
from uqeval.stores.orders import with_coordinates

_HDF5 = re.compile(r"^(?P<file>.+\.(?:h5|hdf5|hdf|nc|nc4))(?:::(?P<inside>.*))?$", re.IGNORECASE)


def hdf5_path(path: str) -> tuple[str, str] | None:
    """Return the file and the address inside it of a path to HDF5 or netCDF; None for another path,
    and for a folder.
    """
    match = _HDF5.match(path)
    if match is None or "://" in path or not Path(match["file"]).exists() or Path(path).is_dir():
        return None
    return match["file"], match["inside"] or "/"


def refuse_nested(path: str, places: Sequence[str]) -> None:
    """Raise `StoreError` for a file or group without arrays if groups inside it, at `places`, have
    some.
    """
    if places:
        raise StoreError(
            f"{cut(path)} holds no arrays itself; its groups do. Give the path of a group: "
            f"{listed(places)}."
        )


class Contents(ABC):
    """Base class of all formats, which `FORMATS` in `store.py` lists.

    An instance has the content of one path. Names, axes and dtypes decide whether it is ground
    truth, never values.
    """

    #: The path or URL.
    path: str
    #: The only array, if it has no name.
    unnamed: StoredArray | None = None
    #: The names of its arrays, if they have names.
    kinds: frozenset[str] = frozenset()
    #: The latest opened store, and its opening.
    _latest: tuple[Opening, Store] | None = None

    def __init__(self, path: str) -> None:
        """Open the path, without reading values. Raises `StoreError`, `UsageError`."""
        self.path = path

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    @abstractmethod
    def store(self, opening: Opening) -> Store:
        """Return the store, with canonical axes and divided into items.

        Raises `StoreError` for an invalid store, `UsageError` for a wrong declaration.
        """

    def beside(self) -> tuple[Mapping[str, StoredArray], Mapping[str, Coordinate]]:
        """Return what may be coordinates of the array at the path: the arrays of numbers beside it,
        and coordinates of texts."""
        return {}, {}

    def names_beside(self) -> tuple[str, ...] | None:
        """Return the names of items beside the array at the path, or beside the named arrays; None
        without such names. Raises `StoreError` for names that cannot be read."""
        return None

    def array(self, name: str | None, *, fill_missing: bool) -> StoredArray | None:
        """Return the array called `name`, or without it the one at the path; None if the path has
        several. Raises `StoreError` if there is none of this name."""
        return self.unnamed

    def described(self, name: str | None) -> Store:
        """Return names of items and attributes for an array that `array` returns, as a store
        without arrays. Raises `StoreError` as `store` does."""
        return Store(self.path, {})

    def store_once(self, opening: Opening) -> Store:
        """Return `store(opening)`; the same object for repeated calls."""
        if self._latest is None or self._latest[0] != opening:
            self._latest = opening, self.store(opening)
        return self._latest[1]

    def is_labels(self) -> bool:
        """Return whether the content is labels: integers [N] or [N, H, W], or arrays of this
        name.
        """
        if self.unnamed is not None:
            rank = len(self.unnamed.shape)
            return self.unnamed.dtype.kind in "biu" and (rank in (1, 3) or self._is_of_annotators)
        return "labels" in self.kinds and not self.kinds & PREDICTIONS

    def is_truth(self) -> bool:
        """Return whether the content is labels or a target: numbers [N, H, W] or fewer axes, or
        such names.
        """
        if self.unnamed is not None:
            of_numbers = self.unnamed.dtype.kind in "biuf" and len(self.unnamed.shape) <= 3
            return of_numbers or self._is_of_annotators
        return bool(self.kinds & {"labels", "target"}) and not self.kinds & PREDICTIONS

    @property
    def _is_of_annotators(self) -> bool:
        """Return whether the only array is ids [item, annotator, y, x]: integers without a
        scale.
        """
        array = self.unnamed
        if array is None or array.dtype.kind not in "biu" or len(array.shape) != 4:
            return False
        if axes := array.named_axes:
            return "annotator" in axes
        return "scale" not in array.attributes

    def may_be_predictions(self) -> bool:
        """Return whether content that looks like ground truth may be predictions.

        Class ids may be predicted; numbers [N, C] or [N, T, C] may be probabilities of image
        classification.
        """
        if self.unnamed is not None:
            return len(self.unnamed.shape) in (2, 3) or self.unnamed.dtype.kind in "biu"
        return self.kinds == {"labels"}


#: Arrays of ground truth.
TRUTH = frozenset({"labels", "target"})

Role: TypeAlias = Literal["predictions", "labels", "target", "frames", "flow", "flow_forward"]

#: The expected content of an array without a name, by role.
_BARE_EXPECTED = {
    "predictions": "[N, T, C, H, W] or [N, C, H, W] probabilities (of images without pixels "
    "[N, C] or [N, T, C]), or [N, H, W] predicted ids",
    "labels": "[N, H, W] integers for labels (of images without pixels [N], of several annotators "
    "[N, R, H, W]; [N, R] needs a name: {'labels': array}, or an .npz)",
    "target": "[N, H, W], [H, W] or [N] numbers for a target",
}
_VIDEO_RANKS = {
    "frames": "[N, H, W, 3] bytes for frames",
    "flow": "[N-1, H, W, 2] numbers for optical flow",
    "flow_forward": "[N-1, H, W, 2] numbers for optical flow",
}


@dataclass(frozen=True)
class Opening:
    """Options to open a store; see `uqeval.stores.store.open_store`."""

    role: Role
    names: Sequence[str] | None = None
    fill_missing: bool = False
    label_map: str | None = None
    declared: Declared = field(default_factory=Declared)
    annotator_folders: bool = False
    #: What messages call a file of an item; by default from the role.
    noun: str = ""
    #: Names of arrays that options name; a source that cannot list its arrays looks them up.
    maps: frozenset[str] = frozenset()
    #: Whether labels or a target are read from another store.
    has_other_truth: bool = False

    def unread(self, kinds: frozenset[str]) -> frozenset[str]:
        """Return the names of arrays that are not read from a store of these `kinds`."""
        if self.role in TRUTH:
            return KNOWN - {self.role, "valid"}
        # The labels of a store of maps tell with which labels these were computed.
        reads_predictions = kinds & {"probs", "logits", "mean", "samples"}
        return TRUTH if self.has_other_truth and reads_predictions else frozenset()


def store_of_named(
    path: str, members: Mapping[str, StoredArray], attributes: dict[str, Any], opening: Opening,
    coordinates: Mapping[str, Coordinate] | None = None,
) -> Store:  # fmt: skip
    """Return a store of named arrays in one file, or in memory.

    `coordinates`: those that are not among the arrays, by name.
    """
    members, attributes, warnings = without_attributes(members, attributes, path)
    arrays: dict[str, StoredArray] = {}
    for name, array in members.items():
        kind = known_once(name, array, arrays, path)
        is_text = array.dtype.kind == "U" and kind not in REGRESSION  # `resolve` refuses these
        if not is_text and name != "names":
            arrays[kind] = array
    arrays = opening.declared.of_named(with_scale(arrays), path)
    arrays, is_single = as_one_item(arrays)
    names = None if is_single else own_names(members, attributes, path)
    store = assemble(
        path, arrays, opening.names, names, attributes, warnings, is_single=is_single,
        kinds=tuple(members), maps=opening.maps,
    )  # fmt: skip
    return with_coordinates(store, members, coordinates)


def as_one_item(arrays: dict[str, StoredArray]) -> tuple[dict[str, StoredArray], bool]:
    """Return arrays of numbers with a target; those without an item axis become one image.

    Tables, [N] or members [M, N], become images of one row.
    """
    ranks = {kind: len(array.shape) for kind, array in arrays.items() if kind in REGRESSION}
    planes = [rank for kind, rank in ranks.items() if kind != "samples"]
    least = min(planes, default=ranks.get("samples", 4) - 1)
    if not ranks or least > 2:
        return arrays, False
    if least == 1:
        return {
            kind: _row(array) if isinstance(array, NumpyArray) else array
            for kind, array in arrays.items()
        }, True
    return arrays, True


def _row(array: NumpyArray) -> NumpyArray:
    """Return a table [N] or [M, N] as an image of one row. Raises `StoreError` for named axes in
    another order."""
    names = array.dimension_names or ()
    first, last = (axis_called(name) for name in names) if len(names) == 2 else (None, None)
    if first not in (None, "sample") or last == "sample":
        axes = ", ".join(axis or str(name) for axis, name in zip((first, last), names, strict=True))
        raise StoreError(
            f"{array.where} has the axes [{cut(axes)}]; expected [item], or [sample, item] of "
            "members. Transpose it."
        )
    row = array.reshaped((*array.shape[:-1], 1, array.shape[-1]))
    if names and (name := names[-1]):
        row.dimensions = {name: "item"}
    return row


def store_of_one(array: StoredArray, opening: Opening, described: Store | None = None) -> Store:
    """Return a store of one array without a name; its role and rank decide its kind. `described`:
    what describes it beside it, as a store without arrays; by default its own attributes."""
    if described is None:
        described = Store(array.where, {}, attributes=of_one_array(array, {}))
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
        raise not_one_of(array, expected, 3 if role == "target" else 5)
    is_single = role == "target" and rank < 3
    if is_single and rank == 1 and isinstance(array, NumpyArray):
        array = _row(array)
    store = assemble(
        array.where, {kind: array}, opening.names, described.names, described.attributes,
        described.warnings, is_single=is_single,
    )  # fmt: skip
    return with_coordinates(store, {})


def assemble(
    path: str,
    arrays: Mapping[str, StoredArray],
    given: Sequence[str] | None,
    stored_names: tuple[str, ...] | None,
    attributes: dict[str, Any],
    warnings: Sequence[str] = (),
    is_single: bool = False,
    kinds: Sequence[str] = (),
    maps: frozenset[str] = frozenset(),
) -> Store:
    """Return arrays as a store, after checking that axes, counts and names agree.

    `is_single`: the arrays are one item. `kinds`: the names of the arrays in the store, if they
    differ. `maps`: names of arrays that options name, which are not left out.
    """
    kinds = tuple(kinds or arrays)
    parts: dict[str, Sequence[ItemArray]] = {}
    warned = list(warnings)
    for kind, array in arrays.items():
        if kind not in KNOWN and len(array.shape) < (2 if is_single else 3):
            continue  # coordinates and the like, which xarray stores with the data
        try:
            array = resolve(array, kind, is_single=is_single)
        except StoreError as error:
            if kind in KNOWN or kind in maps:
                raise
            warned.append(f"left out: {error}")
            continue
        if "item" in array.axes:
            parts[kind] = ItemsOf(array, range(array.length("item")))
        else:
            parts[kind] = (ItemArray(array, None),)
    if not parts:
        content = f"only {listed(sorted(kinds))}" if kinds else "no arrays"
        raise StoreError(f"{cut(path)} holds {content}; {predictions_expected(kinds)}")
    others = other_kinds(parts, maps)
    count = _count({kind: items for kind, items in parts.items() if kind not in others}, path)
    for kind in sorted(kind for kind in others if len(parts[kind]) != count):
        warned.append(
            f"left out: {arrays[kind].where} has {len(parts.pop(kind))} items, but the store has "
            f"{count}."
        )
    own_arrays = {kind: own for kind, parts_of in parts.items() for own in arrays_of(parts_of)}
    attributes = with_class_names(attributes, own_arrays, path)
    # Names beside one image are not its own; names beside flow are those of the frames.
    of_frames = parts.keys() <= FLOWS and len(stored_names or ()) == count + 1
    if is_single or of_frames:
        stored_names = None
    elif not parts.keys() <= FLOWS:
        of_items = {kind: own for kind, own in own_arrays.items() if kind not in FLOWS}
        stored_names = with_names(stored_names, of_items, path, count)
    names = None if stored_names is None else checked_names(stored_names, path, count)
    if given is None:
        return Store(path, parts, names, attributes, tuple(warned), held=kinds)
    given_names = checked_names(list(given), f"{path}: --names", count)
    refuse_reordered(given_names, names, path)
    return Store(path, parts, given_names, attributes, tuple(warned), kinds, replaced=names)


def other_kinds(kinds: Collection[str], maps: frozenset[str]) -> frozenset[str]:
    """Return the arrays that are neither of a name that uqeval reads nor of `maps`; none if all
    are such.

    They are left out with a warning if they are not of the same items as the others.
    """
    others = frozenset(kinds) - KNOWN - READ_BY_NAME - maps
    return others if set(kinds) - others - FLOWS else frozenset()


def _count(parts: Mapping[str, Sequence[ItemArray]], path: str) -> int:
    # Flow is between items and does not give their number, unless there is no other array.
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
        raise StoreError(
            f"{cut(path)}: {quoted(first)} has no items; expected at least one. Write it again."
        )
    return count
