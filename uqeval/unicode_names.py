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
    spelled_names = tuple(unicodedata.normalize("NFC", name) for name in names)
    return spelled_names if len(set(spelled_names)) == len(set(names)) else names
