"""The family `temporal`, command `tc`: do predictions agree from frame to frame?

Varghese et al. 2020: TC_t is the mean IoU between the prediction of frame t and that of frame t-1
warped by the optical flow; mTC its mean over pairs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import uqeval.metrics.temporal_scores as ts
import uqeval.metrics.track_scores as track_scores
from uqeval.arrays import State
from uqeval.errors import UsageError
from uqeval.maps.names import TrackRules, void_of
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._columns import correlation as pearson
from uqeval.metrics._contract import (
    ClassBars,
    Column,
    Display,
    Panel,
    Record,
    RowTable,
    ScoreTable,
    set_value,
)
from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, variants
from uqeval.metrics._score_kinds import OfFields, OverItems
from uqeval.metrics.temporal_means import (
    PIXELS,
    add_frames,
    columns,
    correlation,
    flag_cuts,
    frame_scores,
    mean_fields,
    mean_scores,
    pair_record,
    per_class,
    pooled,
    pooled_scores,
    put_all,
    sequence_rows,
)
from uqeval.metrics.temporal_settings import TemporalSettings

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.temporal import FrameCounts, PairCounts, TrackCounts


def _seconds(record: Record, report: Report) -> float | None:
    """Return the seconds that the flow of a pair took."""
    seconds = report.timing.get("flow_seconds", {}).get(record["flow"]["id"])
    return None if seconds is None else float(seconds / record["pairs"])


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Temporal consistency",
            (
                "model", Column("flow.id", "flow"), "pairs", "mtc", "mtc_no_warp", "mtc_pooled",
                "pixel_agreement", "coverage", "occluded.mtc", "tracks.consistency",
                "correlation.r", "miou_mean",
            ),
            "Mean over pairs of frames. A constant prediction scores 1, so read mTC with mIoU, "
            "and compare models on the same flow only. no warp: without the flow. pooled: from "
            "the counts of all pairs. agreement: share of compared pixels with the same class. "
            "coverage: share of pixels that are compared. r(mIoU): correlation of TC and mIoU over "
            "the pairs. mIoU: mean over frames.",
        ),
        ScoreTable(
            "How well the flow fits",
            (
                Column("mse_warp", "MSE warped", 5), Column("mse_identity", "MSE no warp", 5),
                Column("flow_median", "median px", 2), Column("flow_p99", "p99 px", 2),
                Column("out_of_frame", "out of frame"), Column("cuts", "cuts"),
                Column("flow", "s per pair", 3, value=_seconds),
            ),
            "MSE: squared difference of grey in [0, 1]; a flow whose warped MSE is above that of "
            "no warp does not fit.",
            corner="flow",
            row=lambda key, record: str(record["flow"]["id"]),
        ),
        RowTable(
            "By sequence", "sequences",
            (
                "frames", "pairs", "gaps", "mtc", "mtc_no_warp", "coverage",
                Column("mse_warp", "MSE warped", 5), Column("tracks.consistency", "tracks C26"),
                Column("correlation.r", "r(mIoU)"), "miou_mean",
            ),
            corner="sequence",
            variant=lambda record: f"{record['model']}, {record['flow']['id']}",
            row=lambda row: str(row["sequence"]),
            least=2,
            most=20,
        ),
        RowTable(
            "By class", "per_class", (Column("iou", "IoU over time"), "pixels"),
            "IoU from the summed counts of all pairs.",
        ),
    ),
    bars=ClassBars("Temporal consistency", (Panel("iou", "IoU with the previous frame"),)),
    figures=("temporal",),
)  # fmt: skip


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, TemporalSettings]:
    video = _video(info)
    models = list(video.models)
    if "model" in options:  # no option: the predictions of the video name their models
        raise UsageError("unknown temporal options model; give the models as predictions.")
    settings = variants(
        "temporal", TemporalSettings, {"model": models, **options}, ("model", "flow")
    )
    if "absent" in options and all(variant.least_pixels for variant in settings.values()):
        raise UsageError(
            f"--absent has no effect with --least-pixels {options['least_pixels']}, which leaves "
            "out all classes that y_t does not have. Leave one of them out."
        )
    if not video.named and any(variant.absent == "zero" for variant in settings.values()):
        raise UsageError(
            "--absent zero is a mean over all classes, but their number is unknown; give --classes."
        )
    return settings


def _video(info: DatasetInfo) -> VideoInfo:
    assert info.video is not None
    return info.video


class Temporal(Evaluation[TemporalSettings]):
    """Means over pairs, and scores of the counts of all pairs.

    From saved states the pairs that look like cuts are those of the run. A frame that begins a run
    of frames is drawn with the pair that it begins. Tracks go on through cuts.
    """

    def of_region(self, region: str) -> Self:
        if self.settings.tracks or self.settings.grid == "previous":
            option = "--tracks" if self.settings.tracks else "--grid previous"
            raise UsageError(
                f"--region {region}: a region is of frame t, and {option} also needs those of "
                "other frames. Leave out the region, or give it in a run without this option."
            )
        return super().of_region(region)

    @property
    def _video(self) -> VideoInfo:
        return _video(self.info)

    @property
    def _model(self) -> int:
        return self._video.models.index(self.settings.model)

    @property
    def _pairs(self) -> PairCounts:
        from uqeval.tallies.temporal import PairCounts

        settings, classes = self.settings, self.info.classes
        return PairCounts(
            settings.method.id, self._model, classes, void_of(classes),
            occlusion=settings.occlusion == "fb", clamp=settings.out_of_frame == "clamp",
            mirror=settings.grid == "previous",
        )  # fmt: skip

    @property
    def _frames(self) -> FrameCounts | None:
        from uqeval.tallies.temporal import FrameCounts

        classes = self.info.classes
        labelled = self._video.against
        return FrameCounts(self._model, classes, void_of(classes)) if labelled else None

    @property
    def _tracks(self) -> TrackCounts | None:
        from uqeval.tallies.temporal import TrackCounts

        settings = self.settings
        if not settings.tracks:
            return None
        rules = TrackRules(
            step=settings.track_step,
            min_length=settings.track_length,
            structure=not settings.track_everywhere,
        )
        return TrackCounts(settings.method.id, self._model, self.info.classes, rules)

    def tallies(self) -> tuple[Tally, ...]:
        tracks = self._tracks
        return (self._pairs, *((tracks,) if tracks else ()))

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        return self.tallies() if "tracks" in fields else (self._pairs,)

    def extra_tallies(self) -> tuple[Tally, ...]:
        frames = self._frames
        return (frames,) if frames else ()

    @property
    def only_of_set(self) -> frozenset[str]:
        return frozenset({"flow", "step", "gaps", "sequences"})

    def over_items(self) -> OverItems:
        frames = self._frames
        return OverItems(
            mean_fields(self.settings),
            {"correlation.r": OfFields(("tc", "miou"), pearson)} if frames else {},
            {"miou_mean": (frames, frame_scores)} if frames else {},
            {"pairs": "", "cuts": "cut"},
            "cut" if self.settings.drop_cuts else None,
            frozenset({self._pairs}),
        )

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        """Return the scores of counts; means over pairs are in `over_items`."""
        pairs, tracks = SetStates.of_one(states[self._pairs]), self._tracks
        record: dict[str, Any] = {"model": self.settings.model}
        put_all(record, pooled_scores(self.settings, pairs))
        record["per_class"] = per_class(pairs, self.info)
        if self._frames:
            record["correlation"] = {"against": self._video.against}
        if tracks:
            record["tracks"] = _tracks(states[tracks], tracks, self.info)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        tracks = self._tracks
        return columns(self.settings, states[self._pairs], states.get(tracks) if tracks else None)

    def run_of(self, counted_results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Flag the pairs that look like cuts; average over the others."""
        video, frames, tracks = self._video, self._frames, self._tracks
        states = [self._pairs.unpack(data) for data in counted_results[self._pairs].items]
        items = [pair_record(state, self.settings, self.info.class_names) for state in states]
        for item, before, sequence in zip(items, video.before, video.sequences, strict=True):
            item |= {"previous": before, "sequence": sequence}
        flag_cuts(items, video.sequences)
        first: list[tuple[str, float | None]] = []
        if frames:
            labelled = [frames.unpack(data) for data in counted_results[frames].items]
            first = add_frames(items, labelled, video)
        retained = [not (self.settings.drop_cuts and item["cut"]) for item in items]

        results: dict[str, Any] = {"flow": video.flow_record(self.settings.method.id)}
        results["model"] = self.settings.model
        results |= _steps(video)
        results |= mean_scores(items, states, retained, self.settings)
        results |= {"pairs": len(items), "cuts": sum(item["cut"] for item in items)}
        results["gaps"] = sum(row["gaps"] for row in video.rows)
        results["per_class"] = per_class(pooled(states, retained), self.info)
        of_tracks = (
            [tracks.unpack(data) for data in counted_results[tracks].items] if tracks else []
        )
        results["sequences"] = sequence_rows(
            items, retained, states, self.settings, video, first, of_tracks
        )
        if frames:
            values = [*(miou for _, miou in first), *(item["miou"] for item in items)]
            set_value(results, "miou_mean", ts.mean(values), "no frame has labels")
            results["correlation"] = correlation(items, retained, video.against)
        if tracks:
            results["tracks"] = _tracks(counted_results[tracks].total, tracks, self.info)
            for item, state in zip(items, of_tracks, strict=True):
                item |= track_scores.pair_record(state)
        self.fitted["cuts"] = results["cuts"]
        return Run(counted_results, exact, results, items)

    def described(self, results: Mapping[str, Any]) -> dict[str, Any]:
        voids = self._video.voids  # empty in states of earlier versions
        void = {"ignore_index": voids[self._model]} if voids else {}
        method, flow = self.settings.method, results["flow"]
        # The library of the flow is a part of the number, too.
        library = " ".join(str(flow[name]) for name in ("library", "version") if name in flow)
        return dataclasses.asdict(self.settings) | {
            "flow": method.id,
            "flow_parameters": dict(method.parameters),
            "flow_library": library or None,
            **void,
        }

    def numerics(self, run: Run) -> dict[str, int]:
        pixels = [self._pairs.unpack(data)["pixels"] for data in run.counted[self._pairs].items]
        sums = [sum(int(counts[i]) for counts in pixels) for i in range(len(PIXELS))]
        numerics_of_set = {f"pixels_{name}": n for name, n in zip(PIXELS, sums, strict=True)}
        return numerics_of_set | {"undefined": sum(item["tc"] is None for item in run.items)}

    def warnings(self, run: Run) -> list[str]:
        return _warnings(run.results, run.items, self._video, self.settings.drop_cuts)


