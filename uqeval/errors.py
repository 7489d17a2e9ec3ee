"""Every error that a user can cause.

A message says what is wrong with the actual value, name and store, what was expected, and what to
do. `uqeval.cli` turns any `UqevalError` into that message and exit status 2; all else is a bug.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

#: More of what a file or a user said is not repeated in a message.
MOST_REPEATED = 200
#: Characters of a part that is too long: those at its beginning, and at its end.
_HEAD, _TAIL = 120, 60
#: What messages repeat: texts in quotes, lists, and words. A quote that is not closed is no text.
_PARTS = re.compile(
    r"""
    (?P<command>python\ -c\ "[^"]{0,900}")  # a line to paste is kept whole
    | (?P<again>.{1,60}?)(?P=again){20,}  # the same over and over
    | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | \[[^\[\]]*\] | \{[^{}]*\}
    | [^.,;:()\[\]{}'"]{201,}  # no sentence of ours goes on for so long
    | \S+
    """,
    re.VERBOSE | re.DOTALL,
)
#: What stands before a colon and is longer is the name of a file, with spaces in it.
_MOST_PLACE = 400
#: No message of ours is longer than this.
_MOST, _MOST_READ = 1500, 1 << 16
#: Characters of a phrase of ours that no other text holds by chance, and of its beginning.
_PHRASE, _BEGIN = 10, 8
#: What a template has a value in place of.
_FIELD = re.compile(r"\{\w*(?:![rs])?\}")
#: Phrases in the code of uqeval by their beginning, and the modules that have been looked through.
_phrases: dict[str, set[str]] = {}
_seen: set[str] = set()


def shortened(text: str) -> str:
    """Return a message in which nothing is repeated at more than 200 characters.

    Both ends are kept of a longer word, text in quotes, list, text without punctuation or text that
    repeats itself, of the part before the first colon, which names a file, of whatever stands
    between two phrases of ours, and of the whole.
    """
    if len(text) <= MOST_REPEATED:
        return text
    if len(text) > _MOST_READ:
        text = f"{text[: _MOST_READ // 2]} … {text[-_MOST_READ // 2 :]}"
    place, colon, rest = text.partition(": ")
    sentence = len(place) <= _MOST_PLACE or ". " in place or "; " in place
    if not colon or sentence:  # not a name, but a sentence of ours
        place, colon, rest = "", "", text
    short = (
        cut(place)
        + colon
        + _PARTS.sub(lambda part: part[0] if part["command"] else cut(part[0]), rest)
    )
    short = "".join(part if ours else cut(part) for part, ours in _told_apart(short))
    if len(short) > _MOST:
        short = f"{short[: _MOST // 2]} … {short[-_MOST // 4 :]}"
    return short


def cut(text: str) -> str:
    """Keep both ends of a text that is too long."""
    if len(text) <= MOST_REPEATED:
        return text
    return f"{text[:_HEAD]}…({len(text) - _HEAD - _TAIL} more)…{text[-_TAIL:]}"


def _told_apart(text: str) -> Iterator[tuple[str, bool]]:
    """Split a message into phrases that stand in the code of uqeval, and what it repeats."""
    if len(text) > MOST_REPEATED:
        _look_through_code()
    start = at = 0
    while at + _PHRASE <= len(text):
        known = _phrases.get(text[at : at + _BEGIN], ())
        size = max((len(own) for own in known if text.startswith(own, at)), default=0)
        if size:
            yield text[start:at], False
            yield text[at : at + size], True
            start = at + size
        at += size or 1
    yield text[start:], False


def _look_through_code() -> None:
    """Collect the phrases of all modules of uqeval that are loaded."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "uqeval" and name not in _seen:
            _seen.add(name)
            loader: Any = getattr(module.__spec__, "loader", None)
            if hasattr(loader, "get_code"):
                _collect(loader.get_code(name))


def _collect(constant: object) -> None:
    """Collect the phrases in a constant of the compiler: a text, a tuple, a function's code."""
    if isinstance(constant, CodeType):
        constant = constant.co_consts
    if isinstance(constant, tuple):
        for own in constant:
            _collect(own)
    elif isinstance(constant, str):
        for phrase in _FIELD.split(constant):  # of a template, too
            if len(phrase) >= _PHRASE and " " in phrase:
                _phrases.setdefault(phrase[:_BEGIN], set()).add(phrase)


class UqevalError(Exception):
    """Base of all errors that a user can cause and mend; a message is `shortened`."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(shortened(a) if isinstance(a, str) else a for a in arguments))


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
        return next((flaw for one in value if (flaw := number_flaw(name, one)) is not None), None)
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
    """The first few of `names` for a message, and that there are more."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (" …" if len(shown) > most else "")


def number_of(count: int, noun: str) -> str:
    """`1 item`, `12 items`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
