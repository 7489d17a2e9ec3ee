"""Read and check names of items, and list their files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from uqeval.disk.files import parse_json, read_text
from uqeval.disk.suffixes import without_suffix
from uqeval.errors import StoreError, cut, listed, number_of, quoted
from uqeval.unicode_names import in_one_spelling, spelled_as


def read_names_file(path: str | Path) -> tuple[str, ...]:
    """Return item names from a JSON list of strings, or a text file with one name a line.

    Raises `StoreError` if the file cannot be read, has another content, or repeats a name.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise StoreError(
            f"{cut(path)} cannot be read: {error.strerror}. Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{cut(path)} is not text in UTF-8. Save the names as UTF-8.") from error
    if text.lstrip().startswith(("[", "{")):
        try:
            values = parse_json(text)
        except ValueError as error:
            raise StoreError(f"{cut(path)} is not valid JSON: {error}.") from error
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
    if stored_names is None:
        return
    names, stored_names = in_one_spelling(names), in_one_spelling(stored_names)
    if names == stored_names or set(names) != set(stored_names):
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


def two_orders(names: Sequence[str]) -> str:
    """Return why the order of names, as files are listed, is not clear; empty if it is.

    The order is not clear for names that differ only in numbers and have different lengths, such as
    i2 and i10. It is clear for hashes, which have equal lengths.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub("[0-9]+", "0", name), []).append(name)
    for by_letter in alike.values():
        by_number = sorted(by_letter, key=natural)
        if by_number != by_letter and len(set(map(len, by_letter))) > 1:
            orders = f"{listed(by_letter, 3)} (by letter) or {listed(by_number, 3)} (by number)"
            return f"it may be {orders}; --names FILE gives it"
    return ""


#: Endings that data sets add to the names of their files.
_ENDINGS = (
    "_leftImg8bit",
    "_gtFine_labelIds",
    "_gtFine_labelTrainIds",
    "_gtCoarse_labelIds",
    "_gtCoarse_labelTrainIds",
)

#: Visits of one folder beyond the number of different links to it. Chains of links may double them
#: at each link.
_MOST_VISITS = 1000


def files_below(folder: str | Path, suffixes: Sequence[str]) -> list[str]:
    """Return all files below `folder` with these endings, relative to it, sorted. Symbolic links
    are followed, except those to a folder that they are in.

    Raises `StoreError` if a folder cannot be listed, or if links lead to it too often.
    """
    ends = tuple(suffixes)
    found: list[str] = []
    # The real paths of each folder and its parents: a link to one of them would never end.
    parents_of: dict[str, frozenset[str]] = {}
    real_paths: dict[str, str] = {}
    links_to: dict[str, set[str]] = {}
    visits: Counter[str] = Counter()

    def fail(error: OSError) -> None:
        raise StoreError(f"{error.filename} cannot be listed: {error.strerror}.") from error

    root = str(Path(folder))
    for at, folders, files in os.walk(root, followlinks=True, onerror=fail):
        above, name = os.path.split(at)
        # From the real path of the parent: else each link of a long chain is resolved again.
        real = os.path.realpath(os.path.join(real_paths.get(above, above), name))  # noqa: PTH118
        real_paths[at] = real
        parents = parents_of.get(above, frozenset())
        if real in parents:
            folders.clear()
            continue
        parents_of[at] = parents | {real}
        if os.path.islink(at):  # noqa: PTH114 - faster
            visits[real] += 1
            links = links_to.setdefault(real, set())
            links.add(f"{real_paths.get(above) or os.path.realpath(above)}/{name}")
            if visits[real] > len(links) + _MOST_VISITS:
                raise StoreError(
                    f"{cut(folder)}: {visits[real]:,} chains of symbolic links lead to "
                    f"{cut(real)}, but only {number_of(len(links), 'different link')}. Remove "
                    "links, or give the folder that they lead to."
                )
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = at[len(root) :].strip(os.sep)
        start = f"{inside}{os.sep}" if inside else ""
        found += [
            start + name
            for name in files
            if name.lower().endswith(ends) and not name.startswith(".")
        ]
    return sorted(found)


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
    return selected_names(path, names)


def selected_names(path: str | Path, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the items that are read from a folder, checked. Raises `StoreError`, also
    if there are none."""
    if not names:
        raise StoreError(
            f"{cut(path)}: 0 names of items; expected the names of those to read. Give some with "
            "--names FILE, or leave it out for all items."
        )
    return checked_names(list(names), f"{cut(path)}: item names")


def as_items(names: Iterable[str], items: Iterable[str]) -> tuple[str, ...]:
    """Return the names in a user's file as the names of the items that they mean: those of just
    that spelling, else the only one with the same plain name, so `img_1.png` means the item `img_1`
    and the reverse. Names of no item, or of several, are unchanged.
    """
    items = tuple(items)
    spelled = spelled_as(names, items)
    return spelled_as(spelled, items, lambda name: plain_name(in_one_spelling((name,))[0]))


def plain_name(name: str) -> str:
    """Return an item's name with its folders, without a file's suffix and the endings of data
    sets.
    """
    return without_ending(without_suffix(name))


def without_ending(stem: str, endings: tuple[str, ...] = _ENDINGS) -> str:
    """Return a name without the first of these endings that it has; by default those of data
    sets.
    """
    for ending in endings:
        if stem.endswith(ending):
            return stem.removesuffix(ending)
    return stem
