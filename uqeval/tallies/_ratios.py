"""Base of the tallies of errors and their predicted standard deviations."""

from __future__ import annotations

from uqeval.arrays import Array, Maps
from uqeval.tallies._contract import Tally


class OfErrors(Tally):
    """Base of tallies of the error ε and the σ in the map `sigma`."""

    sigma: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", self.sigma)

    def flat(self, maps: Maps) -> tuple[Array, Array, Array]:
        """Return ε, σ and `label`, pixels [i]."""
        return (
            maps["error"].reshape(-1),
            maps[self.sigma].reshape(-1),
            maps["label"].reshape(-1),
        )
