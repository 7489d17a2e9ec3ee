"""Folders of PNGs of class ids, matched with items by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from uqeval.disk.suffixes import IDS
from uqeval.errors import StoreError, UsageError, cut
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.files.png_array import PngArray, label_table
from uqeval.stores.kinds import Declared
from uqeval.stores.matching import (
    RENAME_ANY,
    RENAME_FILES,
    match_files,
    match_some,
    warnings_of_match,
)
from uqeval.stores.names import files_below, natural, required_names, without_ending

_IDS, _TRAIN_IDS = "_labelIds", "_labelTrainIds"
_IF_ANNOTATORS = (
    " If the folders are of several annotators, some commands read them with --annotator-folders, "
    "such as `uqeval annotators`."
)
_SIBLINGS = ("_color", "_instanceIds", "_instanceTrainIds")
_CAMERA = "_leftImg8bit"


def png_files(folder: str | Path) -> list[str]:
    """Return all PNG files below `folder`, relative to it, sorted."""
    return files_below(folder, IDS)


def open_label_folder(
    path: str | Path,
    names: Sequence[str] | None,
    *,
    label_map: str | None = None,
    kind: Literal["labels", "predictions"] = "labels",
    noun: str = "",
) -> Store:
    """Return the images of class ids below `path` for the items called `names`, in their order.

    `noun` names them in messages, by default as the kind. Raises `StoreError` if the items have no
    names, if some have no image or more than one, and for files that are not PNGs of class ids.
    """
    noun = noun or kind.removesuffix("s")
    names = required_names(path, names, noun)
    table = label_table(label_map)
    files, warnings = label_files(path, label_map, kind)
    files_of_names = match_files(
        path, files, names, noun,
        advice=RENAME_ANY if kind == "labels" else RENAME_FILES,
        if_several=_IF_ANNOTATORS if noun == "label" else "",
    )  # fmt: skip
    warnings += warnings_of_match(path, files, files_of_names, noun)
    parts = tuple(
        ItemArray(PngArray(Path(path) / files_of_names[name], table), None) for name in names
    )
    return Store(str(path), {kind: parts}, names, {}, tuple(warnings))


def open_predicted_ids(path: str | Path, names: Sequence[str] | None, declared: Declared) -> Store:
    """Return the images of predicted class ids below `path`: of the items called `names`, else of
    all items, named by their paths without the suffix.

    Raises `StoreError` as `open_label_folder` does, `UsageError` for another kind, and for axes.
    """
    if declared.kind not in (None, "predictions") or declared.axes is not None:
        option = "--axes" if declared.axes is not None else f"--kind {declared.kind}"
        raise UsageError(f"{option}: {cut(path)} holds PNGs of predicted class ids. Leave it out.")
    stems = [
        file[: -len(PurePosixPath(file).suffix)]
        for file in label_files(path, None, "predictions")[0]
    ]
    return open_label_folder(path, stems if names is None else names, kind="predictions")


def open_sparse_labels(
    path: str | Path, names: Sequence[str] | None, *, label_map: str | None = None
) -> tuple[tuple[ItemArray | None, ...], tuple[str, ...]]:
    """Return the labels of the items called `names` as `open_label_folder` does, None for frames of
    a video that have none, and warnings.

    Raises `StoreError` if none has labels.
    """
    names = required_names(path, names, "label")
    table = label_table(label_map)
    files, warnings = label_files(path, label_map)
    files_of_names = match_some(path, files, names, "label")
    parts = tuple(
        ItemArray(PngArray(Path(path) / files_of_names[name], table), None)
        if name in files_of_names
        else None
        for name in names
    )
    warnings += warnings_of_match(path, files, files_of_names, "label")
    return parts, tuple(warnings)


def open_ordered_folder(
    path: str | Path,
    count: int,
    *,
    label_map: str | None,
    kind: Literal["labels", "predictions"],
) -> Store:
    """Return the images of class ids below `path` for `count` frames without names, in natural
    order.

    Raises `StoreError` if there are more or fewer, and for files that are not PNGs of class ids.
    """
    table = label_table(label_map)
    files, warnings = label_files(path, label_map, kind)
    if len(files) != count:
        raise StoreError(
            f"{cut(path)}: {len(files)} {kind} for {count} frames, which have no names: the k-th "
            "file in natural order is the k-th frame's. Give one file per frame, or give the "
            "frames names with --names FILE."
        )
    ordered = sorted(files, key=natural)
    parts = tuple(ItemArray(PngArray(Path(path) / file, table), None) for file in ordered)
    return Store(str(path), {kind: parts}, tuple(ordered), {}, tuple(warnings))


def label_files(
    path: str | Path, label_map: str | None, kind: Literal["labels", "predictions"] = "labels"
) -> tuple[list[str], list[str]]:
    """Return the label files, without other images of Cityscapes, and warnings.

    With `predictions`, camera images are not left out: predictions may have their names.
    """
    files = png_files(path)
    endings = {file: _ending(file) for file in files}
    files = [file for file in files if endings[file] not in _SIBLINGS]
    if kind == "labels":
        labelled = {_stem(file) for file in files if endings[file]}
        files = [
            f
            for f in files
            if not (PurePosixPath(f).stem.endswith(_CAMERA) and _stem(f) in labelled)
        ]
    ids = {_base(file) for file in files if endings[file] == _IDS}
    trained = {_base(file) for file in files if endings[file] == _TRAIN_IDS}
    if label_map == "cityscapes":
        if trained and not ids:
            raise StoreError(
                f"{cut(path)} has only labelTrainIds files, which need no label map. Leave out "
                "--label-map, or add the labelIds files."
            )
        return [file for file in files if endings[file] != _TRAIN_IDS], []
    label_files = [file for file in files if endings[file] != _IDS or _base(file) not in trained]
    warnings = []
    if ids - trained:
        warnings.append(
            f"{cut(path)}: Cityscapes labelIds are read without a label map, ids 0 to 33. Add "
            f"--label-map cityscapes if the model predicts the 19 train ids."
        )
    return label_files, warnings


def _ending(file: str) -> str:
    stem = PurePosixPath(file).stem
    for ending in (_IDS, _TRAIN_IDS, *_SIBLINGS):
        if stem.endswith((f"_gtFine{ending}", f"_gtCoarse{ending}")):
            return ending
    return ""


def _stem(file: str) -> str:
    return without_ending(PurePosixPath(file).stem)


def _base(file: str) -> str:
    return file.removesuffix(".png").removesuffix(_ending(file))
