"""Scores of four counts of patches, accurate or inaccurate and certain or uncertain:
n_ac, n_au, n_ic, n_iu.

Mukhoti & Gal 2018 ("Evaluating Bayesian Deep Learning Methods for Semantic Segmentation") and
Ma et al. 2024 (PAvPU Surplus). Everything is computed from the integers, one division at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import over
from uqeval.metrics._contract import RANKING, Chance, Metric, set_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


def p_accurate(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return share of accurate patches, a; undefined without patches."""
    n = ac + au + ic + iu
    return (ac + au) / n if n else None


def p_certain(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return share of certain patches, c; undefined without patches."""
    n = ac + au + ic + iu
    return (ac + ic) / n if n else None


def p_accurate_given_certain(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return n_ac / (n_ac + n_ic) (Mukhoti & Gal 2018, eq. 5); undefined where no patch is
    certain.
    """
    return ac / (ac + ic) if ac + ic else None


def p_uncertain_given_inaccurate(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return n_iu / (n_ic + n_iu) (Mukhoti & Gal 2018, eq. 6); undefined where none is
    inaccurate.
    """
    return iu / (ic + iu) if ic + iu else None


def pavpu(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return (n_ac + n_iu) / n (Mukhoti & Gal 2018, eq. 7); undefined without patches."""
    n = ac + au + ic + iu
    return (ac + iu) / n if n else None


def pavpu_chance(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return a·c + (1 - a)(1 - c): the PAvPU of an uncertainty that is independent of the errors.

    Ma et al. 2024, §5.2. Undefined without patches.
    """
    n = ac + au + ic + iu
    a, c = ac + au, ac + ic
    return (a * c + (n - a) * (n - c)) / (n * n) if n else None


def _covariance(ac: int, au: int, ic: int, iu: int) -> int:
    """Return n²·Cov(accurate, certain), an integer."""
    return (ac + au + ic + iu) * ac - (ac + au) * (ac + ic)


def phi(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return Corr(accurate, certain) (Ma et al. 2024, §5.2); undefined where either is constant."""
    n = ac + au + ic + iu
    a, c = ac + au, ac + ic
    spread = a * (n - a) * c * (n - c)
    return _covariance(ac, au, ic, iu) / math.sqrt(spread) if spread else None


def half_surplus(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return Cov(accurate, certain) / std(accurate) = std(certain)·phi; undefined where a(1 - a) =
    0.
    """
    n = ac + au + ic + iu
    a = ac + au
    return _covariance(ac, au, ic, iu) / (n * math.sqrt(a * (n - a))) if a * (n - a) else None


def surplus(ac: int, au: int, ic: int, iu: int) -> float | None:
    """Return Cov(A, C)/std(A) + Cov(1-A, 1-C)/std(1-A) = (PAvPU - 1 + a + c - 2ac)/√(a(1 - a)).

    Ma et al. 2024, eqs 3 and 17. Undefined where all patches are accurate, or none is.
    """
    half = half_surplus(ac, au, ic, iu)
    return None if half is None else 2.0 * half


def _best_surplus(record: Mapping[str, Any]) -> float | None:
    """Return 2·std(certain): the Surplus at phi = 1."""
    certain = record.get("p_certain")
    return None if certain is None else 2.0 * math.sqrt(certain * (1 - certain))


_M, _S = "Mukhoti & Gal 2018", "Ma et al. 2024"
_NONE = "no patch"
_ONE_ACCURACY = "all patches are accurate, or none is"
_ALL = ("n_ac", "n_au", "n_ic", "n_iu")
_BY_ACCURACY = (("n_ac", "n_au"), ("n_ic", "n_iu"))
_BY_CERTAINTY = (("n_ac", "n_ic"), ("n_au", "n_iu"))
METRICS = (
    Metric("pavpu", "p_accurate", "fraction", "higher", (0.0, 1.0), f"{_M}, §4", _NONE, p_accurate,
           label="p(accurate)", column="accurate",
           meaning="Share of patches that are accurate.",
           advice="Improve the model; no uncertainty changes this.",
           interval="share", counted=_ALL),
    Metric("pavpu", "p_certain", "fraction", None, (0.0, 1.0), f"{_M}, §4", _NONE, p_certain,
           label="p(certain)", column="certain",
           meaning="Share of patches that are certain at the threshold.",
           interval="share", counted=_ALL),
    Metric("pavpu", "p_accurate_given_certain", "fraction", "higher", (0.0, 1.0), f"{_M}, eq. 5",
           "no patch is certain", p_accurate_given_certain,
           label="p(accurate | certain)", headline=3, column="p(acc|cert)",
           meaning="Where the model is certain, how often it is right.",
           advice="Lower the uncertainty threshold, so that fewer patches count as certain.",
           interval="share", risk=True,
           counted=("n_ac", "n_ic")),
    Metric("pavpu", "p_uncertain_given_inaccurate", "fraction", "higher", (0.0, 1.0),
           f"{_M}, eq. 6", "no patch is inaccurate", p_uncertain_given_inaccurate,
           label="p(uncertain | inaccurate)", headline=4, column="p(unc|inacc)",
           meaning="Where the model is wrong, how often it is uncertain.",
           advice="Lower the uncertainty threshold, or use an uncertainty that finds errors "
           "better.",
           interval="share",
           counted=("n_ic", "n_iu")),
    Metric("pavpu", "pavpu", "fraction", "higher", (0.0, 1.0), f"{_M}, eq. 7", _NONE, pavpu,
           label="PAvPU", headline=2,
           meaning="Share of patches that are accurate and certain, or inaccurate and uncertain.",
           advice="Compare it with the PAvPU by chance; try another threshold (--threshold max-"
           "surplus).",
           interval="share", counted=_ALL),
    Metric("pavpu", "pavpu_chance", "fraction", None, (0.0, 1.0), f"{_S}, §5.2", _NONE,
           pavpu_chance,
           label="PAvPU by chance", column="chance",
           meaning="The PAvPU of an uncertainty that is independent of the errors.",
           interval="logit"),
    Metric("pavpu", "phi", "correlation", "higher", (-1.0, 1.0), f"{_S}, §5.2",
           f"{_ONE_ACCURACY}; or all are certain, or none is", phi,
           label="phi",
           meaning="Correlation between accurate and certain patches.",
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY + _BY_CERTAINTY),
    Metric("pavpu", "surplus", "correlation × std", "higher", (-1.0, 1.0), f"{_S}, eq. 17",
           _ONE_ACCURACY, surplus,
           label="Surplus", headline=1,
           meaning="How much better the uncertainty finds errors than chance; 0 is chance, below 0"
           " is worse.",
           chance=Chance(0.0, "the uncertainty finds inaccurate patches", _best_surplus),
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY),
    Metric("pavpu", "half_surplus", "correlation × std", "higher", (-0.5, 0.5), f"{_S}, §5.2",
           _ONE_ACCURACY, half_surplus,
           label="half Surplus",
           meaning="Half of the Surplus: the share of the certain patches alone.",
           advice=RANKING, interval="linear",
           units_with=_BY_ACCURACY),
)  # fmt: skip


def surplus_auc(curve: Sequence[float | None]) -> float | None:
    """Return area under the Surplus over t = 0 … 1, trapezoid; undefined where one of it is."""
    defined = [value for value in curve if value is not None]
    if len(defined) < len(curve):
        return None
    return math.fsum((a + b) / 2 for a, b in itertools.pairwise(defined)) / (len(defined) - 1)


def peak(curve: Sequence[float | None]) -> float | None:
    """Return the largest defined value of a curve."""
    return max((value for value in curve if value is not None), default=None)


_FIELD = {metric.field: metric for metric in METRICS}
#: Metrics of the curves over t, and of the patches of one class.
OF_CURVES = (
    replace(
        _FIELD["pavpu"],
        field="pavpu_peak.value",
        formula=peak,
        interval="logit",
        counted=(),
        label="highest PAvPU",
        headline=0,
        meaning="The highest PAvPU over all thresholds.",
        advice=RANKING,
    ),
    replace(
        _FIELD["surplus"],
        field="surplus_peak.value",
        formula=peak,
        label="highest Surplus",
        column="best Surplus",
        chance=None,
        headline=0,
        meaning="The highest Surplus over all thresholds.",
        advice=RANKING,
    ),
    replace(
        _FIELD["surplus"],
        field="surplus_auc",
        reference=f"{_S}, §6",
        formula=surplus_auc,
        label="area under the Surplus",
        column="Surplus AUC",
        chance=None,
        headline=0,
        meaning="Area under the curve of the Surplus over all thresholds.",
        advice=RANKING,
    ),
)
PER_CLASS = tuple(
    replace(
        metric,
        field=f"per_class.{metric.field}",
        label=f"{metric.label} by class",
        headline=0,
    )
    for metric in METRICS
)

COUNTS = ("n_ac", "n_au", "n_ic", "n_iu")
BY_FIELD = {metric.field: metric for metric in METRICS}


def columns(counts: NDArray[Any], undefined: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the four counts and all scores of counts [set, …, accurate, uncertain], by field.

    NaN where undefined, and where thresholds are `undefined` [set, …] all but the accurate share.
    """
    import numpy as np

    ic, iu, ac, au = np.moveaxis(counts.reshape(*counts.shape[:-2], 4), -1, 0)
    n, a, c = ac + au + ic + iu, ac + au, ac + ic
    # Products of counts below 2^53 are exact, so that equal orders have equal scores.
    half = over(n * ac - a * c, n * np.sqrt(a * (n - a)))
    results = {
        "n_ac": ac, "n_au": au, "n_ic": ic, "n_iu": iu,
        "p_certain": over(c, n),
        "p_accurate_given_certain": over(ac, c),
        "p_uncertain_given_inaccurate": over(iu, ic + iu),
        "pavpu": over(ac + iu, n),
        "pavpu_chance": over(a * c + (n - a) * (n - c), n * n),
        "phi": over(n * ac - a * c, np.sqrt(a * (n - a) * c * (n - c))),
        "surplus": 2.0 * half,
        "half_surplus": half,
    }  # fmt: skip
    results = {name: np.where(undefined, np.nan, values) for name, values in results.items()}
    return results | {"p_accurate": over(a, n)}


def scores_of_accuracy(accurate: int, inaccurate: int, reason: str) -> dict[str, Any]:
    """Return the record of `scores` where no uncertainty threshold is defined.

    Only the share of accurate patches needs none. All else is None with the `reason`.
    """
    record: dict[str, Any] = {}
    for name in COUNTS:
        set_value(record, name, None, reason)
    for metric in METRICS:
        if metric.field == "p_accurate":
            set_value(
                record, metric.field, p_accurate(accurate, 0, inaccurate, 0), metric.undefined
            )
        else:
            set_value(record, metric.field, None, reason)
    return record


def scores(ac: int, au: int, ic: int, iu: int) -> dict[str, Any]:
    """Return the four counts and all scores, undefined ones None with their reason."""
    record: dict[str, Any] = dict(zip(COUNTS, (ac, au, ic, iu), strict=True))
    for metric in METRICS:
        set_value(record, metric.field, metric.formula(ac, au, ic, iu), metric.undefined)
    return record
