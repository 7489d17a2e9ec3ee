"""The family `temporal`, command `tc`: settings, presets, and the plan from tallies to a section.

Varghese et al. 2020: TC_t is the mean IoU between the prediction of frame t and that of frame t-1
warped by the optical flow; mTC its mean over pairs.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.maps.flow_method import FlowMethod, flow_method
from uqeval.maps.names import TrackRules, void_of
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import temporal_scores as ts
from uqeval.metrics import track_scores
from uqeval.metrics._again import Again
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, VideoFacts, variants
from uqeval.metrics._plan import Plan, Section

if TYPE_CHECKING:
    from uqeval.tallies import FrameCounts, PairCounts, Tally, TrackCounts
    from uqeval.tallies._contract import State

#: Pixels of each class here, there, and in both.
Three = tuple[list[int], list[int], list[int]]

#: What each definition in use changes of the defaults, which are those of the paper. Both codes
#: warp frame t back to t-1 and pool the counts of all pairs; neither can be reproduced whole:
#: one warps half a pixel off, the other interpolates class ids.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "vspw": {"grid": "previous", "average": "pooled", "absent": "current"},
    "etc": {"grid": "previous", "average": "pooled", "absent": "zero", "out_of_frame": "clamp"},
}
CHOICES = {
    "occlusion": ("none", "fb"),
    "absent": ("exclude", "zero", "current"),
    "average": ("pairs", "pooled"),
    "grid": ("current", "previous"),
    "out_of_frame": ("exclude", "clamp"),
    "definition": tuple(DEFINITIONS),
}


@dataclass(frozen=True)
class TemporalSettings:
    """Choices behind a temporal consistency; the defaults are those of Varghese et al. 2020.

    `flow`: the method, as `uqeval.maps.flow_method` reads it; `flow_scale`: the images are resized
    so before it. `occlusion` fb: scores without occluded pixels beside the others. `absent`,
    `least_pixels`: which classes a mean IoU is over. `average` of the pairs' scores, or one score
    of pooled counts. `grid`: whose pixels are compared, frame t's or frame t-1's. `out_of_frame`:
    pixels that come from outside leave the counts, or take the nearest at the border. `drop_cuts`:
    pairs that look like scene cuts leave the means. `tracks`: long-term tracks too, begun every
    `track_step` pixels, of at least `track_length` frames, on structure only unless
    `track_everywhere`.

    Raises `UsageError` for what cannot be.
    """

    flow: str = "farneback"
    flow_scale: float = 1.0
    model: str = ""
    occlusion: str = "none"
    absent: str = "exclude"
    least_pixels: int = 0
    average: str = "pairs"
    grid: str = "current"
    out_of_frame: str = "exclude"
    drop_cuts: bool = False
    tracks: bool = False
    track_step: int = 8
    track_length: int = 2
    track_everywhere: bool = False
    definition: str = "paper"

    def __post_init__(self) -> None:
        numbers.check_choices(self, CHOICES)
        flow_method(self.flow, self.flow_scale)
        for name, least in (("least_pixels", 0), ("track_step", 1), ("track_length", 2)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} {value}; expected a whole number from {least} on.")
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in ("track_step", "track_length", "track_everywhere"):
            if not self.tracks and getattr(self, name) != defaults[name]:
                raise UsageError(f"--{name.replace('_', '-')} is of --tracks; give that too.")

    @classmethod
    def of(cls, **given: Any) -> TemporalSettings:
        """Settings of a definition, with what is `given` in place of its choices."""
        found: TemporalSettings = numbers.of_definition(cls, DEFINITIONS, given)
        return found

    @property
    def method(self) -> FlowMethod:
        """The method of flow."""
        return flow_method(self.flow, self.flow_scale)


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
    _flag_cuts(items, video.sequences)
    if tallies.frames:
        own = [tallies.frames.unpack(data) for data in counted[tallies.frames].items]
        first = _add_frames(items, own, video)
    kept = [not (settings.drop_cuts and item["cut"]) for item in items]

    results: dict[str, Any] = {"flow": video.flow_record(settings.method.id)}
    results["model"] = settings.model
    results |= _steps(video)
    results |= _scores(items, states, kept, settings)
    results |= {"pairs": len(items), "cuts": sum(item["cut"] for item in items)}
    results["gaps"] = sum(row["gaps"] for row in video.rows)
    results["per_class"] = _per_class(states, kept, facts)
    results["sequences"] = _sequences(items, kept, states, settings, video)
    if tallies.frames:
        frames = [*first, *(item["miou"] for item in items)]
        put(results, "miou_mean", ts.mean(frames), "no frame has labels")
        results["correlation"] = _correlation(items, kept, video.against)
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

    Left out: `miou_mean`, whose frames are more than the pairs; and where cuts are dropped, scores
    of pooled counts, which hold the cuts' too.
    """
    video, tallies = _video(facts), tallies_of(settings, facts)
    tracks = tallies.tracks
    whole_counts = not settings.drop_cuts or fitted.get(key, {}).get("cuts") == 0
    counted: tuple[Any, ...] = (tallies.pairs,) if whole_counts else ()

    def scores(states: Mapping[Tally, State], whole: bool) -> dict[str, Any]:
        record: dict[str, Any] = {"model": settings.model}
        if counted:
            state = [states[tallies.pairs]]
            _put_all(record, _scores_of_pooled(state, [True], settings))
            record["per_class"] = _per_class(state, [True], facts)
        if tallies.frames:
            record["correlation"] = {"against": video.against}
        if tracks:
            record["tracks"] = _tracks(states[tracks], tracks, facts)
        return record

    return {
        key: Again(
            counted + ((tracks,) if tracks else ()), scores, _means(settings),
            {"correlation.r": ("tc", "miou")} if tallies.frames else {},
            "cut" if settings.drop_cuts else None,
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


def _three(state: State, part: str, occluded: bool | None = None) -> Three:
    """Pixels of each class here, there and in both; `occluded`: with those pixels or without."""
    counts = state[part]
    if part == "counts":
        counts = counts[0] if occluded is False else counts.sum(axis=0)
    here, there, both = counts.tolist()
    return here, there, both


def _tc(
    settings: TemporalSettings, here: Sequence[int], there: Sequence[int], both: Sequence[int]
) -> float | None:
    return ts.mean_iou(here, there, both, settings.absent, settings.least_pixels)


def pair_record(
    state: State, settings: TemporalSettings, class_names: Sequence[str]
) -> dict[str, Any]:
    """The scores of one pair of frames, from its state of `PairCounts`."""
    moved, still = _three(state, "counts"), _three(state, "still")
    pixels = {name: int(n) for name, n in zip(_PIXELS, state["pixels"].tolist(), strict=True)}
    total, counted = pixels["total"], pixels["counted"]
    record: dict[str, Any] = {}
    nothing = "no pixel of the pair is counted"
    few = f"no class has {settings.least_pixels} pixels" if settings.least_pixels else nothing
    put(record, "tc", _tc(settings, *moved), few if counted else nothing)
    put(record, "tc_no_warp", _tc(settings, *still), few if sum(still[0]) else nothing)
    put(record, "frequency_weighted", ts.frequency_weighted(*moved), nothing)
    put(record, "pixel_agreement", ts.agreement(*moved), nothing)
    record["coverage"] = counted / total
    record["out_of_frame"] = pixels["out"] / total
    if settings.occlusion == "fb":
        seen = _three(state, "counts", occluded=False)
        put(record, "tc_visible", _tc(settings, *seen), few if sum(seen[0]) else nothing)
        record["coverage_visible"] = sum(seen[0]) / total
        record["occluded"] = pixels["occluded"] / total
    squares = state["squares"].tolist()
    for name, square in zip(("mse_warp", "mse_identity"), squares, strict=True):
        put(record, name, square / counted if counted else None, nothing)
    flow = {name: float(state[name][0]) for name in ("flow_median", "flow_p99", "flow_max")}
    for name, value in flow.items():
        put(record, name, value if value >= 0 else None, "no pixel has a known flow")
    own = ts.ious(*moved)
    record["iou"] = {class_names[c]: iou for c, iou in enumerate(own) if iou is not None}
    record["classes"] = len(record["iou"])
    return record


_PIXELS = ("total", "counted", "out", "unknown", "void", "occluded")


def _flag_cuts(items: list[dict[str, Any]], sequences: Sequence[str]) -> None:
    by: dict[str, list[float]] = {}
    for item, sequence in zip(items, sequences, strict=True):
        if item["mse_warp"] is not None:
            by.setdefault(sequence, []).append(item["mse_warp"])
    medians = {sequence: statistics.median(values) for sequence, values in by.items()}
    for item, sequence in zip(items, sequences, strict=True):
        item["cut"] = ts.is_cut(
            item["mse_warp"], item["mse_identity"], medians.get(sequence, 0.0)
        )  # fmt: skip


def _add_frames(
    items: list[dict[str, Any]], states: list[State], video: VideoFacts
) -> list[float | None]:
    """Add mIoU_t to the items; return those of the frames that begin a run."""
    first = []
    for item, state, begins in zip(items, states, video.first, strict=True):
        put(item, "miou", ts.mean_iou(*_three(state, "now")), "the frame has no labels")
        if begins:
            first.append(ts.mean_iou(*_three(state, "before")))
    return first


def _steps(video: VideoFacts) -> dict[str, Any]:
    steps = {row["step"] for row in video.rows if row["pairs"]}
    record: dict[str, Any] = {}
    put(record, "step", steps.pop() if len(steps) == 1 else None, "differs between the sequences")
    return record


def _scores(
    items: Sequence[dict[str, Any]], states: Sequence[State], kept: Sequence[bool],
    settings: TemporalSettings,
) -> dict[str, Any]:  # fmt: skip
    """The means over pairs, and the score of pooled counts."""
    chosen = [item for item, keep in zip(items, kept, strict=True) if keep]
    pooled = _scores_of_pooled(states, kept, settings)
    means = {name: ts.mean(item[own] for item in chosen) for name, own in _means(settings).items()}
    order = dict.fromkeys(("mtc", "mtc_no_warp", "mtc_pooled"))
    record: dict[str, Any] = {}
    _put_all(record, order | means | pooled)
    return record


def _means(settings: TemporalSettings) -> dict[str, str]:
    """Which scores are the mean of which field of the items' records."""
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
        means = {name: own for name, own in means.items() if name not in _POOLED}
    return means


#: Scores of pooled counts where `average` says so: which counts, with occluded pixels or without.
_POOLED: dict[str, tuple[str, bool | None]] = {
    "mtc": ("counts", None),
    "mtc_no_warp": ("still", None),
    "occluded.mtc": ("counts", False),
}


def _scores_of_pooled(
    states: Sequence[State], kept: Sequence[bool], settings: TemporalSettings
) -> dict[str, float | None]:
    found = {"mtc_pooled": _tc(settings, *_pooled(states, kept, "counts"))}
    if settings.average == "pooled":
        for name, (part, occluded) in _POOLED.items():
            if name != "occluded.mtc" or settings.occlusion == "fb":
                found[name] = _tc(settings, *_pooled(states, kept, part, occluded))
    return found


def _put_all(record: dict[str, Any], values: Mapping[str, float | None]) -> None:
    """Add scores; `occluded.x` as x of the record `occluded`."""
    for name, value in values.items():
        parent, _, last = name.rpartition(".")
        put(record.setdefault(parent, {}) if parent else record, last, value, ts.NO_PAIR)


def _pooled(
    states: Sequence[State], kept: Sequence[bool], part: str, occluded: bool | None = None
) -> Three:
    """Counts of all kept pairs together."""
    here: list[list[int]] = []
    there: list[list[int]] = []
    both: list[list[int]] = []
    for state, keep in zip(states, kept, strict=True):
        if keep:
            for total, own in zip((here, there, both), _three(state, part, occluded), strict=True):
                total.append(own)
    return _added(here), _added(there), _added(both)


def _added(lists: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*lists, strict=True)]


def _per_class(states: Sequence[State], kept: Sequence[bool], facts: Facts) -> list[dict[str, Any]]:
    """IoU and pixels of each class, all pairs together; where nobody names them, of those there."""
    here, there, both = _pooled(states, kept, "counts")
    rows = []
    each = zip(ts.ious(here, there, both), here, there, strict=True)
    for c, (own, now, before) in enumerate(each):
        if own is None and not _video(facts).named:
            continue
        row: dict[str, Any] = {"class": c, "name": facts.class_names[c]}
        put(row, "iou", own, "the class is in neither map")
        rows.append(row | {"pixels": now, "warped_pixels": before})
    return rows


def _sequences(
    items: Sequence[dict[str, Any]], kept: Sequence[bool], states: Sequence[State],
    settings: TemporalSettings, video: VideoFacts,
) -> list[dict[str, Any]]:  # fmt: skip
    rows = []
    for row in video.rows:
        mine = [name == row["sequence"] for name in video.sequences]
        chosen = [own and keep for own, keep in zip(mine, kept, strict=True)]
        own_items = [item for item, own in zip(items, mine, strict=True) if own]
        record = dict(row) | _scores(items, states, chosen, settings)
        record["cuts"] = sum(item["cut"] for item in own_items)
        if video.against:
            record["correlation"] = _correlation(items, chosen, video.against)
        rows.append(record)
    return rows


def _correlation(
    items: Sequence[dict[str, Any]], kept: Sequence[bool], against: str | None
) -> dict[str, Any]:
    pairs = [
        (item["tc"], item["miou"])
        for item, keep in zip(items, kept, strict=True)
        if keep and item["tc"] is not None and item["miou"] is not None
    ]
    r, reason = ts.correlation(pairs)
    record: dict[str, Any] = {}
    put(record, "r", r, reason)
    return record | {"pairs": len(pairs), "against": against}


def _tracks(state: State, tally: TrackCounts, facts: Facts) -> dict[str, Any]:
    record = track_scores.record(state, tally, facts.class_names)
    if not _video(facts).named:
        record["per_class"] = [row for row in record["per_class"] if row["tracks"]]
    return record


def _numerics(states: Sequence[State], items: Sequence[dict[str, Any]]) -> dict[str, int]:
    sums = [sum(int(s["pixels"][i]) for s in states) for i in range(len(_PIXELS))]
    found = {f"pixels_{name}": n for name, n in zip(_PIXELS, sums, strict=True)}
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
)
