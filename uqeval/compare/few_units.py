"""Warnings about intervals of differences from few items, groups or pairs of a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.compare.comparison import Row

if TYPE_CHECKING:
    from uqeval.statistics.paired_comparison import PairedComparison


def warnings_of_units(paired: PairedComparison, rows: Sequence[Row]) -> list[str]:
    """Return warnings about intervals from few units; those of a video differ between differences.

    Intervals over trainings do not come from units, and are shown with their trainings.
    """
    from uqeval.statistics.no_interval import few_pairs_of, few_units
    from uqeval.statistics.units import HEADLINE

    pairs: dict[str, float] = {}
    names: set[str] = set()
    for row in rows:
        shown = [cell.difference.interval for cell in row.cells if cell.difference is not None]
        units = [interval.units for interval in shown if interval is not None]
        names |= {own.name for own in units}
        if known := [own.effective for own in units if own.effective is not None]:
            pairs[row.address.within] = min(known)
    resampling = paired.resampling
    has_none = not names and (resampling.problem is not None or resampling.units < 2)
    if not (has_none or names - {"training"}):
        return []
    if resampling.effective is None or (resampling.problem and not pairs):
        return few_units(resampling, HEADLINE)
    return few_pairs_of(pairs)
