"""Match names of items with files, or with names of a store, by stems and folders.

A file can belong to the item whose name has its stem. Their folders decide:

1. A file with the folders of the item's name belongs to the item.
2. Else compare the folders that tell items apart. Such a name occurs on both sides, among items and
   among files, but not in every path. If item and file have the same ones in the same order, the
   file belongs to the item.
3. Else the folders of one must be the last folders of the other. This is not for an item if other
   files have its folders of step 2: if `bonn/2.png` exists, `1.png` does not replace `bonn/1.png`.

Folders that occur on one side only (`images`, `labels`) and those of every path (`cam0`) do not
count in step 2, with one exception. Item and file are of different sequences if both have more
folders of one side than other paths: of `s1/1` and `s2/3`, and `s1/1.png` and `s3/3.png`, the last
two do not match. Other paths are those with the same folders of step 2, so a data set of another
depth changes nothing.

A folder that occurs twice in a name counts as two folders, in order from the last one: `00/00/5`
and `02/00/5.png` have only the last `00` in common.

Paths alone cannot show whether `a/x` and `b/x` are of two sequences, or image and label of one.
They match, and a warning appears unless the other folders of one are well-known kinds of data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from uqeval.errors import StoreError, cut, listed, number_of, quoted
from uqeval.stores.item_folders import (
    FolderPath,
    Folders,
    LeastOthers,
    folders_of,
    may_differ,
    split_name,
    without,
)
from uqeval.stores.names import SUFFIXES, without_ending, without_suffix

#: The suffixes of files of items.
_FILES = SUFFIXES | {".flo"}


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
            folders, stem = split_name(file, _FILES)
            for plain in {without_ending(stem), without_ending(without_ending(stem, endings))}:
                self._by_stem[plain][folders].append(file)
        self._counted = -1
        self._groups: dict[str, dict[tuple[FolderPath, bool], list[FolderPath]]] = {}

    def file_of(self, name: str, path: str | Path, noun: str) -> str | None:
        """Return the only file of an item, or None; raises `StoreError` for two files.

        Names are compared with files, never opened as paths.
        """
        self.folders_of_items.add(name)
        return _only(self.exact(name) or self.near(name), name, path, noun)

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
        folders, candidates = folders_of(name), self.same_stem(name)
        telling, has_more = self._key(folders, self._least_of_items)
        groups = self._groups_of(self._stem(name))
        same = groups.get((telling, False), [])
        if not has_more:
            same = same + groups.get((telling, True), [])
        found = self._allowed(folders, candidates, same, taken)
        if not telling or (not found and telling not in self._telling_of_files):
            ends = self._with_ends(folders, candidates)
            found |= self._allowed(folders, candidates, ends, taken)
        most = max(found.values(), default=0)
        return [file for file, common in found.items() if common == most]

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
        for stem in (split_name(name, ())[1], split_name(name)[1]):
            for plain in (stem, without_ending(stem)):
                if plain in self._by_stem:
                    return plain
        return ""

    def _compare_folders(self) -> None:
        """Find the folders that tell items apart, if folders of items have been added."""
        items, files = self.folders_of_items, self._folders
        if self._counted == len(items.paths):
            return
        self._counted = len(items.paths)
        self._shared = items.some & files.some
        self._telling = self._shared - (items.always & files.always)
        self._others_of_items = items.without(self._shared)
        self._others_of_files = files.without(self._shared)
        self._least_of_items = LeastOthers(items.paths, self._telling, self._shared)
        self._least_of_files = LeastOthers(files.paths, self._telling, self._shared)
        self._telling_of_files = {self._telling_in(path) for path in files.paths}
        self._groups.clear()

    def _telling_in(self, folders: FolderPath) -> FolderPath:
        return tuple(folder for folder in folders if folder in self._telling)

    def _key(self, folders: FolderPath, least: LeastOthers) -> tuple[FolderPath, bool]:
        """Return the folders that tell items apart, and whether there are more others than in
        another path that has them.
        """
        telling = self._telling_in(folders)
        return telling, len(without(self._shared, folders)) > least.of(telling)

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


def match_files(
    path: str | Path,
    files: Sequence[str],
    names: Sequence[str],
    noun: str,
    *,
    endings: tuple[str, ...] = (),
    cases: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the one file of each item, by the item's name; `noun` names the files in messages.

    `endings`, `cases`: see `Files`. Raises `StoreError` if items have no file, or more than one, or
    share one.
    """
    candidates = Files(files, endings, cases)
    files_of_names = _matches(path, candidates, names, noun)
    if absent := [name for name in names if name not in files_of_names]:
        if cases:
            _refuse_absent_slices(path, cases, files_of_names, names, noun)
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(names)} items have no {noun}: {listed(absent)} "
            f"({_looks(candidates, absent)}). Add the files, or give the names that match them "
            "with --names."
        )
    return files_of_names


