"""The family `temporal`, command `tc`: settings, presets, and the plan from tallies to a section.

Varghese et al. 2020: TC_t is the mean IoU between the prediction of frame t and that of frame t-1
warped by the optical flow; mTC its mean over pairs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.maps.names import TrackRules, void_of
from uqeval.metrics import temporal_columns, track_scores
from uqeval.metrics import temporal_scores as ts
from uqeval.metrics._again import Again
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, VideoFacts, variants
from uqeval.metrics._plan import Plan, Section
from uqeval.metrics.temporal_means import (
    correlation,
    mean_fields,
    mean_scores,
    per_class,
    pooled_scores,
    put_all,
    sequence_rows,
)
from uqeval.metrics.temporal_pairs import (
    PIXELS,
    add_frames,
    flag_cuts,
    frame_scores,
    pair_record,
)
from uqeval.metrics.temporal_settings import TemporalSettings

if TYPE_CHECKING:
    from uqeval.tallies import FrameCounts, PairCounts, Tally, TrackCounts
    from uqeval.tallies._contract import State


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, TemporalSettings]:
    video = _video(facts)
    models = list(video.models)
    found = variants("temporal", TemporalSettings, {"model": models, **options}, ("model", "flow"))
    if not video.named and any(own.absent == "zero" for own in found.values()):
        raise UsageError(
            "--absent zero is a mean over all classes, and nobody says how many there are; give "
            "--classes."
        )
    return found


def _video(facts: Facts) -> VideoFacts:
    assert facts.video is not None
    return facts.video


@dataclass(frozen=True)
class Tallies:
    """What the plan of one variant counts."""

    pairs: PairCounts
    frames: FrameCounts | None
    tracks: TrackCounts | None

    @property
    def asked(self) -> tuple[Any, ...]:
        """Those that there are."""
        return tuple(tally for tally in (self.pairs, self.frames, self.tracks) if tally)


def tallies_of(settings: TemporalSettings, facts: Facts) -> Tallies:
    """The tallies of one variant."""
    from uqeval.tallies import FrameCounts, PairCounts, TrackCounts

    video = _video(facts)
    model, void = video.models.index(settings.model), void_of(facts.classes)
    method = settings.method.id
    pairs = PairCounts(
        method, model, facts.classes, void, occlusion=settings.occlusion == "fb",
        clamp=settings.out_of_frame == "clamp", mirror=settings.grid == "previous",
    )  # fmt: skip
    frames = FrameCounts(model, facts.classes, void) if video.against else None
    tracks = None
    if settings.tracks:
        rules = TrackRules(
            step=settings.track_step, min_length=settings.track_length,
            structure=not settings.track_everywhere,
        )  # fmt: skip
        tracks = TrackCounts(method, model, facts.classes, rules)
    return Tallies(pairs, frames, tracks)


def _maps(settings: TemporalSettings, facts: Facts) -> set[str]:
    return {name for tally in tallies_of(settings, facts).asked for name in tally.inputs}


def plan(settings: TemporalSettings, facts: Facts) -> Plan:
    """Count once; return the section of one variant."""
    video = _video(facts)
    tallies = tallies_of(settings, facts)
    counted = yield tallies.asked
    states = [tallies.pairs.unpack(data) for data in counted[tallies.pairs].items]
    items = [pair_record(state, settings, facts.class_names) for state in states]
    for item, before, sequence in zip(items, video.before, video.sequences, strict=True):
        item |= {"previous": before, "sequence": sequence}
    flag_cuts(items, video.sequences)
    if tallies.frames:
        own = [tallies.frames.unpack(data) for data in counted[tallies.frames].items]
        first = add_frames(items, own, video)
    kept = [not (settings.drop_cuts and item["cut"]) for item in items]

    results: dict[str, Any] = {"flow": video.flow_record(settings.method.id)}
    results["model"] = settings.model
    results |= _steps(video)
    results |= mean_scores(items, states, kept, settings)
    results |= {"pairs": len(items), "cuts": sum(item["cut"] for item in items)}
    results["gaps"] = sum(row["gaps"] for row in video.rows)
    results["per_class"] = per_class(states, kept, facts)
    results["sequences"] = sequence_rows(items, kept, states, settings, video)
    if tallies.frames:
        frames = [*first, *(item["miou"] for item in items)]
        put(results, "miou_mean", ts.mean(frames), "no frame has labels")
        results["correlation"] = correlation(items, kept, video.against)
    if tallies.tracks:
        total = counted[tallies.tracks].total
        results["tracks"] = _tracks(total, tallies.tracks, facts)
        for item, data in zip(items, counted[tallies.tracks].items, strict=True):
            item |= track_scores.pair_record(tallies.tracks.unpack(data))
    return Section(
        results, items, _said(settings, results["flow"]), _numerics(states, items),
        _warnings(results, items, video), {"cuts": results["cuts"]},
    )  # fmt: skip


def _again(
    key: str, settings: TemporalSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    """Means over pairs and scores of pooled counts; which pairs look like cuts is held fixed.

    A frame that begins a run is drawn with the pair that it begins. Tracks go on through cuts.
    """
    video, tallies = _video(facts), tallies_of(settings, facts)
    tracks, pairs, frames = tallies.tracks, tallies.pairs, tallies.frames

    def scores(states: Mapping[Tally, State]) -> dict[str, Any]:
        record: dict[str, Any] = {"model": settings.model}
        put_all(record, pooled_scores([states[pairs]], [True], settings))
        record["per_class"] = per_class([states[pairs]], [True], facts)
        if frames:
            record["correlation"] = {"against": video.against}
        if tracks:
            record["tracks"] = _tracks(states[tracks], tracks, facts)
        return record

    return {
        key: Again(
            (pairs, *((tracks,) if tracks else ())), scores,
            lambda states, wanted: temporal_columns.columns(
                settings, states[pairs], states[tracks] if tracks else None
            ),
            mean_fields(settings),
            {"correlation.r": ("tc", "miou")} if frames else {},
            "cut" if settings.drop_cuts else None, frozenset({pairs}),
            {"miou_mean": (frames, frame_scores)} if frames else {},
        )
    }  # fmt: skip


def _said(settings: TemporalSettings, flow: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a report; the library of the flow is a part of the number, too."""
    method = settings.method
    library = " ".join(str(flow[name]) for name in ("library", "version") if name in flow)
    return dataclasses.asdict(settings) | {
        "flow": method.id,
        "flow_parameters": dict(method.parameters),
        "flow_library": library or None,
    }


