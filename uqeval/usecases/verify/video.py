"""Pairs of video frames: the flow by OpenCV or as stored, the warp and the scores in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.class_scores import ratio
from uqeval.usecases.verify.classes import maps_of_samples
from uqeval.usecases.verify.regions import of_labels, of_place

_LONGEST = 1e9
_PRESETS = {"ultrafast": 0, "fast": 1, "medium": 2}

#: Means over pairs that a temporal consistency reports, by the field of the pairs.
MEANS = {
    "mtc": "tc", "mtc_no_warp": "tc_no_warp", "mtc_frequency_weighted": "frequency_weighted",
    "pixel_agreement": "pixel_agreement", "coverage": "coverage", "out_of_frame": "out_of_frame",
    "mse_warp": "mse_warp", "mse_identity": "mse_identity",
}  # fmt: skip


def not_covered(settings: Mapping[str, Any]) -> str | None:
    """Return why temporal consistency by this flow is not recomputed; None if it is."""
    if str(settings["flow"]).partition(":")[0] not in ("farneback", "dis", "file"):
        return f"flow {settings['flow']} is not supported by uqeval verify"
    return None


def grey(rgb: Array) -> Array:
    """Return grey uint8 [y, x] of colours uint8 [y, x, 3]."""
    import cv2

    return cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY)


def flow_between(start: Array, end: Array, settings: Mapping[str, Any]) -> Array:
    """Return the flow [y, x, 2] on `start`'s grid that points to `end`, by OpenCV."""
    import cv2

    parameters = dict(settings["flow_parameters"])
    name, _, preset = str(settings["flow"]).partition("@")[0].partition(":")
    if name == "farneback":
        return cv2.calcOpticalFlowFarneback(start, end, None, **parameters)
    dis = cv2.DISOpticalFlow_create(_PRESETS[preset.split(",")[0]])
    patch = parameters["patch_size"]
    short, long = sorted(start.shape)
    most = min(int(math.log2(long / (4 * patch)) + 0.5), int(math.log2(short // patch)))
    parameters["finest_scale"] = min(parameters["finest_scale"], most)
    for key, value in parameters.items():
        getattr(dis, "set" + "".join(word.capitalize() for word in key.split("_")))(value)
    return dis.calc(start, end, None)


def is_known_flow(flow: Array) -> Array:
    """Return a mask of the flow [y, x, 2] that is finite and at most 1e9 pixels long."""
    with np.errstate(invalid="ignore"):
        is_known: Array = (flow.astype(np.float64) ** 2).sum(axis=-1) <= _LONGEST**2
    return is_known


def place_of(flow: Array) -> tuple[Array, Array]:
    """Return the coordinates (x, y) float64 that each pixel comes from; unknown flow as 0."""
    y, x = np.mgrid[: flow.shape[0], : flow.shape[1]].astype(np.float64)
    moved = np.where(is_known_flow(flow)[..., None], flow, 0).astype(np.float64)
    return x + moved[..., 0], y + moved[..., 1]


def bilinear(image: Array, x: Array, y: Array) -> Array:
    """Return an image [y, x, ...] in float64 at places clipped to the frame."""
    height, width = image.shape[:2]
    x, y = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    p, q = x - i, y - j
    if image.ndim == 3:
        p, q = p[..., None], q[..., None]
    right, below = i + (x > i), j + (y > j)  # weight 0: not read, for it may be unknown
    wide = image.astype(np.float64)
    top = wide[j, i] * (1 - p) + wide[j, right] * p
    bottom = wide[below, i] * (1 - p) + wide[below, right] * p
    return top * (1 - q) + bottom * q


def class_ious(first: Array, second: Array) -> dict[int, float]:
    """Return the IoU of each class that is in one of two flat arrays of ids."""
    return {
        int(c): float(((first == c) & (second == c)).sum() / ((first == c) | (second == c)).sum())
        for c in np.union1d(first, second)
    }


def mean_iou(
    first: Array, second: Array, settings: Mapping[str, Any], classes: int
) -> float | None:
    """Return the mean IoU of two flat arrays of ids; None without pixels."""
    if not first.size:
        return None
    ious, least = class_ious(first, second), settings.get("least_pixels", 0)
    if settings.get("absent", "exclude") == "zero":
        ious = {c: ious.get(c, 0.0) for c in range(classes)}
    values = [v for c, v in ious.items() if (first == c).sum() >= least]
    return float(np.mean(values)) if values else None


def ids_of(model: Any, frame: int, size: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the ids of a frame as stored (or the likeliest class), and which are void."""
    void = None
    if hasattr(model, "source"):
        ids = maps_of_samples(model.source.stack, model.places[frame])[0]["prediction"]
    else:
        ids, void = model.planes.read(model.places[frame]).astype(np.int64), model.void
    if ids.shape != tuple(size):
        rows, columns = (
            np.minimum(((np.arange(n) + 0.5) * m / n).astype(int), m - 1)
            for n, m in zip(size, ids.shape, strict=True)
        )
        ids = ids[rows[:, None], columns]
    return ids, np.zeros(ids.shape, bool) if void is None else ids == void


def pair(
    source: Any, item: int, settings: Mapping[str, Any], info: Mapping[str, Any],
    inside: Array | None = None,
) -> Any:  # fmt: skip
    """Return the scores of one pair of frames. `info`: model, class_names.

    `inside`: the pixels [y, x] of frame t in a region; None: all of them.
    """
    frame_pair, names = source.pairs[item], info["class_names"]
    current, before = (grey(source.frames.read(i)) for i in (frame_pair.after, frame_pair.before))
    model = source.models[info["model"]]
    ids, empty = ids_of(model, frame_pair.after, current.shape)
    old, old_empty = ids_of(model, frame_pair.before, current.shape)
    inside = np.ones(current.shape, bool) if inside is None else inside
    empty = empty | ~inside
    stored = settings["flow"] == "file"
    flow = source.stored["flow"].read(item) if stored else flow_between(current, before, settings)
    x, y = place_of(flow)
    i, j = np.floor(x + 0.5), np.floor(y + 0.5)
    is_inside = (i >= 0) & (i < current.shape[1]) & (j >= 0) & (j < current.shape[0])
    i = np.clip(i, 0, current.shape[1] - 1).astype(int)
    j = np.clip(j, 0, current.shape[0] - 1).astype(int)
    warped = old[j, i]
    is_counted = is_known_flow(flow) & is_inside & ~empty & ~old_empty[j, i]
    current_ids, warped_ids = ids[is_counted], warped[is_counted]
    is_labelled = ~empty & ~old_empty
    iou = class_ious(current_ids, warped_ids)
    total, n = int(inside.sum()), int(is_counted.sum())
    unrounded = np.hypot(*(flow[is_known_flow(flow) & inside].astype(np.float64).T))
    lengths = unrounded.astype(np.float32)
    scaled, scaled_before = current / 255.0, before / 255.0
    scores: dict[str, Any] = {
        "tc": mean_iou(current_ids, warped_ids, settings, len(names)),
        "tc_no_warp": mean_iou(ids[is_labelled], old[is_labelled], settings, len(names)),
        "frequency_weighted": sum((current_ids == c).sum() * v for c,
        v in iou.items()) / n if n else None,
        "pixel_agreement": float((current_ids == warped_ids).mean()) if n else None,
        "coverage": ratio(n, total),
        "out_of_frame": ratio((is_known_flow(flow) & inside & ~is_inside).sum(), total),
        "mse_warp": _mean_square(scaled - bilinear(scaled_before, x, y), is_counted),
        "mse_identity": _mean_square(scaled - scaled_before, is_counted),
        "iou": {names[c]: v for c, v in iou.items()}, "classes": len(iou),
        "flow_median": float(np.median(lengths.astype(np.float64))) if lengths.size else None,
        "flow_max": float(unrounded.max()) if lengths.size else None,
        "flow_p99": float(np.percentile(lengths.astype(np.float64), 99)) if lengths.size else None,
    }  # fmt: skip
    if settings.get("occlusion") == "fb":
        backward = source.stored["flow_forward"].read(item) if stored else flow_between(
            before, current, settings
        )  # fmt: skip
        hidden = is_counted & occluded(flow, backward, x, y)
        is_visible = is_counted & ~hidden
        scores |= {
            "tc_visible": mean_iou(ids[is_visible], warped[is_visible], settings, len(names)),
            "coverage_visible": ratio(is_visible.sum(), total),
            "occluded": ratio(hidden.sum(), total),
        }
    if source.labels is not None and source.labelled[frame_pair.after]:
        label, unlabelled = ids_of(source.labels, frame_pair.after, current.shape)
        has_label = inside & ~unlabelled
        ious = class_ious(np.where(empty, -1, ids)[has_label], label[has_label])
        ious.pop(-1, None)  # a void prediction is a miss, no class
        scores["miou"] = float(np.mean(list(ious.values()))) if ious else None
    return scores


def frame_in_region(
    source: Any, item: int, region: str | None, info: Mapping[str, Any]
) -> Array | None:
    """Return the pixels [y, x] of frame t in a region; None of the whole image."""
    if region is None:
        return None
    frame, shape = source.pairs[item].after, source.size(item)
    if (mask := of_place(region, source, item, shape)) is not None:
        return mask
    label, void = ids_of(source.labels, frame, shape)
    return of_labels(region, label, void, info["class_names"])


def _mean_square(difference: Array, is_counted: Array) -> float | None:
    return float((difference[is_counted] ** 2).mean()) if is_counted.any() else None


def occluded(flow: Array, backward: Array, x: Array, y: Array) -> Array:
    """Return a mask of |w + ŵ|² > 0.01(|w|² + |ŵ|²) + 0.5, or unknown ŵ."""
    with np.errstate(invalid="ignore"):
        backward_there = bilinear(backward, x, y)
        wide = flow.astype(np.float64)
        squared_sum = ((wide + backward_there) ** 2).sum(axis=-1)
        limit = 0.01 * ((wide**2).sum(axis=-1) + (backward_there**2).sum(axis=-1)) + 0.5
        is_occluded: Array = ~is_known_flow(backward_there) | (squared_sum > limit)
    return is_occluded


def means(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over pairs of the fields that all pairs have."""
    means: dict[str, Any] = {"pairs": len(pairs)}
    for field, field_of_pair in MEANS.items():
        defined = [pair[field_of_pair] for pair in pairs if pair[field_of_pair] is not None]
        means[field] = float(np.mean(defined)) if defined else None
    return means
