"""Compute metrics as functions of the number of samples."""

from uqeval.usecases.sweep.draws import default_samples, draw
from uqeval.usecases.sweep.sweeping import DEFAULT, arguments, asked_of, sweep

__all__ = ["DEFAULT", "arguments", "asked_of", "default_samples", "draw", "sweep"]
