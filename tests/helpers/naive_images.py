"""Plain, slow oracles for failure detection of whole items, from definitions alone.

Nothing of uqeval is imported. `risks` and `uncertainties` are lists of numbers, one an item.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import naive_ranked


def auroc(positive: Sequence[bool], score: Sequence[float]) -> float | None:
    """Chance that a positive has a larger score, ties half."""
    pairs = [
        (a > b) + (a == b) / 2
        for a, p in zip(score, positive, strict=True) if p
        for b, q in zip(score, positive, strict=True) if not q
    ]  # fmt: skip
    return math.fsum(pairs) / len(pairs) if pairs else None


def ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value from 1, ties averaged."""
    return [
        sum(other < own for other in values) + (sum(other == own for other in values) + 1) / 2
        for own in values
    ]


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's r; None where one of the two is constant."""
    n = len(x)
    if not n:
        return None
    a, b = ([v - math.fsum(own) / n for v in own] for own in (x, y))
    square = math.fsum(v * v for v in a) * math.fsum(v * v for v in b)
    products = math.fsum(v * w for v, w in zip(a, b, strict=True))
    return products / math.sqrt(square) if square else None


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's τ-b, pair by pair."""
    signs = [
        ((a > c) - (a < c), (b > d) - (b < d))
        for (a, b), (c, d) in itertools.combinations(zip(x, y, strict=True), 2)
    ]
    total = sum(s * t for s, t in signs)
    product = sum(s != 0 for s, _ in signs) * sum(t != 0 for _, t in signs)
    return total / math.sqrt(product) if product else None


def image_failure(
    risks: Sequence[float], uncertainties: Sequence[float], limit: float
) -> dict[str, Any]:
    """All scores of items with these risks and uncertainties."""
    return {
        "aurc": naive_ranked.aurc(uncertainties, risks),
        "e_aurc": naive_ranked.e_aurc(uncertainties, risks),
        "augrc": naive_ranked.augrc(uncertainties, risks),
        "auroc": auroc([risk > limit for risk in risks], uncertainties),
        "spearman": pearson(ranks(risks), ranks(uncertainties)),
        "kendall": kendall(risks, uncertainties),
        "mean_risk": math.fsum(risks) / len(risks),
    }
