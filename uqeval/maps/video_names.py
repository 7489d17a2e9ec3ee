"""The names of the maps of a pair of video frames."""

from __future__ import annotations

GREY, GREY_BEFORE = "grey", "grey_before"
LABEL, LABEL_BEFORE = "label", "label_before"


def prediction(model: int) -> str:
    """Return the ids that a model predicts for frame t."""
    return f"prediction:{model}"


def prediction_before(model: int) -> str:
    """Return the ids that a model predicts for frame t-1."""
    return f"prediction_before:{model}"


def flow(method: str) -> str:
    """Return the flow on frame t's grid, pointing to frame t-1."""
    return f"flow:{method}"


def flow_forward(method: str) -> str:
    """Return the flow on frame t-1's grid, pointing to frame t."""
    return f"flow_forward:{method}"
