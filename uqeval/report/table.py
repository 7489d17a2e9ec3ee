"""A small table of text, and how a number is shown in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """A heading, column headings, rows of text, and a note below."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    left: frozenset[int] = field(default=frozenset({0}))


#: So near to 1 comes a sum that is rounded, but no share of pixels that a machine can count.
_ROUNDING = 1e-13


def shown(value: Any, digits: int = 4) -> str:
    """A value for the eye: never 0 or 1 by rounding alone, a dash where it is undefined."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.{digits}f}"
    if float(text) in (0.0, 1.0, -1.0) and value != float(text):
        if abs(value) < 0.5:
            return f"{value:.3g}"
        if abs(1 - abs(value)) < _ROUNDING:
            return text
        more = f"{value:.8f}".rstrip("0")
        return more if float(more) not in (1.0, -1.0) else f"{value:.13f}".rstrip("0")
    return text
