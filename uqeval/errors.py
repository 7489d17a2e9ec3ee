"""Every error that a user can cause.

A message says what is wrong with the actual value, name and store, what was expected, and what to
do. `uqeval.cli` turns any `UqevalError` into that message and exit status 2; all else is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable


class UqevalError(Exception):
    """Base of all errors that a user can cause and mend."""


class UsageError(UqevalError):
    """An option or argument cannot be honoured as given."""


class StoreError(UqevalError):
    """A store is missing, unfinished, damaged, or not of the form it should have."""


class DataError(UqevalError):
    """A store can be read, but the values in it cannot be evaluated."""


class OutputError(UqevalError):
    """A result cannot be written where it should go."""


def listed(names: Iterable[object], most: int = 5) -> str:
    """The first few of `names` for a message, and that there are more."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (" …" if len(shown) > most else "")


def number_of(count: int, noun: str) -> str:
    """`1 item`, `12 items`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
