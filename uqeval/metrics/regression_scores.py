"""Scores of predicted numbers with a predicted standard deviation, from sums and counts.

N evaluated pixels, ε = |μ - y|. Gustafsson et al. 2020 (AUCE, §4.2), Gneiting &
Raftery 2007 (CRPS, interval score), Quiñonero-Candela et al. 2006 (nMSE, NLPD).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uqeval.arrays import Array, np
from uqeval.metrics._columns import over
from uqeval.metrics._contract import LARGE_GAP, NO_PIXEL, Events, Metric
from uqeval.metrics._items import exact_sums
from uqeval.metrics.sigma_advice import COVERAGE_BY_SIGMA, SCALE_SIGMA

#: Levels of coverage that every report has.
LEVELS = (0.5, 0.9, 0.95)
#: How an area is computed from gaps between nominal and observed coverage.
AREAS = ("trapezoid", "crossing", "mean")


def root_mean(total: Array, pixels: Array) -> Array:
    """Return √(Σ / N) [set]; NaN without pixels."""
    return np.sqrt(over(total, pixels))


def nmse(squares: Array, spread: Array) -> Array:
    """Return Σ ε² / Σ (y - ȳ)² [set]: the mean squared error in units of the target's variance.

    Quiñonero-Candela et al. 2006, eq. 4. NaN where the target is constant, or varies so little that
    the quotient exceeds float64.
    """
    quotient = over(squares, spread)
    return np.where((spread > 0) & np.isfinite(quotient), quotient, np.nan)


def nll(total: Array, pixels: Array, zero: Array) -> Array:
    """Return the mean negative log likelihood [set], in nats; NaN where `zero` pixels have none:
    σ = 0, or ε/σ is too large for float64."""
    return np.where(zero > 0, np.nan, over(total, pixels))


def area(
    p: Sequence[float], observed: Array, rule: str, part_of_gap: Callable[[Array], Array]
) -> Array:
    """Return the area [set] of a `part_of_gap` of the gaps p - p̂, by a rule of `AREAS`.

    `observed`: the shares p̂ [set, level].
    """
    return area_of_gaps(p, np.array(p) - observed, rule, part_of_gap)


def area_of_gaps(
    p: Sequence[float], gaps: Array, rule: str, part_of_gap: Callable[[Array], Array]
) -> Array:
    """Return the area [set] of a `part_of_gap` of gaps [set, level] at the levels p.

    "trapezoid": of the gaps' parts; "crossing": of the line through the gaps, cut where it crosses
    0; "mean": of the gaps' parts, no area.
    """
    parts = part_of_gap(gaps)
    if rule == "mean":
        return exact_sums(parts) / len(p)
    left, right, steps = parts[:, :-1], parts[:, 1:], np.diff(p)
    if rule == "trapezoid":
        return exact_sums(steps * (left + right) / 2)
    x, y = gaps[:, :-1], gaps[:, 1:]
    # Of the step, where the line crosses 0: both ends make triangles. Elsewhere, a trapezoid.
    share = np.where(x * y < 0, over(abs(x), abs(x) + abs(y)), 1.0)
    rest = np.where(x * y < 0, 1.0 - share, 1.0)
    return exact_sums(steps * (left * share + right * rest) / 2)


def auce(p: Sequence[float], observed: Array, rule: str = "trapezoid") -> Array:
    """Return the area of |p - p̂| over the levels p [set]; p̂ [set, level]: the share of targets
    inside the intervals.

    Gustafsson et al. 2020, §4.2.
    """
    return area(p, observed, rule, abs)


def auce_over(p: Sequence[float], observed: Array, rule: str = "trapezoid") -> Array:
    """Return the area of max(p - p̂, 0) [set], where the intervals are over-confident."""
    return area(p, observed, rule, positive_part)


def auce_under(p: Sequence[float], observed: Array, rule: str = "trapezoid") -> Array:
    """Return the area of max(p̂ - p, 0) [set], where the intervals are under-confident."""
    return area(p, observed, rule, lambda gaps: positive_part(-gaps))


def positive_part(gaps: Array) -> Array:
    """Return max(gap, 0), NaN where the gap is NaN."""
    return np.maximum(gaps, 0.0)


ZERO_SIGMA = (
    "no pixel is evaluated, or at some evaluated pixel σ = 0, or |error|/σ exceeds 3e144: its "
    "likelihood is 0 or unbounded"
)
_FLAT = "no pixel is evaluated, or the target has one value only, or almost"
_G20 = "Gustafsson et al. 2020, §4.2"
_RULES = "Gneiting & Raftery 2007"
#: With one value an image, 6 to 12 % of the intervals of 20 to 60 images lay wholly below the truth
#: (level 95 %, of which 2.5 % should), with 5 such images or more at most 3 %
#: (`benchmarks/few_bad_images.py`).
_OUTSIDE = Events(lambda score, level: 1.0, "targets outside the intervals", 5, hits="coverage")
METRICS = (
    Metric("regression", "rmse", "target", "lower", (0.0, None), _G20, NO_PIXEL, root_mean,
           label="RMSE", headline=1, of_part="error",
           meaning="Root of the mean squared error.",
           advice="Look at the worst items first.", risk=True,
           interval="positive"),
    Metric("regression", "mae", "target", "lower", (0.0, None), "Moukari et al. 2019, §III-B",
           NO_PIXEL, over,
           label="MAE",
           meaning="Mean absolute error.",
           advice="Look at the worst items first.",
           interval="positive"),
    Metric("regression", "nmse", "fraction", "lower", (0.0, None),
           "Quiñonero-Candela et al. 2006, eq. 4", _FLAT, nmse,
           label="nMSE",
           meaning="Mean squared error divided by the variance of the target; 1 is as good as a "
           "constant.",
           advice="Look at the worst items first.",
           interval="positive", units_with=("rmse",)),
    Metric("regression", "auce", "fraction", "lower", (0.0, 1.0), _G20, NO_PIXEL, auce,
           label="AUCE", headline=2, of_part="calibration",
           meaning="Area between the nominal and the observed coverage of the predicted intervals.",
           **COVERAGE_BY_SIGMA, large=LARGE_GAP, interval="gaps"),
    Metric("regression", "auce_over", "fraction", "lower", (0.0, 1.0), _G20, NO_PIXEL, auce_over,
           label="AUCE, over-confident", column="over-confident",
           meaning="The part of AUCE where intervals are too narrow.",
           **COVERAGE_BY_SIGMA, interval="gaps"),
    Metric("regression", "auce_under", "fraction", "lower", (0.0, 1.0), _G20, NO_PIXEL, auce_under,
           label="AUCE, under-confident", column="under-confident",
           meaning="The part of AUCE where intervals are too wide.",
           **COVERAGE_BY_SIGMA, interval="gaps"),
    Metric("regression", "nll", "nats", "lower", (None, None),
           "Quiñonero-Candela et al. 2006, eq. 5 (NLPD)", ZERO_SIGMA, nll,
           label="NLL", headline=3, of_part="calibration",
           meaning="Mean negative logarithm of the predicted density at the target.",
           **SCALE_SIGMA, interval="draws"),
    Metric("regression", "crps", "target", "lower", (0.0, None), f"{_RULES}, eq. 21", NO_PIXEL,
           over, label="CRPS", headline=4, of_part="error",
           meaning="Mean distance between the predicted distribution and the target.",
           **SCALE_SIGMA, interval="positive"),
    Metric("regression", "sharpness", "target", "lower", (0.0, None),
           f"{_RULES}, §1: root of the mean predicted variance", NO_PIXEL, root_mean,
           label="sharpness",
           meaning="Root of the mean predicted variance; compare it at equal calibration only.",
           advice="Improve the model: narrower intervals at equal coverage need smaller errors.",
           interval="positive"),
    Metric("regression", "interval_score", "target", "lower", (0.0, None), f"{_RULES}, eq. 43",
           NO_PIXEL, over,
           label="interval score",
           meaning="Width of the intervals plus a penalty for targets outside them.",
           **SCALE_SIGMA, interval="positive", events=_OUTSIDE),
    Metric("regression", "coverage", "fraction", None, (0.0, 1.0), _G20, NO_PIXEL, over,
           label="coverage",
           meaning="Share of targets inside the predicted intervals of a level.",
           interval="share", counted=("pixels",)),
)  # fmt: skip
BY_FIELD = {metric.field: metric for metric in METRICS}
