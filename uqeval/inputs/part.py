"""Which items are evaluated: all, the first few, or one of several parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, cut

if TYPE_CHECKING:
    from uqeval.stores.array import Store


@dataclass(frozen=True)
class Part:
    """The `number`-th (from 1) of `of` contiguous parts."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read "2/3". Raises `UsageError` for what is none."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", str(text).strip())
        number, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(f"--part {cut(text)}; expected K/N, the K-th of N parts, such as 2/3.")
        return cls(number, of)

    def of_items(self, count: int, ends: Sequence[int] | None = None) -> range:
        """The places of its items among `count`, as many as the other parts have, or one less.

        `ends`: where alone parts may end, each the number of items before it; the nearest is taken.
        Raises `UsageError` for a part without items.
        """
        first, last = (k * count // self.of for k in (self.number - 1, self.number))
        if ends is not None:
            first, last = (min((0, *ends), key=lambda end: abs(end - k)) for k in (first, last))
        if first == last or self.of > count:
            what = "items" if ends is None else "sequences, between which --tracks cuts,"
            raise UsageError(
                f"--part {self.number}/{self.of}: there are not enough {what} for {self.of} parts; "
                "some would be empty."
            )
        return range(first, last)

    def said(self, places: range) -> dict[str, int]:
        """What a report says of it."""
        return {"number": self.number, "of": self.of, "first": places.start}


def chosen_items(
    text: str | None, limit: int | None, count: int, ends: Sequence[int] | None = None
) -> tuple[range, dict[str, Any]]:
    """The places of the items that are evaluated, and what a report says of them.

    `text`: the part, such as "2/3"; `limit`: only so many. Raises `UsageError` for a part without
    items.
    """
    if text is None:
        places = range(min(limit or count, count))
        return places, {"items": count, "evaluated": len(places)}
    part = Part.parse(text)
    places = part.of_items(count, ends)
    said = {} if part.of == 1 else {"part": part.said(places)}
    return places, {"items": count, "evaluated": len(places), **said}


def store_of(store: Store, places: range) -> Store:
    """A store of the items at these places alone."""
    chosen = slice(places.start, places.stop)
    names = None if store.names is None else store.names[chosen]
    return replace(
        store, arrays={kind: parts[chosen] for kind, parts in store.arrays.items()}, names=names,
        groups=None if store.groups is None else store.groups[chosen],
    )  # fmt: skip
