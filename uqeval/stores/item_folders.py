"""Folders in names of items and files, and which of them say nothing about the item."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypeAlias

from uqeval.disk.suffixes import OF_ITEMS, without_suffix

#: The folders of a name, the outermost first. A folder has a `/` at its end for each later one of
#: the same name: in `00/00/5`, the sequence `00/` is another folder than the camera `00`.
FolderPath: TypeAlias = tuple[str, ...]
#: Folders, in lower case, that say what files contain, and never which item. They only keep a
#: warning away.
_KINDS = frozenset({
    "annotation", "annotations", "data", "depth", "depths", "flow", "flows", "frame", "frames",
    "groundtruth", "gt", "gtcoarse", "gtfine", "image", "images", "imagestr", "imagests",
    "img", "imgs", "jpegimages", "label", "labels", "labelstr", "labelsts", "leftimg8bit",
    "logits", "mask", "masks", "pred", "prediction", "predictions", "preds", "probs",
    "proj_depth", "rgb", "segmentationclass", "semantic", "sem_seg", "target", "targets"
})  # fmt: skip


class Folders:
    """The folders of many names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        #: The names, each once, in the order in which they were added.
        self.names: list[str] = []
        self._known: set[str] = set()
        #: The folders of each name.
        self.paths: set[FolderPath] = set()
        #: Names of folders: those that occur, and those that all names have.
        self.some: set[str] = set()
        self.always: set[str] = set()
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add the folders of a name."""
        if name in self._known:
            return
        self._known.add(name)
        self.names.append(name)
        folders = folders_of(name)
        if folders not in self.paths:
            self.always = self.always & set(folders) if self.paths else set(folders)
            self.some.update(folders)
            self.paths.add(folders)

    def without(self, shared: Collection[str]) -> set[FolderPath]:
        """Return the folders of each name that are not `shared`."""
        return {without(shared, path) for path in self.paths} or {()}


class LeastOthers:
    """Paths that have given `telling` folders, and the fewest folders that are not `shared`.

    Paths of other data sets have other telling folders, and may be of another depth.
    """

    def __init__(
        self, paths: Iterable[FolderPath], telling: Collection[str], shared: Collection[str]
    ) -> None:
        counts = [
            (len(without(shared, path)), path, frozenset(path).intersection(telling))
            for path in paths
        ]
        # By folder: else each path would be compared with all.
        self._by_folder: dict[str, list[tuple[int, FolderPath, frozenset[str]]]] = defaultdict(list)
        for row in counts:
            for folder in row[2]:
                self._by_folder[folder].append(row)
        fewest = min(((count, path) for count, path, _ in counts), default=(0, ()))
        self._known: dict[FolderPath, tuple[int, FolderPath]] = {(): fewest}

    def of(self, telling: FolderPath) -> tuple[int, FolderPath]:
        """Return the path with all these folders that has the fewest others, after the number of
        these; 0 and no folders if there is none.
        """
        if telling not in self._known:
            fewest = min((self._by_folder.get(folder, []) for folder in telling), key=len)
            self._known[telling] = min(
                ((count, path) for count, path, own in fewest if own.issuperset(telling)),
                default=(0, ()),
            )
        return self._known[telling]


def of_two_levels(
    always: Collection[str], shared: set[str], *sides: Iterable[FolderPath]
) -> set[str]:
    """Return the folders of `always` that are values of two levels, as 1 in `1/2` and `2/1`.

    Their order with another shared folder differs among paths of one side, or only some of the
    paths repeat them.
    """
    found = {folder for folder in always if f"{folder}/" in shared and f"{folder}/" not in always}
    for paths in sides:
        before: dict[str, set[str]] = defaultdict(set)
        after: dict[str, set[str]] = defaultdict(set)
        for path in paths:
            for folder in always:
                if folder in path:
                    place = path.index(folder)
                    before[folder].update(path[:place])
                    after[folder].update(path[place + 1 :])
        found |= {folder for folder in always if before[folder] & after[folder] & shared}
    return found


def may_differ(name: str, file: str) -> bool:
    """Return whether the folders of an item and its file may be of different sequences: both have
    other ones, or they have the same ones in another order.
    """
    item, other = (
        tuple(folder for folder in folders_of(path) if folder.rstrip("/").lower() not in _KINDS)
        for path in (name, file)
    )
    only_item, only_other = without(other, item), without(item, other)
    return bool(only_item and only_other) or (
        without(only_item, item) != without(only_other, other)
    )


def folders_of(name: str) -> FolderPath:
    """Return the folders of a name, as `split_name` does."""
    return split_name(name)[0]


def split_name(name: str, suffixes: Collection[str] = OF_ITEMS) -> tuple[FolderPath, str]:
    """Return the folders of a name, and its stem without any of these suffixes.

    Letters with accents get one of their two spellings in Unicode: names of files on macOS have the
    other one. A backslash in a name without `/` is the separator of Windows. Repeated folders
    differ, see `FolderPath`.
    """
    name = unicodedata.normalize("NFC", name)
    # Several times as fast as PurePosixPath, which counts for 100,000 items.
    parts = (name if "/" in name else name.replace("\\", "/")).split("/")
    stem = without_suffix(parts[-1], suffixes)
    folders = tuple([part for part in parts[:-1] if part not in ("", ".")])
    if len(set(folders)) < len(folders):
        folders = tuple(
            folder + "/" * folders[k + 1 :].count(folder) for k, folder in enumerate(folders)
        )
    return folders, stem


def without(shared: Collection[str], folders: FolderPath) -> FolderPath:
    """Return the folders that are not `shared`."""
    return tuple([folder for folder in folders if folder not in shared])
