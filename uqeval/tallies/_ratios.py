"""Base of the tallies of errors and their predicted standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqeval.lazy import np
from uqeval.tallies._contract import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._fields import Maps, State


class OfErrors(Tally):
    """Base of tallies of the error ε and the σ in the map `sigma`."""

    sigma: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", self.sigma)

    def flat(self, maps: Maps) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return ε, σ and `label`, pixels [i]."""
        return (
            maps["error"].reshape(-1),
            maps[self.sigma].reshape(-1),
            maps["label"].reshape(-1),
        )

    def update_as_items(self, state: State, maps: Maps) -> None:
        """Add one item by `update_items`."""
        first = np.array([0, maps["label"].size])
        self.update_items({name: values[None] for name, values in state.items()}, maps, first)
