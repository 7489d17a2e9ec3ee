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
    counts = pairs["counts"].sum(axis=1)
    results: dict[Place, NDArray[Any]] = {("mtc_pooled",): _tc(settings, counts)}
    if settings.average == "pooled":
        results["mtc",] = results["mtc_pooled",]
        results["mtc_no_warp",] = _tc(settings, pairs["still"])
        if settings.occlusion == "fb":
            results["occluded", "mtc"] = _tc(settings, pairs["counts"][:, 0])
    rows = {"iou": _ious(counts), "pixels": counts[:, 0], "warped_pixels": counts[:, 1]}
    results |= of_rows(rows, range(counts.shape[2]))
    if tracks is not None:
        results |= {("tracks", *place): column for place, column in _tracks(tracks).items()}
    return results


def _ious(counts: NDArray[Any]) -> NDArray[Any]:
    """Return IoU [set, class] of pixels of each class here, there and in both [set, 3, class]."""
    current, warped, intersection = (counts[:, i] for i in range(3))
    return over(intersection, current + warped - intersection)


def _tc(settings: TemporalSettings, counts: NDArray[Any]) -> NDArray[Any]:
    """Return mean IoU of counts [set, 3, class] by the rules of `temporal_scores.mean_iou`."""
    import numpy as np

    current, values = counts[:, 0], _ious(counts)
    retained = current >= settings.least_pixels
    if settings.absent == "zero":
        total = np.where(
            current.sum(axis=1) > 0, np.where(retained, np.nan_to_num(values), 0).sum(1), np.nan
        )
        return over(total, retained.sum(axis=1))
    retained &= np.isfinite(values)
    if settings.absent == "current":
        retained &= current > 0
    return over(np.where(retained, values, 0.0).sum(axis=1), retained.sum(axis=1))


def _tracks(states: SetStates) -> dict[Place, NDArray[Any]]:
    """Return the scores of tracks, as `track_scores.record` names them."""
    per_class, consistent = states["tracks"], states["consistent"]
    tracks, good = per_class.sum(axis=1), consistent.sum(axis=1)
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
    } | of_rows(
        {"tracks": per_class, "consistency": over(consistent, per_class)}, range(per_class.shape[1])
    )
