"""Slow, obvious oracles of the scores of predicted numbers; imports nothing of uqeval.

Pixels are lists of plain floats: target y, error ε and standard deviation σ, all in float64.
Percentiles are of rank keys: λ = ε/σ and ε rounded to float32.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def f32(value: float) -> float:
    """The nearest float32."""
    return float(np.float32(value))


def mixture(members: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """μ and σ of a mixture of (μ_m, σ_m); samples have σ_m = 0."""
    means = [m for m, _ in members]
    mu = math.fsum(means) / len(means)
    return mu, math.sqrt(math.fsum(s * s + (m - mu) ** 2 for m, s in members) / len(members))


#: y, ε and σ.
Pixel = tuple[float, float, float]


def pixels(mean: Any, sigma: Any, target: Any, valid: Any = None) -> list[Pixel]:
    """(y, ε, σ) of all evaluated pixels of arrays of one shape, in float64."""
    found = []
    for i in np.ndindex(np.shape(target)):
        y = float(target[i])
        if math.isfinite(y) and (valid is None or valid[i]):
            found.append((y, abs(float(mean[i]) - y), float(sigma[i])))
    return found


def ratio(error: float, sigma: float) -> float:
    """λ."""
    if sigma == 0:
        return math.inf if error > 0 else 0.0
    with np.errstate(over="ignore"):
        return float(np.float32(error / sigma))


def percentile(values: Sequence[float], p: float, rule: str = "linear") -> float:
    """The p-th percentile by a rule of NumPy's, or the last of the first int(N·(p/100))."""
    ordered = sorted(values)
    n = len(ordered)
    if rule == "truncated":
        return ordered[int(n * (p / 100)) - 1]
    if rule == "inverted_cdf":
        return next(v for i, v in enumerate(ordered) if i + 1 >= n * (p / 100))
    place = (n - 1) * (p / 100)
    low = math.floor(place)
    high = min(low + 1, n - 1)
    if place == low or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def nmerci(
    found: Sequence[tuple[float, ...]], alpha: float = 95, rule: str = "linear",
    over: str = "all", mae: str = "full",
) -> dict[str, Any]:  # fmt: skip
    """All fields; None where undefined."""
    errors = [e for _, e, _ in found]
    sigmas = [s for _, _, s in found]
    ratios = [ratio(e, s) for e, s in zip(errors, sigmas, strict=True)]
    keys = [f32(e) for e in errors]
    lam, most = percentile(ratios, alpha, rule), percentile(keys, alpha, rule)
    trimmed = [e for e, key in zip(errors, keys, strict=True) if key <= most]
    by, spread, top = statistics.fmean(errors), statistics.fmean(sigmas), most
    if mae == "trimmed":
        by = statistics.fmean(trimmed)
    if over == "kept":
        kept = [i for i, v in enumerate(ratios) if v <= lam]
        trimmed = [errors[i] for i in kept]
        by, top = statistics.fmean(trimmed), max(trimmed)
        spread = statistics.fmean(sigmas[i] for i in kept)
    merci = lam * spread if math.isfinite(lam) else None
    value = None
    # max^α is rounded to float32: equal errors must not leave a denominator of rounding alone.
    if merci is not None and top - by > max(top * 2.0**-23, 2.0**-149):
        value = (merci - by) / (top - by)
    return {
        "nmerci": value, "merci": merci, "lambda": lam if math.isfinite(lam) else None,
        "mae": statistics.fmean(errors), "mae_trimmed": statistics.fmean(trimmed),
        "max_alpha": most, "pixels": len(errors),
    }  # fmt: skip


def coverage(found: Any, factor: float) -> float:
    """Share of the targets in μ ± factor·σ, closed."""
    _, errors, sigmas = np.asarray(found).T
    return float((errors <= factor * sigmas).mean())


def factor(p: float, distribution: str = "gaussian") -> float:
    """Half width, in units of σ, of the central interval of level p."""
    if distribution == "laplace":
        return -math.log(1 - p) / math.sqrt(2)
    return statistics.NormalDist().inv_cdf((p + 1) / 2)


