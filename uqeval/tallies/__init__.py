"""What is counted: fixed-size, declared, mergeable, without an opinion."""

from uqeval.tallies._contract import Field, Tally
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty
from uqeval.tallies.moments import Moments
from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
from uqeval.tallies.ranks import Ranks
from uqeval.tallies.segmentation import ClassCounts
from uqeval.tallies.subset import OfSubset

#: The only list of tallies.
TALLIES = (AccuracyByUncertainty, ClassCounts, ItemPatchCounts, Moments, PatchCounts, Ranks)

__all__ = [
    "TALLIES",
    "AccuracyByUncertainty",
    "ClassCounts",
    "Field",
    "ItemPatchCounts",
    "Moments",
    "OfSubset",
    "PatchCounts",
    "Patches",
    "Ranks",
    "Tally",
    "Uncertainty",
]
