"""Join two sources: predictions, and the reference for comparison."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from uqeval.arrays import Maps
from uqeval.errors import StoreError, cut, data_of_kind, quoted
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.names import of_reference


@dataclass
class WithReference(MapSource):
    """The maps of `source`, and those of `reference` as `reference/<name>`.

    Raises `StoreError` if the two have different items, sizes, classes or kinds.
    """

    source: MapSource
    reference: MapSource

    def __post_init__(self) -> None:
        evaluated, reference = self.source, self.reference
        self.kind, self.names = evaluated.kind, evaluated.names
        self.classes, self.where = evaluated.classes, evaluated.where
        if evaluated.kind != reference.kind:
            raise StoreError(
                f"{evaluated.where} holds {data_of_kind(evaluated.kind)}, and {reference.where} "
                f"holds {data_of_kind(reference.kind)}; expected the same kind in both."
            )
        if evaluated.names != reference.names:
            raise StoreError(_other_items(evaluated, reference))
        if evaluated.classes != reference.classes:
            raise StoreError(
                f"{reference.where} has {reference.classes} classes, {evaluated.where} has "
                f"{evaluated.classes}."
            )
        for item, name in enumerate(evaluated.names):
            if evaluated.size(item) != reference.size(item):
                raise StoreError(
                    f"{reference.where}: item {cut(name)} is {reference.size(item)} (height, "
                    f"width), in {evaluated.where} {evaluated.size(item)}; they must have the "
                    "same size."
                )

    @property
    def samples(self) -> int | None:
        return self.source.samples

    def size(self, item: int) -> tuple[int, int]:
        return self.source.size(item)

    @property
    def float32(self) -> frozenset[str]:
        """Return the maps of a regression that are float32, of both."""
        source_maps, reference_maps = (
            getattr(of, "float32", ()) for of in (self.source, self.reference)
        )
        return frozenset([*source_maps, *map(of_reference, reference_maps)])

    def want(self, names: Sequence[str]) -> None:
        mark = of_reference("")
        self.source.want([name for name in names if not name.startswith(mark)])
        self.reference.want([n.removeprefix(mark) for n in names if n.startswith(mark)])

    def batches(self) -> list[range]:
        """Return the smallest ranges of items that are whole batches of both."""
        stops = {b.stop for b in self.source.batches()} & {b.stop for b in self.reference.batches()}
        edges = [0, *sorted(stops | {self.items})]
        return [range(a, b) for a, b in itertools.pairwise(edges) if a < b]

    def batch_bytes(self, batch: range) -> int:
        return self.source.batch_bytes(batch) + self.reference.batch_bytes(batch)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        source_maps = list(self.source.read(batch, heartbeat))
        for item_maps, reference_maps in zip(
            source_maps, self.reference.read(batch, heartbeat), strict=True
        ):
            item_maps.update(
                {of_reference(name): values for name, values in reference_maps.items()}
            )
        return source_maps


def _other_items(first: MapSource, second: MapSource) -> str:
    """Return the message about two stores with different items."""
    messages = (
        f"{second.where}: its {second.items} items are not the {first.items} items of "
        f"{first.where}, in the same order"
    )
    if first.items == second.items:
        for nameless, with_names in ((second, first), (first, second)):
            if tuple(nameless.names) == tuple(map(str, range(nameless.items))):
                return (
                    f"{messages}, as far as uqeval can check: {nameless.where} gives its items no "
                    f"names, while {with_names.where} does (the first is "
                    f"{quoted(with_names.names[0])}). Name them with --names FILE."
                )
    return f"{messages}; names must agree."
