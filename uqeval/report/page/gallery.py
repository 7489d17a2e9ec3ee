"""Pictures of items for a page."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol, TypeAlias

#: Pairs of a CSS colour and its meaning.
Meanings: TypeAlias = "tuple[tuple[str, str], ...]"


@dataclass(frozen=True)
class Picture:
    """One picture of an item as PNG bytes, with its description. Pictures of one `group`, such as a
    model, appear side by side.

    A page shows the value under the pointer from its colour: `meanings` has those of categories,
    `scale` the lowest and the highest value of a map. `shape`: width and height of the data; the
    picture may be smaller.
    """

    title: str
    png: bytes
    alt: str
    group: str = ""
    meanings: Meanings = ()
    scale: tuple[float, float] | None = None
    shape: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height in pixels, from the header of the PNG."""
        width, height = struct.unpack(">II", self.png[16:24])
        return width, height


class Gallery(Protocol):
    """Source of the pictures of items."""

    @property
    def note(self) -> str:
        """Return a note on stores that differ from those of the report; empty if none does."""

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return pairs of a CSS colour and its meaning."""

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of an item, by its index in the report. Raises `UqevalError`."""
