"""Scores of four counts of patches, accurate or inaccurate and certain or uncertain:
n_ac, n_au, n_ic, n_iu.

Mukhoti & Gal 2018 ("Evaluating Bayesian Deep Learning Methods for Semantic Segmentation") and
Ma et al. 2024 (PAvPU Surplus). Everything is computed from the integers, one division at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from uqeval.arrays import Array, np
from uqeval.metrics._columns import as_numbers, over
from uqeval.metrics._contract import RANKING, Chance, Metric, set_value
from uqeval.metrics._fitted_apart import curve, threshold
from uqeval.metrics._items import exact_sums

if TYPE_CHECKING:
    #: Counts of patches of several sets [set, …], and scores of these sets.
    Counts: TypeAlias = Array
    Values: TypeAlias = Array


def p_accurate(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return the share of accurate patches, a; NaN without patches."""
    return over(ac + au, ac + au + ic + iu)


def p_certain(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return the share of certain patches, c; NaN without patches."""
    return over(ac + ic, ac + au + ic + iu)


def p_accurate_given_certain(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return n_ac / (n_ac + n_ic) (Mukhoti & Gal 2018, eq. 5); NaN where no patch is certain."""
    return over(ac, ac + ic)


def p_uncertain_given_inaccurate(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return n_iu / (n_ic + n_iu) (Mukhoti & Gal 2018, eq. 6); NaN where none is inaccurate."""
    return over(iu, ic + iu)


def pavpu(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return (n_ac + n_iu) / n (Mukhoti & Gal 2018, eq. 7); NaN without patches."""
    return over(ac + iu, ac + au + ic + iu)


def pavpu_chance(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return a·c + (1 - a)(1 - c): the PAvPU of an uncertainty that is independent of the errors.

    Ma et al. 2024, §5.2. NaN without patches.
    """
    n, a, c = ac + au + ic + iu, ac + au, ac + ic
    return over(a * c + (n - a) * (n - c), n * n)


def _covariance(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Counts:
    """Return n²·Cov(accurate, certain), an integer."""
    return (ac + au + ic + iu) * ac - (ac + au) * (ac + ic)


def phi(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return Corr(accurate, certain) (Ma et al. 2024, §5.2); NaN where either is constant."""
    n, a, c = ac + au + ic + iu, ac + au, ac + ic
    # As floats: the product of four counts may exceed 64 bits.
    spread = (a * (n - a)).astype(np.float64) * (c * (n - c))
    return over(_covariance(ac, au, ic, iu), np.sqrt(spread))


def half_surplus(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return Cov(accurate, certain) / std(accurate) = std(certain)·phi; NaN where a(1 - a) = 0."""
    n, a = ac + au + ic + iu, ac + au
    return over(_covariance(ac, au, ic, iu), n * np.sqrt(a * (n - a)))


def surplus(ac: Counts, au: Counts, ic: Counts, iu: Counts) -> Values:
    """Return Cov(A, C)/std(A) + Cov(1-A, 1-C)/std(1-A) = (PAvPU - 1 + a + c - 2ac)/√(a(1 - a)).

    Ma et al. 2024, eqs 3 and 17. NaN where all patches are accurate, or none is.
    """
    return 2.0 * half_surplus(ac, au, ic, iu)


def _best_surplus(record: Mapping[str, Any]) -> float | None:
    """Return 2·std(certain): the Surplus at phi = 1."""
    certain = record.get("p_certain")
    return None if certain is None else 2.0 * math.sqrt(certain * (1 - certain))


_M, _S = "Mukhoti & Gal 2018", "Ma et al. 2024"
_NONE = "no patch"
_ONE_ACCURACY = "all patches are accurate, or none is"
COUNTS = ("n_ac", "n_au", "n_ic", "n_iu")
_BY_ACCURACY = (("n_ac", "n_au"), ("n_ic", "n_iu"))
_BY_CERTAINTY = (("n_ac", "n_ic"), ("n_au", "n_iu"))
METRICS = (
    Metric("pavpu", "p_accurate", "fraction", "higher", (0.0, 1.0), f"{_M}, §4", _NONE, p_accurate,
           label="p(accurate)", column="accurate",
           meaning="Share of patches that are accurate.",
           advice="Improve the model; no uncertainty changes this.",
           interval="share", counted=COUNTS),
    Metric("pavpu", "p_certain", "fraction", None, (0.0, 1.0), f"{_M}, §4", _NONE, p_certain,
           label="p(certain)", column="certain",
           meaning="Share of patches that are certain at the threshold.",
           interval="share", counted=COUNTS,
           fitted_apart=threshold),
    Metric("pavpu", "p_accurate_given_certain", "fraction", "higher", (0.0, 1.0), f"{_M}, eq. 5",
           "no patch is certain", p_accurate_given_certain,
           label="p(accurate | certain)", headline=3, column="p(acc|cert)",
           meaning="Where the model is certain, how often it is right.",
           advice="Lower the uncertainty threshold, so that fewer patches count as certain.",
           interval="share", risk=True,
           counted=("n_ac", "n_ic"),
           fitted_apart=threshold),
    Metric("pavpu", "p_uncertain_given_inaccurate", "fraction", "higher", (0.0, 1.0),
           f"{_M}, eq. 6", "no patch is inaccurate", p_uncertain_given_inaccurate,
           label="p(uncertain | inaccurate)", headline=4, column="p(unc|inacc)",
           meaning="Where the model is wrong, how often it is uncertain.",
           advice="Lower the uncertainty threshold, or use an uncertainty that finds errors "
           "better.",
           interval="share",
           counted=("n_ic", "n_iu"),
           fitted_apart=threshold),
    Metric("pavpu", "pavpu", "fraction", "higher", (0.0, 1.0), f"{_M}, eq. 7", _NONE, pavpu,
           label="PAvPU", headline=2,
           meaning="Share of patches that are accurate and certain, or inaccurate and uncertain.",
           advice="Compare it with the PAvPU by chance; try another threshold (--threshold max-"
           "surplus).",
           interval="share", counted=COUNTS,
           fitted_apart=threshold),
    Metric("pavpu", "pavpu_chance", "fraction", None, (0.0, 1.0), f"{_S}, §5.2", _NONE,
           pavpu_chance,
           label="PAvPU by chance", column="chance",
           meaning="The PAvPU of an uncertainty that is independent of the errors.",
           interval="logit",
           fitted_apart=threshold),
    Metric("pavpu", "phi", "correlation", "higher", (-1.0, 1.0), f"{_S}, §5.2",
           f"{_ONE_ACCURACY}; or all are certain, or none is", phi,
           label="phi",
           meaning="Correlation between accurate and certain patches.",
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY + _BY_CERTAINTY,
           fitted_apart=threshold),
    Metric("pavpu", "surplus", "correlation × std", "higher", (-1.0, 1.0), f"{_S}, eq. 17",
           _ONE_ACCURACY, surplus,
           label="Surplus", headline=1,
           meaning="How much better the uncertainty finds errors than chance; 0 is chance, below 0"
           " is worse.",
           chance=Chance(0.0, "the uncertainty finds inaccurate patches", _best_surplus),
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY,
           fitted_apart=threshold),
    Metric("pavpu", "half_surplus", "correlation × std", "higher", (-0.5, 0.5), f"{_S}, §5.2",
           _ONE_ACCURACY, half_surplus,
           label="half Surplus",
           meaning="Half of the Surplus: the part of the certain patches only.",
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY,
           fitted_apart=threshold),
)  # fmt: skip


def surplus_auc(curve: Values) -> Values:
    """Return the area under Surpluses [set, t] over t = 0 … 1, trapezoid; NaN where one is."""
    steps = (curve[:, 1:] + curve[:, :-1]) / 2
    return exact_sums(steps) / steps.shape[1]


def peak(curve: Values) -> Values:
    """Return the largest defined values of curves [set, t]."""
    return np.fmax.reduce(curve, axis=1)


_FIELD = {metric.field: metric for metric in METRICS}


def _of_curve(name: str, field: str, formula: Any, **texts: Any) -> Metric:
    """Return the metric of a curve over t of the score of this name."""
    return replace(
        _FIELD[name], field=field, formula=formula, fitted_apart=curve, headline=0, chance=None,
        advice=RANKING, **texts,
    )  # fmt: skip


#: Metrics of the curves over t, and of the patches of one class.
OF_CURVES = (
    _of_curve("pavpu", "pavpu_peak.value", peak, interval="logit", counted=(),
              label="highest PAvPU", meaning="The highest PAvPU over all thresholds."),
    _of_curve("surplus", "surplus_peak.value", peak,
              label="highest Surplus", column="best Surplus",
              meaning="The highest Surplus over all thresholds."),
    _of_curve("surplus", "surplus_auc", surplus_auc, reference=f"{_S}, §6",
              label="area under the Surplus", column="Surplus AUC",
              meaning="Area under the curve of the Surplus over all thresholds."),
)  # fmt: skip
PER_CLASS = tuple(
    replace(metric, field=f"per_class.{metric.field}", label=f"{metric.label} by class", headline=0)
    for metric in METRICS
)

BY_FIELD = {metric.field: metric for metric in METRICS}


def columns(counts: Iterable[Counts]) -> dict[str, Values]:
    """Return the counts n_ac, n_au, n_ic, n_iu [set, …] and all scores, by field."""
    counts = tuple(counts)
    scores = {metric.field: metric.formula(*counts) for metric in METRICS}
    return dict(zip(COUNTS, counts, strict=True)) | scores


def records(counts: Sequence[Counts], reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return the counts n_ac, n_au, n_ic, n_iu [set] and all scores of each set, undefined ones
    None with their reason.

    `reasons`: why a set has no uncertainty threshold, "" where it has one. Without a threshold,
    only the share of accurate patches is defined.
    """
    values = {name: as_numbers(column) for name, column in columns(counts).items()}
    undefined = dict.fromkeys(COUNTS, "") | {m.field: m.undefined for m in METRICS}
    results: list[dict[str, Any]] = []
    for i, reason in enumerate(reasons):
        results.append({})
        for name, column in values.items():
            hidden = bool(reason) and name != "p_accurate"
            set_value(
                results[-1],
                name,
                None if hidden else column[i],
                reason if hidden else undefined[name],
            )
    return results
