"""Scores of one pair of frames; means, pooled scores and correlations over pairs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.temporal_scores as ts
import uqeval.metrics.track_scores as track_scores
from uqeval.arrays import Array, State, np
from uqeval.errors import number_of
from uqeval.metrics._columns import SetColumns, SetStates, as_number, as_numbers, of_rows
from uqeval.metrics._contract import set_value
from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo

if TYPE_CHECKING:
    from uqeval.metrics.temporal_settings import TemporalSettings

#: What the entries of `pixels` in a state of `PairCounts` are.
PIXELS = ("total", "counted", "out", "unknown", "void", "occluded")


def tc(settings: TemporalSettings, counts: Array) -> Array:
    """Return TC_t [set] from pixels by class [3, set, class] (Varghese et al. 2020, eq. 3); NaN
    without a class."""
    current, warped, intersection = counts
    return ts.mean_iou(current, warped, intersection, settings.absent, settings.least_pixels)


def pair_record(
    state: State, settings: TemporalSettings, class_names: Sequence[str]
) -> dict[str, Any]:
    """Return the scores of one pair of frames, from its state of `PairCounts`."""
    moved, identity = state["counts"].sum(axis=0), state["still"]
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
        visible = state["counts"][0]
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
    return [as_number(ts.mean_iou(*state[name])) for name in ("now", "before")]


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


def mean_scores(
    items: Sequence[dict[str, Any]], states: Sequence[State], retained: Sequence[bool],
    settings: TemporalSettings,
) -> dict[str, Any]:  # fmt: skip
    """Return the means over pairs, and the score of pooled counts."""
    items_retained = [item for item, keep in zip(items, retained, strict=True) if keep]
    means = {
        name: ts.mean(item[field] for item in items_retained)
        for name, field in mean_fields(settings).items()
    }
    order = dict.fromkeys(("mtc", "mtc_no_warp", "mtc_pooled"))
    record: dict[str, Any] = {}
    put_all(record, order | means | pooled_scores(settings, pooled(states, retained)))
    return record


#: Scores of pooled counts, and no means, if `average` is set.
_POOLED = ("mtc", "mtc_no_warp", "occluded.mtc")


def mean_fields(settings: TemporalSettings) -> dict[str, str]:
    """Return which scores are the mean of which field of the items' records."""
    means = {"mtc": "tc", "mtc_no_warp": "tc_no_warp"}
    means["mtc_frequency_weighted"] = "frequency_weighted"
    for name in ("pixel_agreement", "coverage", "out_of_frame", "mse_warp", "mse_identity",
                 "flow_median", "flow_p99"):  # fmt: skip
        means[name] = name
    if settings.occlusion == "fb":
        means |= {
            "occluded.mtc": "tc_visible",
            "occluded.coverage": "coverage_visible",
            "occluded.share": "occluded",
        }
    if settings.average == "pooled":
        means = {name: field for name, field in means.items() if name not in _POOLED}
    return means


def pooled(states: Sequence[State], retained: Sequence[bool]) -> SetStates:
    """Return the counts of all retained pairs together, as of one set."""
    kept = [state for state, keep in zip(states, retained, strict=True) if keep]
    names = ("counts", "still")
    return SetStates.of_one(
        {name: sum((own[name] for own in kept), np.zeros_like(states[0][name])) for name in names}
    )


def pooled_scores(settings: TemporalSettings, pairs: SetStates) -> dict[str, float | None]:
    """Return the scores of `pooled` counts: `mtc_pooled`, and what is to be pooled."""
    scores = _pooled_columns(settings, pairs)
    return {".".join(place): as_number(column[0]) for place, column in scores.items()}


def put_all(record: dict[str, Any], values: Mapping[str, float | None]) -> None:
    """Add scores; `occluded.x` as x of the record `occluded`."""
    for name, value in values.items():
        parent, _, last = name.rpartition(".")
        set_value(record.setdefault(parent, {}) if parent else record, last, value, ts.NO_PAIR)


