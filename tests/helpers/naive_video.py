"""A plain, slow oracle of a whole `uqeval tc` run, written from definitions.md alone.

Nothing of uqeval is imported: OpenCV for the flow, scikit-learn for IoU, SciPy for r.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from scipy.ndimage import map_coordinates
from scipy.stats import pearsonr
from sklearn.metrics import jaccard_score

VOID = 255


def grey(image: Any) -> Any:
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)


def farneback(start: Any, end: Any) -> Any:
    """The paper's flow, on `start`'s grid and pointing to `end`; grey uint8 images."""
    return cv2.calcOpticalFlowFarneback(start, end, None, 0.5, 3, 15, 3, 5, 1.2, 0)


def dis(preset: int) -> Callable[[Any, Any], Any]:
    return lambda start, end: cv2.DISOpticalFlow_create(preset).calc(start, end, None)


ESTIMATORS: dict[str, Callable[[Any, Any], Any]] = {
    "farneback": farneback,
    "dis": dis(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM),
    "dis:fast": dis(cv2.DISOPTICAL_FLOW_PRESET_FAST),
    "dis:ultrafast": dis(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST),
}


def parsed(name: str) -> tuple[str, int]:
    """What comes before the last number of a name, and the number."""
    before, number = re.fullmatch(r"(.*?)_?(\d+)", name).groups()  # type: ignore[union-attr]
    return before, int(number)


def neighbours(names: list[str]) -> list[tuple[str, str]]:
    """(frame before, frame): inside a sequence, its numbers as far apart as most are."""
    sequences: dict[str, list[str]] = {}
    for name in sorted(names, key=parsed):
        sequences.setdefault(parsed(name)[0], []).append(name)
    found = []
    for own in sequences.values():
        apart = [parsed(b)[1] - parsed(a)[1] for a, b in pairwise(own)]
        if apart:
            count = Counter(apart)
            step = min(d for d in count if count[d] == max(count.values()))
            pairs = zip(pairwise(own), apart, strict=True)
            found += [pair for pair, d in pairs if d == step]
    return found


def is_known(flow: Any) -> Any:
    return (np.abs(flow) <= 1e9).all(-1)


def warped(image: Any, flow: Any, kind: str) -> tuple[Any, Any]:
    """`image` at p + w, "nearest" (floor(x + ½)) or "bilinear"; and where that is in the frame."""
    height, width = flow.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float64)
    known = is_known(flow)
    w = np.where(known[..., None], flow, 0).astype(np.float64)
    x, y = x + w[..., 0], y + w[..., 1]
    i, j = np.floor(x + 0.5), np.floor(y + 0.5)
    inside = known & (i >= 0) & (i < width) & (j >= 0) & (j < height)
    if kind == "nearest":
        i, j = i.clip(0, width - 1).astype(int), j.clip(0, height - 1).astype(int)
        return image[j, i], inside
    planes = np.atleast_3d(image.astype(np.float64))
    interpolated = np.stack(
        [map_coordinates(planes[..., k], (y, x), order=1, mode="nearest")
         for k in range(planes.shape[2])], axis=-1,
    )  # fmt: skip
    return interpolated.reshape(*x.shape, *image.shape[2:]), inside


def ious(a: Any, b: Any) -> dict[int, float]:
    """IoU of each id but void that is in `a` or `b`."""
    present = sorted({*a.tolist(), *b.tolist()} - {VOID})
    if not present:
        return {}
    own = jaccard_score(a, b, labels=present, average=None, zero_division=0)
    return dict(zip(present, own.tolist(), strict=True))


def mean(values: Any) -> float | None:
    values = list(values)
    return float(np.mean(values)) if values else None


def occlusion(flow: Any, back: Any) -> Any:
    """Where the flow and the flow back do not meet."""
    w = flow.astype(np.float64)
    other, _ = warped(back, flow, "bilinear")
    squares = (w**2).sum(-1) + (other**2).sum(-1)
    return ((w + other) ** 2).sum(-1) > 0.01 * squares + 0.5


def pair(now: Any, before: Any, image: Any, image_before: Any, flow: Any, back: Any) -> Any:
    """Scores of one pair, and the ids that were compared."""
    ids, inside = warped(before, flow, "nearest")
    counted = inside & (now != VOID) & (ids != VOID)
    plain = (now != VOID) & (before != VOID)
    moved, _ = warped(image_before / 255.0, flow, "bilinear")
    one = image / 255.0
    iou = ious(now[counted], ids[counted])
    pixels = Counter(now[counted].tolist())
    found: dict[str, Any] = {
        "ids": (now[counted], ids[counted]),
        "iou": iou,
        "tc": mean(iou.values()),
        "tc_no_warp": mean(ious(now[plain], before[plain]).values()),
        "frequency_weighted": sum(pixels[c] * iou[c] for c in iou) / max(pixels.total(), 1),
        "pixel_agreement": mean(now[counted] == ids[counted]),
        "coverage": float(counted.mean()),
        "out_of_frame": float((~inside & is_known(flow)).mean()),
        "mse_warp": mean((one - moved)[counted] ** 2),
        "mse_identity": mean((one - image_before / 255.0)[counted] ** 2),
    }
    if back is not None:
        with np.errstate(invalid="ignore"):
            seen = counted & ~occlusion(flow, back)
        found["occluded"] = {
            "tc": mean(ious(now[seen], ids[seen]).values()),
            "coverage": float(seen.mean()),
        }
    return found


MEANS = {
    "mtc": "tc",
    "mtc_no_warp": "tc_no_warp",
    "mtc_frequency_weighted": "frequency_weighted",
    "pixel_agreement": "pixel_agreement",
    "coverage": "coverage",
    "out_of_frame": "out_of_frame",
    "mse_warp": "mse_warp",
    "mse_identity": "mse_identity",
}


def summary(items: list[dict[str, Any]]) -> dict[str, Any]:
    """What is said of some pairs together."""
    together = [np.concatenate([item["ids"][k] for item in items]) for k in (0, 1)]
    pooled = ious(*together)
    found: dict[str, Any] = {
        key: mean(item[own] for item in items if item[own] is not None)
        for key, own in MEANS.items()
    }
    found |= {"pairs": len(items), "mtc_pooled": mean(pooled.values()), "per_class": pooled}
    if "occluded" in items[0]:
        found["occluded"] = {
            "mtc": mean(item["occluded"]["tc"] for item in items),
            "coverage": mean(item["occluded"]["coverage"] for item in items),
        }
    return found


def run(
    frames: Mapping[str, Any],
    ids: Mapping[str, Any],
    flow: str | Mapping[str, Any] = "farneback",
    occluded: bool = False,
    labels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All of it: `items` by name, `sequences` by name, and the whole."""
    items: dict[str, dict[str, Any]] = {}
    for before, now in neighbours(list(ids)):
        one, other = grey(frames[now]), grey(frames[before])
        if isinstance(flow, str):
            w, back = ESTIMATORS[flow](one, other), ESTIMATORS[flow](other, one)
        else:
            w, back = flow[now], None
        items[now] = pair(ids[now], ids[before], one, other, w, back if occluded else None)
    found = summary(list(items.values()))
    found["items"] = items
    found["sequences"] = {
        own: summary([item for name, item in items.items() if parsed(name)[0] == own])
        for own in {parsed(name)[0] for name in items}
    }
    if labels is not None:
        miou = {}
        for name, truth in labels.items():
            valid = truth != VOID  # void that is predicted there is a miss
            miou[name] = mean(ious(truth[valid], ids[name][valid]).values())
        both = [(item["tc"], miou[name]) for name, item in items.items() if name in miou]
        found["miou"] = miou
        found["miou_mean"] = mean(miou.values())
        found["r"] = float(pearsonr(*zip(*both, strict=True)).statistic)
        found["r_pairs"] = len(both)
    return found
