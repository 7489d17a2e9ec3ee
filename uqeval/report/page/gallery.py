"""Pictures of items on a page, from any origin."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Protocol, TypeAlias

#: CSS colours and what they mean.
Meanings: TypeAlias = "tuple[tuple[str, str], ...]"


@dataclass(frozen=True)
class Picture:
    """One picture of an item as PNG bytes, with what it shows in words; those of one `group`, such
    as a model, appear side by side.

    A page reads values from colours: `meanings` are of a picture of categories, `scale` has the
    values at both ends of the ramp of a map. `shape`: width and height of the data, which a picture
    may show smaller.
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
    """Gives the pictures of an item.

    `legend` explains their colours: (CSS colour, meaning). `note` says which of the stores are not
    those of the report; empty if all are.
    """

    @property
    def note(self) -> str:
        """Return a note about stores that are not those of the report."""

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return colours and what they mean."""

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of the item at this place of the report's items. Raises
        `UqevalError`.
        """
