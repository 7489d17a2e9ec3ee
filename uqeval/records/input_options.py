"""Input options that change numbers, as the record of a run has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Input options on which numbers depend, with their defaults. Scores of other values of these are
#: neither pooled nor compared. The other options locate data, choose items or regions, describe how
#: arrays are stored, or only check values.
VALUE_OPTIONS: dict[str, Any] = {
    "label_map": None,
    "annotator_folders": False,
    "nan_samples": "error",
    "missing_chunks": "error",
    "resize": "none",
    "invalid": None,
    "baseline_focal": None,
    "disparity": "predictions",
    "median_scaling": False,
}


def value_options(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options on which numbers depend, from the record of the inputs of a run. An option
    that is not recorded has its default."""
    recorded = inputs.get("options")
    recorded = recorded if isinstance(recorded, Mapping) else {}
    return {name: recorded.get(name, default) for name, default in VALUE_OPTIONS.items()}
