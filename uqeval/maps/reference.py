"""Two sources side by side: predictions, and the reference that they are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.errors import StoreError, cut, quoted
from uqeval.maps.names import of_reference

if TYPE_CHECKING:
    from uqeval.maps.contract import Heartbeat, MapSource
    from uqeval.maps.reduction import Maps


@dataclass
class WithReference:
    """The maps of `source`, and those of `reference` under `reference/<name>`.

    Raises `StoreError` where the two are not of the same items, sizes, classes and kind.
    """

    source: MapSource
    reference: MapSource

    def __post_init__(self) -> None:
        one, other = self.source, self.reference
        self.kind, self.names = one.kind, one.names
        self.classes, self.where = one.classes, one.where
        if one.kind != other.kind:
            raise StoreError(
                f"{one.where} holds {one.kind} data, {other.where} {other.kind}; expected the same."
            )
        if one.names != other.names:
            raise StoreError(_other_items(one, other))
        if one.classes != other.classes:
            raise StoreError(
                f"{other.where} has {other.classes} classes, {one.where} has {one.classes}."
            )
        for item, name in enumerate(one.names):
            if one.size(item) != other.size(item):
                raise StoreError(
                    f"{other.where}: item {cut(name)} is {other.size(item)} (height, width), in "
                    f"{one.where} {one.size(item)}; they must have the same size."
                )

    @property
    def items(self) -> int:
        """How many items there are."""
        return self.source.items

    @property
    def samples(self) -> int | None:
        """Samples of the predictions."""
        return self.source.samples

    def size(self, item: int) -> tuple[int, int]:
        """Height and width of an item."""
        return self.source.size(item)

    @property
    def float32(self) -> frozenset[str]:
        """The maps of a regression that are float32, of both."""
        own, other = (getattr(of, "float32", ()) for of in (self.source, self.reference))
        return frozenset([*own, *map(of_reference, other)])

    def want(self, names: Sequence[str]) -> None:
        """Say which maps `read` shall give. Raises `UqevalError` for what there is not."""
        mark = of_reference("")
        self.source.want([name for name in names if not name.startswith(mark)])
        self.reference.want([n.removeprefix(mark) for n in names if n.startswith(mark)])

    def batches(self) -> list[range]:
        """The smallest ranges of items that are whole batches of both."""
        stops = {b.stop for b in self.source.batches()} & {b.stop for b in self.reference.batches()}
        edges = [0, *sorted(stops | {self.items})]
        return [range(a, b) for a, b in itertools.pairwise(edges) if a < b]

    def batch_bytes(self, batch: range) -> int:
        """Peak bytes that reading a batch of both takes."""
        return self.source.batch_bytes(batch) + self.reference.batch_bytes(batch)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """The wanted maps of both, of each item of a batch."""
        mine = self.source.read(batch, heartbeat)
        for own, other in zip(mine, self.reference.read(batch, heartbeat), strict=True):
            own.update({of_reference(name): values for name, values in other.items()})
        return mine


def _other_items(one: MapSource, other: MapSource) -> str:
    """Why the items of the two are not the same, and what helps."""
    said = (
        f"{other.where}: its {other.items} items are not the {one.items} items of {one.where}, in "
        "the same order"
    )
    if one.items == other.items:
        for nameless, named in ((other, one), (one, other)):
            if tuple(nameless.names) == tuple(map(str, range(nameless.items))):
                return (
                    f"{said}, as far as can be told: {nameless.where} gives its items no names, "
                    f"while {named.where} does (the first is {quoted(named.names[0])}). Name them "
                    "with --names FILE."
                )
    return f"{said}; names must agree."
