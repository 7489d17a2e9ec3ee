"""Match names of items with files, or with names of a store.

`item_files` has the rules by which a file belongs to an item.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from uqeval.errors import StoreError, cut, listed, number_of, quoted
from uqeval.stores.item_files import Files, only_file
from uqeval.stores.item_folders import may_differ

#: What to do if files of items are absent.
RENAME_FILES = "Add the files, or rename them as the items."
#: For items whose names do not have to be those of files.
RENAME_ANY = (
    f"{RENAME_FILES} If the items are in an array or a Zarr store, --names FILE can rename these."
)


def match_files(
    path: str | Path,
    files: Sequence[str],
    names: Sequence[str],
    noun: str,
    *,
    endings: tuple[str, ...] = (),
    cases: Mapping[str, str] | None = None,
    advice: str = RENAME_FILES,
    if_several: str = "",
) -> dict[str, str]:
    """Return the one file of each item, by the item's name; `noun` names the files in messages.

    `endings`, `cases`: see `Files`. `advice`: what to do if files are absent. `if_several`: what
    may be the cause if an item has more than one. Raises `StoreError` if items have no file, or
    more than one, or share one.
    """
    candidates = Files(files, endings, cases)
    files_of_names = _matches(path, candidates, names, noun, if_several)
    if absent := [name for name in names if name not in files_of_names]:
        if cases:
            _refuse_absent_slices(path, cases, files_of_names, names, noun, advice)
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(names)} items have no {noun}: {listed(absent)} "
            f"({_looks(candidates, absent)}). {advice}"
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
            f"{listed(names, 2)} ({_looks(candidates, names)}). {RENAME_FILES}"
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
        f"different names or order, the first are {quoted(name)} and {cut(file)}. If these are "
        f"different cases or sequences, give the {noun}s of the right one."
    ]


def _matches(
    path: str | Path, files: Files, names: Sequence[str], noun: str, if_several: str = ""
) -> dict[str, str]:
    """Return the files of items, by name, for items that have one."""
    for name in names:
        files.folders_of_items.add(name)
    exact = {name: files.exact(name) for name in names}
    taken = {file for found in exact.values() for file in found}
    owners_of: dict[str, list[str]] = defaultdict(list)
    for name in names:
        match = only_file(exact[name] or files.near(name, taken), name, path, noun, if_several)
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


def _refuse_absent_slices(
    path: str | Path,
    cases: Mapping[str, str],
    files_of_names: Mapping[str, str],
    names: Sequence[str],
    noun: str,
    advice: str,
) -> None:
    """Raise `StoreError` for items that are images where the files are volumes, or for the cases
    that are absent, or else for a case without all slices."""
    counts = Counter(cases.values())
    if images := [name for name in names if name in counts and name not in files_of_names]:
        raise StoreError(
            f"{cut(path)}: the {noun} of {quoted(images[0])} is read as a volume [Z, H, W] of "
            f"{counts[images[0]]} slices, but this item is one image. Expected {noun}s [H, W] "
            "of an image: leave out an axis of size 1 (numpy.squeeze), and save class ids in place "
            "of one-hot planes. If it is a case, give the predictions of all its slices."
        )
    slices: dict[str, list[str]] = defaultdict(list)
    for name in names:
        slices[name.rpartition("/")[0] or name].append(name)
    absent = [case for case, own in slices.items() if not files_of_names.keys() & own]
    if absent:
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(slices)} cases have no {noun}: {listed(absent)} "
            f"(cases there look like {listed(sorted(set(cases.values())), 2)}). {advice} The name "
            "of a slice is CASE/SLICE."
        )
    for case, own in slices.items():
        if lost := [name for name in own if name not in files_of_names]:
            found = next(files_of_names[name] for name in own if name in files_of_names)
            count = counts[cases[found]]
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
