"""Names of items, which may be spelled in two ways in Unicode."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable


def in_one_spelling(names: Iterable[str]) -> tuple[str, ...]:
    """Return names with one of the two spellings that Unicode has for letters with accents (NFC):
    names of files on macOS have the other one. Unchanged if two names would become the same.
    """
    names = tuple(names)
    if all(map(str.isascii, names)):
        return names
    spelled_names = tuple(map(_composed, names))
    return spelled_names if len(set(spelled_names)) == len(set(names)) else names


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def spelled_as(
    names: Iterable[str], items: Iterable[str], same: Callable[[str], str] = _composed
) -> tuple[str, ...]:
    """Return names in the spelling of the items that they mean: the item of just that name, else
    the only other one with the same letters. Names of no item, or of several, are unchanged.

    `same` returns what is equal for two names of an item (default: the composed letters).
    """
    names, known = tuple(names), set(items)
    given = set(names)
    if given <= known:
        return names
    named, others = _grouped(given - known, same), _grouped(known - given, same)
    item_of = {
        name: others[key][0]
        for key, (name, *alike) in named.items()
        if not alike and len(others.get(key, ())) == 1
    }
    return tuple(item_of.get(name, name) for name in names)


def _grouped(names: Iterable[str], same: Callable[[str], str]) -> dict[str, list[str]]:
    """Return the names with each value of `same`."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(same(name), []).append(name)
    return groups
