"""Plain, slow oracles for out-of-distribution detection, from definitions alone.

Nothing of uqeval is imported. `inside` and `outside` are the uncertainties of single pixels or
items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import naive_ranked


def detection_error(inside: Sequence[float], outside: Sequence[float]) -> float | None:
    """Least of (share of IN at or above t + share of OUT below t)/2 over all thresholds t."""
    if not len(inside) or not len(outside):
        return None
    return min(
        (sum(u >= t for u in inside) / len(inside) + sum(u < t for u in outside) / len(outside)) / 2
        for t in [*inside, *outside, float("inf")]
    )


def ood(inside: Any, outside: Any) -> dict[str, Any]:
    """All scores."""
    inside, outside = ([float(u) for u in own] for own in (inside, outside))
    score, out = [*inside, *outside], [0] * len(inside) + [1] * len(outside)
    return {
        "auroc": naive_ranked.auroc(score, out),
        "aupr_out": naive_ranked.average_precision(score, out),
        "aupr_in": naive_ranked.average_precision([-u for u in score], [1 - k for k in out]),
        "fpr95": naive_ranked.fpr95(score, out),
        "detection_error": detection_error(inside, outside),
    }
