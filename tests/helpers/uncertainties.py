"""Uncertainties that examples of tallies use."""

from uqeval.tallies._values import Uncertainty

ENTROPY = Uncertainty("entropy")
CONFIDENCE = Uncertainty("confidence")
ANYTHING = Uncertainty("anything")
