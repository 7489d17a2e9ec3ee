"""Consistency along long tracks: C26 of Varghese et al. 2020, over merged counts of tracks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import TRACK_LENGTHS
from uqeval.metrics._contract import Metric, set_value

if TYPE_CHECKING:
    from uqeval.tallies import TrackCounts
    from uqeval.tallies._fields import State


def consistency(consistent: int, tracks: int) -> float | None:
    """Return the share of tracks along which the prediction keeps one label; undefined without
    tracks.
    """
    return consistent / tracks if tracks else None


METRICS = (
    Metric("temporal", "tracks.consistency", "fraction", "higher", (0.0, 1.0),
           "Varghese et al. 2020, §4.3; Sundaram et al. 2010",
           "no track is long enough without touching void", consistency,
           label="track consistency", column="tracks C26",
           meaning="Share of long-term tracks along which the prediction keeps its class.",
           advice="Look at the tracks that change their class.",
           interval="logit"),
)  # fmt: skip


def record(state: State, tally: TrackCounts, class_names: Sequence[str]) -> dict[str, Any]:
    """Return the record of a state that holds whole runs of frames.

    Lengths are in frames; a class is a track's first label; `unreliable` is the share of pixels
    whose flow is not to be followed.
    """
    (metric,) = METRICS
    by_class = list(zip(state["consistent"].tolist(), state["tracks"].tolist(), strict=True))
    tracks = sum(n for _, n in by_class)
    consistent = sum(k for k, _ in by_class)
    pixels = _only(state, "pixels")
    scores: dict[str, Any] = {}
    set_value(scores, "consistency", metric.formula(consistent, tracks), metric.undefined)
    scores |= {"tracks": tracks, "consistent": consistent}
    length = _only(state, "points") / tracks if tracks else None
    set_value(scores, "mean_length", length, metric.undefined)
    scores["lengths"] = [
        {"from": low, "to": high, "tracks": n}
        for low, high, n in zip(
            TRACK_LENGTHS,
            [*(low - 1 for low in TRACK_LENGTHS[1:]), None],
            state["lengths"].tolist(),
            strict=True,
        )
    ]
    unreliable = _only(state, "unreliable") / pixels if pixels else None
    set_value(scores, "unreliable", unreliable, "there is no pair of frames")
    scores["dropped"] = _only(state, "dropped")
    scores["per_class"] = [
        {"class": c, "name": class_names[c], "tracks": n, "consistency": consistency(k, n)}
        for c, (k, n) in enumerate(by_class)
    ]
    scores["rules"] = asdict(tally.rules)
    return scores


def consistency_record(states: Sequence[State]) -> dict[str, Any]:
    """Return the consistency of the tracks that end in some pairs, such as those of a sequence."""
    (metric,) = METRICS
    tracks, consistent = (
        sum(int(state[name].sum()) for state in states) for name in ("tracks", "consistent")
    )
    scores: dict[str, Any] = {}
    set_value(scores, "consistency", metric.formula(consistent, tracks), metric.undefined)
    return scores | {"tracks": tracks, "consistent": consistent}


def pair_record(state: State) -> dict[str, Any]:
    """Return the record of one pair: tracks that reach its second frame, and the share that
    changed.
    """
    alive_counts = _only(state, "alive")
    scores: dict[str, Any] = {"tracks_alive": alive_counts}
    changed = _only(state, "changed") / alive_counts if alive_counts else None
    set_value(scores, "changed", changed, "no track is alive")
    return scores


def _only(state: State, name: str) -> int:
    return int(state[name][0])