def regression(
    found: Sequence[tuple[float, ...]], distribution: str = "gaussian", levels: int = 99
) -> dict[str, Any]:
    """All scalar fields, and the calibration plot."""
    n = len(found)
    errors = [e for _, e, _ in found]
    targets = [y for y, _, _ in found]
    p = [k / (levels + 1) for k in range(1, levels + 1)]
    table = np.array(found)
    observed = [coverage(table, factor(q, distribution)) for q in p]
    gaps = [a - b for a, b in zip(p, observed, strict=True)]

    def area(values: Sequence[float]) -> float:
        return math.fsum(
            (p[i + 1] - p[i]) * (values[i] + values[i + 1]) / 2 for i in range(len(p) - 1)
        )

    nll, crps = [], []
    for _, e, s in found:
        if s == 0:
            crps.append(e)
        elif distribution == "laplace":
            b = s / math.sqrt(2)
            nll.append(math.log(2 * b) + e / b)
            crps.append(e + b * math.exp(-e / b) - 0.75 * b)
        else:
            z = e / s
            normal = statistics.NormalDist()
            nll.append(0.5 * math.log(2 * math.pi) + math.log(s) + z * z / 2)
            crps.append(s * (z * math.erf(z / 2**0.5) + 2 * normal.pdf(z) - 1 / math.pi**0.5))
    spread = statistics.pvariance(targets)
    squares = statistics.fmean(e * e for e in errors)
    scores = {}
    for q in (0.5, 0.9, 0.95):
        half = [factor(q, distribution) * s for _, _, s in found]
        scores[f"{100 * q:g}"] = statistics.fmean(
            2 * h + 2 / (1 - q) * max(e - h, 0) for h, e in zip(half, errors, strict=True)
        )
    return {
        "pixels": n, "rmse": math.sqrt(squares), "mae": statistics.fmean(errors),
        "nmse": squares / spread if spread else None,
        "auce": area([abs(g) for g in gaps]), "auce_over": area([max(g, 0) for g in gaps]),
        "auce_under": area([max(-g, 0) for g in gaps]),
        "nll": statistics.fmean(nll) if len(nll) == n else None, "crps": statistics.fmean(crps),
        "sharpness": math.sqrt(statistics.fmean(s * s for _, _, s in found)),
        "interval_score": scores,
        "coverage": {f"{100 * q:g}": coverage(found, factor(q, distribution))
                     for q in (0.5, 0.9, 0.95)},
        "calibration": {"p": p, "observed": observed},
    }  # fmt: skip


def by_depth(found: Sequence[tuple[float, ...]], step: float, **settings: Any) -> list[Any]:
    """Rows of (lower, fields) for each interval [k·step, (k + 1)·step) that has pixels.

    A target within 1e-9·step below an edge lies above it.
    """
    groups: dict[int, list[tuple[float, ...]]] = {}
    for pixel in found:
        groups.setdefault(math.floor(pixel[0] / step + 1e-9), []).append(pixel)
    return [(k * step, nmerci(groups[k], **settings)) for k in sorted(groups)]


def depth(mean: Any, sigma: Any, target: Any, of_bins: Any = None) -> dict[str, Any]:
    """Depth scores, scores by bins of σ, and the best factor of σ, of flat arrays.

    `of_bins`: the σ that give the edges of the bins, if these are others than `sigma`.
    """
    m, s, y = (np.asarray(values, "f8").reshape(-1) for values in (mean, sigma, target))
    e, d, ratio = m - y, np.log(m) - np.log(y), np.maximum(m / y, y / m)
    keys = np.sort((s if of_bins is None else np.asarray(of_bins)).astype("f4").reshape(-1))
    bins = 15 * np.searchsorted(keys, s.astype("f4")) // len(keys)
    rows = [((e[k] ** 2).mean(), (s[k] ** 2).mean(), k.sum())
            for k in (bins == b for b in range(15)) if k.any()]  # fmt: skip
    factor = math.sqrt(((e / s) ** 2).mean())

    def nll(by: float) -> float:
        return float((0.5 * np.log(2 * np.pi) + np.log(by * s) + (e / (by * s)) ** 2 / 2).mean())

    return {
        "abs_rel": (abs(e) / y).mean(), "sq_rel": (e * e / y).mean(),
        "rmse_log": math.sqrt((d * d).mean()), "silog": d.std(),
        "log10": abs(np.log10(m) - np.log10(y)).mean(),
        **{f"a{k}": (ratio < 1.25**k).mean() for k in (1, 2, 3)},
        "ence": float(np.mean([abs(v**0.5 - u**0.5) / v**0.5 for u, v, _ in rows])),
        "uce": sum(n * abs(u - v) for u, v, n in rows) / len(s), "cv": s.std(ddof=1) / s.mean(),
        "sigma_scale": {"value": factor, "nll_before": nll(1.0), "nll": nll(factor)},
    }  # fmt: skip


def mono_uncertainty(mean: Any, sigma: Any, target: Any) -> dict[str, tuple[float, float]]:
    """AUSE and AURG of one image as mono-uncertainty computes them, by error."""
    steps = 50
    of_errors: dict[str, Callable[[Any, Any], Any]] = {
        "abs-rel": lambda m, y: abs(y - m) / y, "rmse": lambda m, y: (y - m) ** 2,
        "a1": lambda m, y: np.maximum(y / m, m / y),
    }  # fmt: skip
    whole: dict[str, Callable[[Any], Any]] = {
        "abs-rel": np.mean, "rmse": lambda v: math.sqrt(v.mean()),
        "a1": lambda v: (v >= 1.25).mean(),
    }  # fmt: skip
    found = {}
    for name, errors in of_errors.items():
        own, x = errors(mean, target), np.arange(steps + 1) / steps
        curves = []
        for order in (-sigma, -own):
            limits = [np.percentile(order, 100 / steps * k) for k in range(steps)]
            curves.append([whole[name](own[order >= limit]) for limit in limits] + [0.0])
        area, oracle = (np.trapezoid(curve, x) for curve in curves)
        found[name] = float(area - oracle), float(whole[name](own) - area)
    return found
