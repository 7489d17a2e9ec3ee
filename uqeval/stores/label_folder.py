"""A folder of PNGs of class ids, matched with items by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from uqeval.errors import StoreError
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.matching import files_below, match_files
from uqeval.stores.names import checked_names, listed
from uqeval.stores.png_array import PngArray, label_table

_IDS, _TRAIN_IDS = "_labelIds", "_labelTrainIds"
_SIBLINGS = ("_color", "_instanceIds", "_instanceTrainIds")


def png_files(folder: str | Path) -> list[str]:
    """All PNG files below `folder`, relative to it, sorted."""
    return files_below(folder, (".png",))


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
    chosen = match_files(path, files, names, "label")
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
