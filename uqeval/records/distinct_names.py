"""Distinct names of what is called alike."""

from __future__ import annotations

from collections.abc import Iterable


def distinct(names: Iterable[str], form: str, taken: Iterable[str] = ()) -> list[str]:
    """Return the names, with a number where one was there before or is in `taken`.

    `form`: the name and the number, such as "{} ({})".
    """
    result, used = [], set(taken)
    for name in names:
        number, own = 1, name
        while own in used:
            number += 1
            own = form.format(name, number)
        used.add(own)
        result.append(own)
    return result
