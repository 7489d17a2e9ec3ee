"""Errors that a user can cause.

A message names the wrong value, name or store, says what was expected, and what to do. `uqeval.cli`
prints the message of a `UqevalError` and exits with status 2. Any other exception is a bug.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from shlex import quote
from typing import Any, TypeGuard

#: Longest text from a file or a user that a message repeats.
_MOST = 200
#: The kinds of data in the words of messages.
_DATA = {
    "classes": "class predictions", "regression": "predicted numbers", "video": "video data",
    "ood": "in- and out-of-distribution data",
}  # fmt: skip
#: Control characters, marks that change the direction of text, and lone surrogates, which UTF-8
#: cannot encode.
_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


#: Users with passwords, and queries (signatures) in URLs. Azure writes container@account. Paths
#: have one slash of two.
_USER = re.compile(r"(\w:/{1,2})[^/\s:@]*:[^/\s@]*@|((?:https?|s3):/{1,2})[^/\s@]*@")
_QUERY = re.compile(r"(\w:/{1,2}[^\s?'\"]+\?)[^\s'\"]+")


def without_secrets(text: str) -> str:
    """Return a text without passwords and queries in its URLs."""
    if ":/" not in text:
        return text
    return _QUERY.sub(r"\1…", _USER.sub(r"\1\2…@", text))


def printable(text: str) -> str:
    """Return a text on one line, without secrets of URLs, with its control characters escaped."""
    text = without_secrets(text)
    if text.isprintable():  # most texts; it takes a tenth of the time of a search
        return text
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def cut(text: object, most: int = _MOST) -> str:
    """Return a text for a message; shorten a text of more than `most` characters in its middle.

    For names of files and for messages of libraries. For values use `quoted`.
    """
    full_text = printable(str(text))
    if len(full_text) <= most:
        return full_text
    head, tail = most * 3 // 5, most * 3 // 10
    return f"{full_text[:head]}…({len(full_text) - head - tail} more)…{full_text[-tail:]}"


def quoted(value: object) -> str:
    """Return a value for a message: in quotes, control characters escaped, shortened if long.

    Arrays, also in lists and mappings, appear as their type, dtype and shape.
    """
    return cut(_shown(value))


def _shown(value: Any, depth: int = 0) -> str:
    """Return `repr(value)` without the numbers of arrays."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and hasattr(value, "dtype"):
        return f"<{type(value).__name__} of {value.dtype}, shape {list(shape)}>"
    if depth == 3 or type(value) not in (list, tuple, dict):
        return repr(value)
    if isinstance(value, dict):
        pairs = [f"{key!r}: {_shown(entry, depth + 1)}" for key, entry in value.items()]
        return f"{{{', '.join(pairs)}}}"
    texts = ", ".join(_shown(entry, depth + 1) for entry in value)
    if isinstance(value, list):
        return f"[{texts}]"
    return f"({texts},)" if len(value) == 1 else f"({texts})"


#: In the names of arrays in memory, which have no path.
IN_MEMORY = " in memory"


def in_command(path: str, placeholder: str = "PREDICTIONS") -> str:
    """Return a path as a command has it; the placeholder for arrays in memory."""
    return placeholder if IN_MEMORY in path else quote(path)