def match_some(
    path: str | Path, files: Sequence[str], names: Sequence[str], noun: str
) -> dict[str, str]:
    """Match files as `match_files` does, but leave out items without a file if any item has one."""
    candidates = Files(files)
    files_of_names = _matches(path, candidates, names, noun)
    if not files_of_names:
        raise StoreError(
            f"{cut(path)}: none of the {len(names)} items has its {noun}: they are called "
            f"{listed(names, 2)} ({_looks(candidates, names)}). Add the files, or give the names "
            "that match them with --names."
        )
    return files_of_names


def warnings_of_match(
    path: str | Path, files: Sequence[str], files_of_names: Mapping[str, str], noun: str
) -> list[str]:
    """Return warnings about files that belong to no item, and about items that may be in another
    sequence than their files.
    """
    warnings = []
    if unused := sorted(set(files) - set(files_of_names.values())):
        verb = "belongs" if len(unused) == 1 else "belong"
        warnings.append(
            f"{path}: {number_of(len(unused), f'{noun} file')} {verb} to no item: {listed(unused)}."
        )
    return warnings + warnings_of_folders(path, files_of_names, noun)


def warnings_of_folders(
    path: str | Path, files_of_names: Mapping[str, str], noun: str
) -> list[str]:
    """Return a warning if items may be in another sequence than their files."""
    other = [pair for pair in files_of_names.items() if may_differ(*pair)]
    if not other:
        return []
    name, file = other[0]
    return [
        f"{path}: {number_of(len(other), 'item')} and their {noun} files are in folders of "
        f"different names, the first are {quoted(name)} and {cut(file)}: only the last parts "
        f"of their names agree. If these are different cases or sequences, give the {noun}s of "
        "the right one."
    ]


def _matches(path: str | Path, files: Files, names: Sequence[str], noun: str) -> dict[str, str]:
    """Return the files of items, by name, for items that have one."""
    for name in names:
        files.folders_of_items.add(name)
    exact = {name: files.exact(name) for name in names}
    taken = {file for found in exact.values() for file in found}
    owners_of: dict[str, list[str]] = defaultdict(list)
    for name in names:
        match = _only(exact[name] or files.near(name, taken), name, path, noun)
        if match is not None:
            owners_of[match].append(name)
    files_of_names: dict[str, str] = {}
    for match, owners in owners_of.items():
        if len(owners) > 1:
            owners = [name for name in owners if not files.may_contradict(name, match)]
        if len(owners) > 1:
            refuse_shared(path, owners[0], owners[1], match, noun)
        files_of_names |= dict.fromkeys(owners, match)
    return files_of_names


def refuse_shared(path: str | Path, name: str, other: str, file: str, noun: str) -> NoReturn:
    """Raise `StoreError` for two items that have the same file."""
    raise StoreError(
        f"{cut(path)}: the items {quoted(name)} and {quoted(other)} both match {cut(file)}. Put "
        f"their {noun}s into folders with the names of the items."
    )


def _only(candidates: Sequence[str], name: str, path: str | Path, noun: str) -> str | None:
    if len(candidates) > 1:
        annotators = " If the folders are of several annotators, give --annotator-folders."
        raise StoreError(
            f"{cut(path)}: item {quoted(name)} could have the {noun} {candidates[0]} or "
            f"{candidates[1]}. Remove one, or name the items by their path in the folder."
            f"{annotators if noun == 'label' else ''}"
        )
    return candidates[0] if candidates else None


def _refuse_absent_slices(
    path: str | Path,
    cases: Mapping[str, str],
    files_of_names: Mapping[str, str],
    names: Sequence[str],
    noun: str,
) -> None:
    """Raise `StoreError` for the cases that are absent, or else for a case without all slices."""
    slices: dict[str, list[str]] = defaultdict(list)
    for name in names:
        slices[name.rpartition("/")[0] or name].append(name)
    absent = [case for case, own in slices.items() if not files_of_names.keys() & own]
    if absent:
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(slices)} cases have no {noun}: {listed(absent)} "
            f"(cases there look like {listed(sorted(set(cases.values())), 2)}). Add their files, "
            "or give names CASE/SLICE that match them with --names."
        )
    for case, own in slices.items():
        if lost := [name for name in own if name not in files_of_names]:
            found = next(files_of_names[name] for name in own if name in files_of_names)
            count = sum(other == cases[found] for other in cases.values())
            raise StoreError(
                f"{cut(path)}: the {noun} of the case {quoted(case)} has {count} slices, but the "
                f"case has {len(own)}: {listed(lost)}. Give the {noun} of the whole case."
            )


def _looks(files: Files, absent: Sequence[str]) -> str:
    if not files.files:
        return "no such files are there"
    looks = f"files there look like {listed(files.files, 2)}"
    for name in absent:
        for others in files.same_stem(name).values():
            return f"{looks}; {cut(others[0])} is in another folder than {cut(name)}"
    return looks
