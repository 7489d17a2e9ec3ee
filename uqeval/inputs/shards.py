"""Choose the items to evaluate: all, the first few, or one of several shards."""

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
    """The `number`-th (from 1) of `of` contiguous shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read "2/3". Raises `UsageError` for another form."""
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", str(text).strip())
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(f"--part {cut(text)}; expected K/N, the K-th of N parts, such as 2/3.")
        return cls(number, of)

    def of_items(self, count: int, ends: Sequence[int] | None = None) -> range:
        """Return the indices of its items among `count`; sizes of shards differ by at most one.

        `ends`: the only allowed ends of shards, as numbers of items; takes the nearest. Raises
        `UsageError` for a shard without items.
        """
        first, last = (k * count // self.of for k in (self.number - 1, self.number))
        if ends is not None:
            first, last = (min((0, *ends), key=lambda end: abs(end - k)) for k in (first, last))
        if first == last or self.of > count:
            unit = "items" if ends is None else "sequences, which --tracks keeps whole,"
            raise UsageError(
                f"--part {self.number}/{self.of}: there are not enough {unit} for {self.of} parts; "
                "some would be empty."
            )
        return range(first, last)

    def record(self, item_range: range) -> dict[str, int]:
        """Return the record of the shard in a report."""
        return {"number": self.number, "of": self.of, "first": item_range.start}


def chosen_items(
    text: str | None, limit: int | None, count: int, ends: Sequence[int] | None = None
) -> tuple[range, dict[str, Any]]:
    """Return the indices of the items to evaluate, and the record of the choice.

    `text`: the shard, such as "2/3"; `limit`: the largest number of items. Raises `UsageError` for
    a shard without items.
    """
    if text is None:
        item_range = range(min(limit or count, count))
        return item_range, {"items": count, "evaluated": len(item_range)}
    shard = Part.parse(text)
    item_range = shard.of_items(count, ends)
    record = {} if shard.of == 1 else {"part": shard.record(item_range)}
    return item_range, {"items": count, "evaluated": len(item_range), **record}


def store_of(store: Store, item_range: range) -> Store:
    """Return a store of only the items at these indices."""
    rows = slice(item_range.start, item_range.stop)
    names = None if store.names is None else store.names[rows]
    return replace(
        store, arrays={kind: parts[rows] for kind, parts in store.arrays.items()}, names=names,
        groups=None if store.groups is None else store.groups[rows],
    )  # fmt: skip
