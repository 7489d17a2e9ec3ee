"""Temporal consistency of many sets of pairs at once, from summed counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import of_rows, over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.metrics.temporal_settings import TemporalSettings


def columns(
    settings: TemporalSettings, pairs: SetStates, tracks: SetStates | None
) -> dict[Place, NDArray[Any]]:
    """Return the scores of pooled counts of `PairCounts`, and of `TrackCounts` if there are any."""
    both = pairs["counts"].sum(axis=1)
    found: dict[Place, NDArray[Any]] = {("mtc_pooled",): _tc(settings, both)}
    if settings.average == "pooled":
        found["mtc",] = found["mtc_pooled",]
        found["mtc_no_warp",] = _tc(settings, pairs["still"])
        if settings.occlusion == "fb":
            found["occluded", "mtc"] = _tc(settings, pairs["counts"][:, 0])
    rows = {"iou": _ious(both), "pixels": both[:, 0], "warped_pixels": both[:, 1]}
    found |= of_rows(rows, range(both.shape[2]))
    if tracks is not None:
        found |= {("tracks", *place): own for place, own in _tracks(tracks).items()}
    return found


def _ious(counts: NDArray[Any]) -> NDArray[Any]:
    """IoU [set, class] of pixels of each class here, there and in both [set, 3, class]."""
    here, there, both = (counts[:, i] for i in range(3))
    return over(both, here + there - both)


def _tc(settings: TemporalSettings, counts: NDArray[Any]) -> NDArray[Any]:
    """Mean IoU of counts [set, 3, class] by the rules of `temporal_scores.mean_iou`."""
    import numpy as np

    here, values = counts[:, 0], _ious(counts)
    kept = here >= settings.least_pixels
    if settings.absent == "zero":
        total = np.where(
            here.sum(axis=1) > 0, np.where(kept, np.nan_to_num(values), 0).sum(1), np.nan
        )
        return over(total, kept.sum(axis=1))
    kept &= np.isfinite(values)
    if settings.absent == "current":
        kept &= here > 0
    return over(np.where(kept, values, 0.0).sum(axis=1), kept.sum(axis=1))


def _tracks(states: SetStates) -> dict[Place, NDArray[Any]]:
    """The scores of tracks, as `track_scores.record` names them."""
    each, consistent = states["tracks"], states["consistent"]
    tracks, good = each.sum(axis=1), consistent.sum(axis=1)
    points, unreliable, pixels, dropped = (
        states[name][:, 0] for name in ("points", "unreliable", "pixels", "dropped")
    )
    return {
        ("consistency",): over(good, tracks),
        ("tracks",): tracks,
        ("consistent",): good,
        ("mean_length",): over(points, tracks),
        ("unreliable",): over(unreliable, pixels),
        ("dropped",): dropped,
    } | of_rows({"tracks": each, "consistency": over(consistent, each)}, range(each.shape[1]))
