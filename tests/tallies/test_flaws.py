"""Forged states whose counts no data can give, each refused with its reason."""

from __future__ import annotations

from typing import Any

import laws
import pytest

from uqeval.tallies._contract import Tally

_MANY = 10**6
#: By class of a tally: a field, the place of a number in it, the forged number, and the reason.
FORGED: list[tuple[str, str, Any, int, str]] = [
    ("AccuracyByUncertainty", "correct", (0, 0), _MANY, "more right pixels than pixels"),
    ("AnnotatorDistances", "items", 1, _MANY, "more items than labelled pixels"),
    ("AnnotatorDistances", "sums", 0, _MANY, "distances above 1"),
    ("AnnotatorVotes", "counts", 3, _MANY, "more agreeing pairs of annotators than pairs"),
    ("AnnotatorVotes", "votes", (), 0, "fewer votes than pixels"),
    ("DepthSums", "bad", 0, _MANY, "more depths of 0 or less than pixels"),
    ("DepthSums", "close", 0, _MANY, "more close depths than pixels"),
    ("ScaledErrors", "count", 1, _MANY, "more pixels with a standard deviation of 0 than pixels"),
    ("ErrorSums", "sums", (), -1, "a negative sum of errors or of standard deviations"),
    ("ItemCurves", "kept", -1, _MANY, "more pixels kept after a removal than before"),
    ("ItemErrors", "count", (), _MANY, "more pixels kept than there are"),
    ("PairCounts", "pixels", -1, _MANY, "more pixels counted than there are"),
    ("FrameCounts", "now", (2, 0), _MANY, "more right pixels than labelled or predicted ones"),
    ("TrackCounts", "consistent", (), _MANY, "more consistent tracks than tracks"),
    ("ItemFailure", "counts", 1, _MANY, "more wrong or right pixels than pixels"),
    ("ItemFailure", "pairs", 0, _MANY, "more pairs than wrong and right pixels make"),
]


@pytest.mark.parametrize(("name", "field", "at", "value", "reason"), FORGED)
def test_forged(name: str, field: str, at: Any, value: int, reason: str) -> None:
    tally: Tally = next(own for own in laws.EXAMPLES if type(own).__name__ == name)
    # The law's maps of tracks are any numbers.
    state = tally.empty() if name == "TrackCounts" else laws.folded(tally)
    state[field][at] = value
    for refuse in (tally.check, lambda own: tally.load(tally.pack(own))):
        with pytest.raises(ValueError, match=reason):
            refuse(state)
