"""Predicted numbers with a target: error, σ and their scores, all in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.stores.fill_values import invalid_of, is_outside
from uqeval.usecases.verify.arrays import members_of

#: σ from what is stored in its place.
_SIGMA: dict[str, Callable[[Array], Array]] = {
    "std": lambda x: x,
    "variance": np.sqrt,
    "log_variance": lambda x: np.exp(x / 2),
    "log_std": np.exp,
    "log_b": lambda x: math.sqrt(2) * np.exp(x),
}
#: The largest ε/σ whose NLL float64 can add up over any number of pixels.
_FARTHEST = {"gaussian": 2.0**480, "laplace": 2.0**960}
_ROOT_PI = math.sqrt(math.pi)
#: Levels of the coverage and of the interval score.
_LEVELS = (0.5, 0.9, 0.95)


@dataclass
class Numbers:
    """Flat float64 arrays of the pixels of an item that are evaluated; `sigma` None without one."""

    mean: Array
    target: Array
    sigma: Array | None
    extra: dict[str, Array] = field(default_factory=dict)

    @property
    def error(self) -> Array:
        """Return |mean - target|."""
        return np.abs(self.mean - self.target)

    def sigma_of(self, name: str) -> Array | None:
        """Return σ, or the stored map that stands for it."""
        return self.sigma if name == "sigma" else self.extra.get(name)

    def only(self, is_kept: Array) -> Numbers:
        """Return some of the pixels; `is_kept` bool [pixel]."""
        sigma = None if self.sigma is None else self.sigma[is_kept]
        extra = {name: values[is_kept] for name, values in self.extra.items()}
        return Numbers(self.mean[is_kept], self.target[is_kept], sigma, extra)

    @staticmethod
    def concatenate(parts: Sequence[Numbers]) -> Numbers:
        """Return the pixels of several items as one."""
        sigmas = [item_numbers.sigma for item_numbers in parts if item_numbers.sigma is not None]
        return Numbers(
            np.concatenate([item_numbers.mean for item_numbers in parts]),
            np.concatenate([item_numbers.target for item_numbers in parts]),
            np.concatenate(sigmas) if len(sigmas) == len(parts) else None,
            {
                k: np.concatenate([item_numbers.extra[k] for item_numbers in parts])
                for k in parts[0].extra
            },
        )


def mean_and_sigma(source: Any, item: int, is_valid: Array) -> tuple[Array, Array | None]:
    """Return μ and σ [y, x] of an item: its own, or those of the mixture of its members."""
    members = source.members
    spread = members.spreads
    convert = _SIGMA[spread.kind] if spread is not None else None
    total = squares = inner = first = count = None
    for values in members_of(members.means, item):
        x = np.where(is_valid, values[0], 0.0)
        if first is None:
            first, total, squares = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
            count = np.zeros_like(x)
        is_number = ~np.isnan(x) if members.skip_nan else np.ones(x.shape, bool)
        first = np.where((count == 0) & is_number, x, first)
        differences = np.where(is_number, x - first, 0.0)
        total, squares, count = total + differences, squares + differences**2, count + is_number
    assert first is not None and total is not None and squares is not None and count is not None
    mean = first + total / np.maximum(count, 1)
    spread_of_means = np.maximum(
        squares / np.maximum(count, 1) - (total / np.maximum(count, 1)) ** 2, 0
    )
    if spread is not None and convert is not None:
        sigmas = [convert(np.where(is_valid, v[0], 0.0)) for v in members_of(spread, item)]
        if len(sigmas) == 1:
            return mean, sigmas[0]
        inner = np.mean([s**2 for s in sigmas], axis=0)
        return mean, np.sqrt(inner + spread_of_means)
    return mean, np.sqrt(spread_of_means) if members.means.samples > 1 else None


def valid_pixels(source: Any, item: int, invalid: Sequence[float]) -> Array:
    """Return a mask [y, x] of the evaluated pixels of an item: their target is finite, valid, and
    no invalid value. Without a target and masks, all are evaluated.
    """
    is_valid = np.ones(source.size(item), bool)
    for mask in source.valid:
        values = mask.read(item)
        is_valid &= (values != 0) & (values == values)
        is_valid &= ~has_value(values, invalid_of(mask.parts[item].array))
    if source.target is None:
        return is_valid
    plane = source.target.read(item)
    target = plane.astype(np.float64)
    is_declared = is_declared_invalid(plane, source.target.parts[item].array)
    return is_valid & np.isfinite(target) & ~has_value(plane, invalid) & ~is_declared


def is_declared_invalid(plane: Array, array: Any) -> Array:
    """Return where stored numbers [y, x] are invalid by attributes of their array."""
    outside = is_outside(plane, array)
    bad = has_value(plane, invalid_of(array))
    return bad if outside is None else bad | outside


def has_value(plane: Array, values: Sequence[float]) -> Array:
    """Return where stored numbers [y, x] are one of the values, rounded to their dtype."""
    found, dtype = np.zeros(plane.shape, bool), plane.dtype if plane.dtype.kind == "f" else "f8"
    for value in values:
        found |= plane.astype(np.float64) == float(np.array(float(value)).astype(dtype))
    return found


def numbers_of(source: Any, item: int, is_valid: Array) -> Numbers:
    """Return the pixels of an item that are evaluated, where `is_valid` [y, x]."""
    target = source.target.read(item).astype(np.float64)
    mean, sigma = mean_and_sigma(source, item, is_valid)
    extra = {name: planes.read(item).astype(np.float64)[is_valid]
             for name, planes in source.extra.items()}  # fmt: skip
    return Numbers(
        mean[is_valid], target[is_valid], None if sigma is None else sigma[is_valid], extra
    )


def quantile_factor(p: float, distribution: str) -> float:
    """Return half the width of the central interval of level p, in units of σ."""
    if distribution == "laplace":
        return -math.log(1 - p) / math.sqrt(2)
    return NormalDist().inv_cdf((p + 1) / 2)


def regression(data: Numbers, sigma: Array, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of an item or of all pixels; those of levels, and the calibration plot,
    are in the records of sets only."""
    e, n = data.error, int(data.mean.size)
    names = ("rmse", "mae", "nmse", "auce", "auce_over", "auce_under", "nll", "crps", "sharpness")
    levels, law = settings["levels"], settings["distribution"]
    p = np.arange(1, levels + 1) / (levels + 1)
    scores: dict[str, Any] = {"pixels": n} | dict.fromkeys(names)
    scores |= {
        "calibration": {"p": p.tolist(), "observed": [None] * levels},
        "coverage": {f"{100 * q:g}": None for q in _LEVELS},
        "interval_score": {f"{100 * q:g}": None for q in _LEVELS},
    }
    if not n:
        return scores
    square, spread = float((e**2).mean()), float(data.target.var())
    flat = data.target.min() == data.target.max()
    scores |= {
        "rmse": math.sqrt(square), "mae": float(e.mean()),
        "nmse": None if flat else square / spread,
        "sharpness": math.sqrt(float((sigma**2).mean())),
    }  # fmt: skip
    observed = np.array([np.mean(e <= quantile_factor(q, law) * sigma) for q in p])
    scores["calibration"]["observed"] = observed.tolist()
    for q in _LEVELS:
        half, name = quantile_factor(q, law) * sigma, f"{100 * q:g}"
        scores["coverage"][name] = float(np.mean(e <= half))
        outside = np.maximum(e - half, 0.0)  # Gneiting & Raftery 2007, eq. 43
        scores["interval_score"][name] = float((2 * half + 2 / (1 - q) * outside).mean())
    for name, gaps in (("auce", np.abs(p - observed)), ("auce_over", np.maximum(p - observed, 0)),
                       ("auce_under", np.maximum(observed - p, 0))):  # fmt: skip
        scores[name] = float(np.trapezoid(gaps, p))
    scores["nll"], scores["crps"] = likelihood(e, sigma, law)
    return scores


