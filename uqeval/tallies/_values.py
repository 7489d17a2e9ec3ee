"""Uncertainties that tallies count: their maps and units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, np
from uqeval.maps.names import IN_NATS
from uqeval.tallies._contract import Tally


@dataclass(frozen=True)
class Uncertainty:
    """An uncertainty by name; entropies in units of `log_base` (e by default).

    `confidence` counts as 1 - confidence; any other map counts unchanged; larger values are less
    certain.
    """

    name: str
    log_base: float = math.e

    def values(self, maps: Maps) -> Array:
        """Return the float32 uncertainties [y, x]; -0.0 is 0.0."""
        values = maps[self.name]
        if self.name == "confidence":
            return np.float32(1.0) - values
        if self.name in IN_NATS and self.log_base != math.e:
            return (values.astype(np.float64) / math.log(self.log_base)).astype(np.float32)
        return np.asarray(values, np.float32)  # σ may be float64


class OfUncertainty(Tally):
    """Base of tallies of an `uncertainty`; `beside`: the other maps that they read."""

    beside: ClassVar[tuple[str, ...]] = ("label",)
    uncertainty: Uncertainty

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.beside, self.uncertainty.name)


@dataclass(frozen=True)
class RawMap:
    """An unchanged float32 map: `confidence` is the confidence itself, not 1 - confidence."""

    name: str

    def values(self, maps: Maps) -> Array:
        """Return the values [y, x]."""
        return maps[self.name]


def half_step(value: float) -> float:
    """Return half the distance of neighbouring float16 numbers at `value`: the rounding error."""
    exponent = max(math.frexp(abs(value))[1] - 1, -14) if value else -14  # equal below 2⁻¹⁴
    return math.ldexp(0.5, exponent - 10)


def float16_end(threshold: float, side: int, closed: bool) -> float:
    """Return the float32 threshold above which lie the values above an end of the closed interval
    of half a float16 step around `threshold`; above the lower end (`side` -1) with the end itself.

    `closed`: values on the returned threshold count as above it.
    """
    end = np.float32(threshold + side * half_step(threshold))
    if side < 0 and not closed:
        end = np.nextafter(end, np.float32(-np.inf))
    if side > 0 and closed:
        end = np.nextafter(end, np.float32(np.inf))
    return float(end)
