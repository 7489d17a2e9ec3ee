"""Write reports to TensorBoard, MLflow and Weights & Biases, and items to FiftyOne."""

from uqeval.usecases.trackers.entry import Entry, Picture, Tracker, entries_of
from uqeval.usecases.trackers.opening import open_trackers

__all__ = ["Entry", "Picture", "Tracker", "entries_of", "open_trackers"]
