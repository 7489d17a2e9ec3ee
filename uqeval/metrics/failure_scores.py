"""How well an uncertainty finds errors: formulas over a ladder of pixels and wrong ones.

Errors are the positives, the uncertainty their score. A threshold accepts or rejects the pixels of
a tie together; AUROC and AUGRC average over their orders. Each area has a bound: how far it may be
from its exact value because the pixels of a bin are counted as a tie, whatever their order.

N pixels, E wrong, C right; a rung has n pixels, e wrong and c right ones; below it (more certain)
lie N_b pixels, E_b wrong and C_b right ones, and ↑ includes the rung itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.metrics._advice import RANKING
from uqeval.metrics._contract import Metric, set_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._rank_bins import RankBins

#: Coverages and risks, in percent, at which the risk-coverage curve is read.
COVERAGES, RISKS = (80, 90, 95), (1, 5)

#: A value and how far it may be from the exact one.
Bounded = tuple[float, float] | None


def auroc(ladder: RankBins) -> Bounded:
    """Σ e·(C_b + c/2) / (E·C): the chance that a wrong pixel is less certain than a right one.

    Fawcett 2006, §7. A bin can move it by e·c/2. Undefined without wrong or without right pixels.
    """
    e, c, _, right = _parts(ladder)
    if not e.any() or not c.any():
        return None
    pairs = float(e.sum()) * float(c.sum())
    value = float((e * (right - c + c / 2)).sum()) / pairs
    return value, _swaps(ladder) / pairs


def aupr_error(ladder: RankBins) -> Bounded:
    """Σ e/E · E↑/N↑, from the least certain on: scikit-learn's average_precision of the errors.

    A bin's own part lies between e·(E_a + 1)/(N_a + c + 1) and e·(E_a + e)/(N_a + e), with E_a of
    N_a pixels above it. Undefined without wrong pixels.
    """
    e, c, _, _ = _parts(ladder)
    return _average_precision(e[::-1], c[::-1], ladder.open[::-1])


def aupr_success(ladder: RankBins) -> Bounded:
    """As `aupr_error`, for right pixels found by certainty. Undefined without right pixels."""
    e, c, _, _ = _parts(ladder)
    return _average_precision(c, e, ladder.open)


def _average_precision(hit: NDArray[Any], miss: NDArray[Any], open_: NDArray[Any]) -> Bounded:
    import numpy as np

    total = float(hit.sum())
    if not total:
        return None
    hits, all_ = np.cumsum(hit), np.cumsum(hit + miss)
    value = hit * (hits / all_)
    at = np.flatnonzero(open_ & (hit > 0))
    own, hit, miss, hits, all_ = (v[at] for v in (value, hit, miss, hits, all_))
    most = hit * (hits / (all_ - miss))
    least = hit * ((hits - hit + 1) / (all_ - hit + 1))
    spread = np.maximum(most - own, own - least)
    return float(value.sum()) / total, float(spread.sum()) / total


def aurc(ladder: RankBins) -> Bounded:
    """Σ n·E↑/N↑ / N: mean error rate of the k most certain pixels, k = 1 … N, ties as plateaus.

    Geifman & El-Yaniv 2017; Geifman et al. 2019, eq. 1. A bin's own part lies between
    n·E_b/(N_b + c) and n·(E_b + e)/(N_b + e). Undefined without pixels.
    """
    import numpy as np

    e, c, wrong, right = _parts(ladder)
    n, total = ladder.pixels, ladder.total
    if not total:
        return None
    value = n * (wrong / (wrong + right))
    at = np.flatnonzero(ladder.open)
    own, n, e, c, wrong, right = (v[at] for v in (value, n, e, c, wrong, right))
    below = wrong - e
    with np.errstate(invalid="ignore"):
        least = np.where(below > 0, n * (below / (wrong + right - e)), 0.0)
        most = np.where(wrong > 0, n * (wrong / (wrong + right - c)), 0.0)
    spread = np.maximum(most - own, own - least)
    return float(value.sum()) / total, float(spread.sum()) / total


def e_aurc(ladder: RankBins) -> Bounded:
    """AURC less that of the best ordering, which has all errors last: Geifman et al. 2019, eq. 2.

    Undefined without pixels.
    """
    return _excess(ladder, aurc(ladder))


def _excess(ladder: RankBins, found: Bounded) -> Bounded:
    if found is None:
        return None
    return found[0] - best_aurc(ladder.total, int(ladder.errors.sum())), found[1]


def augrc(ladder: RankBins) -> Bounded:
    """Area under E(k)/N over k/N, 0 to 1, ties averaged: Traub et al. 2024, eq. 5.

    Equal to r·(1 - r)·(1 - AUROC) + r²/2 with r = E/N. A bin can move it by e·c/2. Undefined
    without pixels.
    """
    e, _, wrong, _ = _parts(ladder)
    total = ladder.total
    if not total:
        return None
    area = float((ladder.pixels * (wrong - e / 2)).sum()) / total / total
    return area, _swaps(ladder) / total / total


def _swaps(ladder: RankBins) -> float:
    """Σ e·c/2 of the open rungs."""
    open_ = ladder.open
    e = ladder.errors[open_]
    return float((e * (ladder.pixels[open_] - e) / 2).sum())


def best_aurc(pixels: int, wrong: int) -> float:
    """AURC with all errors last: (E - C·(H_N - H_C))/N, H the harmonic numbers."""
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


def fpr95(ladder: RankBins) -> float | None:
    """Share of the right pixels that are rejected with 95 % of the wrong ones.

    At the highest threshold that rejects at least 95 % of the wrong pixels. Undefined without
    wrong or without right pixels.
    """
    e, c, _, right = _parts(ladder)
    if not e.sum() or not c.sum():
        return None
    at = _rung_of_95(ladder)
    return int(right[-1] - right[at] + c[at]) / int(right[-1])


def risk_at(ladder: RankBins, percent: int) -> float | None:
    """Error rate of the most certain pixels, as few as make up the coverage, ties together."""
    if not ladder.total:
        return None
    at = _rung_of_coverage(ladder, percent)
    return int(ladder.errors_upto[at]) / int(ladder.upto[at])


def coverage_at(ladder: RankBins, percent: int) -> float | None:
    """Largest share of pixels, the most certain ones, with an error rate not above `percent` %.

    0 where even the most certain tie has a higher one.
    """
    if not ladder.total:
        return None
    upto = ladder.upto
    good = 100 * ladder.errors_upto <= percent * upto
    return int(upto[good].max(initial=0)) / ladder.total


def cut_rungs(ladder: RankBins) -> list[int]:
    """Open rungs that have to be split before what cuts at given ranks is exact, in order of need.

    The rungs that hold a wanted rank; and for the coverage at a risk, those above the last known
    good rung in which a better one may hide.
    """
    import numpy as np

    if not ladder.total:
        return []
    e, _, wrong, right = _parts(ladder)
    upto = wrong + right
    wanted = _cuts(ladder)
    for percent in RISKS:
        good = np.flatnonzero(100 * wrong <= percent * upto)
        hopeful = 100 * (wrong - e) <= percent * (upto - e)
        hopeful[: good[-1] + 1 if good.size else 0] = False
        wanted += np.flatnonzero(hopeful & ladder.open)[::-1].tolist()
    return [i for i in dict.fromkeys(wanted) if ladder.open[i]]


def cut_ties(ladder: RankBins) -> int:
    """Pixels of the ties at a wanted coverage, or at 95 % of the wrong pixels, which no threshold
    divides; exact once `cut_rungs` is empty.
    """
    if not ladder.total:
        return 0
    return sum(int(ladder.pixels[i]) for i in set(_cuts(ladder)) if ladder.pixels[i] > 1)


def widest_rungs(ladder: RankBins, count: int) -> list[int]:
    """The open rungs that widen the bounds most."""
    import numpy as np

    e, c, wrong, right = _parts(ladder)
    # What a rung adds to the bound of AUROC, and of AURC and AUPR, each as a share of its largest.
    widths = (e * c / 2, ladder.pixels * (ladder.pixels / (wrong + right)))
    width = sum(w / max(w.max(initial=0), 1e-300) for w in widths) * ladder.open
    order = np.argsort(-width, kind="stable")[:count]
    return [int(i) for i in order if width[i] > 0]


def _cuts(ladder: RankBins) -> list[int]:
    """The rungs of the wanted coverages, and of 95 % of the wrong pixels where there are both."""
    rungs = [_rung_of_coverage(ladder, percent) for percent in COVERAGES]
    wrong = int(ladder.errors.sum())
    return [*rungs, _rung_of_95(ladder)] if 0 < wrong < ladder.total else rungs


def _rung_of_95(ladder: RankBins) -> int:
    import numpy as np

    wrong = ladder.errors_upto
    above = wrong[-1] - wrong + ladder.errors
    return int(np.flatnonzero(20 * above >= 19 * wrong[-1])[-1])


def _rung_of_coverage(ladder: RankBins, percent: int) -> int:
    import numpy as np

    return int(np.flatnonzero(100 * ladder.upto >= percent * ladder.total)[0])


def _parts(ladder: RankBins) -> tuple[NDArray[Any], ...]:
    """e, c of each rung; wrong and right pixels up to its end."""
    e, wrong = ladder.errors, ladder.errors_upto
    return e, ladder.pixels - e, wrong, ladder.upto - wrong


def _value(area: Callable[[RankBins], Bounded]) -> Callable[[RankBins], float | None]:
    def value(ladder: RankBins) -> float | None:
        found = area(ladder)
        return None if found is None else found[0]

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

METRICS = (
    Metric("failure", "auroc", "fraction", "higher", _UNIT, "Fawcett 2006, §7", _BOTH,
           _value(auroc),
           label="AUROC", headline=1,
           meaning="Probability that a wrong pixel is more uncertain than a right one; 0.5 is "
           "chance.",
           advice=RANKING, interval="logit"),
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
           advice=RANKING, interval="draws"),
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
           meaning="Error rate of the most certain pixels, at a share of them.",
           advice=RANKING, interval="draws"),
    Metric("failure", "coverage_at_risk", "fraction", "higher", _UNIT,
           "Geifman & El-Yaniv 2017, §2", _VOID, coverage_at,
           label="coverage at risk",
           meaning="Largest share of pixels that can be accepted at an error rate.",
           advice=RANKING, interval="draws"),
    Metric("failure", "undetected_error_rate", "fraction", "lower", _UNIT,
           "docs/metrics.md, Failure detection", _VOID,
           lambda pixels, undetected: undetected / pixels if pixels else None,
           label="undetected errors", headline=4, column="undetected",
           meaning="Share of all pixels that are wrong and not flagged as uncertain.",
           advice="Lower the uncertainty threshold (--threshold).",
           interval="share",
           counted=("pixels",)),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}


def scores(ladder: RankBins) -> dict[str, Any]:
    """All scores that a ladder gives, with the bounds of the areas."""
    record: dict[str, Any] = {}
    for field in ("auroc", "aupr_error", "aupr_success"):
        _put_area(record, field, AREAS[field](ladder))
    set_value(record, "fpr95", fpr95(ladder), _BOTH)
    area = aurc(ladder)
    _put_area(record, "aurc", area)
    _put_area(record, "e_aurc", _excess(ladder, area))
    _put_area(record, "augrc", augrc(ladder))
    for field, formula, percents in (
        ("risk_at_coverage", risk_at, COVERAGES), ("coverage_at_risk", coverage_at, RISKS),
    ):  # fmt: skip
        record[field] = {}
        for percent in percents:
            set_value(record[field], str(percent), formula(ladder, percent), _VOID)
    return record


def _put_area(record: dict[str, Any], field: str, found: Bounded) -> None:
    set_value(record, field, None if found is None else found[0], BY_FIELD[field].undefined)
    record[f"{field}_bound"] = None if found is None else found[1]
    if found is None:
        record[f"{field}_bound_reason"] = BY_FIELD[field].undefined
