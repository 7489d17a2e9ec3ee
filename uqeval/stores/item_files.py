"""Files that may belong to an item, by stems and folders.

A file can belong to the item whose name has its stem. Their folders decide:

1. A file with the folders of the item's name belongs to the item.
2. Else compare the folders that tell items apart. Such a name occurs on both sides, among items and
   among files, but not in every path. If item and file have the same ones in the same order, the
   file belongs to the item.
3. Else the folders of one must be the last folders of the other. This is not for an item if another
   file has all of its folders that occur on both sides: if `bonn/2.png` exists, `1.png` does not
   replace `bonn/1.png`.

Folders that occur on one side only (`images`, `labels`) and those of every path (`cam0`) do not
count in step 2. "Every path" means those of all items, and of all files with the stem of an item.
There are two exceptions:

- A folder of every path counts if it is a value of two levels, such as the patient 1 and the visit
  1 in `1/2/x` and `2/1/x`: only the order of the folders tells these apart.
- Item and file are of different sequences if both have more folders of one side than other paths:
  of `s1/1` and `s2/3`, and `s1/1.png` and `s3/3.png`, the last two do not match. Other paths are
  those with the same folders of step 2, so a data set of another depth changes nothing.

A folder that occurs twice in a name counts as two folders, in order from the last one: `00/00/5`
and `02/00/5.png` have only the last `00` in common.

Paths alone cannot show whether `a/x` and `b/x` are of two sequences, or image and label of one.
They match, and a warning appears unless the other folders of one are well-known kinds of data. It
also appears for the same folders in another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from uqeval.disk.suffixes import OF_FILES, without_suffix
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.item_folders import (
    FolderPath,
    Folders,
    LeastOthers,
    folders_of,
    of_two_levels,
    split_name,
    without,
)
from uqeval.stores.names import without_ending


class Files:
    """Files, or names of a store, among which those of items are looked up.

    `endings`: endings of the files' stems, in addition to those that data sets are known to add.
    `cases`: the case of each name that is a slice of a volume. `folders_of_items` keeps folders of
    items from an earlier list of the files.
    """

    def __init__(
        self,
        files: Sequence[str],
        endings: tuple[str, ...] = (),
        cases: Mapping[str, str] | None = None,
        folders_of_items: Folders | None = None,
    ) -> None:
        self.files = files
        self.cases = cases or {}
        self.folders_of_items = folders_of_items or Folders()
        self._folders = Folders(files)
        self._ends = {path[k:] for path in self._folders.paths for k in range(len(path) + 1)}
        self._by_stem: dict[str, dict[FolderPath, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for file in files:
            folders, stem = split_name(file, OF_FILES)
            for plain in {without_ending(stem), without_ending(without_ending(stem, endings))}:
                self._by_stem[plain][folders].append(file)
        self._stem_of: dict[str, str] = {}
        #: The stems of the first `_seen` items, and the folders that all files with these have.
        self._stems: set[str] = set()
        self._always = set(self._folders.some)
        self._seen = 0
        self._counted = (-1, -1)
        self._groups: dict[str, dict[tuple[FolderPath, bool], list[FolderPath]]] = {}
        self._least_of_stem: dict[str, LeastOthers] = {}

    def file_of(self, name: str, path: str | Path, noun: str) -> str | None:
        """Return the only file of an item, or None; raises `StoreError` for two files.

        Names are compared with files, never opened as paths.
        """
        self.folders_of_items.add(name)
        return only_file(self.exact(name) or self.near(name), name, path, noun)

    def same_stem(self, name: str) -> dict[FolderPath, list[str]]:
        """Return all files with the stem of an item's name, by their folders."""
        return self._by_stem.get(self._stem(name), {})

    def exact(self, name: str) -> list[str]:
        """Return the files with the stem and the folders of an item's name."""
        candidates = self.same_stem(name).get(folders_of(name), [])
        spellings = (name, without_suffix(name))
        return [file for file in candidates if without_suffix(file) in spellings] or candidates

    def near(self, name: str, taken: Collection[str] = ()) -> list[str]:
        """Return the files that may belong to an item, of which most folders are the same; without
        those that are `taken`.
        """
        self._compare_folders()
        stem, folders = self._stem(name), folders_of(name)
        candidates, groups = self._by_stem.get(stem, {}), self._groups_of(stem)
        telling, has_more = self._key(folders, self._least_of_items)
        same = groups.get((telling, False), [])
        if not has_more:
            same = same + groups.get((telling, True), [])
        found = self._allowed(folders, candidates, same, taken)
        shared = self._shared.intersection(folders)
        if not telling or (not found and shared not in self._shared_of_files):
            ends = self._with_ends(folders, candidates)
            found |= self._allowed(folders, candidates, ends, taken)
        most = max(found.values(), default=0)
        best = [file for file, common in found.items() if common == most]
        if len(best) == 1:
            rivals = self._rivals(stem, folders, folders_of(best[0]))
            best += self._allowed(folders, candidates, rivals, taken)
        return best

    def may_contradict(self, name: str, file: str) -> bool:
        """Return whether an item and a file have folders that the other side does not have, and
        neither has those of all names on its side.
        """
        self._compare_folders()
        pairs = ((name, self._others_of_items), (file, self._others_of_files))
        return all(
            len(others) > 1 and without(self._shared, folders_of(path)) for path, others in pairs
        )

    def _stem(self, name: str) -> str:
        if (found := self._stem_of.get(name)) is None:
            stems = (split_name(name, ())[1], split_name(name)[1])
            plain = (text for stem in stems for text in (stem, without_ending(stem)))
            found = next((text for text in plain if text in self._by_stem), "")
            self._stem_of[name] = found
        return found

    def _compare_folders(self) -> None:
        """Find the folders that tell items apart, if folders of items have been added."""
        items, files = self.folders_of_items, self._folders
        new = {self._stem(name) for name in items.names[self._seen :]} - self._stems
        for path in {path for stem in new for path in self._by_stem.get(stem, ())}:
            self._always.intersection_update(path)
        self._stems |= new
        self._seen = len(items.names)
        always = items.always & self._always
        if self._counted == (len(items.paths), len(always)):
            return
        self._counted = len(items.paths), len(always)
        self._shared = items.some & files.some
        self._telling = self._shared - always | of_two_levels(
            always, self._shared, items.paths, files.paths
        )
        self._others_of_items = items.without(self._shared)
        self._others_of_files = files.without(self._shared)
        self._least_of_items = LeastOthers(items.paths, self._telling, self._shared)
        self._least_of_files = LeastOthers(files.paths, self._telling, self._shared)
        self._shared_of_files = {frozenset(self._shared.intersection(path)) for path in files.paths}
        self._groups.clear()
        self._least_of_stem.clear()

    def _telling_in(self, folders: FolderPath) -> FolderPath:
        return tuple([folder for folder in folders if folder in self._telling])

    def _key(self, folders: FolderPath, least: LeastOthers) -> tuple[FolderPath, bool]:
        """Return the folders that tell items apart, and whether there are more others than in
        another path that has them.
        """
        telling = self._telling_in(folders)
        return telling, len(without(self._shared, folders)) > least.of(telling)[0]

    def _groups_of(self, stem: str) -> dict[tuple[FolderPath, bool], list[FolderPath]]:
        """Return the folders of the files with a stem, by their `_key`."""
        if (groups := self._groups.get(stem)) is None:
            groups = self._groups[stem] = defaultdict(list)
            for path in self._by_stem.get(stem, ()):
                groups[self._key(path, self._least_of_files)].append(path)
        return groups

    def _with_ends(
        self, folders: FolderPath, candidates: Collection[FolderPath]
    ) -> list[FolderPath]:
        """Return the candidates that end with `folders`, or that are the end of `folders`."""
        shorter = [folders[k:] for k in range(1, len(folders) + 1) if folders[k:] in candidates]
        if folders not in self._ends:  # else all candidates would be compared for each item
            return shorter
        start = len(folders)
        return shorter + [path for path in candidates if path[len(path) - start :] == folders]

    def _rivals(self, stem: str, folders: FolderPath, path: FolderPath) -> set[FolderPath]:
        """Return folders of files that an item could have as well as the only file, at `path`.

        A shorter path can have another part of the item's folders: of `1/2/x`, `2/x.png` is no
        better than `1/x.png`. A path with more other folders can have the place of a telling one:
        of `kitti/x`, `kitti/val/x.png` is no better than `kitti/train/x.png`, even if only `train`
        is a folder of other items.
        """
        length = len(folders)
        rivals: set[FolderPath] = set()
        if path == folders[length - len(path) :]:
            parts = (folders[j:k] for k in range(length) for j in range(k - max(len(path), 1) + 1))
            rivals = self._by_stem[stem].keys() & parts
        elif self._key(path, self._least_of_files)[1]:
            if stem not in self._least_of_stem:
                self._least_of_stem[stem] = LeastOthers(
                    self._by_stem[stem], self._telling, self._shared
                )
            rivals = {self._least_of_stem[stem].of(self._telling_in(folders))[1]}
        return rivals - {path}

    def _allowed(
        self,
        folders: FolderPath,
        candidates: Mapping[FolderPath, list[str]],
        paths: Iterable[FolderPath],
        taken: Collection[str],
    ) -> dict[str, int]:
        """Return the number of common folders of each file at `paths` that is not `taken`."""
        return {
            file: len({*folders} & {*path})
            for path in paths
            for file in candidates[path]
            # The stem of a slice is only its position: its folder is the case.
            if file not in taken
            and (self.cases.get(file, file) == file or path[-1:] == folders[-1:])
        }


def only_file(
    candidates: Sequence[str], name: str, path: str | Path, noun: str, if_several: str = ""
) -> str | None:
    """Return the only candidate, or None; raises `StoreError` for two.

    `if_several`: a sentence about what may be the cause.
    """
    if len(candidates) > 1:
        raise StoreError(
            f"{cut(path)}: item {quoted(name)} could have the {noun} {candidates[0]} or "
            f"{candidates[1]}. Remove one, or name the items by their path in the folder."
            f"{if_several}"
        )
    return candidates[0] if candidates else None
