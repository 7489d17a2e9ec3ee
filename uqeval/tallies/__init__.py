"""Tallies: mergeable counts and sums of fixed size."""

from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._fields import Field
from uqeval.tallies._values import RawMap, Uncertainty
from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty
from uqeval.tallies.digits import Digits
from uqeval.tallies.divergence import Divergence
from uqeval.tallies.error_ranks import ErrorRanks
from uqeval.tallies.error_sums import ErrorSums, ErrorsUpto, SumsBelow
from uqeval.tallies.fine_gaps import FineGaps
from uqeval.tallies.intervals import IntervalCounts, PredictiveScores, QuantileCounts
from uqeval.tallies.item_curves import Cuts, ItemCurves
from uqeval.tallies.item_errors import ItemErrors
from uqeval.tallies.item_failure import ItemFailure
from uqeval.tallies.moments import Moments
from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
from uqeval.tallies.proper_scores import ProperScores
from uqeval.tallies.ranked_errors import RankedErrors
from uqeval.tallies.ranks import Ranks
from uqeval.tallies.reliability import (
    AdaptiveReliability,
    Bins,
    ClassReliability,
    ItemAdaptive,
    Reliability,
)
from uqeval.tallies.segmentation import ClassCounts
from uqeval.tallies.target_counts import TargetCounts
from uqeval.tallies.tempered import (
    Likelihoods,
    SampleLikelihoods,
    TemperatureSlopes,
    Tempered,
    TemperedSamples,
)
from uqeval.tallies.temporal import FrameCounts, PairCounts
from uqeval.tallies.tracks import TrackCounts
from uqeval.tallies.undetected import Undetected

#: The only list of tallies.
TALLIES = (
    AccuracyByUncertainty,
    AdaptiveReliability,
    ClassCounts,
    ClassReliability,
    Digits,
    Divergence,
    ErrorRanks,
    ErrorSums,
    ErrorsUpto,
    FineGaps,
    FrameCounts,
    IntervalCounts,
    ItemAdaptive,
    ItemCurves,
    ItemErrors,
    ItemFailure,
    ItemPatchCounts,
    Likelihoods,
    Moments,
    PairCounts,
    PatchCounts,
    PredictiveScores,
    ProperScores,
    QuantileCounts,
    RankedErrors,
    Ranks,
    Reliability,
    SampleLikelihoods,
    SumsBelow,
    TargetCounts,
    TemperatureSlopes,
    Tempered,
    TemperedSamples,
    TrackCounts,
    Undetected,
)

__all__ = [
    "TALLIES",
    "AccuracyByUncertainty",
    "AdaptiveReliability",
    "Bins",
    "ClassCounts",
    "ClassReliability",
    "Cuts",
    "Digits",
    "Divergence",
    "Error",
    "ErrorRanks",
    "ErrorSums",
    "ErrorsUpto",
    "Field",
    "FineGaps",
    "FrameCounts",
    "IntervalCounts",
    "ItemAdaptive",
    "ItemCurves",
    "ItemErrors",
    "ItemFailure",
    "ItemPatchCounts",
    "Likelihoods",
    "Moments",
    "PairCounts",
    "PatchCounts",
    "Patches",
    "PredictiveScores",
    "ProperScores",
    "QuantileCounts",
    "RankedErrors",
    "Ranks",
    "RawMap",
    "Reliability",
    "SampleLikelihoods",
    "SumsBelow",
    "Tally",
    "TargetCounts",
    "TemperatureSlopes",
    "Tempered",
    "TemperedSamples",
    "TrackCounts",
    "Uncertainty",
    "Undetected",
]
