"""Scores of failure detection of whole items, and the risk-coverage curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import uqeval.metrics._ranked_items as ranked_items
from uqeval.arrays import Array, np
from uqeval.metrics._aggregation import Aggregation
from uqeval.metrics._contract import Chance, Events, Metric
from uqeval.metrics._fitted_apart import FittedModel, threshold

_ADVICE = "Compare other aggregations (--confidence) and uncertainties (--uncertainty)."
_NONE = "no item has a risk and a confidence"
_CONSTANT = "all items have the same risk, or the same confidence"
_LIMIT = "needs items with a risk above the limit and items without"
_UNIT = (0.0, 1.0)
#: Items with a risk above the limit, and the others.
BY_LIMIT = ("failed_items", "other_items")
#: Of sets of 10 images with one expected above the limit, 32 % have none. The mean risk of these is
#: too low by far (`benchmarks/few_events.py`).
_FAILED = Events(
    lambda risk, last, failed: float(failed > 0), "risks above the limit", 1, BY_LIMIT[:1]
)
_FAILED_AND_OTHER = tuple((name,) for name in BY_LIMIT)


def _of_confidence(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score whose confidences compare pixels with a threshold."""
    aggregations = [Aggregation.find(str(model.settings.get("confidence"))) for model in models]
    return threshold(models) if any(a and a.needs_threshold for a in aggregations) else ""


METRICS = (
    Metric("image_failure", "aurc", "risk", "lower", (None, None),
           "Geifman & El-Yaniv 2017, §2; Jaeger et al. 2023, §2", _NONE,
           ranked_items.aurc,
           label="AURC", headline=1,
           meaning="Mean risk of the most confident items, averaged over all coverages.",
           advice=_ADVICE, interval="positive", units_with=("mean_risk",),
           fitted_apart=_of_confidence),
    Metric("image_failure", "e_aurc", "risk", "lower", (0.0, None), "Geifman et al. 2019, eq. 2",
           _NONE, ranked_items.e_aurc,
           label="e-AURC", headline=3,
           meaning="AURC above that of the best possible order of the items.",
           advice=_ADVICE, interval="biased", units_with=("mean_risk",),
           fitted_apart=_of_confidence),
    Metric("image_failure", "augrc", "risk", "lower", (None, None), "Traub et al. 2024, eq. 5",
           _NONE, ranked_items.augrc,
           label="AUGRC",
           meaning="Sum of the accepted items' risks over the number of all items, averaged over "
                   "all coverages.",
           advice=_ADVICE, interval="positive", units_with=("mean_risk",),
           events=_FAILED,
           fitted_apart=_of_confidence),
    Metric("image_failure", "auroc", "fraction", "higher", _UNIT, "Fawcett 2006, §7", _LIMIT,
           ranked_items.auroc,
           label="AUROC", headline=2, of_part="ranking",
           meaning="Probability that an item above the risk limit is less confident than another; "
           "0.5 is chance.",
           chance=Chance(0.5, "the confidence finds items above the risk limit"),
           advice=_ADVICE, interval="logit", units_with=_FAILED_AND_OTHER,
           fitted_apart=_of_confidence),
    Metric("image_failure", "spearman", "correlation", "higher", (-1.0, 1.0), "Spearman 1904",
           _CONSTANT, ranked_items.spearman,
           label="Spearman's ρ",
           meaning="Rank correlation of risk and uncertainty: 1 is the same order, 0 is chance.",
           chance=Chance(0.0, "the confidence ranks the items by risk"),
           advice=_ADVICE, interval="linear", units_with=("mean_risk",),
           fitted_apart=_of_confidence),
    Metric("image_failure", "kendall", "correlation", "higher", (-1.0, 1.0), "Kendall 1945 (τ-b)",
           _CONSTANT, ranked_items.kendall,
           label="Kendall's τ",
           meaning="Share of item pairs in the right order minus the share in the wrong order.",
           chance=Chance(0.0, "the confidence ranks the items by risk"),
           advice=_ADVICE, interval="linear", units_with=("mean_risk",),
           fitted_apart=_of_confidence),
    Metric("image_failure", "mean_risk", "risk", "lower", (None, None), "docs/metrics.md, Images",
           _NONE, lambda risks: sum(risks) / len(risks) if risks else None,
           label="mean risk",
           meaning="Mean risk of all items: the risk if none is rejected.",
           advice="Look at the items with the highest risk first.", interval="positive",
           events=_FAILED),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}


def curve(risk: Array, confidence: Array) -> dict[str, list[float]]:
    """Return the risk-coverage curve: a point for each distinct confidence, the highest first.

    `coverage`: the share of items that are at least as confident; `risk`: their mean risk;
    `confidence`: the lowest of them.
    """
    ranked = ranked_items.ties_of(np.ones((1, risk.size), np.int64), risk, -confidence)
    distinct = np.unique(confidence[np.isfinite(risk) & np.isfinite(confidence)])[::-1]
    return {
        "coverage": (ranked.upto[0] / max(distinct.size and ranked.total[0], 1)).tolist(),
        "risk": (ranked.errors_upto[0] / np.maximum(ranked.upto[0], 1)).tolist(),
        "confidence": distinct.tolist(),
    }
