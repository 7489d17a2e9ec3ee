"""Pairs of video frames: the flow by OpenCV or as stored, the warp and the scores in NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from uqeval.usecases.verify.arrays import Array
from uqeval.usecases.verify.classes import maps_of_samples

_FINITE = 1e9
_PRESETS = {"ultrafast": 0, "fast": 1, "medium": 2}


def not_covered(settings: Mapping[str, Any]) -> str | None:
    """Return why a temporal consistency of these settings is not recomputed; None if it is."""
    allowed = {
        "grid": ("current",), "out_of_frame": ("exclude",), "absent": ("exclude", "zero"),
        "flow_scale": (1.0,),
    }  # fmt: skip
    for name, values in allowed.items():
        if settings.get(name, values[0]) not in values:
            return f"--{name.replace('_', '-')} {settings[name]} is not in the plain path"
    if str(settings["flow"]).partition(":")[0] not in ("farneback", "dis", "file"):
        return f"flow {settings['flow']} is not in the plain path"
    return None


def grey(rgb: Array) -> Array:
    """Return grey uint8 [y, x] of colours uint8 [y, x, 3]."""
    import cv2

    found: Array = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY)
    return found


def flow_between(start: Array, end: Array, settings: Mapping[str, Any]) -> Array:
    """Return the flow [y, x, 2] on `start`'s grid that points to `end`, by OpenCV."""
    import cv2

    own = dict(settings["flow_parameters"])
    name, _, preset = str(settings["flow"]).partition("@")[0].partition(":")
    found: Array
    if name == "farneback":
        found = cv2.calcOpticalFlowFarneback(start, end, None, **own)
        return found
    dis = cv2.DISOpticalFlow_create(_PRESETS[preset.split(",")[0]])
    patch = own["patch_size"]
    short, long = sorted(start.shape)
    most = min(int(math.log2(long / (4 * patch)) + 0.5), int(math.log2(short // patch)))
    own["finest_scale"] = min(own["finest_scale"], most)
    for key, value in own.items():
        getattr(dis, "set" + "".join(word.capitalize() for word in key.split("_")))(value)
    found = dis.calc(start, end, None)
    return found


def known(flow: Array) -> Array:
    """Return where both parts of a flow [y, x, 2] are finite and at most 1e9."""
    with np.errstate(invalid="ignore"):
        found: Array = np.asarray((np.abs(flow) <= _FINITE).all(axis=-1))
    return found


def place_of(flow: Array) -> tuple[Array, Array]:
    """Return the coordinates (x, y) float64 that each pixel comes from; unknown flow as 0."""
    y, x = np.mgrid[: flow.shape[0], : flow.shape[1]].astype(np.float64)
    moved = np.where(known(flow)[..., None], flow, 0).astype(np.float64)
    return x + moved[..., 0], y + moved[..., 1]


def bilinear(image: Array, x: Array, y: Array) -> Array:
    """Return an image [y, x, ...] in float64 at places that are moved into the frame."""
    height, width = image.shape[:2]
    x, y = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    p, q = x - i, y - j
    if image.ndim == 3:
        p, q = p[..., None], q[..., None]
    right, below = np.minimum(i + 1, width - 1), np.minimum(j + 1, height - 1)
    wide = image.astype(np.float64)
    top = wide[j, i] * (1 - p) + wide[j, right] * p
    bottom = wide[below, i] * (1 - p) + wide[below, right] * p
    found: Array = top * (1 - q) + bottom * q
    return found


def class_ious(here: Array, there: Array) -> dict[int, float]:
    """Return the IoU of each class that is in one of two flat arrays of ids."""
    return {
        int(c): float(((here == c) & (there == c)).sum() / ((here == c) | (there == c)).sum())
        for c in np.union1d(here, there)
    }


def mean_iou(here: Array, there: Array, settings: Mapping[str, Any], classes: int) -> float | None:
    """Return the mean IoU of two flat arrays of ids; None without pixels."""
    if not here.size:
        return None
    own, least = class_ious(here, there), settings.get("least_pixels", 0)
    if settings.get("absent", "exclude") == "zero":
        own = {c: own.get(c, 0.0) for c in range(classes)}
    values = [v for c, v in own.items() if (here == c).sum() >= least]
    return float(np.mean(values)) if values else None


def ids_of(model: Any, frame: int, size: tuple[int, ...], void: int) -> tuple[Array, Array]:
    """Return the ids of a frame as stored (or the likeliest class), and which are void."""
    if hasattr(model, "source"):
        ids = maps_of_samples(model.source.stack, model.places[frame])["prediction"]
    else:
        ids = model.planes.read(model.places[frame]).astype(np.int64)
    if ids.shape != tuple(size):
        rows, columns = (
            np.minimum(((np.arange(n) + 0.5) * m / n).astype(int), m - 1)
            for n, m in zip(size, ids.shape, strict=True)
        )
        ids = ids[rows[:, None], columns]
    return ids, ids == void


def pair(source: Any, item: int, settings: Mapping[str, Any], info: Mapping[str, Any]) -> Any:
    """Return the scores of one pair of frames. `info`: void, model, class_names."""
    both, void, names = source.pairs[item], info["void"], info["class_names"]
    now, before = (grey(source.frames.read(i)) for i in (both.after, both.before))
    model = source.models[info["model"]]
    ids, empty = ids_of(model, both.after, now.shape, void)
    old, old_empty = ids_of(model, both.before, now.shape, void)
    stored = settings["flow"] == "file"
    flow = source.stored["flow"].read(item) if stored else flow_between(now, before, settings)
    x, y = place_of(flow)
    i, j = np.floor(x + 0.5), np.floor(y + 0.5)
    inside = (i >= 0) & (i < now.shape[1]) & (j >= 0) & (j < now.shape[0])
    i = np.clip(i, 0, now.shape[1] - 1).astype(int)
    j = np.clip(j, 0, now.shape[0] - 1).astype(int)
    there = old[j, i]
    counted = known(flow) & inside & ~empty & ~old_empty[j, i]
    one, other = ids[counted], there[counted]
    still = ~empty & ~old_empty
    iou = class_ious(one, other)
    total, n = now.size, int(counted.sum())
    unrounded = np.hypot(*(flow[known(flow)].astype(np.float64).T))
    lengths = unrounded.astype(np.float32)
    scaled, scaled_before = now / 255.0, before / 255.0
    found: dict[str, Any] = {
        "tc": mean_iou(one, other, settings, len(names)),
        "tc_no_warp": mean_iou(ids[still], old[still], settings, len(names)),
        "frequency_weighted": sum((one == c).sum() * v for c, v in iou.items()) / n if n else None,
        "pixel_agreement": float((one == other).mean()) if n else None,
        "coverage": n / total,
        "out_of_frame": float((known(flow) & ~inside).sum() / total),
        "mse_warp": _mean_square(scaled - bilinear(scaled_before, x, y), counted),
        "mse_identity": _mean_square(scaled - scaled_before, counted),
        "iou": {names[c]: v for c, v in iou.items()}, "classes": len(iou),
        "flow_median": float(np.median(lengths.astype(np.float64))) if lengths.size else None,
        "flow_max": float(unrounded.max()) if lengths.size else None,
        "flow_p99": float(np.percentile(lengths.astype(np.float64), 99)) if lengths.size else None,
    }  # fmt: skip
    if settings.get("occlusion") == "fb":
        back = source.stored["flow_forward"].read(item) if stored else flow_between(
            before, now, settings
        )  # fmt: skip
        hidden = counted & occluded(flow, back, x, y)
        seen = counted & ~hidden
        found |= {
            "tc_visible": mean_iou(ids[seen], there[seen], settings, len(names)),
            "coverage_visible": float(seen.sum() / total),
            "occluded": float(hidden.sum() / total),
        }
    if source.labels is not None and source.labelled[both.after]:
        label, unlabelled = ids_of(source.labels, both.after, now.shape, void)
        found["miou"] = mean_iou(
            np.where(empty, -1, ids)[~unlabelled], label[~unlabelled], {}, len(names)
        )  # fmt: skip
        if found["miou"] is not None:
            own = class_ious(np.where(empty, -1, ids)[~unlabelled], label[~unlabelled])
            own.pop(-1, None)  # a void prediction is a miss, no class
            found["miou"] = float(np.mean(list(own.values())))
    return found


def _mean_square(apart: Array, counted: Array) -> float | None:
    return float((apart[counted] ** 2).mean()) if counted.any() else None


def occluded(flow: Array, back: Array, x: Array, y: Array) -> Array:
    """Return where |w + ŵ|² > 0.01(|w|² + |ŵ|²) + 0.5, or ŵ is unknown."""
    with np.errstate(invalid="ignore"):
        other = bilinear(back, x, y)
        wide = flow.astype(np.float64)
        apart = ((wide + other) ** 2).sum(axis=-1)
        limit = 0.01 * ((wide**2).sum(axis=-1) + (other**2).sum(axis=-1)) + 0.5
        found: Array = ~known(other) | (apart > limit)
    return found