def likelihood(e: Array, sigma: Array, law: str) -> tuple[float | None, float]:
    """Return NLL and CRPS. Where σ is 0, or too small to divide ε by, there is no NLL, and the CRPS
    is |ε|."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        is_positive = (sigma > 0) & (e / sigma <= _FARTHEST[law])
    z = e[is_positive] / sigma[is_positive]
    s = sigma[is_positive]
    if law == "laplace":
        b = s / math.sqrt(2)
        lost = np.log(2 * b) + e[is_positive] / b
        crps = e[is_positive] + b * np.exp(-e[is_positive] / b) - 0.75 * b
    else:
        lost = 0.5 * math.log(2 * math.pi) + np.log(s) + z**2 / 2
        erf = np.vectorize(math.erf, otypes=[np.float64])(z / math.sqrt(2)) if z.size else z
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        crps = s * (z * erf + 2 * density - 1 / _ROOT_PI)
    total = math.fsum(crps) + math.fsum(e[~is_positive])
    return (float(lost.mean()) if is_positive.all() else None), total / e.size


def nmerci(data: Numbers, sigma: Array, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return n-MeRCI and its parts; percentiles are of λ and ε rounded to float32."""
    e, n, alpha = data.error, int(data.mean.size), settings["alpha"]
    names = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha")
    scores: dict[str, Any] = {"pixels": n} | dict.fromkeys(names)
    if not n:
        return scores
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(sigma > 0, e / sigma, np.where(e > 0, np.inf, 0)).astype(np.float32)
    rule = settings["interpolation"]
    lam, most = (percentile(values, alpha, rule) for values in (ratios, e.astype(np.float32)))
    trimmed = e[e.astype(np.float32) <= most]
    mae = float(e.mean())
    normaliser = mae if settings["mae"] == "full" else float(trimmed.mean())
    merci = lam * float(sigma.mean()) if math.isfinite(lam) else None
    scores |= {
        "merci": merci, "lambda": lam if math.isfinite(lam) else None, "mae": mae,
        "mae_trimmed": float(trimmed.mean()), "max_alpha": most,
    }  # fmt: skip
    # `most` is rounded to float32, so a smaller difference is none.
    if merci is not None and most - normaliser > most * 2.0**-23 + 2.0**-149:
        scores["nmerci"] = (merci - normaliser) / (most - normaliser)
    return scores


def percentile(values: Array, alpha: float, rule: str) -> float:
    """Return a percentile in float64; an end that is infinite counts only where it has weight."""
    ordered = np.sort(values.astype(np.float64))
    if rule == "inverted_cdf":
        return float(ordered[max(math.ceil(ordered.size * (alpha / 100)) - 1, 0)])
    place = (ordered.size - 1) * (alpha / 100)
    low = math.floor(place)
    a, b = ordered[low], ordered[min(low + 1, ordered.size - 1)]
    return float(a if place == low or a == b else a + (b - a) * (place - low))
