"""Check the store of an earlier writer: which parts are complete, and which settings it has.

A power loss may leave chunk files that are empty, truncated or full of zeros, although their writer
had recorded the part as written.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from uqeval.disk.publishing import writing
from uqeval.errors import OutputError, StoreError, cut, quoted
from uqeval.stores.zarr import writer as zw
from uqeval.stores.zarr.array import ZarrArray
from uqeval.stores.zarr.group import ZarrGroup, open_zarr_group
from uqeval.stores.zarr.source import FolderSource

#: Arrays whose samples may be written one by one.
_STACKS = ("probs", "logits")
#: What the attribute `uqeval` has once the store is complete.
_AT_THE_END = ("complete", "arrays")
#: The argument `keep` of a writer, by the format of its store.
_KEEP = {"predictions": "samples", "maps": "maps"}


def damaged_parts(
    root: Path,
    names: Sequence[str],
    kinds: Collection[str],
    dense: bool,
    written_parts: Iterable[str],
) -> set[str]:
    """Return the parts among `written_parts` that are damaged on disk.

    `kinds`: the arrays of every item, without labels. Every chunk of every written part is read,
    and its checksum compared. Arrays with unreadable metadata are removed, so that they are created
    again.
    """
    by_item: dict[int, set[str]] = {}
    for part in written_parts:
        by_item.setdefault(int(part.split(".")[0]), set()).add(part)
    source, damaged = FolderSource(str(root)), set()
    groups: dict[str, ZarrGroup | None] = {}
    for index, name in enumerate(names):
        place, parts = "" if dense else f"items/{zw.item_folder(name)}", by_item.get(index, set())
        if place not in groups:
            groups.clear()
            groups[place] = _readable_group(source, root, place)
        group = groups[place]
        required_kinds = {kind for kind in kinds if any(not p.endswith(".labels") for p in parts)}
        required_kinds |= {"labels"} & {p.rpartition(".")[2] for p in parts}
        for kind in required_kinds:
            array = group.arrays.get(kind) if group is not None else None
            damaged |= parts & _damaged_of(array, kind, index, parts, dense)
    return damaged


def _readable_group(source: FolderSource, root: Path, place: str) -> ZarrGroup | None:
    """Return the group at `place` with its readable arrays, after removing unreadable ones; None
    without a readable group. Raises `OutputError`."""
    folder = root / place
    if not folder.exists():
        return None
    try:
        group = open_zarr_group(source, place)
    except StoreError:
        group = None
    with writing(folder):  # what stays would be written to
        if group is None:
            if place:
                shutil.rmtree(folder)
            return None
        without_metadata = set(group.groups) - {"items", zw.HIDDEN}
        for name in {*group.unreadable, *without_metadata}:
            shutil.rmtree(folder / name)
    return group


def _damaged_of(
    array: ZarrArray | None, kind: str, index: int, parts: Collection[str], dense: bool
) -> set[str]:
    """Return the parts of an item with damaged chunks of one array."""
    labels = f"{index}.labels"
    if array is None:
        return {labels} if kind == "labels" else set(parts) - {labels}
    damaged = set()
    for position in array.positions(index if dense else None):
        if array.is_whole(position):
            continue
        sample = position[int(dense)]
        if kind == "labels":
            damaged.add(labels)
        elif kind in _STACKS and array.chunks[int(dense)] == 1:
            damaged |= {f"{index}.{sample}", f"{index}.all"}
        else:
            damaged |= set(parts) - {labels}
    return damaged


def check_same_settings(
    root: Path,
    attributes: Mapping[str, Any],
    names: Sequence[str],
    kinds: Collection[str],
    dense: bool,
    size: Sequence[int] | None = None,
    dtype: str | None = None,
) -> None:
    """Reject a finished store at `root` that was written with other settings: `OutputError`.

    `size`: height and width of all items, None if they differ. `dtype`: of samples; None is not
    compared. Maps are float32 for any dtype. The compression may be another: the values are the
    same, and no more are written. Nor are chunks compared, which no setting gives.
    """
    try:
        group = open_zarr_group(FolderSource(str(root)))
        assert group is not None  # its metadata say `complete`
        found, first = group.attributes, group
        if not dense:
            place = f"items/{zw.item_folder(names[0])}"
            first = open_zarr_group(FolderSource(str(root)), place) or group
        for unreadable in first.unreadable.values():
            raise unreadable
    except StoreError as error:
        raise OutputError(f"{error} Or give overwrite=True to replace the store.") from error
    different = differences(found, {**attributes, "names": list(names)})
    arrays = set(first.arrays) - {"labels"}
    if not different and arrays != set(kinds):
        there, here = (", ".join(sorted(kinds)) or "none" for kinds in (arrays, set(kinds)))
        different = f"arrays: {there} there, {here} here, by kind, keep, size or mean_probs"
    sizes = {array.shape[-2:] for name, array in first.arrays.items() if name in kinds}
    if not different and size is not None and sizes - {tuple(size)}:
        different = f"size: {[*sizes.pop()]} there, {[*size]} here"
    dtypes = {array.dtype.name for name, array in first.arrays.items() if name in _STACKS}
    if not different and dtype is not None and dtypes - {dtype}:
        different = f"dtype: {quoted(dtypes.pop())} there, {quoted(dtype)} here"
    if different:
        raise OutputError(
            f"{cut(root)} is a finished store with other settings ({cut(different)}). Give the "
            "settings that it was written with, set only overwrite=True to replace it, or choose "
            "another path."
        )


def differences(earlier: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return which settings of a writer differ from those of an earlier one, with both values;
    empty for none."""
    there, here = _flat(earlier), _flat(settings)
    return ", ".join(
        _difference(key, there.get(key), value)
        for key, value in here.items()
        if there.get(key) != value
    )


def _difference(key: str, there: Any, here: Any) -> str:
    if key == "names" and isinstance(there, list):
        if len(there) != len(here):
            there, here = len(there), len(here)
        else:
            there, here = next((a, b) for a, b in zip(there, here, strict=True) if a != b)
    return f"{key}: {quoted(there)} there, {quoted(here)} here"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a writer by the names of its arguments."""
    own = settings.get("uqeval")
    details = {k: v for k, v in own.items() if k not in _AT_THE_END} if own else {}
    if "format" in details:
        form = details.pop("format")
        details["keep"] = _KEEP.get(form, form)
    return {key: value for key, value in settings.items() if key != "uqeval"} | details
