"""Names and paths come from data: what they may not do to a terminal."""

from __future__ import annotations

import re

# Control characters, and those that turn the direction of what follows.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` with its control characters spelled out, so that it stays one line of plain text."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def plain(text: str) -> str:
    """`printable` text that can also be written as UTF-8: half characters are spelled out too."""
    return printable(text).encode("utf-8", "backslashreplace").decode()
