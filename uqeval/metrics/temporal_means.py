"""Pairs of frames together: means of their scores, scores of pooled counts, and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.metrics import temporal_scores as ts
from uqeval.metrics._contract import set_value
from uqeval.metrics.temporal_pairs import Three, tc, three

if TYPE_CHECKING:
    from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
    from uqeval.metrics.temporal_settings import TemporalSettings
    from uqeval.tallies._contract import State


def mean_scores(
    items: Sequence[dict[str, Any]], states: Sequence[State], kept: Sequence[bool],
    settings: TemporalSettings,
) -> dict[str, Any]:  # fmt: skip
    """The means over pairs, and the score of pooled counts."""
    chosen = [item for item, keep in zip(items, kept, strict=True) if keep]
    pooled = pooled_scores(states, kept, settings)
    means = {
        name: ts.mean(item[own] for item in chosen) for name, own in mean_fields(settings).items()
    }
    order = dict.fromkeys(("mtc", "mtc_no_warp", "mtc_pooled"))
    record: dict[str, Any] = {}
    put_all(record, order | means | pooled)
    return record


def mean_fields(settings: TemporalSettings) -> dict[str, str]:
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


def pooled_scores(
    states: Sequence[State], kept: Sequence[bool], settings: TemporalSettings
) -> dict[str, float | None]:
    """Scores of the counts of all kept pairs together: `mtc_pooled`, and what is to be pooled."""
    found = {"mtc_pooled": tc(settings, *_pooled(states, kept, "counts"))}
    if settings.average == "pooled":
        for name, (part, occluded) in _POOLED.items():
            if name != "occluded.mtc" or settings.occlusion == "fb":
                found[name] = tc(settings, *_pooled(states, kept, part, occluded))
    return found


def put_all(record: dict[str, Any], values: Mapping[str, float | None]) -> None:
    """Add scores; `occluded.x` as x of the record `occluded`."""
    for name, value in values.items():
        parent, _, last = name.rpartition(".")
        set_value(record.setdefault(parent, {}) if parent else record, last, value, ts.NO_PAIR)


def _pooled(
    states: Sequence[State], kept: Sequence[bool], part: str, occluded: bool | None = None
) -> Three:
    """Counts of all kept pairs together."""
    here: list[list[int]] = []
    there: list[list[int]] = []
    both: list[list[int]] = []
    for state, keep in zip(states, kept, strict=True):
        if keep:
            for total, own in zip((here, there, both), three(state, part, occluded), strict=True):
                total.append(own)
    return _added(here), _added(there), _added(both)


def _added(lists: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*lists, strict=True)]


def per_class(
    states: Sequence[State], kept: Sequence[bool], info: DatasetInfo
) -> list[dict[str, Any]]:
    """IoU and pixels of each class, all pairs together; where nobody names them, of those there."""
    named = info.video is not None and info.video.named
    here, there, both = _pooled(states, kept, "counts")
    rows = []
    each = zip(ts.ious(here, there, both), here, there, strict=True)
    for c, (own, now, before) in enumerate(each):
        if own is None and not named:
            continue
        row: dict[str, Any] = {"class": c, "name": info.class_names[c]}
        set_value(row, "iou", own, "the class is in neither map")
        rows.append(row | {"pixels": now, "warped_pixels": before})
    return rows


def sequence_rows(
    items: Sequence[dict[str, Any]], kept: Sequence[bool], states: Sequence[State],
    settings: TemporalSettings, video: VideoInfo,
) -> list[dict[str, Any]]:  # fmt: skip
    """One record a sequence: its frames and gaps, and the scores of its kept pairs."""
    rows = []
    for row in video.rows:
        mine = [name == row["sequence"] for name in video.sequences]
        chosen = [own and keep for own, keep in zip(mine, kept, strict=True)]
        own_items = [item for item, own in zip(items, mine, strict=True) if own]
        record = dict(row) | mean_scores(items, states, chosen, settings)
        record["cuts"] = sum(item["cut"] for item in own_items)
        if video.against:
            record["correlation"] = correlation(items, chosen, video.against)
        rows.append(record)
    return rows


def correlation(
    items: Sequence[dict[str, Any]], kept: Sequence[bool], against: str | None
) -> dict[str, Any]:
    """Pearson's r between TC_t and mIoU_t over the kept pairs that have both."""
    pairs = [
        (item["tc"], item["miou"])
        for item, keep in zip(items, kept, strict=True)
        if keep and item["tc"] is not None and item["miou"] is not None
    ]
    r, reason = ts.correlation(pairs)
    record: dict[str, Any] = {}
    set_value(record, "r", r, reason)
    return record | {"pairs": len(pairs), "against": against}
