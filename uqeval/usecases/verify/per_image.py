"""Calibration of single images: the distribution of their ECE, and the mean of their ACE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.usecases.verify.class_scores import equal_width, gaps
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.families import Pixels


def per_image(parts: Sequence[Pixels], settings: Mapping[str, Any]) -> Recomputed:
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
