"""Match names of items with files, or with names of a store, by stems and folders.

A file belongs to the item whose name has its stem. Their folders are compared from the last one
upwards, because names and files may begin at other folders. If the folders differ, such as
`images/city/x` and `labels/city/x`, the file belongs to the item only if

- one of the differing beginnings is that of all items, or of all files, so that it does not tell
  them apart, and
- neither folder is closer to a folder of the other side: labels of `seq1` are never those of `seq2`
  if there are items of `seq1`, or labels of `seq2`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from uqeval.errors import StoreError, cut, listed, number_of, quoted
from uqeval.stores.names import SUFFIXES, without_ending, without_suffix

#: The folders of a name, the outermost first.
_Path: TypeAlias = tuple[str, ...]
#: The suffixes of files of items.
_FILES = SUFFIXES | {".flo"}


class Folders:
    """The folders of many names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._seen: set[_Path] = set()
        self._ends: set[_Path] = set()
        self._start: _Path = ()
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Add the folders of a name."""
        folders = _folders(name)
        if folders not in self._seen:
            start = self._start if self._seen else folders
            self._start = start[: _equal(start, folders)]
            self._seen.add(folders)
            self._ends.update(folders[start:] for start in range(len(folders)))

    def all_begin_with(self, folders: _Path) -> bool:
        """Return whether all names begin with these folders."""
        return self._start[: len(folders)] == folders

    def common(self, folders: _Path) -> int:
        """Return the largest number of last folders that `folders` and a name have in common."""
        ends = range(len(folders))
        return next((len(folders) - k for k in ends if folders[k:] in self._ends), 0)


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
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for file in files:
            path = PurePosixPath(file)
            stem = path.stem if path.suffix.lower() in _FILES else path.name
            for plain in {without_ending(stem), without_ending(without_ending(stem, endings))}:
                self._by_stem[plain].append(file)

    def file_of(self, name: str, path: str | Path, noun: str) -> str | None:
        """Return the only file of an item, or None; raises `StoreError` for two files.

        Names are compared with files, never opened as paths.
        """
        self.folders_of_items.add(name)
        return _only(self.exact(name) or self.near(name), name, path, noun)

    def same_stem(self, name: str) -> list[str]:
        """Return all files with the stem of an item's name."""
        for stem in (PurePosixPath(name).name, PurePosixPath(without_suffix(name)).name):
            found = self._by_stem.get(stem) or self._by_stem.get(without_ending(stem))
            if found:
                return found
        return []

    def exact(self, name: str) -> list[str]:
        """Return the files with the stem and the folders of an item's name."""
        candidates = self.same_stem(name)
        spellings = (name, without_suffix(name))
        folders = _folders(name)
        return [file for file in candidates if without_suffix(file) in spellings] or [
            file for file in candidates if _folders(file) == folders
        ]

    def near(self, name: str, taken: Collection[str] = ()) -> list[str]:
        """Return the files that may belong to an item, of which most last folders are the same;
        without those that are `taken`.
        """
        folders = _folders(name)
        common = {
            file: _common(folders, _folders(file))
            for file in self.same_stem(name)
            if file not in taken and self._may_belong(folders, file)
        }
        most = max(common.values(), default=0)
        return [file for file in common if common[file] == most]

    def _may_belong(self, item: _Path, file: str) -> bool:
        """Return whether the folders of an item and of a file with its stem allow a match."""
        folders = _folders(file)
        common = _common(item, folders)
        if not common and self.cases.get(file, file) != file:
            return False  # the stem of a slice is only its position: its folder is the case
        start, file_start = item[: len(item) - common], folders[: len(folders) - common]
        if not start or not file_start:
            return True
        tells_nothing = self.folders_of_items.all_begin_with(start) or (
            self._folders.all_begin_with(file_start)
        )
        closest = max(self._folders.common(item), self.folders_of_items.common(folders))
        return tells_nothing and closest == common


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
    """Return warnings about files that belong to no item, and about items that have no folder in
    common with their files.
    """
    warnings = []
    if unused := sorted(set(files) - set(files_of_names.values())):
        verb = "belongs" if len(unused) == 1 else "belong"
        warnings.append(
            f"{path}: {number_of(len(unused), f'{noun} file')} {verb} to no item: {listed(unused)}."
        )
    other = [
        (name, file)
        for name, file in files_of_names.items()
        if _folders(name) and _folders(file) and not _common(_folders(name), _folders(file))
    ]
    if other:
        name, file = other[0]
        warnings.append(
            f"{path}: {number_of(len(other), 'item')} and their {noun} files are in folders of "
            f"different names, the first are {quoted(name)} and {cut(file)}: only the last parts "
            f"of their names agree. If these are different cases or sequences, give the {noun}s of "
            "the right one."
        )
    return warnings


def _matches(path: str | Path, files: Files, names: Sequence[str], noun: str) -> dict[str, str]:
    """Return the files of items, by name, for items that have one."""
    for name in names:
        files.folders_of_items.add(name)
    exact = {name: files.exact(name) for name in names}
    taken = {file for found in exact.values() for file in found}
    files_of_names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for name in names:
        match = _only(exact[name] or files.near(name, taken), name, path, noun)
        if match is None:
            continue
        if (owner := owners.setdefault(match, name)) != name:
            raise StoreError(
                f"{cut(path)}: the items {quoted(owner)} and {quoted(name)} both match "
                f"{cut(match)}. Put their {noun}s into folders with the names of the items."
            )
        files_of_names[name] = match
    return files_of_names


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
        if others := files.same_stem(name):
            return f"{looks}; {cut(others[0])} is in another folder than {cut(name)}"
    return looks


def _folders(name: str) -> _Path:
    # Several times as fast as PurePosixPath, which counts for 100,000 items.
    return tuple(part for part in name.split("/") if part not in ("", "."))[:-1]


def _common(first: _Path, second: _Path) -> int:
    """Return how many folders are equal, from the last one upwards."""
    return _equal(first[::-1], second[::-1])


def _equal(first: _Path, second: _Path) -> int:
    """Return how many folders are equal, from the first one on."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
