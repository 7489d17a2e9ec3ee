"""A folder of PNGs of class ids, matched with items by name."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from uqeval.errors import StoreError
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.names import checked_names, listed
from uqeval.stores.png_array import PngArray, label_table

#: What may end the name of an item that is called after an image file.
_IMAGE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".npy", ".npz"}
)
_IDS, _TRAIN_IDS = "_labelIds", "_labelTrainIds"
_SIBLINGS = ("_color", "_instanceIds", "_instanceTrainIds")
_ITEM_ENDINGS = ("_leftImg8bit", "_gtFine_labelIds", "_gtFine_labelTrainIds")
_COARSE_ENDINGS = ("_gtCoarse_labelIds", "_gtCoarse_labelTrainIds")


def png_files(folder: str | Path) -> list[str]:
    """All PNG files below `folder`, relative to it, sorted; symbolic links are followed.

    Raises `StoreError` if a folder cannot be listed.
    """
    found: list[str] = []
    seen: set[str] = set()

    def fail(error: OSError) -> None:
        raise StoreError(f"{error.filename}: cannot be listed: {error.strerror}.") from error

    for at, folders, files in os.walk(folder, followlinks=True, onerror=fail):
        real = os.path.realpath(at)
        if real in seen:  # a link to a folder above would never end
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118 - 10 times faster
            for name in files
            if name.lower().endswith(".png") and not name.startswith(".")
        ]
    return sorted(found)


def open_label_folder(
    path: str | Path, names: Sequence[str] | None, *, label_map: str | None = None
) -> Store:
    """The label images below `path` for the items called `names`, in their order.

    Raises `StoreError` if the items have no names, if some have no label or more than one, and
    for files that are not PNGs of class ids.
    """
    if names is None:
        raise StoreError(
            f"{path}: label files are matched with items by name, but the predictions carry no "
            "names. Give --names FILE (a JSON list or one name a line), or store an array `names`."
        )
    names = checked_names(list(names), "item names")
    table = label_table(label_map)
    files, warnings = _label_files(path, label_map)
    by_stem: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_stem[_label_stem(file)].append(file)
    chosen: dict[str, str] = {}
    absent: list[str] = []
    for name in names:
        match = _file_of(name, by_stem, path)
        if match is None:
            absent.append(name)
        else:
            chosen[name] = match
    if absent:
        looks = f"files there look like {listed(files, 2)}" if files else "no PNG files are there"
        raise StoreError(
            f"{path}: {len(absent)} of {len(names)} items have no label: {listed(absent)} "
            f"({looks}). Add the files, or give the names that match them with --names."
        )
    _refuse_shared(chosen, path)
    unused = sorted(set(files) - set(chosen.values()))
    if unused:
        warnings.append(f"{path}: {len(unused)} label files belong to no item: {listed(unused)}.")
    parts = tuple(ItemArray(PngArray(Path(path) / chosen[name], table), None) for name in names)
    return Store(str(path), {"labels": parts}, names, {}, tuple(warnings))


def _label_files(path: str | Path, label_map: str | None) -> tuple[list[str], list[str]]:
    """The files that are labels, Cityscapes' other images left out, and warnings."""
    files = png_files(path)
    endings = {file: _ending(file) for file in files}
    files = [file for file in files if endings[file] not in _SIBLINGS]
    ids = {_base(file) for file in files if endings[file] == _IDS}
    trained = {_base(file) for file in files if endings[file] == _TRAIN_IDS}
    if label_map == "cityscapes":
        if trained and not ids:
            raise StoreError(
                f"{path}: has only labelTrainIds files, which need no label map. Leave out "
                "--label-map, or add the labelIds files."
            )
        return [file for file in files if endings[file] != _TRAIN_IDS], []
    kept = [file for file in files if endings[file] != _IDS or _base(file) not in trained]
    warnings = []
    if ids - trained:
        warnings.append(
            f"{path}: Cityscapes labelIds are read as they are, ids 0 to 33. Say --label-map "
            "cityscapes if the model predicts the 19 train ids."
        )
    return kept, warnings


def _ending(file: str) -> str:
    stem = PurePosixPath(file).stem
    for ending in (_IDS, _TRAIN_IDS, *_SIBLINGS):
        if stem.endswith((f"_gtFine{ending}", f"_gtCoarse{ending}")):
            return ending
    return ""


def _base(file: str) -> str:
    return file.removesuffix(".png").removesuffix(_ending(file))


def _label_stem(file: str) -> str:
    stem = PurePosixPath(file).stem
    return _without(stem, (*_ITEM_ENDINGS, *_COARSE_ENDINGS))


def _without(stem: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if stem.endswith(ending):
            return stem.removesuffix(ending)
    return stem


def _without_suffix(name: str) -> str:
    path = PurePosixPath(name)
    return name[: -len(path.suffix)] if path.suffix.lower() in _IMAGE_SUFFIXES else name


def _file_of(name: str, by_stem: dict[str, list[str]], path: str | Path) -> str | None:
    """The one label file of an item; names are compared with files, never opened as paths."""
    plain = _without_suffix(name)
    last = PurePosixPath(name).name
    candidates: list[str] = []
    for stem in (last, PurePosixPath(plain).name):
        stripped = _without(stem, (*_ITEM_ENDINGS, *_COARSE_ENDINGS))
        candidates = by_stem.get(stem) or by_stem.get(stripped) or []
        if candidates:
            break
    if len(candidates) > 1:
        exact = [f for f in candidates if _without_suffix(f) in (name, plain)]
        near = [
            f for f in candidates if _same_end(PurePosixPath(f).parts, PurePosixPath(name).parts)
        ]
        candidates = exact or near or candidates
    if len(candidates) > 1:
        raise StoreError(
            f"{path}: item {name!r} could have the label {candidates[0]} or {candidates[1]}. Take "
            "one away, or name the items by their path in the folder."
        )
    return candidates[0] if candidates else None


def _same_end(file: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Whether all folders that file and name both have, from the last one up, are the same."""
    folders = list(zip(reversed(file[:-1]), reversed(name[:-1]), strict=False))
    return bool(folders) and all(one == other for one, other in folders)


def _refuse_shared(chosen: dict[str, str], path: str | Path) -> None:
    owners: dict[str, str] = {}
    for name, file in chosen.items():
        if file in owners:
            raise StoreError(
                f"{path}: the items {owners[file]!r} and {name!r} both match {file}. Put their "
                "labels into folders that are named as the items are."
            )
        owners[file] = name
