"""The interface of a source of maps for the engine and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uqeval.maps.reduction import Maps

#: Called between tiles; raises to abandon the work.
Heartbeat = Callable[[int], None]


class MapSource(Protocol):
    """Maps of all items, by name; `kind` says what data they are of (`uqeval.metrics.DatasetInfo`).

    Every source gives `label` [y, x]: the class of a pixel, or the largest value of its dtype where
    it is not evaluated.
    """

    kind: str
    names: tuple[str, ...]
    classes: int
    where: str

    @property
    def items(self) -> int:
        """Return how many items there are."""

    @property
    def samples(self) -> int | None:
        """Return how many samples or members a pixel has; None for maps."""

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item."""

    def want(self, names: Sequence[str]) -> None:
        """Say which maps `read` shall give. Raises `UqevalError` for what there is not."""

    def batches(self) -> list[range]:
        """Return items that are read together."""

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes."""

    def read(self, batch: range, heartbeat: Heartbeat = ...) -> list[Maps]:
        """Return the wanted maps [y, x] of the items of a batch."""


class MappedSource(MapSource, Protocol):
    """A source whose maps are quick to make again, where `mapped`: passes may read it each."""

    mapped: bool

    def need(self, names: Collection[str]) -> None:
        """Say which of the wanted maps the next pass reads."""

    def maps_bytes(self) -> int:
        """Return bytes of the wanted maps of all items."""
