"""Plain, slow oracles for out-of-distribution detection, from definitions alone.

Nothing of uqeval is imported. `inside` and `outside` are the uncertainties of single pixels or
items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def harmonic_mean(values: Sequence[float]) -> float:
    """Return n/Σ 1/x."""
    return len(values) / sum(1 / value for value in values)


def higher_better(scores: Mapping[str, float | None]) -> list[float]:
    """Return the scores, and 1 minus those that are better if they are lower."""
    found = []
    for name, value in scores.items():
        assert value is not None, name
        found.append(1 - value if name in ("ece", "fpr95", "ood_fpr95") else value)
    return found


def bravo(miou: float, confidence: Any, hit: Any, inside: Any, outside: Any) -> dict[str, Any]:
    """The scores of the BRAVO challenge: of valid pixels, and of pixels in and out of the mask."""
    sure = [float(c) for c in confidence]
    right = [bool(h) for h in hit]
    bins: dict[int, list[float]] = {}
    for c, h in zip(sure, right, strict=True):
        k = max(i for i in range(15) if c >= i / 15)
        bins.setdefault(k, []).append(c - h)
    ece = sum(abs(sum(own)) for own in bins.values()) / len(sure)
    doubt = [-c for c in sure]
    wrong = [not h for h in right]
    semantic = {
        "miou": miou,
        "ece": ece,
        "auroc": naive_ranked.auroc(doubt, wrong),
        "aupr_success": naive_ranked.average_precision(sure, right),
        "aupr_error": naive_ranked.average_precision(doubt, wrong),
        "fpr95": naive_ranked.fpr95(sure, right),
    }
    own = ood([-float(c) for c in inside], [-float(c) for c in outside])
    found = {"ood_auroc": own["auroc"], "ood_aupr": own["aupr_out"], "ood_fpr95": own["fpr95"]}
    means = [harmonic_mean(higher_better(scores)) for scores in (semantic, found)]
    return semantic | found | {
        "semantic": means[0], "ood": means[1], "bravo_index": harmonic_mean(means),
    }  # fmt: skip
