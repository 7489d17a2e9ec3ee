"""Counts of long tracks and of the labels that one model gives along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Maps, State
from uqeval.maps.names import TrackRules, of_tracks, track_columns
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field


@dataclass(frozen=True)
class TrackCounts(Tally):
    """The counts of `maps.names.track_columns` for one `model` along one `flow`.

    The item is a pair of frames; its map is the int64 [model, column] array that
    `maps.tracks.Tracker.step` returned, and a track is counted in the pair with which it ends.
    """

    id: ClassVar[str] = "tracks"
    carries_on: ClassVar[bool] = True
    flow: str
    model: int
    classes: int
    rules: TrackRules

    @property
    def inputs(self) -> tuple[str, ...]:
        return (of_tracks(self.flow, self.rules),)

    @property
    def fields(self) -> dict[str, Field]:
        return {
            name: Field((width,), "int64") for name, width in track_columns(self.classes).items()
        }

    def flaw(self, state: State) -> str | None:
        if (state["consistent"] > state["tracks"]).any():
            return "more consistent tracks than tracks"
        unreliable = (state["unreliable"] > state["pixels"]).any()
        return "more unreliable pixels than pixels" if unreliable else None

    def update(self, state: State, maps: Maps) -> None:
        (name,) = self.inputs
        row = maps[name][self.model]
        at = 0
        for values in state.values():
            values += row[at : at + values.size]
            at += values.size