def _steps(video: VideoFacts) -> dict[str, Any]:
    steps = {row["step"] for row in video.rows if row["pairs"]}
    record: dict[str, Any] = {}
    put(record, "step", steps.pop() if len(steps) == 1 else None, "differs between the sequences")
    return record


def _tracks(state: State, tally: TrackCounts, facts: Facts) -> dict[str, Any]:
    record = track_scores.record(state, tally, facts.class_names)
    if not _video(facts).named:
        record["per_class"] = [row for row in record["per_class"] if row["tracks"]]
    return record


def _numerics(states: Sequence[State], items: Sequence[dict[str, Any]]) -> dict[str, int]:
    sums = [sum(int(s["pixels"][i]) for s in states) for i in range(len(PIXELS))]
    found = {f"pixels_{name}": n for name, n in zip(PIXELS, sums, strict=True)}
    return found | {"undefined": sum(item["tc"] is None for item in items)}


def _warnings(
    results: Mapping[str, Any], items: Sequence[Mapping[str, Any]], video: VideoFacts
) -> list[str]:
    found = []
    moving = [item for item in items if (item["mse_identity"] or 0.0) > ts.MOVING]
    warped, still = (
        ts.mean(item[name] for item in moving) for name in ("mse_warp", "mse_identity")
    )
    if warped is not None and still is not None and warped >= still:
        found.append(
            f"THE WARP IS WORSE THAN NO WARP over the {len(moving)} moving pairs: squared "
            f"photometric error {warped:.5f}, without a warp {still:.5f}. The flow points the "
            "wrong way, has x and y swapped or the wrong scale, or has failed: mTC means nothing "
            "here. A flow lies on frame t's grid and points to frame t-1, (dx, dy) in pixels."
        )
    undefined = sum(item["tc"] is None for item in items)
    if undefined:
        found.append(f"{undefined} of {len(items)} pairs have no TC_t: see their `tc_reason`.")
    cuts = [item for item in items if item["cut"]]
    if cuts:
        found.append(
            f"{len(cuts)} of {len(items)} pairs look like scene cuts (`cut` in the report's "
            "items); --drop-cuts leaves them out of the means."
        )
    if results["gaps"]:
        found.append(
            f"{results['gaps']} gap{'s' * (results['gaps'] != 1)} between the numbers of frames: "
            "no pair there, none is bridged."
        )
    if video.unlabelled:
        found.append(
            f"{video.unlabelled} of {video.frames} frames have no labels: mIoU_t and r are over "
            "the others."
        )
    return found


FAMILY = Family(
    "tc",
    (*ts.METRICS, *track_scores.METRICS),
    _settings,
    _maps,
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("video",),
    key="temporal",
    again=_again,
    settings_type=TemporalSettings,
    label="Temporal consistency",
    words={"tc": "TC", "iou": "IoU", "miou": "mIoU"},
    of_items=("tc", "miou"),
)
