"""Slow, obvious calibration: oracles that import nothing of uqeval.

Everywhere: `conf` float32 confidences and `hit` bools of the counted pixels, one-dimensional;
`probs` float32 [class, i] and `label` [i] of the counted pixels.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np


def flatten(probs: Any, label: Any, void: int = 255) -> tuple[Any, Any]:
    """[class, i] and [i] of the non-void pixels of probabilities [n, class, y, x] and labels."""
    p = np.moveaxis(np.asarray(probs), 1, 0).reshape(np.shape(probs)[1], -1)
    y = np.asarray(label).reshape(-1)
    return p[:, y != void], y[y != void].astype(int)


def top(probs: Any, label: Any) -> tuple[Any, Any]:
    """Confidences and hits; of equally likely classes the first is predicted."""
    return probs.max(axis=0), probs.argmax(axis=0) == label


def bin_of(conf: Any, bins: int, edge: str = "lower", at_one: str = "last") -> int | None:
    """The bin of one confidence, by exact fractions; `bins` for a bin of its own, None for none."""
    c = Fraction(float(conf))
    if edge == "lower":
        return min(max(math.ceil(bins * c), 1) - 1, bins - 1)
    if c >= 1:
        return {"last": bins - 1, "own": bins, "drop": None}[at_one]
    limits = [Fraction(k, bins) for k in range(bins + 1)]
    if edge == "upper-float32":
        limits = [Fraction(float(np.float32(k / bins))) for k in range(bins + 1)]
    return max(k for k in range(bins) if limits[k] <= c)


def groups(conf: Any, hit: Any, place: Any) -> dict[int, list[tuple[float, bool]]]:
    """Pixels by bin, those without one left out."""
    found: dict[int, list[tuple[float, bool]]] = {}
    for c, h, b in zip(conf, hit, place, strict=True):
        if b is not None:
            found.setdefault(b, []).append((float(c), bool(h)))
    return found


def gap(pixels: list[tuple[float, bool]]) -> float:
    """|mean confidence - accuracy|."""
    n = len(pixels)
    return abs(math.fsum(c for c, _ in pixels) / n - sum(h for _, h in pixels) / n)


def ece_mce(conf: Any, hit: Any, place: Any) -> tuple[float, float]:
    """ECE over all pixels, and MCE, of pixels in the bins `place`."""
    found = groups(conf, hit, place)
    ece = math.fsum(len(g) / len(conf) * gap(g) for g in found.values())
    return ece, max(gap(g) for g in found.values())


def equal_width(conf: Any, hit: Any, bins: int, *rule: str) -> tuple[float, float]:
    """ECE and MCE with bins of equal width."""
    return ece_mce(conf, hit, [bin_of(c, bins, *rule) for c in conf])


def adaptive_ece(conf: Any, hit: Any, bins: int) -> float:
    """ECE with the bins ⌊B·#{conf < c}/N⌋."""
    below = np.searchsorted(np.sort(conf), conf, side="left")
    return ece_mce(conf, hit, [bins * int(m) // len(conf) for m in below])[0]


def sweep(conf: Any, hit: Any) -> tuple[float, float, int]:
    """Roelofs et al. 2022: errors of norm 1 and 2 of 2, 3 … bins of equal mass, as many as there
    are before the accuracy falls from a bin to the next; and how many. Ties stay together."""
    below = np.searchsorted(np.sort(conf), conf, side="left")
    kept, most = [0] * len(conf), 1
    for bins in range(2, len(conf)):
        place = [bins * int(m) // len(conf) for m in below]
        found = groups(conf, hit, place)
        accuracy = [Fraction(sum(h for _, h in found[b]), len(found[b])) for b in sorted(found)]
        if accuracy != sorted(accuracy):
            break
        kept, most = place, bins
    inside = groups(conf, hit, kept).values()
    powers = [math.fsum(len(g) * gap(g) ** p for g in inside) / len(conf) for p in (1, 2)]
    return powers[0], math.sqrt(powers[1]), most


def kumar_l2(conf: Any, hit: Any, edges: Any) -> float:
    """Kumar et al. 2019: squared gaps less the variance of the accuracy, bins (lo, hi]."""
    total = 0.0
    for pixels in groups(conf, hit, np.searchsorted(np.unique(edges), conf).tolist()).values():
        n = len(pixels)
        if n > 1:
            accuracy = sum(h for _, h in pixels) / n
            total += n / len(conf) * (gap(pixels) ** 2 - accuracy * (1 - accuracy) / (n - 1))
    return math.sqrt(max(total, 0.0))


def kumar_l1(conf: Any, hit: Any, edges: Any) -> float:
    """uncertainty-calibration's `normal_debiased_ce`, its 1,000 draws replaced by a midpoint sum
    over the quantiles of the normal distribution; bins (lo, hi] between `edges`."""
    found = groups(conf, hit, np.searchsorted(np.unique(edges), conf).tolist())
    quantiles = [NormalDist().inv_cdf((i + 0.5) / 200_000) for i in range(200_000)]
    total = 0.0
    for pixels in found.values():
        n = len(pixels)
        accuracy, mean = sum(h for _, h in pixels) / n, math.fsum(c for c, _ in pixels) / n
        draws = accuracy + np.array(quantiles) * math.sqrt(accuracy * (1 - accuracy) / n)
        total += n / len(conf) * (2 * abs(accuracy - mean) - np.abs(draws - mean).mean())
    return float(total)


def smooth_error(conf: Any, hit: Any, sigma: float, points: int = 8001) -> float:
    """Błasiok & Nakkiran 2023: ∫ |Σ_i K_σ(t, c_i)(y_i - c_i)| dt / N, K reflected at 0 and 1."""
    t = np.linspace(0, 1, points)
    f = np.zeros(points)
    for c, pixels in groups(conf, hit, np.asarray(conf).tolist()).items():
        total = math.fsum(h - value for value, h in pixels)
        for image in (c, -c, 2 - c, c - 2, 2 + c):
            # Beyond 9 sigma the kernel is below 1e-17 of its peak.
            near = slice(*np.searchsorted(t, (image - 9 * sigma, image + 9 * sigma)))
            kernel = np.exp(-(((t[near] - image) / sigma) ** 2) / 2)
            f[near] += total * kernel / sigma / math.sqrt(2 * math.pi)
    return float(np.trapezoid(np.abs(f), t)) / len(conf)


def smooth_ece(conf: Any, hit: Any) -> float:
    """The bandwidth σ with smECE_σ = σ, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(30):  # to 1e-9
        sigma = (low + high) / 2
        low, high = (sigma, high) if smooth_error(conf, hit, sigma) > sigma else (low, sigma)
    return high


def classwise_ece(probs: Any, label: Any, bins: int, *rule: str) -> list[float]:
    """The ECE of each class against the rest."""
    return [equal_width(p, label == c, bins, *rule)[0] for c, p in enumerate(probs)]


def nll(p_label: Any, clip: float = 2.0**-24) -> float:
    """Mean of -ln p with p clipped from below."""
    return -math.fsum(math.log(max(float(p), clip)) for p in p_label) / len(p_label)


def brier(probs: Any, label: Any) -> float:
    """Mean of Σ_c (p_c - y_c)²."""
    truth = np.eye(len(probs))[label].T
    return float(((probs.astype(float) - truth) ** 2).sum(axis=0).mean())


def tempered(probs: Any, temperature: float) -> Any:
    """p^(1/T) / Σ p^(1/T) in float64."""
    wide = (probs.astype(float) / probs.max(axis=0)) ** (1 / temperature)
    return wide / wide.sum(axis=0)


def tempered_nll(probs: Any, label: Any, temperature: float) -> float:
    """Mean NLL at T of the pixels whose label has a probability above 0."""
    mine = probs[label, np.arange(label.size)]
    scaled = np.log(probs[:, mine > 0].astype(float), where=probs[:, mine > 0] > 0,
                    out=np.full(probs[:, mine > 0].shape, -np.inf)) / temperature  # fmt: skip
    lead = scaled.max(axis=0)
    total = lead + np.log(np.exp(scaled - lead).sum(axis=0))
    chosen = label[mine > 0]
    return float((total - scaled[chosen, np.arange(chosen.size)]).mean())


# What published codes compute, in their own words ------------------------------------------------


def gustafsson_ece(conf: Any, hit: Any, bins: int = 10) -> float:
    """evaluating_bdl: intervals [i·s, (i + 1)·s), compared in float32; all pixels in N."""
    size, total = 1.0 / bins, 0.0
    for i in range(bins):
        inside = (conf >= np.float32(i * size)) & (conf < np.float32((i + 1) * size))
        if inside.any():
            total += inside.mean() * abs(hit[inside].mean() - conf[inside].mean(dtype=float))
    return float(total)


def torchmetrics_ece(conf: Any, hit: Any, bins: int = 15) -> tuple[float, float]:
    """torchmetrics: bucketize(right=True) between float32 edges; 1 is in bin n + 1."""
    index = np.searchsorted(np.linspace(0, 1, bins + 1).astype(np.float32), conf, side="right") - 1
    return ece_mce(conf, hit, index.tolist())


def netcal_ece(conf: Any, hit: Any, bins: int = 10) -> float:
    """netcal: histogram bins [lo, hi), the last one closed."""
    edges = np.linspace(0, 1, bins + 1)
    count, right, total = (
        np.histogram(conf.astype(float), edges, weights=w)[0]
        for w in (np.ones(len(conf)), hit.astype(float), conf.astype(float))
    )
    return float(np.abs(right - total).sum() / count.sum())


def mapie_ece(conf: Any, hit: Any, bins: int = 50) -> float:
    """MAPIE: `bins` edges, so one bin less; digitize(right=True)."""
    index = np.digitize(conf.astype(float), np.linspace(0, 1, bins), right=True)
    return ece_mce(conf, hit, index.tolist())[0]


def ace(confidence: Any, hit: Any, bins: int) -> float:
    """Mean |accuracy - confidence| of the bins (lo, hi] with pixels, each counted once."""
    found: dict[int, list[float]] = {}
    for c, h in zip(np.ravel(confidence).tolist(), np.ravel(hit).tolist(), strict=True):
        found.setdefault(max(math.ceil(bins * c), 1), []).append(h - c)
    return math.fsum(abs(math.fsum(own)) / len(own) for own in found.values()) / len(found)


def values_ace(conf: Any, hit: Any) -> float:
    """The ACE of ValUES, `calc_ace`: mean gap of 20 bins whose edges are a little too far up."""
    place = np.digitize(conf.astype(float), np.linspace(0.0, 1.0 + 1e-8, 21)) - 1
    gaps = [
        abs(float(hit[place == k].mean()) - float(conf[place == k].astype(float).mean()))
        for k in np.unique(place)
    ]
    return float(np.mean(gaps))


def brier_decomposition(p: Any, label: Any, bins: int) -> dict[str, float]:
    """Murphy's reliability, resolution and uncertainty, added over one-vs-rest classes."""
    total = {"reliability": 0.0, "resolution": 0.0, "uncertainty": 0.0}
    n = len(label)
    for c, own in enumerate(p):
        is_class = [float(y == c) for y in label.tolist()]
        rate = math.fsum(is_class) / n
        total["uncertainty"] += rate * (1 - rate)
        found: dict[int, list[tuple[float, float]]] = {}
        for q, y in zip(own.tolist(), is_class, strict=True):
            found.setdefault(max(math.ceil(bins * q), 1), []).append((q, y))
        for pairs in found.values():
            k = len(pairs)
            mean, observed = (math.fsum(own) / k for own in zip(*pairs, strict=True))
            total["reliability"] += k / n * (mean - observed) ** 2
            total["resolution"] += k / n * (observed - rate) ** 2
    return total


def isotonic(conf: Any, hit: Any, bins: int = 8192) -> Any:
    """The function of confidences that scikit-learn fits on confidences rounded to bins."""
    from sklearn.isotonic import IsotonicRegression

    def places(values: Any) -> Any:
        return np.minimum(np.floor(values.astype("f8") * bins), bins - 1)

    fitted = IsotonicRegression(out_of_bounds="clip").fit(places(conf), hit.astype("f8"))
    return lambda values: fitted.predict(places(values))


def with_confidence(p: Any, new: Any) -> Any:
    """Probabilities [class, i] with another confidence; the other classes keep proportions."""
    p, guess = p.astype("f8"), p.argmax(axis=0)
    found = np.empty_like(p)
    for i in range(p.shape[1]):
        rest = sum(p[c, i] for c in range(len(p)) if c != guess[i])
        for c in range(len(p)):
            even = 1 / (len(p) - 1)
            found[c, i] = (1 - new[i]) * (p[c, i] / rest if rest else even)
        found[guess[i], i] = new[i]
    return found


def scaled(p: Any, weights: Any, biases: Any, clip: float = 2.0**-24) -> Any:
    """softmax(w·ln max(p, clip) + b) of probabilities [class, i]."""
    z = np.log(np.maximum(p.astype("f8"), clip)) * np.array(weights)[:, None]
    z = z + np.array(biases)[:, None]
    e = np.exp(z - z.max(axis=0))
    return e / e.sum(axis=0)


def vector(p: Any, label: Any) -> tuple[Any, Any]:
    """The weights and biases (of mean 0) with the least NLL, by SciPy."""
    from scipy.optimize import minimize

    classes = len(p)

    def nll(x: Any) -> float:
        q = scaled(p, x[:classes], x[classes:])
        return float(-np.log(q[label, np.arange(label.size)]).mean())

    start = np.concatenate([np.ones(classes), np.zeros(classes)])
    found = minimize(nll, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).x
    return found[:classes], found[classes:] - found[classes:].mean()


def after(q: Any, label: Any, hit: Any) -> dict[str, float]:
    """Scores of recalibrated probabilities [class, i]; `hit`: which pixels are right."""
    confidence = np.where(hit, q[label, np.arange(label.size)], -1)
    confidence = np.where(hit, confidence, q.max(axis=0)).astype("f4")
    ece, mce = equal_width(confidence, hit, 15)
    y = np.eye(len(q))[label].T
    return {
        "ece": ece, "mce": mce, "brier": float(((q - y) ** 2).sum(axis=0).mean()),
        "nll": nll(q[label, np.arange(label.size)]),
    }  # fmt: skip
