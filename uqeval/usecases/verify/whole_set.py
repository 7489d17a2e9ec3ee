"""What only the whole set of items has: curves, calibration of single images, temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.keys import family_of
from uqeval.usecases.verify.class_scores import equal_width, gaps
from uqeval.usecases.verify.comparing import Recomputed, is_not_held
from uqeval.usecases.verify.families import Pixels
from uqeval.usecases.verify.patch_curves import accuracy_curve, accuracy_table, threshold_curve
from uqeval.usecases.verify.ranks import BIN_WIDTH, noise
from uqeval.usecases.verify.temperature import temperature


def of_set(
    key: str, parts: Sequence[Pixels], joined: Pixels, whole: tuple[str, Sequence[Pixels]],
    fitted_on: Sequence[int], settings: Mapping[str, Any], results: Mapping[str, Any],
    class_names: Sequence[str],
) -> Iterator[Recomputed]:  # fmt: skip
    """Yield the fields of a key that items do not have.

    `parts`: the pixels of the items, in a region or not, and `joined` all of them; `whole`: the key
    and the pixels of the whole images, from which fitted values come; `fitted_on`: the items that
    the temperature is fitted on, none if it is not recomputed.
    """
    family, (of_image, image_parts) = family_of(key), whole
    if family == "failure" and key in joined.maps:
        yield _risk_curve(joined.maps[key], joined.wrong, results)
    if family == "pavpu" and results.get("uncertainty_threshold") is not None:
        values = np.concatenate([item.maps[of_image] for item in image_parts])
        yield from _curves(key, joined, values, settings, results, class_names)
    if family == "calibration" and "confidence" in joined.maps:
        yield _per_image(parts, settings)
        with_probs = fitted_on and all(item.probs is not None for item in image_parts)
        if with_probs:
            held_out = None
            if settings["fit_on"]:
                fitted = set(fitted_on)
                held_out = [part for i, part in enumerate(parts) if i not in fitted]
            fit_parts = [image_parts[i] for i in fitted_on]
            yield temperature(parts, fit_parts, held_out, settings, results)


def _curves(
    key: str, joined: Pixels, of_image: Any, settings: Mapping[str, Any],
    results: Mapping[str, Any], class_names: Sequence[str],
) -> Iterator[Recomputed]:  # fmt: skip
    """Yield the curves of patches and the table over deciles; `of_image`: the uncertainties of the
    whole images."""
    patches = joined.patches[key]
    if settings["curve_range"]:
        low, high = map(float, settings["curve_range"].split(":"))
    else:
        low, high = float(of_image.min()), float(of_image.max())
    yield threshold_curve(patches, settings, (low, high), results)
    if not is_not_held(results, "accuracy_curve"):
        yield accuracy_curve(patches, settings, results["uncertainty_threshold"])
    if settings["deciles"]:
        yield accuracy_table(
            of_image, joined.maps[key], joined.label, joined.prediction, class_names
        )


def _risk_curve(score: Array, wrong: Array, reported: Mapping[str, Any]) -> Recomputed:
    """Return the share of wrong pixels among the most certain ones, at the report's coverages.

    All arrays are flat. The number of points before thinning is the report's own.
    """
    if not score.size:
        return Recomputed({"curve": None})
    order = np.argsort(score, kind="stable")
    ordered, up = score[order].astype(np.float64), np.cumsum(wrong[order])
    own = reported["curve"]
    k = np.clip(np.rint(np.array(own["coverage"]) * score.size), 1, score.size).astype(np.int64)
    risk = up[k - 1] / k
    # Pixels on both sides of a cut that float32 cannot tell apart may change places.
    last, step = ordered[k - 1], noise(ordered)
    before = k - np.searchsorted(ordered, last - step, side="left")
    behind = np.searchsorted(ordered, last + step, side="right") - k
    slack = {f"curve.risk.{i}": float(n) for i, n in enumerate(np.minimum(before, behind) / k)}
    curve = {
        "coverage": (k / score.size).tolist(), "risk": risk.tolist(),
        "points": own["points"],
    }  # fmt: skip
    number = np.arange(1, score.size + 1)
    line = np.interp(number / score.size, k / score.size, risk)
    distance = np.abs(up / number - line)
    # A run does not cut inside its bins, whose width is known and whose edges are not.
    following = np.r_[ordered[1:], np.inf]
    is_surely_cut = following > ordered * (1 + BIN_WIDTH) + step
    most, least = (
        float(distance[is_cut].max(initial=0.0)) for is_cut in (following != ordered, is_surely_cut)
    )
    curve["bound"] = most
    slack["curve.bound"] = most - least + max(slack.values())  # the line moves with its points
    return Recomputed({"curve": curve}, slack)


def _per_image(parts: Sequence[Pixels], settings: Mapping[str, Any]) -> Recomputed:
    """Return mean, median, p90 and worst of the images' ECE, and the mean of their ACE."""
    eces: list[float] = []
    aces: list[float] = []
    moved, uncertain = [0.0], 0
    for item in parts:
        bins, near = equal_width(item.maps["confidence"], ~item.wrong, settings["bins"])
        ece, _, ace = gaps(bins)
        if ece is not None and ace is not None:
            eces.append(ece)
            aces.append(ace)
            moved.append(2 * near / item.label.size)
            uncertain += near
    names = ("mean", "median", "p90", "worst", "ace")
    record: dict[str, Any] = dict.fromkeys(names)
    if eces:
        quantiles = (float(np.percentile(eces, p)) for p in (50, 90, 100))
        values = float(np.mean(eces)), *quantiles, float(np.mean(aces))
        record = dict(zip(names, values, strict=True))
    slack = {f"per_image.{name}": max(moved) for name in names}
    slack["per_image.ace"] = float(uncertain > 0)
    return Recomputed({"per_image": record}, slack)