def _steps(video: VideoInfo) -> dict[str, Any]:
    steps = {row["step"] for row in video.rows if row["pairs"]}
    record: dict[str, Any] = {}
    set_value(
        record, "step", steps.pop() if len(steps) == 1 else None, "differs between the sequences"
    )
    return record


def _tracks(state: State, tally: TrackCounts, info: DatasetInfo) -> dict[str, Any]:
    record = track_scores.record(state, tally, info.class_names)
    if not _video(info).named:
        record["per_class"] = [row for row in record["per_class"] if row["tracks"]]
    return record


def _warnings(
    results: Mapping[str, Any], items: Sequence[Mapping[str, Any]], video: VideoInfo,
    drop_cuts: bool,
) -> list[str]:  # fmt: skip
    messages = []
    moving = [item for item in items if (item["mse_identity"] or 0.0) > ts.MOVING]
    warped, identity = (
        ts.mean(item[name] for item in moving) for name in ("mse_warp", "mse_identity")
    )
    if warped is not None and identity is not None and warped >= identity:
        messages.append(
            f"frames match no better with the flow than without it, over the {len(moving)} moving "
            f"pairs: squared photometric error {warped:.5f}, without a warp {identity:.5f}. The "
            "flow failed, points the wrong way, or has x and y swapped or the wrong scale, so do "
            "not use mTC. uqeval expects flow on frame t's grid that points to frame t-1, (dx, "
            "dy) in pixels."
        )
    undefined = sum(item["tc"] is None for item in items)
    if undefined:
        messages.append(f"{undefined} of {len(items)} pairs have no TC_t: see their `tc_reason`.")
    cuts = [item for item in items if item["cut"]]
    if cuts:
        left_out = "left out of the means (--drop-cuts)"
        messages.append(
            f"{len(cuts)} of {len(items)} pairs look like scene cuts (`cut` in the report's "
            f"items); {left_out if drop_cuts else '--drop-cuts leaves them out of the means'}."
        )
    if results["gaps"]:
        messages.append(
            f"{results['gaps']} gap{'s' * (results['gaps'] != 1)} in the frame numbers: frames "
            "across a gap are not compared."
        )
    if video.unlabelled:
        messages.append(
            f"{video.unlabelled} of {video.frames} frames have no labels: mIoU_t and r are over "
            "the others."
        )
    return messages


FAMILY = Family(
    "tc",
    (*ts.METRICS, *track_scores.METRICS),
    _settings,
    Temporal,
    TemporalSettings,
    kinds=("video",),
    key="temporal",
    display=DISPLAY,
    label="Temporal consistency",
    words={"tc": "TC", "iou": "IoU", "miou": "mIoU"},
    of_items=("tc", "miou"),
)
