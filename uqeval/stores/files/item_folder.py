"""A folder, flat or nested, of .npy, .npz or NIfTI files. Each is an item, or a volume of
slices.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uqeval.disk.suffixes import NIFTI, NUMPY, suffix_of, without_suffix
from uqeval.errors import StoreError, all_listed, cut, listed, quoted
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.attribute_arrays import without_attributes
from uqeval.stores.contents import Opening, other_kinds
from uqeval.stores.files.numpy_files import open_npy, open_npz
from uqeval.stores.item_folders import split_name
from uqeval.stores.kinds import (
    ALIASES,
    IDS,
    KNOWN,
    REGRESSION,
    kind_of_file,
    known_alone,
    known_once,
    resolve,
    with_scale,
)
from uqeval.stores.matching import RENAME_ANY, RENAME_FILES, match_files, warnings_of_match
from uqeval.stores.names import files_below, selected_names, two_orders
from uqeval.stores.shared_attributes import Declaring, shared_attributes

#: Names of folders, and ends of stems, that tell the kind of array in their files.
_KINDS = {name: ALIASES.get(name, name) for name in (*KNOWN, *ALIASES) if name != "pred"}
#: The name that nnU-Net gives to the probabilities [class, z, y, x] of one case.
_VOLUMES = frozenset({"probabilities", "softmax"})


@dataclass(frozen=True)
class _Content:
    """The arrays of a file by kind, "" for one without a name; attributes of a store that the file
    declares, and warnings."""

    arrays: dict[str, StoredArray]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class _File:
    """One file: its item, and the kind of its array if the path tells it."""

    path: str
    item: str
    kind: str | None


def array_files(folder: str | Path) -> list[str]:
    """Return all .npy and .npz files below `folder`, relative to it, sorted; if there are none, its
    NIfTI files.

    nnU-Net writes the ids of a case as NIfTI next to its probabilities.
    """
    return files_below(folder, NUMPY) or files_below(folder, NIFTI)


def kinds_in_folder(folder: str | Path) -> frozenset[str]:
    """Return the kinds of arrays in a folder, from its paths and the header of one file; empty if
    there are none.

    An array without a name is a `target` if it has numbers [H, W], `labels` if it has ids, else
    `probs`. Raises `StoreError` for a file that cannot be read.
    """
    files = _files_of(folder, array_files(folder))
    if not files:
        return frozenset()
    if files[0].kind is not None:
        return frozenset(file.kind for file in files if file.kind is not None)
    arrays = _content_of(folder, files[0], Opening("predictions")).arrays
    if set(arrays) != {""}:
        return frozenset(arrays)
    array = arrays[""]
    shape = array.shape[1:] if array.shape[:1] == (1,) else array.shape
    if array.dtype.kind in "biu" and len(shape) in (2, 3):
        return frozenset({"labels"})
    return frozenset({"target" if len(shape) == 2 else "probs"})


def open_item_folder(path: str, opening: Opening) -> Store:
    """Return the arrays below `path`, divided into items.

    The name of an item is its path without the suffix. A file with an item axis is a volume: its
    slices are items `file/0000`, … of one group. If all volumes have one slice, as nnU-Net writes
    images, items have the names of their files. `opening.names` selects items and their order.
    Raises `StoreError`, `UsageError`.
    """
    files = [
        (file, _read_headers(path, file, opening)) for file in _files_of(path, array_files(path))
    ]
    parts, groups = _items_of(path, files)
    if opening.role in ("labels", "target"):
        if opening.role not in parts:
            kinds = ", ".join(sorted(parts)) or "nothing"
            raise StoreError(f"{cut(path)} holds {kinds}, but no {quoted(opening.role)}.")
        parts = {kind: of for kind, of in parts.items() if kind in (opening.role, "valid")}
    names = tuple(dict.fromkeys(name for of in parts.values() for name in of))
    attributes, warnings = shared_attributes(
        [
            Declaring(f"{path}/{file.path}", of.attributes, not IDS.isdisjoint(of.arrays))
            for file, of in files
        ],
        path, "files",
    )  # fmt: skip
    warnings = [text for _, content in files for text in content.warnings] + warnings
    for kind in list(parts):
        if lost := [name for name in names if name not in parts[kind]]:
            message = (
                f"{cut(path)}: only {len(parts[kind])} of {len(names)} items have {quoted(kind)}; "
                f"{listed(lost)} have none. Write it for all of them or for none."
            )
            if kind not in other_kinds(parts, opening.maps):
                raise StoreError(message)
            warnings.append(f"left out: {message}")
            del parts[kind]
    volumes = any(groups[name] != name for name in names)
    order, addresses = names, names
    if opening.names is not None:
        order = selected_names(path, opening.names)
        called = _called_as(order, groups)
        names = tuple(called[name] for name in names)
        groups = {called[name]: case for name, case in groups.items()}
        parts = {k: {called[name]: own for name, own in of.items()} for k, of in parts.items()}
        volumes = any(groups[name] != name for name in names)
        noun = opening.noun or opening.role.removesuffix("s")
        cases = groups if volumes else None
        advice = RENAME_FILES if opening.role == "predictions" else RENAME_ANY
        files_of_names = match_files(path, names, order, noun, cases=cases, advice=advice)
        addresses = tuple(files_of_names[name] for name in order)
        if volumes:
            _refuse_cut(path, names, addresses, groups)
        warnings += warnings_of_match(path, names, files_of_names, noun)
    arrays_by_kind = {kind: tuple(of[place] for place in addresses) for kind, of in parts.items()}
    return Store(
        path,
        arrays_by_kind,
        order,
        attributes,
        tuple(warnings),
        groups=tuple(groups[place] for place in addresses) if volumes else None,
        unsure_order=two_orders(order) if opening.names is None else "",
    )


def _items_of(
    path: str, files: Sequence[tuple[_File, _Content]]
) -> tuple[dict[str, dict[str, ItemArray]], dict[str, str]]:
    """Return the array of each item by kind and name, and the file of each name.

    Raises `StoreError` if an item has an array in two files.
    """
    parts: dict[str, dict[str, ItemArray]] = defaultdict(dict)
    groups: dict[str, str] = {}
    arrays = [
        (file, kind, array) for file, content in files for kind, array in content.arrays.items()
    ]
    images = all(array.length("item") == 1 for _, _, array in arrays)
    for file, kind, array in arrays:
        for name, item_array in _split_volume(file.item, array, images):
            if name in parts[kind]:
                raise StoreError(
                    f"{cut(path)}: the item {quoted(name)} has {quoted(kind)} in {file.path} "
                    "and in another file. Keep one of them."
                )
            parts[kind][name] = item_array
            groups[name] = file.item
    return parts, groups


def _called_as(items: Sequence[str], groups: Mapping[str, str]) -> dict[str, str]:
    """Return the new name of each name. A case of one slice is called `case` or `case/0000` as its
    item is: which of the two a folder uses depends on its other cases.
    """
    paths = [split_name(item) for item in items]
    ends = {stem for _, stem in paths} | {f"{of[-1]}/{stem}" for of, stem in paths if of}
    slices = Counter(groups.values())
    called = {name: name for name in groups}
    for name, case in groups.items():
        stem = split_name(case)[1]
        is_case, is_slice = stem in ends, f"{stem}/0000" in ends
        if slices[case] == 1 and is_case != is_slice:
            called[name] = case if is_case else f"{case}/0000"
    return called


def _refuse_cut(
    path: str, names: Sequence[str], addresses: Sequence[str], groups: dict[str, str]
) -> None:
    """Raise `StoreError` if a volume has slices that the predictions of the volume lack."""
    evaluated = {groups[place] for place in addresses}
    lost = sorted(n for n in set(names) - set(addresses) if groups[n] in evaluated)
    if lost:
        raise StoreError(
            f"{cut(path)}: {len(lost)} slices have no predictions, though other slices of the "
            f"same case have: {listed(lost)}. nnU-Net may have saved the probabilities of the "
            "cropped volume: crop the labels in the same way, or put the probabilities back into "
            "the whole volume."
        )


def _files_of(folder: str | Path, files: Sequence[str]) -> list[_File]:
    """Return the files with their items and kinds of arrays.

    `mean/a.npy`, `std/a.npy` or `a_mean.npy`, `a_std.npy` name their kinds if all files do.
    """
    _refuse_loose(folder, files)

    def by_folder(file: str) -> tuple[str, str] | None:
        first, _, remainder = file.partition("/")
        return (without_suffix(remainder), _KINDS[first]) if remainder and first in _KINDS else None

    def by_ending(file: str) -> tuple[str, str] | None:
        stem = without_suffix(file)
        ends = [kind for kind in _KINDS if stem.endswith(f"_{kind}")]
        longest = max(ends, key=len, default="")
        return (stem.removesuffix(f"_{longest}"), _KINDS[longest]) if longest else None

    for rule in (by_folder, by_ending):
        rule_results = [rule(file) for file in files]
        if rule_results and all(rule_results):
            return [_File(f, *t) for f, t in zip(files, rule_results, strict=True) if t is not None]
    return [_File(file, without_suffix(file), None) for file in files]


def _refuse_loose(folder: str | Path, files: Sequence[str]) -> None:
    """Raise `StoreError` for files that are the arrays of one store, such as `mean.npy` and
    `std.npy`, also with other files beside them.
    """
    stems = {file: without_suffix(file) for file in files}
    loose = [file for file, stem in stems.items() if stem in _KINDS]
    if len(loose) < 2:
        return
    stores = [file for file in loose if suffix_of(file) == ".npz"]
    arrays = [stem for stem in stems.values() if stem in _KINDS or stem == "names"]
    examples = ", ".join(f"{name}={name}" for name in arrays if f"{name}.npz" not in stores)
    others = [f for f, stem in stems.items() if stem not in _KINDS and stem != "names"]
    raise StoreError(
        f"{cut(folder)}: {listed(loose)} are called as arrays, not as items. A folder of arrays "
        "has one file per item. "
        + (
            f'Put these into one store, with numpy.savez("preds.npz", {examples}) of the loaded '
            "arrays, and give preds.npz."
            if examples
            else "Give one of them, or put their arrays into one file."
        )
        + (f" {listed(stores)} may be a store alone: give its path." if stores and examples else "")
        + (
            f" Add the arrays of {listed(others)} with the names of what they hold, such as target "
            "or labels."
            if others
            else ""
        )
    )


def _content_of(folder: str | Path, file: _File, opening: Opening) -> _Content:
    """Return the arrays of numbers in a file, by kind; "" for one without a name."""
    path = str(Path(folder) / file.path)
    suffix = suffix_of(file.path)
    if suffix == ".npy":
        return _Content({"": open_npy(path)})
    if suffix in NIFTI:
        from uqeval.stores.files.nifti import open_nifti

        return _Content({"": open_nifti(path)})
    members, attributes, warnings = without_attributes(open_npz(path), {}, path)
    return _Content(_arrays_of(members, path, opening), attributes, warnings)


def _arrays_of(
    members: Mapping[str, StoredArray], path: str, opening: Opening
) -> dict[str, StoredArray]:
    """Return the arrays of numbers of an .npz file, by kind; "" for one without a name."""
    declared = opening.declared
    members = {name: a for name, a in members.items() if a.dtype.kind != "U" or name in REGRESSION}
    if not members:
        raise StoreError(f"{cut(path)} holds no arrays of numbers. Save it with numpy.savez.")
    if declared.key is not None:
        if declared.key not in members:
            raise StoreError(
                f"{cut(path)} holds {all_listed(sorted(members))}, but no "
                f"{quoted(declared.key)}. Give the name of one of them as --key."
            )
        array = with_scale(members).get(declared.key, members[declared.key])
        named = known_alone(declared.key, array, opening.has_other_truth)
        return {named if named and declared.kind is None else "": array}
    if set(members) == {"arr_0"}:
        return {"": members["arr_0"]}
    arrays: dict[str, StoredArray] = {}
    for name, array in members.items():
        kind = known_once(name, array, arrays, path)
        arrays[kind] = array
        if name in _VOLUMES and len(array.shape) == 4 and declared.axes is None:
            array.dimension_names = ("class", "item", "y", "x")
            array.where += " (read as nnU-Net's [C, Z, Y, X]; --axes TCHW if it is not)"
    scaled = with_scale(arrays)
    if len(scaled) == 1 and not (KNOWN & scaled.keys()):
        return {"": next(iter(scaled.values()))}
    return scaled


def _read_headers(folder: str, file: _File, opening: Opening) -> _Content:
    """Return the arrays of a file with their kinds and axes, including maps with other names."""
    content = _content_of(folder, file, opening)
    arrays = content.arrays
    where = cut(f"{folder}/{file.path}")
    if file.kind is not None:
        if len(arrays) != 1:
            raise StoreError(
                f"{where} holds {all_listed(sorted(arrays))}; expected one array of "
                f"{quoted(file.kind)}."
            )
        arrays = {file.kind: next(iter(arrays.values()))}
    if set(arrays) == {""}:
        array = arrays[""]
        if opening.role == "predictions":
            opening.declared.name_axes(array)
        arrays = {kind_of_file(array, opening.role, opening.declared): array}
    elif opening.role == "predictions":
        arrays = opening.declared.of_named(arrays, where)
    resolved: dict[str, StoredArray] = {}
    for kind, array in arrays.items():
        if kind not in KNOWN and len(array.shape) != 2:
            continue
        if kind in IDS and "ignore_index" in content.attributes:
            void = {"ignore_index": content.attributes["ignore_index"]}
            array.attributes = {**array.attributes, **void}
        if kind in ("labels", "predictions") and len(array.shape) == 3:
            array.dimension_names = array.dimension_names or ("item", "y", "x")
        is_single = "item" not in (array.dimension_names or ())
        resolved[kind] = resolve(array, kind, is_single=is_single)
    return replace(content, arrays=resolved)


def _split_volume(item: str, array: StoredArray, images: bool) -> Iterator[tuple[str, ItemArray]]:
    """Yield the slices of a volume with their names; `images`: all volumes have one slice."""
    if "item" not in array.axes:
        yield item, ItemArray(array, None)
        return
    for index in range(array.length("item")):
        yield item if images else f"{item}/{index:04d}", ItemArray(array, index)
