"""Folders in names of items and files, and which of them say nothing about the item."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from typing import TypeAlias

from uqeval.stores.names import SUFFIXES

#: The folders of a name, the outermost first.
FolderPath: TypeAlias = tuple[str, ...]
#: Folders, in lower case, that say what files contain, and never which item. They only keep a
#: warning away.
_KINDS_OF_DATA = frozenset({
    "annotation", "annotations", "data", "depth", "depths", "flow", "flows", "frame", "frames",
    "groundtruth", "gt", "gtcoarse", "gtfine", "image", "images", "imagestr", "imagests",
    "img", "imgs", "jpegimages", "label", "labels", "labelstr", "labelsts", "leftimg8bit",
    "logits", "mask", "masks", "pred", "prediction", "predictions", "preds", "probs",
    "proj_depth", "rgb", "segmentationclass", "semantic", "sem_seg", "target", "targets"
})  # fmt: skip


class Folders:
    """The folders of many names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        #: The folders of each name.
        self.paths: set[FolderPath] = set()
        #: Names of folders: those that occur, and those that all names have.
        self.some: set[str] = set()
        self.always: set[str] = set()
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add the folders of a name."""
        folders = folders_of(name)
        if folders not in self.paths:
            self.always = self.always & set(folders) if self.paths else set(folders)
            self.some.update(folders)
            self.paths.add(folders)

    def without(self, shared: Collection[str]) -> set[FolderPath]:
        """Return the folders of each name that are not `shared`."""
        return {without(shared, path) for path in self.paths} or {()}


def may_differ(name: str, file: str) -> bool:
    """Return whether an item and its file have different folders that may be those of sequences."""
    folders, others = {*folders_of(name)}, {*folders_of(file)}
    return all(
        any(folder.lower() not in _KINDS_OF_DATA for folder in rest)
        for rest in (folders - others, others - folders)
    )


def folders_of(name: str) -> FolderPath:
    """Return the folders of a name, as `split_name` does."""
    return split_name(name)[0]


def split_name(name: str, suffixes: Collection[str] = SUFFIXES) -> tuple[FolderPath, str]:
    """Return the folders of a name, and its stem without any of these suffixes.

    Letters with accents get one of their two spellings in Unicode: names of files on macOS have the
    other one. A backslash in a name without `/` is the separator of Windows.
    """
    name = unicodedata.normalize("NFC", name)
    # Several times as fast as PurePosixPath, which counts for 100,000 items.
    parts = (name if "/" in name else name.replace("\\", "/")).split("/")
    stem, _, suffix = parts[-1].rpartition(".")
    if not stem or f".{suffix.lower()}" not in suffixes:
        stem = parts[-1]
    return tuple(part for part in parts[:-1] if part not in ("", ".")), stem


def without(shared: Collection[str], folders: FolderPath) -> FolderPath:
    """Return the folders that are not `shared`."""
    return tuple(folder for folder in folders if folder not in shared)
