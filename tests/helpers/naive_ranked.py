"""Plain, slow oracles for failure detection and sparsification, written from definitions.md alone.

Nothing of uqeval is imported. Ties are averaged by expanding groups of equal values: every pixel
of a group stands for the group's mean.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def groups(score: Any, error: Any) -> list[list[float]]:
    """The errors of the pixels of each score, scores ascending."""
    found: dict[float, list[float]] = {}
    for s, e in zip(np.ravel(score).tolist(), np.ravel(error).tolist(), strict=True):
        found.setdefault(s + 0.0, []).append(float(e))
    return [found[s] for s in sorted(found)]


def expanded(score: Any, error: Any) -> list[float]:
    """One error a pixel, scores ascending, that of its tie."""
    return [math.fsum(g) / len(g) for g in groups(score, error) for _ in g]


# Failure detection ----------------------------------------------------------------------------


def auroc(score: Any, wrong: Any) -> float | None:
    """Chance that a wrong pixel has a larger score than a right one, ties half."""
    found, right, pairs = 0.0, 0, 0.0
    for g in groups(score, wrong):
        e = sum(g)
        found += e * right + e * (len(g) - e) / 2
        right += len(g) - int(e)
    pairs = float(np.sum(wrong)) * right
    return found / pairs if pairs else None


def average_precision(score: Any, hit: Any) -> float | None:
    """Σ (R_n - R_{n-1}) P_n over the thresholds, highest first."""
    total = float(np.sum(hit))
    if not total:
        return None
    n, hits, found = 0, 0.0, 0.0
    for g in reversed(groups(score, hit)):
        n += len(g)
        hits += sum(g)
        found += sum(g) / total * (hits / n)
    return found


def fpr95(score: Any, wrong: Any) -> float | None:
    """Share of right pixels at the highest threshold that finds 95 % of the wrong ones."""
    total, right = float(np.sum(wrong)), float(np.size(wrong) - np.sum(wrong))
    if not total or not right:
        return None
    n, hits = 0, 0.0
    for g in reversed(groups(score, wrong)):
        n += len(g)
        hits += sum(g)
        if 20 * hits >= 19 * total:
            return (n - hits) / right
    raise AssertionError


def risks(score: Any, wrong: Any) -> list[float]:
    """Error rate of the k most certain pixels, k = 1 … N; a tie is a plateau."""
    n, e, found = 0, 0.0, []
    for g in groups(score, wrong):
        n += len(g)
        e += sum(g)
        found += [e / n] * len(g)
    return found


def aurc(score: Any, wrong: Any) -> float:
    """Mean of the risks over all coverages."""
    found = risks(score, wrong)
    return math.fsum(found) / len(found)


def e_aurc(score: Any, wrong: Any) -> float:
    """AURC less that of all right pixels first, every pixel a rank of its own."""
    best = np.sort(np.ravel(wrong).astype(float))
    return aurc(score, wrong) - aurc(np.arange(best.size), best)


def augrc(score: Any, wrong: Any) -> float:
    """Area under errors of the k most certain / N over k / N, ties averaged, trapezoid."""
    values = expanded(score, wrong)
    n, before, area = len(values), 0.0, 0.0
    for v in values:
        area += (before + before + v) / 2
        before += v
    return area / n / n


def risk_at(score: Any, wrong: Any, percent: int) -> float:
    """Risk of as few of the most certain pixels as make up the coverage."""
    found = risks(score, wrong)
    return found[-(-percent * len(found) // 100) - 1]


def coverage_at(score: Any, wrong: Any, percent: int) -> float:
    """Largest coverage at which the risk is not above."""
    found = risks(score, wrong)
    good = [k for k, g in enumerate(found, 1) if round(g * k) * 100 <= percent * k]
    ends = set(np.cumsum([len(g) for g in groups(score, wrong)]).tolist())
    return max([k for k in good if k in ends], default=0) / len(found)


def failure(score: Any, wrong: Any) -> dict[str, Any]:
    """All of them."""
    return {
        "auroc": auroc(score, wrong),
        "aupr_error": average_precision(score, wrong),
        "aupr_success": average_precision(-np.ravel(score), 1 - np.ravel(wrong).astype(int)),
        "fpr95": fpr95(score, wrong),
        "aurc": aurc(score, wrong),
        "e_aurc": e_aurc(score, wrong),
        "augrc": augrc(score, wrong),
        "risk_at_coverage": {str(p): risk_at(score, wrong, p) for p in (80, 90, 95)},
        "coverage_at_risk": {str(p): coverage_at(score, wrong, p) for p in (1, 5)},
    }


# Sparsification -------------------------------------------------------------------------------


def curve(score: Any, error: Any, rooted: bool = False, steps: int = 100) -> list[float]:
    """Mean error (or its root) of the N - ⌊kN/steps⌋ pixels of the lowest scores, ties averaged."""
    values = expanded(score, error)
    n = len(values)
    means = [math.fsum(values[: n - k * n // steps]) / (n - k * n // steps) for k in range(steps)]
    return [math.sqrt(m) for m in means] if rooted else means


def trapezoid(values: Sequence[float], width: float) -> float:
    """Area under points `width` apart."""
    return math.fsum((a + b) / 2 * width for a, b in itertools.pairwise(values))


def sparsification(score: Any, error: Any, rooted: bool = False) -> dict[str, Any]:
    """Both curves divided by the value at 0, AUSE and AURG; `error` squared already for rmse."""
    model, oracle = curve(score, error, rooted), curve(error, error, rooted)
    model, oracle = ([v / c[0] for v in c] for c in (model, oracle))
    return {
        "curve": model,
        "oracle": oracle,
        "ause": trapezoid([a - b for a, b in zip(model, oracle, strict=True)], 0.01),
        "aurg": trapezoid([1 - a for a in model], 0.01),
    }


# Codes in use, by their own rules -------------------------------------------------------------


def gustafsson_code(sigma: Any, error: Any, rooted: bool) -> tuple[list[float], list[float], float]:
    """evaluating_bdl, ensembling_eval_ause.py: curves and AUSE; `error` is squared for rmse."""
    found = []
    fractions = np.arange(0, 1, step=0.01)
    for order in (np.argsort(sigma), np.argsort(error)):
        values = []
        for fraction in fractions:
            kept = error[order][: int((1.0 - fraction) * error.shape[0])]
            values.append(np.sqrt(np.mean(kept)) if rooted else np.mean(kept))
        found.append([float(v / values[0]) for v in values])
    difference = np.array(found[0]) - np.array(found[1])
    return found[0], found[1], float(np.trapezoid(y=difference, x=fractions))


def mono_uncertainty(uncertainty: Any, error: Any, rooted: bool) -> tuple[float, float]:
    """mono-uncertainty, compute_aucs of one image: AUSE and AURG; `error` as above."""
    intervals = 50
    quants = [100.0 / intervals * t for t in range(intervals)]
    plotx = [1.0 / intervals * t for t in range(intervals + 1)]

    def reduced(mask: Any) -> float:
        mean = np.mean(error[mask])
        return float(np.sqrt(mean) if rooted else mean)

    areas = []
    for score in (-uncertainty, -error):
        thresholds = [np.percentile(score, q) for q in quants]
        values = [reduced(score >= t) for t in thresholds] + [0]
        areas.append(float(np.trapezoid(values, x=plotx)))
    return areas[0] - areas[1], reduced(np.ones(error.shape, bool)) - areas[0]


def torch_uncertainty_0_13(scores: Any, errors: Any) -> float:
    """torch-uncertainty 0.13, AUSE: every rank, mean of what is retained over the mean error."""
    n = len(errors)
    curves = []
    for order in (np.argsort(scores), np.argsort(errors)):
        retained = np.cumsum(errors[order]) / np.arange(1, n + 1)
        curves.append(retained[::-1] / np.mean(errors))
    return float(np.trapezoid(curves[0] - curves[1], x=np.arange(n) / n))
