"""Every error that a user can cause.

A message says what is wrong with the actual value, name and store, what was expected, and what to
do. `uqeval.cli` turns any `UqevalError` into that message and exit status 2; all else is a bug.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: More of what a file or a user said is not repeated in a message.
_MOST = 200
#: Control characters, those that turn the direction of what follows, and halves of characters,
#: which UTF-8 cannot say.
_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text with its control characters spelled out, so that it is one plain line."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def cut(text: object, most: int = _MOST) -> str:
    """Return a text for a message: with its two ends only if it is longer than `most` characters.

    For names of files and messages of libraries; values are `quoted`.
    """
    full_text = printable(str(text))
    if len(full_text) <= most:
        return full_text
    head, tail = most * 3 // 5, most * 3 // 10
    return f"{full_text[:head]}…({len(full_text) - head - tail} more)…{full_text[-tail:]}"


def quoted(value: object) -> str:
    """Return a value for a message: in quotes, control characters spelled out, cut if too long."""
    return cut(repr(value))


class UqevalError(Exception):
    """Base of all errors that a user can cause and mend; no message acts on a terminal.

    What a file or a user said is `quoted`, `listed` or `cut` where a message is made.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(printable(a) if isinstance(a, str) else a for a in arguments))


class UsageError(UqevalError):
    """An option or argument cannot be honoured as given."""


#: Whole numbers beyond this are no sizes or counts, and would leave 32 bits on the way.
_MOST_WHOLE = 2**31 - 1
#: Options of any size that 64 bits hold: seeds; and of any number: values that stand in the data.
_ANY_SIZE, _ANY_NUMBER = frozenset({"seed"}), frozenset({"invalid"})


def number_flaw(name: str, value: object) -> str | None:
    """Return what was expected of the number that an option is set to; None for a sensible one.

    Whole numbers fit into 32 bits, those of a seed into 64; others are finite. What is no number,
    and lists, are looked through.
    """
    if isinstance(value, list | tuple):
        return next(
            (flaw for element in value if (flaw := number_flaw(name, element)) is not None), None
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or name in _ANY_NUMBER:
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value}; expected a finite number."
    most = 2**63 - 1 if name in _ANY_SIZE else _MOST_WHOLE
    return None if abs(value) <= most else f"{value}; expected a number up to {most}."


def check_numbers(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first option that is set to a number which no option can mean."""
    for name, value in options.items():
        if (flaw := number_flaw(name, value)) is not None:
            raise UsageError(f"--{name.replace('_', '-')} {flaw}")


class StoreError(UqevalError):
    """A store is missing, unfinished, damaged, or not of the form it should have."""


class DataError(UqevalError):
    """A store can be read, but the values in it cannot be evaluated."""


class NegativeSigma(DataError):
    """A map that stands for σ is negative; `map` is its name."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.map = name


class OutputError(UqevalError):
    """A result cannot be written where it should go."""


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the first few of `names` for a message, and that there are more; cut if too long."""
    texts = [str(name) for name in names]
    return cut(", ".join(texts[:most])) + (" …" if len(texts) > most else "")


def number_of(count: int, noun: str) -> str:
    """`1 item`, `12 items`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
