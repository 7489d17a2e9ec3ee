"""Evaluate all stores of a file, each read once, and judge the rules."""

from uqeval.usecases.run.outcome import Listener, Outcome, RunSettings
from uqeval.usecases.run.running import FOLDER, config_of_store, run_config, run_stores

__all__ = [
    "FOLDER",
    "Listener",
    "Outcome",
    "RunSettings",
    "config_of_store",
    "run_config",
    "run_stores",
]
