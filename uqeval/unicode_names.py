"""Names of items, which may be spelled in two ways in Unicode."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def in_one_spelling(names: Iterable[str]) -> tuple[str, ...]:
    """Return names with one of the two spellings that Unicode has for letters with accents (NFC):
    names of files on macOS have the other one. Unchanged if two names would become the same.
    """
    names = tuple(names)
    if all(map(str.isascii, names)):
        return names
    spelled_names = tuple(map(_composed, names))
    return spelled_names if len(set(spelled_names)) == len(set(names)) else names


def spelled_as(names: Iterable[str], items: Iterable[str]) -> tuple[str, ...]:
    """Return names in the spelling of the items that they mean: the item of just that name, else
    the only other one with the same letters. Names of no item, or of several, are unchanged.
    """
    names, known = tuple(names), set(items)
    given = set(names)
    if given <= known:
        return names
    named, others = _by_letters(given - known), _by_letters(known - given)
    item_of = {
        name: others[letters][0]
        for letters, (name, *alike) in named.items()
        if not alike and len(others.get(letters, ())) == 1
    }
    return tuple(item_of.get(name, name) for name in names)


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _by_letters(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of each name with composed letters."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_composed(name), []).append(name)
    return groups
