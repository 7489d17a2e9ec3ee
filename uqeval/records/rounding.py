"""Scores that differ by rounding only."""

from __future__ import annotations

#: Relative difference of equal scores whose sums are in another order.
ROUNDING = 1e-12


def is_rounding(value: float, other: float) -> bool:
    """Return whether two scores differ by rounding at most."""
    return abs(value - other) <= ROUNDING * max(abs(value), abs(other))
