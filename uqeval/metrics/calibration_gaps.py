"""Signed gaps of confidence bins: right pixels minus summed confidences.

Intervals use them to test whether a calibration error differs from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Floats, np
from uqeval.metrics._evaluation import Gaps
from uqeval.metrics.calibration_scores import Binned

if TYPE_CHECKING:
    from uqeval.metrics._columns import SetStates
    from uqeval.tallies._contract import Tally


def of_set(
    top: Tally, per_class: Tally, massed: Sequence[Tally], at_one: str, classes: int
) -> dict[tuple[Any, ...], Gaps]:
    """Return the gaps of all calibration errors of a set, and of the ECE of each class."""
    gaps = of_bins(top, at_one)
    for tally in massed:
        gaps["adaptive_ece",] = _gaps(_BinsOf(tally, "own"), pixels_of=top)
    of_classes = _BinsOf(per_class, at_one)
    gaps["classwise_ece",] = _gaps(of_classes, pixels_of=top, over=classes)
    for c in range(classes):
        gaps["per_class", c, "ece"] = _gaps(of_classes, pixels_of=top, row=c)
    return gaps


def of_bins(tally: Tally, at_one: str) -> dict[tuple[Any, ...], Gaps]:
    """Return the gaps of the ECE, MCE and ACE of a tally of confidence bins."""
    bins = _BinsOf(tally, at_one)
    return {
        ("ece",): _gaps(bins, pixels_of=tally),
        ("mce",): _gaps(bins, pixels_of=tally, of_each=True, largest=True),
        ("ace",): _gaps(bins, pixels_of=tally, of_each=True),
    }


class _BinsOf:
    """The bins of a tally's states, with a cache of the last ones for further scores."""

    def __init__(self, tally: Tally, at_one: str) -> None:
        self._tally, self._at_one = tally, at_one
        self._last: tuple[SetStates, Binned] | None = None

    def __call__(self, states: Mapping[Tally, SetStates]) -> Binned:
        own, last = states[self._tally], self._last
        if last is None or last[0] is not own:
            self._last = last = own, Binned.of(own, self._at_one)
        return last[1]


def _gaps(
    bins_of: _BinsOf,
    *,
    pixels_of: Tally,
    over: int = 1,
    row: int | None = None,
    of_each: bool = False,
    largest: bool = False,
) -> Gaps:
    """Return the gaps of bins, `over` so many classes or of one `row`.

    `of_each`: relative to the pixels of the bin; `largest`: the score is the greatest of them, not
    their mean."""

    def binned(states: Mapping[Tally, SetStates]) -> Binned:
        bins = bins_of(states)
        return bins if row is None else bins.row(row)

    def signed(states: Mapping[Tally, SetStates]) -> Floats:
        gaps = binned(states).signed
        return gaps.reshape(len(gaps), -1)

    def weights(states: Mapping[Tally, SetStates]) -> Floats:
        counts = binned(states).count
        counts = counts.reshape(len(counts), -1)
        if of_each:
            bins = 1 if largest else (counts > 0).sum(axis=1, keepdims=True)
            return np.where(counts > 0, 1 / np.maximum(counts * bins, 1), 0.0)
        pixels = np.maximum(states[pixels_of]["count"].sum(axis=-1), 1)
        return np.broadcast_to(1 / (pixels * over)[:, None], counts.shape)

    return Gaps(signed, weights, largest)
