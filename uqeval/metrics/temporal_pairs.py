"""One pair of frames: its scores, from its state of `PairCounts` (and of `FrameCounts`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.temporal_scores as ts
from uqeval.arrays import Array, State
from uqeval.errors import number_of
from uqeval.metrics._columns import as_number, as_numbers
from uqeval.metrics._contract import set_value

if TYPE_CHECKING:
    from uqeval.metrics._dataset_info import VideoInfo
    from uqeval.metrics.temporal_settings import TemporalSettings

#: What the entries of `pixels` in a state of `PairCounts` are.
PIXELS = ("total", "counted", "out", "unknown", "void", "occluded")


def class_counts(state: State, field: str, occluded: bool | None = None) -> Array:
    """Return pixels of each class in either map and in both [3, class]; without occluded pixels if
    `occluded` is False."""
    counts: Array = state[field]
    if field == "counts":
        counts = counts[0] if occluded is False else counts.sum(axis=0)
    return counts


def tc(settings: TemporalSettings, counts: Array) -> Array:
    """Return TC_t [set] from pixels by class [3, set, class] (Varghese et al. 2020, eq. 3); NaN
    without a class."""
    current, warped, intersection = counts
    return ts.mean_iou(current, warped, intersection, settings.absent, settings.least_pixels)


def pair_record(
    state: State, settings: TemporalSettings, class_names: Sequence[str]
) -> dict[str, Any]:
    """Return the scores of one pair of frames, from its state of `PairCounts`."""
    moved, identity = class_counts(state, "counts"), class_counts(state, "still")
    pixels = {name: int(n) for name, n in zip(PIXELS, state["pixels"].tolist(), strict=True)}
    total, compared = pixels["total"], pixels["counted"]
    record: dict[str, Any] = {}
    reason = "no pixel of the pair is counted"
    least = settings.least_pixels
    too_few = f"no class has {number_of(least, 'pixel')}" if least else reason
    no_warp = as_number(tc(settings, identity))
    set_value(record, "tc", as_number(tc(settings, moved)), too_few if compared else reason)
    set_value(record, "tc_no_warp", no_warp, too_few if identity[0].any() else reason)
    set_value(record, "frequency_weighted", as_number(ts.frequency_weighted(*moved)), reason)
    set_value(record, "pixel_agreement", as_number(ts.agreement(*moved)), reason)
    empty = "no pixel of the frame is in the region"  # without regions there are pixels
    for name, count in (("coverage", compared), ("out_of_frame", pixels["out"])):
        set_value(record, name, count / total if total else None, empty)
    if settings.occlusion == "fb":
        visible = class_counts(state, "counts", occluded=False)
        tc_visible = as_number(tc(settings, visible))
        set_value(record, "tc_visible", tc_visible, too_few if visible[0].any() else reason)
        for name, count in (
            ("coverage_visible", int(visible[0].sum())),
            ("occluded", pixels["occluded"]),
        ):
            set_value(record, name, count / total if total else None, empty)
    squares = state["squares"].tolist()
    for name, square in zip(("mse_warp", "mse_identity"), squares, strict=True):
        set_value(record, name, square / compared if compared else None, reason)
    flow = {name: float(state[name][0]) for name in ("flow_median", "flow_p99", "flow_max")}
    for name, value in flow.items():
        set_value(record, name, value if value >= 0 else None, "no pixel has a known flow")
    class_ious = as_numbers(ts.ious(*moved))
    record["iou"] = {class_names[c]: iou for c, iou in enumerate(class_ious) if iou is not None}
    record["classes"] = len(record["iou"])
    return record


def flag_cuts(items: list[dict[str, Any]], sequences: Sequence[str]) -> None:
    """Add to each item whether it looks like a scene cut, next to the median of its sequence."""
    values_by_sequence: dict[str, list[float]] = {}
    for item, sequence in zip(items, sequences, strict=True):
        if item["mse_warp"] is not None:
            values_by_sequence.setdefault(sequence, []).append(item["mse_warp"])
    medians = {
        sequence: statistics.median(values) for sequence, values in values_by_sequence.items()
    }
    for item, sequence in zip(items, sequences, strict=True):
        median = medians.get(sequence, 0.0)
        item["cut"] = ts.is_cut(item["mse_warp"], item["mse_identity"], median)


def frame_scores(state: State) -> list[float | None]:
    """Return mIoU of frame t, and of the frame before it where that begins a run (else
    undefined).
    """
    return [as_number(ts.mean_iou(*class_counts(state, name))) for name in ("now", "before")]


def add_frames(
    items: list[dict[str, Any]], states: list[State], video: VideoInfo
) -> list[tuple[str, float | None]]:
    """Add mIoU_t to the items; return those of the frames that begin a run, with its sequence."""
    first = []
    columns = zip(items, states, video.first, video.sequences, strict=True)
    for item, state, begins, sequence in columns:
        now, before = frame_scores(state)
        set_value(item, "miou", now, "the frame has no labels")
        if begins:
            first.append((sequence, before))
    return first
