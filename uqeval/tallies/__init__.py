"""Tallies: mergeable counts and sums of fixed size.

A module is imported when one of its names is first used, because a command needs only a few.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._errors import Error
    from uqeval.tallies._fields import Field
    from uqeval.tallies._values import RawMap, Uncertainty
    from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty
    from uqeval.tallies.annotator_distances import AnnotatorDistances, Distance
    from uqeval.tallies.annotators import AnnotatorCorrelation, AnnotatorVotes
    from uqeval.tallies.at_temperature import Tempered, TemperedSamples
    from uqeval.tallies.depth_sums import DepthSums, ScaledErrors, SigmaBins
    from uqeval.tallies.digits import Digits
    from uqeval.tallies.divergence import Divergence
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.error_sums import ErrorSums, ErrorsUpto, SumsBelow
    from uqeval.tallies.fine_gaps import FineGaps
    from uqeval.tallies.intervals import IntervalCounts, PredictiveScores, QuantileCounts
    from uqeval.tallies.item_curves import Cuts, ItemCurves
    from uqeval.tallies.item_errors import ItemErrors
    from uqeval.tallies.item_failure import ItemFailure
    from uqeval.tallies.item_uncertainty import AboveThreshold, ItemPatchMaximum, ItemPercentile
    from uqeval.tallies.moments import Moments
    from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
    from uqeval.tallies.prediction_sets import (
        EvaluatedPixels,
        Nonconformity,
        PredictionIntervals,
        PredictionSets,
    )
    from uqeval.tallies.proper_scores import ProperScores
    from uqeval.tallies.ranked_errors import RankedErrors
    from uqeval.tallies.ranks import Ranks
    from uqeval.tallies.recalibrated import (
        ConfidenceCounts,
        Isotonic,
        LogitSlopes,
        VectorScaled,
    )
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
    )
    from uqeval.tallies.temporal import FrameCounts, PairCounts
    from uqeval.tallies.tracks import TrackCounts
    from uqeval.tallies.undetected import Undetected

#: By module, the names that it has for other packages.
_NAMES = {
    "_contract": "Tally",
    "_errors": "Error",
    "_fields": "Field",
    "_values": "RawMap Uncertainty",
    "accuracy_by_uncertainty": "AccuracyByUncertainty",
    "annotator_distances": "AnnotatorDistances Distance",
    "annotators": "AnnotatorCorrelation AnnotatorVotes",
    "at_temperature": "Tempered TemperedSamples",
    "depth_sums": "DepthSums ScaledErrors SigmaBins",
    "digits": "Digits",
    "divergence": "Divergence",
    "error_ranks": "ErrorRanks",
    "error_sums": "ErrorSums ErrorsUpto SumsBelow",
    "fine_gaps": "FineGaps",
    "intervals": "IntervalCounts PredictiveScores QuantileCounts",
    "item_curves": "Cuts ItemCurves",
    "item_errors": "ItemErrors",
    "item_failure": "ItemFailure",
    "item_uncertainty": "AboveThreshold ItemPatchMaximum ItemPercentile",
    "moments": "Moments",
    "patches": "ItemPatchCounts PatchCounts Patches",
    "prediction_sets": "EvaluatedPixels Nonconformity PredictionIntervals PredictionSets",
    "proper_scores": "ProperScores",
    "ranked_errors": "RankedErrors",
    "ranks": "Ranks",
    "recalibrated": "ConfidenceCounts Isotonic LogitSlopes VectorScaled",
    "reliability": "AdaptiveReliability Bins ClassReliability ItemAdaptive Reliability",
    "segmentation": "ClassCounts",
    "target_counts": "TargetCounts",
    "tempered": "Likelihoods SampleLikelihoods TemperatureSlopes",
    "temporal": "FrameCounts PairCounts",
    "tracks": "TrackCounts",
    "undetected": "Undetected",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
#: All tallies.
TALLIES: tuple[type[Tally], ...]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "TALLIES":
        value = tuple(_value(n) for n in _MODULES if hasattr(_value(n), "id") and n != "Tally")
    elif name in _MODULES:
        value = _value(name)
    else:
        raise AttributeError(f"module 'uqeval.tallies' has no attribute {name!r}")
    globals()[name] = value
    return value


def _value(name: str) -> Any:
    return getattr(import_module(f"uqeval.tallies.{_MODULES[name]}"), name)


__all__ = [
    "TALLIES",
    "AboveThreshold",
    "AccuracyByUncertainty",
    "AdaptiveReliability",
    "AnnotatorCorrelation",
    "AnnotatorDistances",
    "AnnotatorVotes",
    "Bins",
    "ClassCounts",
    "ClassReliability",
    "ConfidenceCounts",
    "Cuts",
    "DepthSums",
    "Digits",
    "Distance",
    "Divergence",
    "Error",
    "ErrorRanks",
    "ErrorSums",
    "ErrorsUpto",
    "EvaluatedPixels",
    "Field",
    "FineGaps",
    "FrameCounts",
    "IntervalCounts",
    "Isotonic",
    "ItemAdaptive",
    "ItemCurves",
    "ItemErrors",
    "ItemFailure",
    "ItemPatchCounts",
    "ItemPatchMaximum",
    "ItemPercentile",
    "Likelihoods",
    "LogitSlopes",
    "Moments",
    "Nonconformity",
    "PairCounts",
    "PatchCounts",
    "Patches",
    "PredictionIntervals",
    "PredictionSets",
    "PredictiveScores",
    "ProperScores",
    "QuantileCounts",
    "RankedErrors",
    "Ranks",
    "RawMap",
    "Reliability",
    "SampleLikelihoods",
    "ScaledErrors",
    "SigmaBins",
    "SumsBelow",
    "Tally",
    "TargetCounts",
    "TemperatureSlopes",
    "Tempered",
    "TemperedSamples",
    "TrackCounts",
    "Uncertainty",
    "Undetected",
    "VectorScaled",
]
