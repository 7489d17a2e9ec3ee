"""Read JSON of any origin within limits; errors name the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uqeval.disk.files import MOST_REPORT, open_file, read_text
from uqeval.errors import StoreError, UqevalError, cut

#: What the comment of a states file begins with, and its bytes with the digest.
DIGEST_MARK = b"sha256:"
DIGEST_BYTES = len(DIGEST_MARK) + 64

#: Raised by code that meets values of other types, shapes and sizes than uqeval writes.
_UNEXPECTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


@contextmanager
def content_of(where: object) -> Iterator[None]:
    """Raise `StoreError` where the content of a file of uqeval is not as uqeval writes it.

    For reports and states, whose checks do not know every field of every metric. The cause is kept
    for whoever calls from Python.
    """
    try:
        yield
    except UqevalError:
        raise
    except _UNEXPECTED as error:
        raise StoreError(
            f"{where}: the content is not as uqeval writes it ({type(error).__name__}: "
            f"{cut(error)}). "
            "Evaluate again; if uqeval wrote it and it was not edited, please report this."
        ) from error


def read_json(path: str | Path, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the JSON of a file. Raise `ValueError` for what is none, is nested too deeply or too
    large, and `OSError` for a file that cannot be read."""
    return parse_json(read_text(path, most=MOST_REPORT), parse_constant)


def parse_json(text: str | bytes, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value of a JSON text.

    Raise `ValueError` if it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def noted_digest(path: Path) -> str | None:
    """Return the digest that a states file says it has, unchecked; None if it says none."""
    try:
        with open_file(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - DIGEST_BYTES, 0))
            comment = file.read(DIGEST_BYTES)
    except OSError as error:
        raise StoreError(f"{cut(path)}: cannot be read: {error.strerror}.") from None
    if not comment.startswith(DIGEST_MARK):
        return None
    return comment.removeprefix(DIGEST_MARK).decode("ascii", "replace")
