"""Intervals, slices, merged shards and paired differences, computed from saved states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.records.addresses import Address
    from uqeval.records.resampling import Resampler


def resampler(addresses: Iterable[Address] = ()) -> Resampler:
    """Return the resampler of a gate, which reads the saved states of the reports.

    `addresses` of rules: their scores are computed in one pass.
    """
    from uqeval.statistics.from_states import FromStates

    return FromStates({own.within for own in addresses})