def nearest(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """Return the most similar of `names`; empty if none is at least that similar (0 to 1).

    Upper and lower case count as equal.
    """
    from difflib import get_close_matches

    by_folded: dict[str, str] = {}
    for own in names:
        by_folded.setdefault(own.casefold(), own)
    return next((by_folded[n] for n in get_close_matches(name.casefold(), by_folded, 1, least)), "")


def did_you_mean(name: str, names: Iterable[str], otherwise: str, least: float = 0.6) -> str:
    """Return a hint about an unknown name: the most similar of `names`, or else `otherwise`."""
    near = nearest(name, names, least)
    return f"did you mean {quoted(near)}?" if near else otherwise


def begins_with(message: str, name: str) -> bool:
    """Return whether a message begins with a whole name, such as a path: `NAME is`, `NAME: the`."""
    starts = {printable(name), cut(name)}
    return message.startswith(tuple(f"{s}{mark}" for s in starts for mark in (" ", ": ", ", ")))


class UqevalError(Exception):
    """Base of all errors that a user can cause and fix.

    Messages hold no control characters. Text from files or users goes through `quoted`, `listed` or
    `cut`.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(printable(a) if isinstance(a, str) else a for a in arguments))


class UsageError(UqevalError):
    """Invalid option or argument."""


#: Largest size or count: the largest number of 32 bits.
_MOST_WHOLE = 2**31 - 1
#: Options whose value may have 64 bits (seeds), and options that may be any number (data values).
_ANY_SIZE, _ANY_NUMBER = frozenset({"seed"}), frozenset({"invalid"})


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number of JSON; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_in(text: str | float) -> float:
    """Return the number that a text of a user has. Raises `ValueError`, also for 1_0, which Python
    reads as 10."""
    if isinstance(text, str) and "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def number_flaw(name: str, value: object) -> str | None:
    """Return the message about an invalid number of an option; None for a valid number.

    Whole numbers must fit into 32 bits, seeds into 64, and other numbers must be finite. Also
    checks the values of lists and ignores all that is not a number.
    """
    if isinstance(value, list | tuple):
        return next(
            (flaw for element in value if (flaw := number_flaw(name, element)) is not None), None
        )
    if not is_number(value) or name in _ANY_NUMBER:
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value}; expected a finite number."
    most = 2**63 - 1 if name in _ANY_SIZE else _MOST_WHOLE
    if -most - 1 <= value <= most:  # the least one is a usual id of pixels without data
        return None
    return f"{value}; expected a number {f'up to {most}' if value > 0 else f'from {-most - 1} on'}."


def number_hint(value: object, most: float | None) -> str:
    """Return a sentence with the number that was probably meant; empty for none.

    A fraction for a percentage where numbers are at most 1 (`most`), a decimal point for a comma.
    """
    if isinstance(value, str) and re.fullmatch(r"-?\d+,\d+", value):
        return f" A decimal number has a point: write {value.replace(',', '.')}."
    if most == 1 and is_number(value) and 1 < value <= 100:
        return f" For {value:g} %, write {as_fraction(value)!r}."
    return ""


def as_fraction(percentage: float) -> float:
    """Return a percentage as a fraction, without the digits of a division: 0.07 for 7."""
    return float(f"{percentage / 100:.15g}")


def option_name(name: str) -> str:
    """Return the command line's name of an option."""
    return f"--{name.replace('_', '-')}"


def check_numbers(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first option whose number is not valid."""
    for name, value in options.items():
        if (flaw := number_flaw(name, value)) is not None:
            raise UsageError(f"{option_name(name)} {flaw}")


class StoreError(UqevalError):
    """Missing, unfinished or damaged store, or a store with the wrong arrays."""


class ChangedError(StoreError):
    """Data changed while they were read."""


class DataError(UqevalError):
    """Readable store whose values cannot be evaluated."""


class NegativeSigma(DataError):
    """Negative value in a map of standard deviations; `map` is its name."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.map = name


class FormError(ValueError):
    """Record of a file with other keys or types than uqeval writes; the message names the first."""


class OutputError(UqevalError):
    """Output that cannot be written."""


class NotFiniteError(OutputError, ValueError):
    """Result with NaN or infinity, which JSON does not have."""


class ClusterError(UqevalError):
    """Cluster whose scheduler is gone, or whose workers die. What they have counted is kept."""


#: Message at a limit of threads.
NO_THREAD = (
    "the system starts no further thread, because a limit of processes or of memory is reached. "
    "Use fewer workers, or raise the limit (`ulimit -u`, `ulimit -v`, or those of the container)."
)


class ThreadError(UqevalError):
    """Thread that the system refuses to start."""


#: Message at a limit of memory.
NO_MEMORY = "out of memory; give a lower --memory or fewer --workers."

#: The system's texts for a library that it cannot load at a limit of memory.
_NOT_MAPPED = ("failed to map segment from shared object", "cannot allocate memory")


def shortage(error: BaseException | None) -> str | None:
    """Return the message about the limit of memory or threads that caused an error; None for other
    causes."""
    while error is not None:
        text = str(error)
        if isinstance(error, MemoryError) or any(part in text for part in _NOT_MAPPED):
            return NO_MEMORY
        if isinstance(error, RuntimeError) and text == "can't start new thread":
            return NO_THREAD
        error = error.__cause__ or error.__context__
    return None


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the first few of `names` for a message, and the number of the others:
    `a, b and 3 more`."""
    return _whole_names([printable(str(name)) for name in names], most)


def all_listed(names: Iterable[object]) -> str:
    """Return `names` for a message, as many as it has room for, and the number of the others."""
    texts = [printable(str(name)) for name in names]
    return _whole_names(texts, len(texts))


def _whole_names(names: Sequence[str], most: int) -> str:
    """Return up to `most` names that together fit into a message, and the number of the others. The
    first name is shortened if it alone is too long."""
    ends = accumulate(len(name) + len(", ") for name in names[:most])
    count = max(1, sum(end <= _MOST + len(", ") for end in ends))
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join([*map(cut, names[:1]), *names[1:count]]) + more


def data_of_kind(kind: str) -> str:
    """Return a kind of data in the words of messages, such as "class predictions"."""
    return _DATA.get(kind, f"{kind} data")


def joined(messages: Iterable[object], most: int = 20) -> str:
    """Return the different messages of several errors as one text, and the number of the others
    beyond the first `most`."""
    texts = list(dict.fromkeys(map(str, messages)))
    more = f" There are {len(texts) - most} more." if len(texts) > most else ""
    return " ".join(texts[:most]) + more


#: Smaller numbers have more decimals, and those below `_TINY` or from `_LARGE` on an exponent.
_SMALL, _TINY, _LARGE = 0.01, 1e-5, 1e15


def decimals(value: float, digits: int) -> str:
    """Return a number with `digits` decimals. Below 0.01 it has three significant digits, but no
    further zeros at its end; a number that is not 0 is never rounded to 0. From 10¹⁵ on, where the
    decimals mean nothing, it has an exponent."""
    size = abs(value)
    if size >= _LARGE:
        return f"{value:.{digits}e}"
    text = f"{value:.{digits}f}"
    if not 0 < size < _SMALL:
        return text if float(text) or not value else f"{value:.3g}"
    if size < _TINY and not float(text):
        return f"{value:.3g}"
    places = 2 - math.floor(math.log10(size))
    if places <= digits:
        return text
    return f"{value:.{places}f}".rstrip("0").ljust(len(text), "0")


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: `1 item`, `12 items`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
