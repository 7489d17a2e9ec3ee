"""Read and check names of items, and match them with files by stems."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from uqeval.disk.files import parse_json, read_text
from uqeval.errors import StoreError, cut, listed, number_of, quoted


def read_names_file(path: str | Path) -> tuple[str, ...]:
    """Return item names from a JSON list of strings, or a text file with one name a line.

    Raises `StoreError` if the file cannot be read, has another content, or repeats a name.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise StoreError(
            f"{cut(path)}: cannot be read: {error.strerror}. Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{cut(path)}: is not text in UTF-8. Save the names as UTF-8.") from error
    if text.lstrip().startswith(("[", "{")):
        try:
            values = parse_json(text)
        except ValueError as error:
            raise StoreError(f"{cut(path)}: is not valid JSON: {error}.") from error
        return checked_names(values, str(path))
    return checked_names([line.strip() for line in text.splitlines() if line.strip()], str(path))


def checked_names(values: object, where: str, count: int | None = None) -> tuple[str, ...]:
    """Return `values` as item names. Raises `StoreError` unless they are `count` different
    texts.
    """
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise StoreError(f"{where}: item names must be a list of texts, one for each item.")
    names = tuple(str(value) for value in values)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise StoreError(
            f"{where}: an item name appears more than once: {listed(repeated)}. Give each item a "
            "different name."
        )
    if "" in names:
        raise StoreError(f"{where}: an item name is empty. Give each item a name.")
    if count is not None and len(names) != count:
        raise StoreError(
            f"{where}: {len(names)} names for {count} items. Give one name per item, in their "
            f"order."
        )
    return names


def refuse_reordered(names: Sequence[str], stored_names: Sequence[str] | None, where: str) -> None:
    """Raise `StoreError` if given names are the names of the store in another order.

    They would move each item's predictions to another item.
    """
    if (
        stored_names is None
        or tuple(names) == tuple(stored_names)
        or set(names) != set(stored_names)
    ):
        return
    i = next(k for k, (a, b) in enumerate(zip(names, stored_names, strict=True)) if a != b)
    raise StoreError(
        f"{where}: --names gives the names of the store in another order; item {i} is "
        f"{quoted(stored_names[i])} in the store and {quoted(names[i])} in --names. Names do not "
        "change the order of items: leave --names out."
    )


def natural(name: str) -> tuple[object, ...]:
    """Return a key that sorts numbers in names by value: frame_9 before frame_10."""
    parts = re.split("([0-9]+)", name)
    # Digits alternate with text. The number with more digits is larger.
    parts[1::2] = [digits.lstrip("0") for digits in parts[1::2]]
    return tuple((len(p), p) if k % 2 else p for k, p in enumerate(parts)), name


#: The suffixes that names of items may have. What else follows a dot belongs to the name.
_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pfm", ".npy", ".npz"}
)
#: The suffixes of files of items.
_FILES = _SUFFIXES | {".flo"}
#: Endings that data sets add to the names of their files.
_ENDINGS = (
    "_leftImg8bit",
    "_gtFine_labelIds",
    "_gtFine_labelTrainIds",
    "_gtCoarse_labelIds",
    "_gtCoarse_labelTrainIds",
)


def files_below(folder: str | Path, suffixes: Sequence[str]) -> list[str]:
    """Return all files below `folder` with these endings, relative to it, sorted; symbolic links
    are followed.

    Raises `StoreError` if a folder cannot be listed.
    """
    ends = tuple(suffixes)
    found: list[str] = []
    visited: set[str] = set()

    def fail(error: OSError) -> None:
        raise StoreError(f"{error.filename}: cannot be listed: {error.strerror}.") from error

    for at, folders, files in os.walk(folder, followlinks=True, onerror=fail):
        real = os.path.realpath(at)
        if real in visited:  # a link to a parent folder would never end
            folders.clear()
            continue
        visited.add(real)
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118 - 10 times faster
            for name in files
            if name.lower().endswith(ends) and not name.startswith(".")
        ]
    return sorted(found)


