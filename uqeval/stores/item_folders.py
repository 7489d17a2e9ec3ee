"""Folders in names of items and files, and which of them say nothing about the item."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypeAlias

from uqeval.stores.names import SUFFIXES

#: The folders of a name, the outermost first. A folder has a `/` at its end for each later one of
#: the same name: in `00/00/5`, the sequence `00/` is another folder than the camera `00`.
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


class LeastOthers:
    """The fewest folders that are not `shared` of those paths that have given `telling` folders.

    Paths of other data sets have other telling folders, and may be of another depth.
    """

    def __init__(
        self, paths: Collection[FolderPath], telling: Collection[str], shared: Collection[str]
    ) -> None:
        counts = [
            (frozenset(path).intersection(telling), len(without(shared, path))) for path in paths
        ]
        self._all = min((count for _, count in counts), default=0)
        # By folder: else each path would be compared with all.
        self._by_folder: dict[str, list[tuple[frozenset[str], int]]] = defaultdict(list)
        for own, count in counts:
            for folder in own:
                self._by_folder[folder].append((own, count))
        self._known: dict[FolderPath, int] = {(): self._all}

    def of(self, telling: FolderPath) -> int:
        """Return the number for the paths with all these folders; 0 if there is none."""
        if telling not in self._known:
            fewest = min((self._by_folder.get(folder, []) for folder in telling), key=len)
            self._known[telling] = min(
                (count for own, count in fewest if own.issuperset(telling)), default=0
            )
        return self._known[telling]


def may_differ(name: str, file: str) -> bool:
    """Return whether an item and its file have different folders that may be those of sequences."""
    folders, others = {*folders_of(name)}, {*folders_of(file)}
    return all(
        any(folder.rstrip("/").lower() not in _KINDS_OF_DATA for folder in rest)
        for rest in (folders - others, others - folders)
    )


def folders_of(name: str) -> FolderPath:
    """Return the folders of a name, as `split_name` does."""
    return split_name(name)[0]


def split_name(name: str, suffixes: Collection[str] = SUFFIXES) -> tuple[FolderPath, str]:
    """Return the folders of a name, and its stem without any of these suffixes.

    Letters with accents get one of their two spellings in Unicode: names of files on macOS have the
    other one. A backslash in a name without `/` is the separator of Windows. Repeated folders
    differ, see `FolderPath`.
    """
    name = unicodedata.normalize("NFC", name)
    # Several times as fast as PurePosixPath, which counts for 100,000 items.
    parts = (name if "/" in name else name.replace("\\", "/")).split("/")
    stem, _, suffix = parts[-1].rpartition(".")
    if not stem or f".{suffix.lower()}" not in suffixes:
        stem = parts[-1]
    folders = tuple(part for part in parts[:-1] if part not in ("", "."))
    if len(set(folders)) < len(folders):
        folders = tuple(
            folder + "/" * folders[k + 1 :].count(folder) for k, folder in enumerate(folders)
        )
    return folders, stem


def without(shared: Collection[str], folders: FolderPath) -> FolderPath:
    """Return the folders that are not `shared`."""
    return tuple(folder for folder in folders if folder not in shared)
