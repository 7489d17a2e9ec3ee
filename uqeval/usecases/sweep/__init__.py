"""Compute metrics as functions of the number of samples."""

from uqeval.usecases.sweep.plan import default_samples, draw
from uqeval.usecases.sweep.sweeping import (
    PlannedSweep,
    arguments,
    plan_sweep,
    run_sweep,
    sweep,
)

__all__ = [
    "PlannedSweep",
    "arguments",
    "default_samples",
    "draw",
    "plan_sweep",
    "run_sweep",
    "sweep",
]