def match_files(
    path: str | Path,
    files: Sequence[str],
    names: Sequence[str],
    noun: str,
    *,
    endings: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the one file of each item, by the item's name; `noun` names the files in messages.

    `endings`: endings of the files' stems, in addition to those that data sets are known to add.
    Raises `StoreError` if items have no file, or more than one, or share one.
    """
    files_of_names = _matches(path, files, names, noun, endings)
    if absent := [name for name in names if name not in files_of_names]:
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(names)} items have no {noun}: {listed(absent)} "
            f"({_looks(files)}). Add the files, or give the names that match them with --names."
        )
    return files_of_names


def match_some(
    path: str | Path, files: Sequence[str], names: Sequence[str], noun: str
) -> dict[str, str]:
    """Match files as `match_files` does, but leave out items without a file if any item has one."""
    files_of_names = _matches(path, files, names, noun)
    if not files_of_names:
        raise StoreError(
            f"{cut(path)}: none of the {len(names)} items has a {noun}: they are called "
            f"{listed(names, 2)} ({_looks(files)}). Add the files, or give the names that match "
            "them with --names."
        )
    return files_of_names


def required_names(path: str | Path, names: Sequence[str] | None, noun: str) -> tuple[str, ...]:
    """Return the checked names of items, for matching with files. Raises `StoreError` if items have
    no names.
    """
    if names is None:
        whose = "frames" if noun == "prediction" else "predictions"
        raise StoreError(
            f"{cut(path)}: {noun} files are matched with items by name, but the {whose} have no "
            "names. Give --names FILE (a JSON list or one name per line), or store an array "
            "`names`."
        )
    return checked_names(list(names), "item names")


def unused(
    path: str | Path, files: Sequence[str], used_files: dict[str, str], noun: str
) -> list[str]:
    """Return a warning about files that belong to no item, if there are any."""
    unused_files = sorted(set(files) - set(used_files.values()))
    if not unused_files:
        return []
    verb = "belongs" if len(unused_files) == 1 else "belong"
    return [
        f"{path}: {number_of(len(unused_files), f'{noun} file')} {verb} to no item: "
        f"{listed(unused_files)}."
    ]


def plain_name(name: str) -> str:
    """Return an item's name with its folders, without a file's suffix and the endings of data
    sets.
    """
    return _without(without_suffix(name), _ENDINGS)


def _matches(
    path: str | Path,
    files: Sequence[str],
    names: Sequence[str],
    noun: str,
    endings: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the files of items, by name, for items that have one."""
    by_stem = stems(files, endings)
    files_of_names: dict[str, str] = {}
    for name in names:
        if match := file_of(name, by_stem, path, noun):
            files_of_names[name] = match
    _refuse_shared(files_of_names, path, noun)
    return files_of_names


def stems(files: Sequence[str], endings: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Return files, or names of items, by their stems without `endings` and the endings of data
    sets, for `file_of`.
    """
    by_stem: dict[str, list[str]] = defaultdict(list)
    for file in files:
        path = PurePosixPath(file)
        stem = path.stem if path.suffix.lower() in _FILES else path.name
        for plain in {_without(stem, _ENDINGS), _without(_without(stem, endings), _ENDINGS)}:
            by_stem[plain].append(file)
    return by_stem


def _looks(files: Sequence[str]) -> str:
    return f"files there look like {listed(files, 2)}" if files else "no such files are there"


def _without(stem: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if stem.endswith(ending):
            return stem.removesuffix(ending)
    return stem


def without_suffix(name: str) -> str:
    """Return the name of an item without the suffix of a file; `frame.01` has none."""
    path = PurePosixPath(name)
    return name[: -len(path.suffix)] if path.suffix.lower() in _SUFFIXES else name


def file_of(name: str, by_stem: dict[str, list[str]], path: str | Path, noun: str) -> str | None:
    """Return the only file of an item, or None; raises `StoreError` for two files.

    Names are compared with files, never opened as paths.
    """
    plain = without_suffix(name)
    last = PurePosixPath(name).name
    candidates: list[str] = []
    for stem in (last, PurePosixPath(plain).name):
        stripped = _without(stem, _ENDINGS)
        candidates = by_stem.get(stem) or by_stem.get(stripped) or []
        if candidates:
            break
    if len(candidates) > 1:
        exact = [f for f in candidates if without_suffix(f) in (name, plain)]
        near = [
            f for f in candidates if _same_end(PurePosixPath(f).parts, PurePosixPath(name).parts)
        ]
        candidates = exact or near or candidates
    if len(candidates) > 1:
        raise StoreError(
            f"{cut(path)}: item {quoted(name)} could have the {noun} {candidates[0]} or "
            f"{candidates[1]}. Remove one, or name the items by their path in the folder. If "
            "the folders are of several annotators, give --annotator-folders."
        )
    return candidates[0] if candidates else None


def _same_end(file: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Return whether the common folders of file and name, from the last one upwards, are equal."""
    folders = list(zip(reversed(file[:-1]), reversed(name[:-1]), strict=False))
    return bool(folders) and all(first == second for first, second in folders)


def _refuse_shared(files_of_names: dict[str, str], path: str | Path, noun: str) -> None:
    owners: dict[str, str] = {}
    for name, file in files_of_names.items():
        if file in owners:
            raise StoreError(
                f"{cut(path)}: the items {quoted(owners[file])} and {quoted(name)} both match "
                f"{cut(file)}. Put their {noun}s into folders with the names of the items."
            )
        owners[file] = name
