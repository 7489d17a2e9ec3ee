"""Formulas of temporal consistency, Varghese et al. 2020: from counts of pairs to numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from uqeval.arrays import Array, np
from uqeval.errors import number_of
from uqeval.metrics._columns import over
from uqeval.metrics._contract import ONE_CLASS, IntervalKind, Metric
from uqeval.metrics._items import exact_sums

if TYPE_CHECKING:
    #: Pixels of each class [set, class].
    Counts: TypeAlias = Array

#: Pairs whose images differ by less than this do not move enough to judge a warp.
MOVING = 1e-4
#: A pair is flagged as a scene cut where the photometric error after the warp is large in itself,
#: against that without a warp, and against the median of its sequence.
CUT_ERROR, CUT_SHARE, CUT_TIMES = 0.01, 0.25, 5.0
#: Why a mean over pairs is undefined.
NO_PAIR = "no pair has a pixel that both frames show"


def ious(current: Counts, warped: Counts, intersection: Counts) -> Array:
    """Return the IoU of each class from its pixels in either map and in both [set, class]; NaN
    where it is in neither.
    """
    return over(intersection, current + warped - intersection)


def mean_iou(
    current: Counts, warped: Counts, intersection: Counts, absent: str = "exclude", least: int = 0
) -> Array:
    """Return mean IoU [set]: TC_t of two predictions (Equation 3), mIoU_t of a prediction and
    labels (5).

    `absent`: over the classes of either map ("exclude"), over all with 0 for those of neither
    ("zero"), or over those of the first map ("current"). Classes of fewer than `least` pixels in
    the first map are left out. NaN where no class is left.
    """
    values, retained = ious(current, warped, intersection), current >= least
    if absent == "zero":
        retained &= current.sum(axis=-1, keepdims=True) > 0
        values = np.nan_to_num(values)
    else:
        retained &= np.isfinite(values)
    if absent == "current":
        retained &= current > 0
    return over(exact_sums(np.where(retained, values, 0.0)), retained.sum(axis=-1))


def agreement(current: Counts, warped: Counts, intersection: Counts) -> Array:
    """Return the share of the counted pixels with the same class in both maps [set]; NaN without
    any.
    """
    return over(intersection.sum(axis=-1), current.sum(axis=-1))


def frequency_weighted(current: Counts, warped: Counts, intersection: Counts) -> Array:
    """Return the IoU of the classes weighted by their pixels in the first map [set]; NaN without
    any.
    """
    values = np.nan_to_num(ious(current, warped, intersection))
    return over(exact_sums(current * values), current.sum(axis=-1))


def mean(values: Iterable[float | None]) -> float | None:
    """Return mean of the values that are defined."""
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None


def correlation(pairs: Sequence[tuple[float, float]]) -> tuple[float | None, str]:
    """Return Pearson's r of pairs (TC_t, mIoU_t), Equation 7; None with the reason where
    undefined.
    """
    if len(pairs) < 3:
        have = "has" if len(pairs) == 1 else "have"
        return None, f"{number_of(len(pairs), 'pair')} {have} both scores; a correlation takes 3"
    first, second = zip(*pairs, strict=True)
    for name, series in (("TC_t", first), ("mIoU_t", second)):
        if min(series) == max(series):
            return None, f"{name} is constant"
    try:
        return statistics.correlation(first, second), ""
    except statistics.StatisticsError:  # squares that underflow to 0
        return None, "a series is constant up to rounding"


def is_cut(warped: float | None, identity: float | None, median: float) -> bool:
    """Return whether a pair looks like two scenes, by photometric errors in grey² (grey in
    [0, 1]).
    """
    if warped is None or identity is None:
        return False
    return warped > max(CUT_ERROR, CUT_SHARE * identity, CUT_TIMES * median)


_PAPER = "Varghese et al. 2020"


def _metric(
    field: str,
    of: str,
    *,
    label: str,
    meaning: str,
    unit: str = "fraction",
    way: Literal["higher", "lower"] | None = "higher",
    undefined: str = NO_PAIR,
    kind: IntervalKind = "logit",
    advice: str = "",
    column: str = "",
    headline: int = 0,
    no_meaning_in: Mapping[str, str] | None = None,
) -> Metric:
    return Metric(
        "temporal", field, unit, way,
        (-1.0, 1.0) if field == "correlation.r" else (0.0, 1.0), of, undefined, mean,
        interval=kind, label=label, column=column, headline=headline, meaning=meaning,
        advice=advice, no_meaning_in=no_meaning_in or {},
        of_part="error" if field == "mtc" else None,
    )  # fmt: skip


METRICS = (
    _metric(
        "mtc",
        f"{_PAPER}, Eq. 4",
        label="mTC",
        headline=1,
        meaning="Overlap of each prediction with the one before, moved along the optical flow.",
        advice="Look at the worst pairs; smooth over time, or train on video.",
    ),
    _metric(
        "mtc_no_warp",
        f"{_PAPER}, Eq. 4, without a warp",
        way=None,
        label="mTC without a warp",
        column="no warp",
        meaning="The same without the optical flow, for comparison.",
    ),
    _metric(
        "mtc_pooled",
        f"{_PAPER}, Eq. 3, counts pooled",
        label="mTC, pooled",
        column="pooled",
        meaning="Temporal consistency from the summed counts of all pairs.",
        advice="Look at the worst pairs first.",
    ),
    _metric(
        "per_class.iou",
        f"{_PAPER}, Eq. 3 of one class, counts pooled",
        undefined="the class is in neither map",
        label="IoU over time by class",
        column="IoU over time",
        meaning="Overlap of a class with itself in the frame before, moved along the optical flow.",
        advice="Look at the pairs in which the class changes most.",
    ),
    _metric(
        "mtc_frequency_weighted",
        "IoU weighted by pixels",
        label="mTC, weighted by pixels",
        meaning="Temporal consistency with classes weighted by their pixels.",
        advice="Look at the worst pairs first.",
    ),
    _metric(
        "pixel_agreement",
        "share of pixels of one class",
        label="pixel agreement",
        column="agreement",
        meaning="Share of pixels that keep their class along the optical flow.",
        advice="Look at the worst pairs first.",
    ),
    _metric(
        "coverage",
        "share of pixels that are counted",
        undefined="no pixels",
        label="coverage",
        meaning="Share of pixels that can be compared.",
        advice="Check the optical flow and the frame rate.",
    ),
    _metric(
        "out_of_frame",
        "share of pixels from outside",
        way=None,
        undefined="no pixels",
        label="out of frame",
        meaning="Share of pixels that come from outside the frame before.",
    ),
    _metric(
        "mse_warp",
        f"{_PAPER}, §4.5",
        unit="grey² in [0, 1]",
        way="lower",
        kind="positive",
        label="MSE, warped",
        column="MSE warped",
        meaning="Squared difference of the images after warping: the error of the flow.",
        advice="Try another flow (--flow dis), or a higher resolution.",
    ),
    _metric(
        "mse_identity",
        f"{_PAPER}, §4.5, without a warp",
        unit="grey² in [0, 1]",
        way=None,
        kind="positive",
        label="MSE, no warp",
        column="MSE no warp",
        meaning="Squared difference of the images without warping: how much moves.",
    ),
    _metric(
        "miou_mean",
        f"{_PAPER}, Eq. 6",
        undefined="no frame has labels",
        label="mean mIoU",
        headline=2,
        no_meaning_in=ONE_CLASS,
        column="mIoU",
        meaning="Mean over frames of their mIoU.",
        advice="Look at the classes with the lowest IoU first.",
    ),
    _metric(
        "correlation.r",
        f"{_PAPER}, Eq. 7",
        unit="correlation",
        undefined="see the reason",
        kind="linear",
        label="correlation of TC and mIoU",
        column="r(mIoU)",
        meaning="Correlation between temporal consistency and mIoU over the frames.",
        advice="Do not use temporal consistency in place of labels for this model.",
    ),
    _metric(
        "occluded.mtc",
        "Eq. 4 without occluded pixels",
        label="mTC of visible pixels",
        column="mTC visible",
        meaning="Temporal consistency without occluded pixels.",
        advice="Look at the worst pairs first.",
    ),
    _metric(
        "occluded.coverage",
        "share of pixels counted",
        undefined="no pixels",
        label="coverage of visible pixels",
        meaning="Share of pixels that can be compared and are not occluded.",
        advice="Check the optical flow and the frame rate.",
    ),
)
