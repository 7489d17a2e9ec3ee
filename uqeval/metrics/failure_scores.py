"""How well an uncertainty finds errors: formulas over bins of pixels and wrong ones.

Errors are the positives, the uncertainty their score. A threshold accepts or rejects the pixels of
a tie together; AUROC and AUGRC average over their orders. Each area has a bound: how far it may be
from its exact value because the pixels of a bin are counted as a tie, whatever their order.

N pixels, E wrong, C right; a bin has n pixels, e wrong and c right ones; below it (more certain)
lie N_b pixels, E_b wrong and C_b right ones, and ↑ includes the bin itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._contract import RANKING, Chance, Metric, set_value
from uqeval.metrics.failure_cuts import (
    COVERAGES,
    RISKS,
    coverage_at,
    fpr95,
    risk_at,
    wrong_and_right,
)

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins


#: A value and the bound of its error.
Bounded = tuple[float, float] | None


def auroc(rank_bins: RankBins) -> Bounded:
    """Return Σ e·(C_b + c/2) / (E·C): the probability that a wrong pixel is less certain than a
    right one.

    Fawcett 2006, §7. A bin can move it by e·c/2. Undefined without wrong or without right pixels.
    """
    e, c, _, right = wrong_and_right(rank_bins)
    if not e.any() or not c.any():
        return None
    pairs = float(e.sum()) * float(c.sum())
    value = float((e * (right - c + c / 2)).sum()) / pairs
    return value, _swaps(rank_bins) / pairs


def aupr_error(rank_bins: RankBins) -> Bounded:
    """Return Σ e/E · E↑/N↑, from the least certain on: scikit-learn's average_precision of the
    errors.

    A bin's own part lies between e·(E_a + 1)/(N_a + c + 1) and e·(E_a + e)/(N_a + e), with E_a of
    N_a pixels above it. Undefined without wrong pixels.
    """
    e, c, _, _ = wrong_and_right(rank_bins)
    return _average_precision(e[::-1], c[::-1], rank_bins.open[::-1])


def aupr_success(rank_bins: RankBins) -> Bounded:
    """Return the same as `aupr_error`, for right pixels ranked by certainty. Undefined
    without right pixels.
    """
    e, c, _, _ = wrong_and_right(rank_bins)
    return _average_precision(c, e, rank_bins.open)


def _average_precision(hit: Array, miss: Array, open_: Array) -> Bounded:
    total = float(hit.sum())
    if not total:
        return None
    hits, all_ = np.cumsum(hit), np.cumsum(hit + miss)
    value = hit * (hits / all_)
    at = np.flatnonzero(open_ & (hit > 0))
    precision, hit, miss, hits, all_ = (v[at] for v in (value, hit, miss, hits, all_))
    most = hit * (hits / (all_ - miss))
    least = hit * ((hits - hit + 1) / (all_ - hit + 1))
    spread = np.maximum(most - precision, precision - least)
    return float(value.sum()) / total, float(spread.sum()) / total


def aurc(rank_bins: RankBins) -> Bounded:
    """Return Σ n·E↑/N↑ / N: mean error rate of the k most certain pixels, k = 1 … N, ties as
    plateaus.

    Geifman & El-Yaniv 2017; Geifman et al. 2019, eq. 1. A bin's own part lies between
    n·E_b/(N_b + c) and n·(E_b + e)/(N_b + e). Undefined without pixels.
    """
    e, c, wrong, right = wrong_and_right(rank_bins)
    n, total = rank_bins.pixels, rank_bins.total
    if not total:
        return None
    value = n * (wrong / (wrong + right))
    at = np.flatnonzero(rank_bins.open)
    risk, n, e, c, wrong, right = (v[at] for v in (value, n, e, c, wrong, right))
    below = wrong - e
    with np.errstate(invalid="ignore"):
        least = np.where(below > 0, n * (below / (wrong + right - e)), 0.0)
        most = np.where(wrong > 0, n * (wrong / (wrong + right - c)), 0.0)
    spread = np.maximum(most - risk, risk - least)
    return float(value.sum()) / total, float(spread.sum()) / total


def e_aurc(rank_bins: RankBins) -> Bounded:
    """Return AURC minus that of the best order, which has all errors last: Geifman et al. 2019,
    eq. 2.

    Undefined without pixels.
    """
    return _excess(rank_bins, aurc(rank_bins))


def _excess(rank_bins: RankBins, area: Bounded) -> Bounded:
    if area is None:
        return None
    return area[0] - best_aurc(rank_bins.total, int(rank_bins.errors.sum())), area[1]


def augrc(rank_bins: RankBins) -> Bounded:
    """Return area under E(k)/N over k/N, 0 to 1, ties averaged: Traub et al. 2024, eq. 5.

    Equal to r·(1 - r)·(1 - AUROC) + r²/2 with r = E/N. A bin can move it by e·c/2. Undefined
    without pixels.
    """
    e, _, wrong, _ = wrong_and_right(rank_bins)
    total = rank_bins.total
    if not total:
        return None
    area = float((rank_bins.pixels * (wrong - e / 2)).sum()) / total / total
    return area, _swaps(rank_bins) / total / total


def _swaps(rank_bins: RankBins) -> float:
    """Return Σ e·c/2 of the open bins."""
    open_ = rank_bins.open
    e = rank_bins.errors[open_]
    return float((e * (rank_bins.pixels[open_] - e) / 2).sum())


def best_aurc(pixels: int, wrong: int) -> float:
    """Return AURC with all errors last: (E - C·(H_N - H_C))/N, H the harmonic numbers."""
    right = pixels - wrong
    if wrong == 0:
        return 0.0
    return (wrong - right * harmonic(right, pixels)) / pixels


def harmonic(a: int, b: int) -> float:
    """Return H_b - H_a = 1/(a + 1) + … + 1/b for 0 <= a <= b, with at most 64 terms added up."""
    if not 0 <= a <= b:
        raise ValueError(f"harmonic numbers of {a} and {b}")
    start = min(max(a, 64), b)
    first = math.fsum(1 / m for m in range(a + 1, start + 1))
    if start == b:
        return first
    tail = [math.log1p((b - start) / start), 1 / (2 * b), -1 / (2 * start)]
    tail += [-1 / (12 * b**2), 1 / (12 * start**2), 1 / (120 * b**4), -1 / (120 * start**4)]
    tail += [-1 / (252 * b**6), 1 / (252 * start**6)]
    return math.fsum([first, *tail])


def _value(area: Callable[[RankBins], Bounded]) -> Callable[[RankBins], float | None]:
    def value(rank_bins: RankBins) -> float | None:
        bounded = area(rank_bins)
        return None if bounded is None else bounded[0]

    return value


_BOTH = "needs both right and wrong pixels"
_WRONG = "no pixel is wrong"
_RIGHT = "no pixel is right"
_VOID = "no labelled pixel: all are void"
_UNIT = (0.0, 1.0)

AREAS: dict[str, Callable[[RankBins], Bounded]] = {
    "auroc": auroc, "aupr_error": aupr_error, "aupr_success": aupr_success,
    "aurc": aurc, "e_aurc": e_aurc, "augrc": augrc,
}  # fmt: skip

#: Fields that are defined in units with a wrong pixel, and with a right one.
_WRONG_AND_RIGHT = ("aupr_error", "aupr_success")
METRICS = (
    Metric("failure", "auroc", "fraction", "higher", _UNIT, "Fawcett 2006, §7", _BOTH,
           _value(auroc),
           label="AUROC", headline=1,
           meaning="Probability that a wrong pixel is more uncertain than a right one; 0.5 is "
           "chance.",
           chance=Chance(0.5, "the uncertainty finds wrong pixels"),
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "aupr_error", "fraction", "higher", _UNIT, "Hendrycks & Gimpel 2017, §3",
           _WRONG, _value(aupr_error),
           label="AUPR of errors", column="AUPR error",
           meaning="Mean precision when errors are searched by uncertainty.",
           advice=RANKING, interval="logit"),
    Metric("failure", "aupr_success", "fraction", "higher", _UNIT, "Hendrycks & Gimpel 2017, §3",
           _RIGHT, _value(aupr_success),
           label="AUPR of successes", column="AUPR success",
           meaning="Mean precision when right pixels are searched by certainty.",
           advice=RANKING, interval="logit"),
    Metric("failure", "fpr95", "fraction", "lower", _UNIT, "Liang et al. 2018, §4", _BOTH, fpr95,
           label="FPR95", headline=3,
           meaning="Share of right pixels that are flagged when 95 % of the errors are flagged.",
           chance=Chance(0.95, "the uncertainty finds wrong pixels"),
           advice=RANKING, interval="draws", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "aurc", "fraction", "lower", _UNIT, "Geifman et al. 2019, eq. 1", _VOID,
           _value(aurc),
           label="AURC", headline=2,
           meaning="Error rate of the accepted pixels, averaged over all coverages.",
           advice=RANKING, interval="logit"),
    Metric("failure", "e_aurc", "fraction", "lower", _UNIT, "Geifman et al. 2019, eq. 2", _VOID,
           _value(e_aurc),
           label="e-AURC",
           meaning="AURC above that of the best possible order.",
           advice=RANKING, interval="logit"),
    Metric("failure", "augrc", "fraction", "lower", (0.0, 0.5), "Traub et al. 2024, eq. 5", _VOID,
           _value(augrc),
           label="AUGRC",
           meaning="Probability that a pixel is wrong and accepted, averaged over all coverages.",
           advice=RANKING, interval="logit"),
    Metric("failure", "risk_at_coverage", "fraction", "lower", _UNIT, "Geifman & El-Yaniv 2017, §2",
           _VOID, risk_at,
           label="risk at coverage",
           meaning="Error rate of the most certain pixels, at a given coverage.",
           advice=RANKING, interval="draws"),
    Metric("failure", "coverage_at_risk", "fraction", "higher", _UNIT,
           "Geifman & El-Yaniv 2017, §2", _VOID, coverage_at,
           label="coverage at risk",
           meaning="Largest share of pixels that can be accepted with at most a given error rate.",
           advice=RANKING, interval="draws",
           counted=("pixels",),
           events=lambda share, pixels, risk: share * pixels * int(risk) / 100),
    Metric("failure", "undetected_error_rate", "fraction", "lower", _UNIT,
           "docs/metrics.md, Failure detection", _VOID,
           lambda pixels, undetected: undetected / pixels if pixels else None,
           label="undetected errors", headline=4, column="undetected",
           meaning="Share of all pixels that are wrong and not flagged as uncertain.",
           advice="Lower the uncertainty threshold (--threshold).", risk=True,
           interval="share",
           counted=("pixels",)),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}


def scores(rank_bins: RankBins) -> dict[str, Any]:
    """Return all scores from bins, with the bounds of the areas."""
    record: dict[str, Any] = {}
    for field in ("auroc", "aupr_error", "aupr_success"):
        _put_area(record, field, AREAS[field](rank_bins))
    set_value(record, "fpr95", fpr95(rank_bins), _BOTH)
    area = aurc(rank_bins)
    _put_area(record, "aurc", area)
    _put_area(record, "e_aurc", _excess(rank_bins, area))
    _put_area(record, "augrc", augrc(rank_bins))
    for field, formula, percents in (
        ("risk_at_coverage", risk_at, COVERAGES), ("coverage_at_risk", coverage_at, RISKS),
    ):  # fmt: skip
        record[field] = {}
        for percent in percents:
            set_value(record[field], str(percent), formula(rank_bins, percent), _VOID)
    return record


def _put_area(record: dict[str, Any], field: str, bounded: Bounded) -> None:
    set_value(record, field, None if bounded is None else bounded[0], BY_FIELD[field].undefined)
    record[f"{field}_bound"] = None if bounded is None else bounded[1]
    if bounded is None:
        record[f"{field}_bound_reason"] = BY_FIELD[field].undefined
