"""Resampling of items: intervals, slices, merged parts, paired changes, all from saved states."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.gate.resampling import Resampler


def resampler() -> Resampler:
    """What answers a gate from the states beside the reports."""
    from uqeval.statistics.from_states import FromStates

    return FromStates()
