"""What is counted: fixed-size, declared, mergeable, without an opinion."""

from uqeval.tallies._contract import Field, Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._values import RawMap, Uncertainty
from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty
from uqeval.tallies.digits import Digits
from uqeval.tallies.divergence import Divergence
from uqeval.tallies.error_sums import ErrorSums, ItemErrors, SumsBelow
from uqeval.tallies.intervals import IntervalCounts, PredictiveScores
from uqeval.tallies.item_curves import Cuts, ItemCurves
from uqeval.tallies.item_failure import ItemFailure
from uqeval.tallies.moments import Moments
from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
from uqeval.tallies.proper_scores import ProperScores
from uqeval.tallies.ranked_errors import RankedErrors
from uqeval.tallies.ranks import Ranks
from uqeval.tallies.reliability import AdaptiveReliability, Bins, ClassReliability, Reliability
from uqeval.tallies.segmentation import ClassCounts
from uqeval.tallies.subset import OfSubset
from uqeval.tallies.tempered import TemperatureSlopes, Tempered
from uqeval.tallies.undetected import Undetected

#: The only list of tallies.
TALLIES = (
    AccuracyByUncertainty,
    AdaptiveReliability,
    ClassCounts,
    ClassReliability,
    Digits,
    Divergence,
    ErrorSums,
    IntervalCounts,
    ItemCurves,
    ItemErrors,
    ItemFailure,
    ItemPatchCounts,
    Moments,
    PatchCounts,
    PredictiveScores,
    ProperScores,
    RankedErrors,
    Ranks,
    Reliability,
    SumsBelow,
    TemperatureSlopes,
    Tempered,
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
    "ErrorSums",
    "Field",
    "IntervalCounts",
    "ItemCurves",
    "ItemErrors",
    "ItemFailure",
    "ItemPatchCounts",
    "Moments",
    "OfSubset",
    "PatchCounts",
    "Patches",
    "PredictiveScores",
    "ProperScores",
    "RankedErrors",
    "Ranks",
    "RawMap",
    "Reliability",
    "SumsBelow",
    "Tally",
    "TemperatureSlopes",
    "Tempered",
    "Uncertainty",
    "Undetected",
]
