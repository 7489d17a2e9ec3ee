"""Intervals, slices, merged shards and paired differences, computed from saved states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.records.addresses import Address
    from uqeval.records.folder import Named
    from uqeval.records.resampling import Resampler


def resampler(addresses: Iterable[Address] = (), loaded: Iterable[Named] = ()) -> Resampler:
    """Return the resampler of a gate, which reads the saved states of the reports.

    `addresses` of rules: their scores are computed in one pass. `loaded`: reports that need not be
    read again.
    """
    from uqeval.statistics.from_states import FromStates

    reports = {named.path: named.report for named in loaded}
    return FromStates({own.within for own in addresses}, reports)
