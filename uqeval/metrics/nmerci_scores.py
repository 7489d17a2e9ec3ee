"""n-MeRCI from sums and percentiles: Moukari et al. 2019, equations 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.metrics._contract import NO_PIXEL, RANKING, Chance, Metric, set_value

#: Twice the relative rounding of a float32, and the smallest float32 above 0.
_ROUNDING, _LEAST = 2.0**-23, 2.0**-149


def merci(ratio: float | None, sigma: float | None) -> float | None:
    """Return λ^α · mean σ (eq. 1); undefined where λ^α is infinite."""
    if ratio is None or sigma is None or not math.isfinite(ratio):
        return None
    return ratio * sigma


def nmerci(merci: float | None, mae: float | None, most: float | None) -> float | None:
    """Return (MeRCI - MAE) / (max^α - MAE) (eq. 2); undefined where the denominator is not
    positive.

    A denominator within the rounding of max^α to float32 is none: of equal errors it is 0.
    """
    if merci is None or mae is None or most is None or most - mae <= most * _ROUNDING + _LEAST:
        return None
    return (merci - mae) / (most - mae)


_INFINITE = (
    "λ^α is infinite: too many pixels have σ = 0 and an error, or |error|/σ exceeds the largest "
    "float32"
)
_SMALL = "max^α is not above the MAE (for example if all errors are equal), or λ^α is infinite"
_PAPER = "Moukari et al. 2019"


def _best(record: Mapping[str, Any]) -> float:
    """Return the score of an uncertainty that is proportional to the error."""
    return 0.0


def factor(parts: Parts) -> float | None:
    """Return λ^α; undefined where it is infinite."""
    ratio = parts.ratio
    return ratio if ratio is not None and math.isfinite(ratio) else None


def mean_error(parts: Parts) -> float | None:
    """Return the mean error of all pixels."""
    return parts.every.mae


def trimmed_error(parts: Parts) -> float | None:
    """Return the mean error of the pixels up to a percentile."""
    return None if parts.trimmed is None else parts.trimmed.mae


def error_percentile(parts: Parts) -> float | None:
    """Return max^α, a percentile of the errors."""
    return parts.most


def _quantile(settings: Mapping[str, Any]) -> float:
    """Return the quantile at which λ^α and max^α are cut."""
    return float(settings["alpha"]) / 100


METRICS = (
    Metric("nmerci", "nmerci", "fraction", "lower", (None, None), f"{_PAPER}, eq. 2", _SMALL,
           nmerci,
           label="n-MeRCI", headline=1,
           meaning="How well the uncertainty follows the error: 0 if equal to it, 1 if no better "
           "than a constant.",
           chance=Chance(1.0, "the uncertainty follows the error", _best, "a constant uncertainty"),
           advice=RANKING, interval="draws", units_with=("mae",)),
    Metric("nmerci", "merci", "target", "lower", (0.0, None), f"{_PAPER}, eq. 1", _INFINITE, merci,
           label="MeRCI",
           meaning="Mean uncertainty, scaled so that it covers α of the errors.",
           advice=RANKING, interval="draws", quantile=_quantile),
    Metric("nmerci", "lambda", "fraction", None, (0.0, None), f"{_PAPER}, §III-C", _INFINITE,
           factor,
           label="λ",
           meaning="Factor by which the uncertainty has to be scaled to cover α of the errors.",
           interval="draws", has_scale=True, quantile=_quantile),
    Metric("nmerci", "mae", "target", "lower", (0.0, None), f"{_PAPER}, §III-B", NO_PIXEL,
           mean_error,
           label="MAE",
           meaning="Mean absolute error.",
           advice="Look at the worst items first.",
           interval="positive"),
    Metric("nmerci", "mae_trimmed", "target", "lower", (0.0, None), f"{_PAPER}, Figure 4", NO_PIXEL,
           trimmed_error,
           label="MAE trimmed", headline=2, of_part="error",
           meaning="Mean absolute error without the largest errors.",
           advice="Look at the worst items first.",
           interval="draws"),
    Metric("nmerci", "max_alpha", "target", "lower", (0.0, None), f"{_PAPER}, §III-D", NO_PIXEL,
           error_percentile,
           label="max error",
           meaning="The α-th percentile of the errors.",
           advice="Look at the worst items first.",
           interval="draws", quantile=_quantile),
)  # fmt: skip


@dataclass(frozen=True)
class Sums:
    """Pixels, and their Σε, Σσ and largest ε."""

    pixels: int
    error: float
    sigma: float
    most: float = math.inf

    @property
    def mae(self) -> float | None:
        """Return Σε / N."""
        return self.error / self.pixels if self.pixels else None

    @property
    def mean_sigma(self) -> float | None:
        """Return Σσ / N."""
        return self.sigma / self.pixels if self.pixels else None


@dataclass(frozen=True)
class Parts:
    """What an n-MeRCI is made of: all pixels, λ^α, max^α, and the pixels up to a percentile.

    `trimmed` are the pixels with ε ≤ max^α, or with λ ≤ λ^α where the means are taken `over` those
    alone; None where λ^α is infinite or undefined.
    """

    every: Sums
    ratio: float | None
    most: float | None
    trimmed: Sums | None


def score(parts: Parts, over: str, mae: str) -> tuple[float | None, float | None, float | None]:
    """Return λ^α, MeRCI and n-MeRCI.

    `over` "all": as the paper defines it; "kept": MAE, mean σ and the largest error of the pixels
    with λ ≤ λ^α alone. `mae` "trimmed": the MAE of the pixels with ε ≤ max^α in place of all.
    """
    ratio, trimmed = parts.ratio, parts.trimmed
    if over == "kept":
        if trimmed is None or not trimmed.pixels:
            return None, None, None
        value = merci(ratio, trimmed.mean_sigma)
        return ratio, value, nmerci(value, trimmed.mae, trimmed.most)
    normaliser = trimmed.mae if mae == "trimmed" and trimmed else parts.every.mae
    value = merci(ratio, parts.every.mean_sigma)
    return factor(parts), value, nmerci(value, normaliser, parts.most)


def record(parts: Parts, alpha: float, over: str, mae: str) -> dict[str, Any]:
    """Return all fields of a set, an item or an interval of the target, with reasons."""
    n = parts.every.pixels
    ratio, merci_value, normalised = score(parts, over, mae)
    reason = NO_PIXEL if not n else "no pixel is kept at this α"
    infinite = (
        f"λ^{alpha:g} is infinite: at more than {100 - alpha:g} % of the {n} pixels σ = 0 and "
        "there is an error, or |error|/σ exceeds the largest float32"
    )
    if not n or parts.ratio is None:
        infinite = reason
    small = (
        f"max^{alpha:g} of the errors is {parts.most!r}, not above their MAE, "
        f"{parts.every.mae!r}, by more than the rounding to float32"
    )
    if over == "kept":
        small = "the largest error of the kept pixels is not above their MAE"
    result: dict[str, Any] = {}
    set_value(result, "nmerci", normalised, infinite if merci_value is None else small)
    set_value(result, "merci", merci_value, infinite)
    set_value(result, "lambda", ratio, infinite)
    set_value(result, "mae", mean_error(parts), reason)
    set_value(result, "mae_trimmed", trimmed_error(parts), infinite if over == "kept" else reason)
    set_value(result, "max_alpha", error_percentile(parts), reason)
    result["pixels"] = n
    return result
