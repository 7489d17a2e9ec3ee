"""Uncertainties that examples of tallies use."""

from uqeval.tallies import Uncertainty

ENTROPY = Uncertainty("entropy")
CONFIDENCE = Uncertainty("confidence")
ANYTHING = Uncertainty("anything")
