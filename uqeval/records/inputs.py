"""The inputs of a run, as its record has them: options that change numbers, and fingerprints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
    values = {name: recorded.get(name, default) for name, default in VALUE_OPTIONS.items()}
    with suppress(TypeError, ValueError):  # earlier versions recorded a set as the user wrote it
        values["invalid"] = numbers_in_json(set_of_numbers(map(float, values["invalid"])))
    return values


def set_of_numbers(numbers: Iterable[float]) -> tuple[float, ...]:
    """Return numbers as a set: ascending, each once, NaN last."""
    distinct = {str(number + 0.0): number + 0.0 for number in numbers}  # -0.0 is 0.0
    return tuple(sorted(distinct.values(), key=lambda number: (math.isnan(number), number)))


def numbers_in_json(numbers: Iterable[float]) -> list[float | str]:
    """Return numbers as JSON can hold them: those that are not finite as text."""
    return [number if math.isfinite(number) else str(number) for number in numbers]


#: Why the record of a store has no fingerprint.
WHY_NONE = "the web server gives no ETags and no modification times of the chunks"


def has_no_fingerprint(store: Any) -> bool:
    """Return whether the record of a store says that its fingerprint is unknown."""
    return isinstance(store, Mapping) and store.get("fingerprint", "") is None
