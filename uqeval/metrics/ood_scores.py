"""Out-of-distribution detection: formulas over bins of pixels; OUT pixels are the errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._columns import as_numbers, over
from uqeval.metrics._contract import Chance, Events, IntervalKind, Metric, set_value
from uqeval.metrics.failure_columns import SCORES, RankSums, SetRankBins
from uqeval.metrics.failure_cuts import bin_of_95
from uqeval.metrics.failure_scores import OneSet, bounded

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins

_BOTH = "needs pixels in-distribution and out of it"
_ITEMS = "needs items in-distribution and out of it"
_UNIT, _HALF = (0.0, 1.0), (0.0, 0.5)
_ADVICE = "Compare other uncertainties (--uncertainty), or train with outliers."


def detection_error(rank_bins: SetRankBins) -> Array:
    """Return the least of (FPR + FNR)/2 over thresholds [set]: Liang et al. 2018, §4.

    NaN without pixels of both kinds.
    """
    if not rank_bins.pixels.shape[1]:
        return np.full(len(rank_bins.pixels), np.nan)
    return np.minimum(errors_at_bins(rank_bins)[0].min(axis=1), 0.5)


def errors_at_bins(rank_bins: RankSums) -> tuple[Array, Array]:
    """Return (FPR + FNR)/2 at the threshold at each bin, and its least value at one inside it."""
    wrong, right = rank_bins.wrong[:, None], (rank_bins.total - rank_bins.wrong)[:, None]
    errors, pixels = rank_bins.errors, rank_bins.pixels
    missed = over(rank_bins.errors_upto - errors, wrong)
    flagged = over(right - (rank_bins.upto - rank_bins.errors_upto), right)
    return (flagged + over(pixels - errors, right) + missed) / 2, (flagged + missed) / 2


def bins_to_split(rank_bins: RankBins) -> list[int]:
    """Return the open bins to split before the cuts are exact, the most urgent first."""
    if not rank_bins.errors.any() or not rank_bins.right.any():
        return []
    at, inside = (errors[0] for errors in errors_at_bins(SetRankBins.of_one(rank_bins)))
    hopeful = np.flatnonzero(rank_bins.open & (inside < min(at.min(), 0.5)))
    cuts = [bin_of_95(rank_bins), *hopeful[np.argsort(inside[hopeful], kind="stable")].tolist()]
    return [i for i in dict.fromkeys(cuts) if rank_bins.open[i]]


#: Counts above 0 in items with IN pixels, and in items with OUT pixels.
_IN_AND_OUT = (("pixels_in",), ("pixels_out",))
#: The score of an uncertainty that does not depend on the set.
_CLAIM = "the uncertainty finds OUT pixels"
_CHANCE = {"auroc": Chance(0.5, _CLAIM), "fpr95": Chance(0.95, _CLAIM)}
#: At which quantile of the OUT scores it is cut.
_QUANTILES = {"fpr95": 0.05}
#: The OUT pixels that its best threshold is fitted to. With 5 to 20 of them, each in an image of
#: its own, 21 to 23 % of the intervals of level 90 % lay wholly below the truth, with 60 of them
#: 14 % (`benchmarks/few_events.py`).
_OUT = 60
_EVENTS = {"detection_error": Events(lambda error, last: 1.0, "OUT pixels", _OUT)}

#: Images that each of the sets IN and OUT needs, by score. With 2 OUT images of 10, intervals of
#: level 90 % of AUROC and AUPR contained the truth in 76 to 82 %, with 3 in 81 to 88 %. AUPR-in
#: falls most with a confident OUT image, of which a small set has none: with 5 OUT images of 50,
#: 16 % of its intervals lay wholly above the truth, with 10 of them 5 %
#: (`benchmarks/few_events.py`). The detection error has its best threshold as that of pixels.
_LEAST_IMAGES = {"aupr_in": 10, "detection_error": _OUT}
_OF_FEW_RANKS = ("aupr_out", "aupr_in", "fpr95", "detection_error")


def _metric(
    field: str, better: Any, limits: tuple[float, float], formula: Callable[[SetRankBins], Array],
    words: tuple[str, str, str], interval: IntervalKind, headline: int = 0,
) -> tuple[Metric, Metric]:  # fmt: skip
    """Return the metric of pixels, and that of items; `words`: label, meaning and reference."""
    label, meaning, reference = words
    of_pixels = Metric(
        "ood", field, "fraction", better, limits, reference, _BOTH, formula, label=label,
        headline=headline, meaning=meaning, advice=_ADVICE, interval=interval,
        units_with=_IN_AND_OUT, chance=_CHANCE.get(field), quantile=_QUANTILES.get(field),
        events=_EVENTS.get(field), of_part="ranking" if field == "auroc" else None,
        of_few_ranks=field in _OF_FEW_RANKS,
    )  # fmt: skip
    of_items = Metric(
        "ood", f"images.{field}", "fraction", better, limits, reference, _ITEMS, formula,
        label=f"{label} of images", meaning=meaning.replace("pixel", "image"), advice=_ADVICE,
        interval=interval, units_with=_IN_AND_OUT, quantile=_QUANTILES.get(field),
        least_in_set=_LEAST_IMAGES.get(field, 3), of_few_ranks=field in _OF_FEW_RANKS,
    )  # fmt: skip
    return of_pixels, of_items


_PAIRS = (
    _metric("auroc", "higher", _UNIT, SCORES["auroc"],
            ("AUROC", "Probability that an OUT pixel is more uncertain than an IN pixel; 0.5 is "
             "chance.", "Hendrycks & Gimpel 2017, §2"), "logit", 1),
    _metric("aupr_out", "higher", _UNIT, SCORES["aupr_error"],
            ("AUPR-out", "Mean precision when OUT pixels are searched by uncertainty.",
             "Liang et al. 2018, §4"), "logit", 3),
    _metric("aupr_in", "higher", _UNIT, SCORES["aupr_success"],
            ("AUPR-in", "Mean precision when IN pixels are searched by certainty.",
             "Liang et al. 2018, §4"), "logit"),
    _metric("fpr95", "lower", _UNIT, SCORES["fpr95"],
            ("FPR95", "Share of IN pixels that are flagged when 95 % of OUT pixels are flagged.",
             "Liang et al. 2018, §4"), "draws", 2),
    _metric("detection_error", "lower", _HALF, detection_error,
            ("detection error", "Smallest mean of two shares, over thresholds: missed OUT pixels "
             "and flagged IN pixels.",
             "Liang et al. 2018, §4"), "biased"),
)  # fmt: skip
METRICS = tuple(metric for pair in _PAIRS for metric in pair)
BY_FIELD: Mapping[str, Metric] = {metric.field: metric for metric in METRICS}
#: Which score by rank of failure detection is which one here.
OF_FAILURE = {
    "auroc": "auroc", "aupr_out": "aupr_error", "aupr_in": "aupr_success", "fpr95": "fpr95",
}  # fmt: skip


def scores(rank_bins: RankBins) -> dict[str, Any]:
    """Return all scores of pixels from bins, with the bounds of the areas."""
    record: dict[str, Any] = {}
    one = OneSet(rank_bins)
    both = rank_bins.errors.any() and rank_bins.right.any()
    for field, name in OF_FAILURE.items():
        value, bound = bounded(one, name) if both else (None, None)
        set_value(record, field, value, _BOTH)
        if field != "fpr95":
            set_value(record, f"{field}_bound", bound, _BOTH)
    (error,) = as_numbers(detection_error(one.sums))
    set_value(record, "detection_error", error, _BOTH)
    out = int(rank_bins.errors.sum())
    return record | {
        "pixels": rank_bins.total, "pixels_in": rank_bins.total - out, "pixels_out": out,
    }  # fmt: skip
