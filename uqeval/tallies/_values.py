"""The uncertainty that a tally counts: which map it is read from, and in which unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import IN_NATS, void_of

__all__ = ["RawMap", "Uncertainty", "void_of"]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._contract import Maps


@dataclass(frozen=True)
class Uncertainty:
    """An uncertainty by name; entropies in units of `log_base` (e by default).

    `confidence` counts as 1 - confidence; any other name is taken as it is, larger meaning less
    certain.
    """

    name: str
    log_base: float = math.e

    def of(self, maps: Maps) -> NDArray[Any]:
        """The float32 uncertainties [y, x]; -0.0 is 0.0."""
        import numpy as np

        values = maps[self.name]
        if self.name == "confidence":
            return np.float32(1.0) - values
        if self.name in IN_NATS and self.log_base != math.e:
            return (values.astype(np.float64) / math.log(self.log_base)).astype(np.float32)
        return np.asarray(values, np.float32)  # σ may be float64


@dataclass(frozen=True)
class RawMap:
    """A float32 map as it is: `confidence` is the confidence itself, no uncertainty."""

    name: str

    def of(self, maps: Maps) -> NDArray[Any]:
        """The values [y, x]."""
        return maps[self.name]
