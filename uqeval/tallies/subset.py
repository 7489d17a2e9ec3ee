"""A tally of one subset of the samples, among the maps of many subsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from uqeval.maps.names import of_subset
from uqeval.tallies._contract import Field, Tally

if TYPE_CHECKING:
    from uqeval.tallies._contract import Maps, State


@dataclass(frozen=True)
class OfSubset(Tally):
    """`tally` of the maps `<subset>/<name>`, or `<name>` where all subsets share one."""

    id: ClassVar[str] = "of_subset"
    tally: Tally
    subset: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(of_subset(self.subset, name) for name in self.tally.inputs)

    @property
    def fields(self) -> dict[str, Field]:
        return self.tally.fields

    @property
    def keeps_items(self) -> bool:  # type: ignore[override]
        """As the tally itself."""
        return self.tally.keeps_items

    def pack(self, state: State) -> bytes:
        """The bytes of the tally itself: whoever asked for it unpacks them."""
        return self.tally.pack(state)

    def unpack(self, data: bytes) -> State:
        """The state that `pack` saved."""
        return self.tally.unpack(data)

    def flaw(self, state: State) -> str | None:
        return self.tally.flaw(state)

    def update(self, state: State, maps: Maps) -> None:
        own = {
            name: maps[given if given in maps else name]
            for name, given in zip(self.tally.inputs, self.inputs, strict=True)
        }
        self.tally.update(state, own)
