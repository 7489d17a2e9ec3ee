"""Consistency along long tracks: C26 of Varghese et al. 2020, over merged counts of tracks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State, np
from uqeval.maps.names import TRACK_LENGTHS
from uqeval.metrics._columns import SetColumns, SetStates, as_number, as_numbers, of_rows, over
from uqeval.metrics._contract import Metric, set_value

if TYPE_CHECKING:
    from uqeval.tallies.temporal import TrackCounts


def consistency(consistent: Array, tracks: Array) -> Array:
    """Return the share of tracks along which the prediction keeps one label; NaN without tracks."""
    return over(consistent, tracks)


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
    """Return the record of a state of whole runs of frames.

    Lengths are in frames; a class is a track's first label; `unreliable` is the share of pixels
    with unreliable flow.
    """
    (metric,) = METRICS
    values = columns(SetStates.of_one(state))
    scores: dict[str, Any] = {}
    for name, reason in (
        ("consistency", metric.undefined), ("tracks", ""), ("consistent", ""),
        ("mean_length", metric.undefined), ("unreliable", "there is no pair of frames"),
        ("dropped", ""),
    ):  # fmt: skip
        (value,) = as_numbers(values[name,])
        set_value(scores, name, value, reason)
    scores["lengths"] = [
        {"from": low, "to": high, "tracks": n}
        for low, high, n in zip(
            TRACK_LENGTHS,
            [*(low - 1 for low in TRACK_LENGTHS[1:]), None],
            state["lengths"].tolist(),
            strict=True,
        )
    ]
    shares = as_numbers(consistency(state["consistent"], state["tracks"]))
    scores["per_class"] = [
        {"class": c, "name": class_names[c], "tracks": n, "consistency": share}
        for c, (n, share) in enumerate(zip(state["tracks"].tolist(), shares, strict=True))
    ]
    scores["rules"] = asdict(tally.rules)
    return scores


def consistency_record(states: Sequence[State]) -> dict[str, Any]:
    """Return the consistency of the tracks that end in some pairs, such as those of a sequence."""
    (metric,) = METRICS
    tracks, consistent = (
        np.array([state[name].sum() for state in states]).sum() for name in ("tracks", "consistent")
    )
    scores: dict[str, Any] = {}
    share = as_number(metric.formula(consistent, tracks))
    set_value(scores, "consistency", share, metric.undefined)
    return scores | {"tracks": int(tracks), "consistent": int(consistent)}


def columns(states: SetStates) -> SetColumns:
    """Return the scores of tracks of several sets, as `record` names them."""
    per_class, consistent = states["tracks"], states["consistent"]
    tracks, good = per_class.sum(axis=1), consistent.sum(axis=1)
    points, unreliable, pixels, dropped = (
        states[name][:, 0] for name in ("points", "unreliable", "pixels", "dropped")
    )
    return {
        ("consistency",): consistency(good, tracks),
        ("tracks",): tracks,
        ("consistent",): good,
        ("mean_length",): over(points, tracks),
        ("unreliable",): over(unreliable, pixels),
        ("dropped",): dropped,
    } | of_rows(
        {"tracks": per_class, "consistency": consistency(consistent, per_class)},
        range(per_class.shape[1]),
    )


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