def _pooled_columns(settings: TemporalSettings, pairs: SetStates) -> SetColumns:
    """Return the scores of pooled counts of `PairCounts`, without those of classes."""
    results: SetColumns = {("mtc_pooled",): tc(settings, _by_class(pairs))}
    if settings.average == "pooled":
        results["mtc",] = results["mtc_pooled",]
        results["mtc_no_warp",] = tc(settings, np.moveaxis(pairs["still"], 1, 0))
        if settings.occlusion == "fb":
            visible = np.moveaxis(pairs["counts"][:, 0], 1, 0)
            results["occluded", "mtc"] = tc(settings, visible)
    return results


def _by_class(pairs: SetStates) -> Array:
    """Return pixels of each class in either map and in both [3, set, class]."""
    return np.moveaxis(pairs["counts"].sum(axis=1), 1, 0)


def columns(settings: TemporalSettings, pairs: SetStates, tracks: SetStates | None) -> SetColumns:
    """Return the scores of pooled counts of `PairCounts`, and of `TrackCounts` if there are any."""
    counts, results = _by_class(pairs), _pooled_columns(settings, pairs)
    rows = {"iou": ts.ious(*counts), "pixels": counts[0], "warped_pixels": counts[1]}
    results |= of_rows(rows, range(counts.shape[2]))
    if tracks is not None:
        results |= {
            ("tracks", *place): column for place, column in track_scores.columns(tracks).items()
        }
    return results


def per_class(pairs: SetStates, info: DatasetInfo) -> list[dict[str, Any]]:
    """Return IoU and pixels of each class from `pooled` counts; unnamed classes only if present."""
    has_names = info.video is not None and info.video.named
    counts = _by_class(pairs)[:, 0]
    rows = []
    class_rows = zip(as_numbers(ts.ious(*counts)), *counts[:2].tolist(), strict=True)
    for c, (iou, current_pixels, before) in enumerate(class_rows):
        if iou is None and not has_names:
            continue
        row: dict[str, Any] = {"class": c, "name": info.class_names[c]}
        set_value(row, "iou", iou, "the class is in neither map")
        rows.append(row | {"pixels": current_pixels, "warped_pixels": before})
    return rows


def sequence_rows(
    items: Sequence[dict[str, Any]], retained: Sequence[bool], states: Sequence[State],
    settings: TemporalSettings, video: VideoInfo, first: Sequence[tuple[str, float | None]],
    tracks: Sequence[State],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return one record a sequence: its frames and gaps, and the scores of its kept pairs.

    `first`: mIoU of the frames that begin a run, each with its sequence. `tracks`: states of the
    tracks of each pair; empty without tracks.
    """
    rows = []
    for row in video.rows:
        in_sequence = [name == row["sequence"] for name in video.sequences]
        selected = [
            is_member and keep for is_member, keep in zip(in_sequence, retained, strict=True)
        ]
        own_items = [item for item, is_member in zip(items, in_sequence, strict=True) if is_member]
        record = dict(row) | mean_scores(items, states, selected, settings)
        record["cuts"] = sum(item["cut"] for item in own_items)
        if video.against:
            begins = [miou for sequence, miou in first if sequence == row["sequence"]]
            values = [*begins, *(item["miou"] for item in own_items)]
            set_value(record, "miou_mean", ts.mean(values), "no frame has labels")
            record["correlation"] = correlation(items, selected, video.against)
        if tracks:
            own_tracks = [t for t, is_member in zip(tracks, in_sequence, strict=True) if is_member]
            record["tracks"] = track_scores.consistency_record(own_tracks)
        rows.append(record)
    return rows


def correlation(
    items: Sequence[dict[str, Any]], retained: Sequence[bool], truth_name: str | None
) -> dict[str, Any]:
    """Return Pearson's r between TC_t and mIoU_t over the retained pairs that have both."""
    pairs = [
        (item["tc"], item["miou"])
        for item, keep in zip(items, retained, strict=True)
        if keep and item["tc"] is not None and item["miou"] is not None
    ]
    r, reason = ts.correlation(pairs)
    record: dict[str, Any] = {}
    set_value(record, "r", r, reason)
    return record | {"pairs": len(pairs), "against": truth_name}
