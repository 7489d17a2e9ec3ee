"""Write reports to experiment trackers: TensorBoard, MLflow, Weights & Biases; items to FiftyOne."""

from uqeval.usecases.trackers.entry import Entry, Picture, Tracker, entries_of
from uqeval.usecases.trackers.opening import open_trackers

__all__ = ["Entry", "Picture", "Tracker", "entries_of", "open_trackers"]
