"""Tallies: mergeable counts and sums of fixed size.

A module is imported when one of its names is first used, because a command needs only a few.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally as Tally
    from uqeval.tallies._errors import Error as Error
    from uqeval.tallies._fields import Field as Field
    from uqeval.tallies._values import RawMap as RawMap
    from uqeval.tallies._values import Uncertainty as Uncertainty
    from uqeval.tallies.accuracy_by_uncertainty import (
        AccuracyByUncertainty as AccuracyByUncertainty,
    )
    from uqeval.tallies.annotator_distances import AnnotatorDistances as AnnotatorDistances
    from uqeval.tallies.annotator_distances import Distance as Distance
    from uqeval.tallies.annotators import AnnotatorCorrelation as AnnotatorCorrelation
    from uqeval.tallies.annotators import AnnotatorVotes as AnnotatorVotes
    from uqeval.tallies.at_temperature import Tempered as Tempered
    from uqeval.tallies.at_temperature import TemperedSamples as TemperedSamples
    from uqeval.tallies.depth_sums import DepthSums as DepthSums
    from uqeval.tallies.depth_sums import ScaledErrors as ScaledErrors
    from uqeval.tallies.depth_sums import SigmaBins as SigmaBins
    from uqeval.tallies.digits import Digits as Digits
    from uqeval.tallies.divergence import Divergence as Divergence
    from uqeval.tallies.error_ranks import ErrorRanks as ErrorRanks
    from uqeval.tallies.error_sums import ErrorSums as ErrorSums
    from uqeval.tallies.error_sums import ErrorsUpto as ErrorsUpto
    from uqeval.tallies.error_sums import SumsBelow as SumsBelow
    from uqeval.tallies.fine_gaps import FineGaps as FineGaps
    from uqeval.tallies.intervals import IntervalCounts as IntervalCounts
    from uqeval.tallies.intervals import PredictiveScores as PredictiveScores
    from uqeval.tallies.intervals import QuantileCounts as QuantileCounts
    from uqeval.tallies.item_curves import Cuts as Cuts
    from uqeval.tallies.item_curves import ItemCurves as ItemCurves
    from uqeval.tallies.item_errors import ItemErrors as ItemErrors
    from uqeval.tallies.item_failure import ItemFailure as ItemFailure
    from uqeval.tallies.item_uncertainty import AboveThreshold as AboveThreshold
    from uqeval.tallies.item_uncertainty import ItemPatchMaximum as ItemPatchMaximum
    from uqeval.tallies.item_uncertainty import ItemPercentile as ItemPercentile
    from uqeval.tallies.moments import Moments as Moments
    from uqeval.tallies.patches import ItemPatchCounts as ItemPatchCounts
    from uqeval.tallies.patches import PatchCounts as PatchCounts
    from uqeval.tallies.patches import Patches as Patches
    from uqeval.tallies.prediction_sets import EvaluatedPixels as EvaluatedPixels
    from uqeval.tallies.prediction_sets import Nonconformity as Nonconformity
    from uqeval.tallies.prediction_sets import PredictionIntervals as PredictionIntervals
    from uqeval.tallies.prediction_sets import PredictionSets as PredictionSets
    from uqeval.tallies.proper_scores import ProperScores as ProperScores
    from uqeval.tallies.ranked_errors import RankedErrors as RankedErrors
    from uqeval.tallies.ranks import Ranks as Ranks
    from uqeval.tallies.recalibrated import ConfidenceCounts as ConfidenceCounts
    from uqeval.tallies.recalibrated import Isotonic as Isotonic
    from uqeval.tallies.recalibrated import LogitSlopes as LogitSlopes
    from uqeval.tallies.recalibrated import VectorScaled as VectorScaled
    from uqeval.tallies.reliability import AdaptiveReliability as AdaptiveReliability
    from uqeval.tallies.reliability import Bins as Bins
    from uqeval.tallies.reliability import ClassReliability as ClassReliability
    from uqeval.tallies.reliability import ItemAdaptive as ItemAdaptive
    from uqeval.tallies.reliability import Reliability as Reliability
    from uqeval.tallies.segmentation import ClassCounts as ClassCounts
    from uqeval.tallies.target_counts import TargetCounts as TargetCounts
    from uqeval.tallies.tempered import Likelihoods as Likelihoods
    from uqeval.tallies.tempered import SampleLikelihoods as SampleLikelihoods
    from uqeval.tallies.tempered import TemperatureSlopes as TemperatureSlopes
    from uqeval.tallies.temporal import FrameCounts as FrameCounts
    from uqeval.tallies.temporal import PairCounts as PairCounts
    from uqeval.tallies.tracks import TrackCounts as TrackCounts
    from uqeval.tallies.undetected import Undetected as Undetected

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


if not TYPE_CHECKING:
    __all__ = ["TALLIES", *_MODULES]
