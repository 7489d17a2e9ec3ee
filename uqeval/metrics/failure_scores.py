"""How well an uncertainty finds errors: the metrics, their values for one set, and their bounds.

The bound of an area says how far it may be from its exact value because the pixels of a bin are
counted as a tie, whatever their order. Letters as in `failure_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._columns import as_number
from uqeval.metrics._contract import NO_LABEL, RANKING, Chance, Events, Metric, set_value
from uqeval.metrics._fitted_apart import threshold
from uqeval.metrics.failure_columns import (
    AT_CUTS,
    SCORES,
    SetRankBins,
    augrc,
    aupr_error,
    aupr_success,
    aurc,
    auroc,
    coverage_at,
    e_aurc,
    fpr95,
    risk_at,
)

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins


@dataclass(frozen=True)
class OneSet:
    """The bins of one set of pixels, with what several scores and bounds read."""

    bins: RankBins

    @cached_property
    def sums(self) -> SetRankBins:
        """Return the bins as the scores of many sets read them."""
        return SetRankBins.of_one(self.bins)

    @cached_property
    def open(self) -> Array:
        """Return the indices of the bins that may hold several scores."""
        return np.flatnonzero(self.bins.open)

    @cached_property
    def swaps(self) -> float:
        """Return Σ e·c/2 of the open bins."""
        e, pixels = self.bins.errors[self.open], self.bins.pixels[self.open]
        return float((e * (pixels - e) / 2).sum())

    @cached_property
    def aurc_bound(self) -> float:
        """Return the bound of AURC.

        The part of a bin lies between n·E_b/(N_b + c) and n·(E_b + e)/(N_b + e).
        """
        bins = self.bins
        n, e, upto, wrong = (
            v[self.open] for v in (bins.pixels, bins.errors, bins.upto, bins.errors_upto)
        )
        risk, below = n * (wrong / upto), wrong - e
        with np.errstate(invalid="ignore"):
            least = np.where(below > 0, n * (below / (upto - e)), 0.0)
            most = np.where(wrong > 0, n * (wrong / (upto - (n - e))), 0.0)
        return float(np.maximum(most - risk, risk - least).sum()) / bins.total


def _of_auroc(one: OneSet) -> float:
    """Return Σ e·c/2 of the open bins over E·C."""
    errors = one.bins.errors
    right = one.bins.total - int(errors.sum())
    return one.swaps / (float(errors.sum()) * right)


def _of_augrc(one: OneSet) -> float:
    """Return Σ e·c/2 of the open bins over N²."""
    return one.swaps / one.bins.total / one.bins.total


def _of_aupr_error(one: OneSet) -> float:
    """Return the bound of AUPR of errors, which are searched from the last bin on."""
    bins, at = one.bins, one.open[::-1]
    at = at[bins.errors[at] > 0]
    hit, pixels = bins.errors[at], bins.pixels[at]
    hits = bins.errors_upto[-1] - bins.errors_upto[at] + hit
    return _of_precision(hit, pixels - hit, hits, bins.total - bins.upto[at] + pixels) / float(
        bins.errors.sum()
    )


def _of_aupr_success(one: OneSet) -> float:
    """Return the bound of AUPR of successes, which are searched from the first bin on."""
    bins, at = one.bins, one.open
    at = at[bins.pixels[at] > bins.errors[at]]
    miss, all_ = bins.errors[at], bins.upto[at]
    bound = _of_precision(bins.pixels[at] - miss, miss, all_ - bins.errors_upto[at], all_)
    return bound / float(bins.total - bins.errors.sum())


def _of_precision(hit: Array, miss: Array, hits: Array, all_: Array) -> float:
    """Return the bound of the sum of a search's precisions over its hits, of its open bins.

    `hits` and `all_` count up to the end of each bin. The part of a bin lies between
    e·(E_a + 1)/(N_a + c + 1) and e·(E_a + e)/(N_a + e), with E_a of N_a pixels before it.
    """
    precision = hit * (hits / all_)
    most = hit * (hits / (all_ - miss))
    least = hit * ((hits - hit + 1) / (all_ - hit + 1))
    return float(np.maximum(most - precision, precision - least).sum())


BOUNDS: dict[str, Callable[[OneSet], float]] = {
    "auroc": _of_auroc, "aupr_error": _of_aupr_error, "aupr_success": _of_aupr_success,
    "aurc": lambda one: one.aurc_bound, "e_aurc": lambda one: one.aurc_bound, "augrc": _of_augrc,
}  # fmt: skip


def bounded(one: OneSet, name: str) -> tuple[float | None, float | None]:
    """Return a score of one set and the bound of its error, None where undefined.

    Scores at a cut have no bound: their bins are split until they are exact.
    """
    (score,) = SCORES[name](one.sums)
    value = as_number(score)
    is_bounded = value is not None and name in BOUNDS
    return value, BOUNDS[name](one) if is_bounded else None


_BOTH = "needs both right and wrong pixels"
_WRONG = "no pixel is wrong"
_RIGHT = "no pixel is right"
_UNIT = (0.0, 1.0)

#: With 0.1 to 1.4 of them, 9 to 62 % of the intervals of `coverage_at_risk` lay wholly above the
#: truth; with 3 or more, 1 to 8 % (`benchmarks/every_interval.py`). Wrong pixels of one clump are
#: alike: when 5 pixels were enough, 44 % lay above the truth with clumps in 30 of 60 images
#: (`benchmarks/few_events.py`).
_ACCEPTED_ERRORS = Events(
    lambda coverage, risk, pixels, errors: min(
        1.0, coverage * pixels * int(risk) / 100 / max(errors, 1)
    ),
    "accepted wrong pixels", 5, ("pixels", "errors"), units_with="errors",
)  # fmt: skip
#: Without this, 8 to 15 % of the intervals of `risk_at_coverage` lay wholly below the truth where
#: few images have clumps of wrong pixels; now 0 to 6 % (`benchmarks/few_events.py`).
_ERRORS_LEFT = Events(
    lambda risk, coverage, pixels, errors: min(
        1.0, risk * pixels * int(coverage) / 100 / max(errors, 1)
    ),
    "accepted wrong pixels", 0.5, ("pixels", "errors"), units_with="errors",
)  # fmt: skip
#: Fields that are defined in units with a wrong pixel, and with a right one.
_WRONG_AND_RIGHT = ("aupr_error", "aupr_success")
METRICS = (
    Metric("failure", "auroc", "fraction", "higher", _UNIT, "Fawcett 2006, §7", _BOTH,
           auroc,
           label="AUROC", headline=1, of_part="ranking",
           meaning="Probability that a wrong pixel is more uncertain than a right one; 0.5 is "
           "chance.",
           chance=Chance(0.5, "the uncertainty finds wrong pixels"),
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "aupr_error", "fraction", "higher", _UNIT, "Hendrycks & Gimpel 2017, §3",
           _WRONG, aupr_error,
           label="AUPR of errors", column="AUPR error",
           meaning="Mean precision when errors are searched by uncertainty.",
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT, of_few_ranks=True),
    Metric("failure", "aupr_success", "fraction", "higher", _UNIT, "Hendrycks & Gimpel 2017, §3",
           _RIGHT, aupr_success,
           label="AUPR of successes", column="AUPR success",
           meaning="Mean precision when right pixels are searched by certainty.",
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT, of_few_ranks=True),
    Metric("failure", "fpr95", "fraction", "lower", _UNIT, "Liang et al. 2018, §4", _BOTH, fpr95,
           label="FPR95", headline=3,
           meaning="Share of right pixels that are flagged when 95 % of the errors are flagged.",
           chance=Chance(0.95, "the uncertainty finds wrong pixels"),
           advice=RANKING, interval="draws", units_with=_WRONG_AND_RIGHT, quantile=0.05,
           of_few_ranks=True),
    Metric("failure", "aurc", "fraction", "lower", _UNIT, "Geifman et al. 2019, eq. 1", NO_LABEL,
           aurc,
           label="AURC", headline=2,
           meaning="Error rate of the accepted pixels, averaged over all coverages.",
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "e_aurc", "fraction", "lower", _UNIT, "Geifman et al. 2019, eq. 2", NO_LABEL,
           e_aurc,
           label="e-AURC",
           meaning="AURC above that of the best possible order.",
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "augrc", "fraction", "lower", (0.0, 0.5), "Traub et al. 2024, eq. 5",
           NO_LABEL, augrc,
           label="AUGRC",
           meaning="Probability that a pixel is wrong and accepted, averaged over all coverages.",
           advice=RANKING, interval="logit", units_with=_WRONG_AND_RIGHT),
    Metric("failure", "risk_at_coverage", "fraction", "lower", _UNIT, "Geifman & El-Yaniv 2017, §2",
           NO_LABEL, risk_at,
           label="risk at coverage",
           meaning="Error rate of the most certain pixels, at a given coverage.",
           advice=RANKING, interval="draws",
           events=_ERRORS_LEFT),
    Metric("failure", "coverage_at_risk", "fraction", "higher", _UNIT,
           "Geifman & El-Yaniv 2017, §2", NO_LABEL, coverage_at,
           label="coverage at risk",
           meaning="Largest share of pixels that can be accepted with at most a given error rate.",
           advice=RANKING, interval="draws",
           events=_ACCEPTED_ERRORS),
    Metric("failure", "undetected_error_rate", "fraction", "lower", _UNIT,
           "docs/metrics.md, Failure detection", NO_LABEL,
           lambda pixels, undetected: undetected / pixels if pixels else None,
           label="undetected errors", headline=4, column="undetected",
           of_part="error",
           meaning="Share of all pixels that are wrong and not flagged as uncertain.",
           advice="Lower the uncertainty threshold (--threshold).", risk=True,
           interval="share",
           counted=("pixels",), fitted_apart=threshold),
)  # fmt: skip
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}


def scores(rank_bins: RankBins) -> dict[str, Any]:
    """Return all scores of one set from bins, with the bounds of the areas."""
    record: dict[str, Any] = {}
    one = OneSet(rank_bins)
    for name in SCORES:
        value, bound = bounded(one, name)
        undefined = BY_FIELD[name].undefined
        set_value(record, name, value, undefined)
        if name in BOUNDS:
            set_value(record, f"{name}_bound", bound, undefined)
    for name, (cut, percents) in AT_CUTS.items():
        record[name] = {}
        for percent in percents:
            value = as_number(cut(one.sums, percent)[0])
            set_value(record[name], str(percent), value, NO_LABEL)
    return record
