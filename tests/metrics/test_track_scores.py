"""Scores of tracks from their merged counts."""

from __future__ import annotations

import numpy as np

from uqeval.maps.names import TrackRules
from uqeval.metrics.track_scores import METRICS, pair_record, record
from uqeval.tallies.temporal import TrackCounts

TALLY = TrackCounts("dis", 0, 2, TrackRules())
NAMES = ("road", "sky")


def test_scores() -> None:
    row = [40, 0, 30, 0, 100, 20, 10, 5, 4, 0, 0, 0, 0, 0, 0, 0, 1, 7, 50, 5, 8, 64, 41]
    state = TALLY.state_of({TALLY.inputs[0]: np.array([row])})
    found = record(state, TALLY, NAMES)
    lengths = found.pop("lengths")
    assert found == {
        "consistency": 0.75, "tracks": 40, "consistent": 30, "mean_length": 2.5,
        "unreliable": 0.125, "dropped": 7,
        "per_class": [
            {"class": 0, "name": "road", "tracks": 40, "consistency": 0.75},
            {"class": 1, "name": "sky", "tracks": 0, "consistency": None},
        ],
        "rules": {
            "step": 8, "min_length": 2, "structure": True,
            "round_trip_slope": 0.01, "round_trip_offset": 0.5,
            "boundary_slope": 0.01, "boundary_offset": 0.002,
        },
    }  # fmt: skip
    assert lengths[0] == {"from": 2, "to": 2, "tracks": 20}
    assert lengths[3] == {"from": 5, "to": 8, "tracks": 4}
    assert lengths[-2:] == [
        {"from": 513, "to": 1024, "tracks": 0},
        {"from": 1025, "to": None, "tracks": 1},
    ]
    assert sum(bin_["tracks"] for bin_ in lengths) == 40
    assert pair_record(state) == {"tracks_alive": 50, "changed": 0.1}


def test_no_tracks_have_no_consistency() -> None:
    found = record(TALLY.empty(), TALLY, NAMES)
    reasons = {k: v for k, v in found.items() if k.endswith("_reason")}
    assert reasons == {
        "consistency_reason": METRICS[0].undefined,
        "mean_length_reason": METRICS[0].undefined,
        "unreliable_reason": "there is no pair of frames",
    }
    assert found["consistency"] is found["mean_length"] is found["unreliable"] is None
    expected = {"tracks_alive": 0, "changed": None, "changed_reason": "no track is alive"}
    assert pair_record(TALLY.empty()) == expected
