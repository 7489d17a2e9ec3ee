"""The inputs of a run, as its record has them: options, void ids and units that change numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uqeval.errors import is_number

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


#: The names of usual units by their symbol, in the singular and in lower case.
_NAMES = {
    "km": ("kilometre", "kilometer"),
    "m": ("metre", "meter"),
    "cm": ("centimetre", "centimeter"),
    "mm": ("millimetre", "millimeter"),
    "µm": ("micrometre", "micrometer", "micron"),
    "h": ("hour", "hr"),
    "min": ("minute",),
    "s": ("second", "sec"),
    "ms": ("millisecond",),
    "µs": ("microsecond",),
    "deg": ("degree",),
    "rad": ("radian",),
    "px": ("pixel",),
    "K": ("kelvin",),
}
#: Other symbols, whose case counts: Mm is no mm, Msec no msec. The first µ is the micro sign, μ the
#: letter.
_SYMBOLS = {
    "um": "µm", "μm": "µm", "us": "µs", "μs": "µs", "usec": "µs", "usecs": "µs", "msec": "ms",
    "msecs": "ms", "°": "deg",
}  # fmt: skip
_OF_NAMES = {
    spelling: symbol for symbol, names in _NAMES.items() for name in names
    for spelling in (name, f"{name}s")
}  # fmt: skip


def is_same_unit(first: Any, second: Any) -> bool:
    """Return whether two texts spell one unit, such as m, meter and metres."""
    return bool(normal_unit(first) == normal_unit(second))


def normal_unit(text: Any) -> Any:
    """Return the symbol of a usual unit; another value as it is, without spaces around it."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    return _SYMBOLS.get(text) or _OF_NAMES.get(text.lower(), text)


#: The key of a void id, in the record of the inputs and in that of settings.
IGNORE_INDEX = "ignore_index"
#: Whose pixels have a void id: labels, and masks and maps of ids; and the ids that models predict.
LABELS, PREDICTIONS = "labels", "predictions"


def void_ids(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the void ids of the pixels that a result is computed from: of `LABELS`, and of
    `PREDICTIONS` of a video. Without those that no pixel can have, and those that are unknown.

    `inputs`: the record of the inputs of the run; `settings`: that of the settings of the result.
    """
    ids = {PREDICTIONS: _of_predictions(inputs, settings)}
    if _has_ids(inputs):
        ids[LABELS] = inputs.get(IGNORE_INDEX)
    return {name: void for name, void in ids.items() if void is not None}


def other_void_ids(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the option, or the option and whose it is, and both ids, where two results of
    `void_ids` differ. Ids that only one of them has are not compared."""
    for name, option in ((LABELS, IGNORE_INDEX), (PREDICTIONS, f"{IGNORE_INDEX} of predictions")):
        if name in first and name in second and first[name] != second[name]:
            yield option, first[name], second[name]


def _has_ids(inputs: Mapping[str, Any]) -> bool:
    """Return whether the data have labels, a mask or a map of ids; True if that is not recorded."""
    regions = inputs.get("regions")
    return (
        "labels" not in inputs
        or bool(inputs["labels"])
        or "ood_mask" in inputs
        or any(
            isinstance(store, Mapping) and str(store.get("region")).startswith("map")
            for store in (regions if isinstance(regions, Sequence) else ())
        )
    )


def _of_predictions(inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    """Return the void id of the predictions of a video; None if it has none, or it is unknown.

    Earlier versions recorded the one of `--ignore-index`, and without labels that of the first
    model that declares one.
    """
    if IGNORE_INDEX in settings or "model" not in settings:
        return settings.get(IGNORE_INDEX)
    stores, options = inputs.get("predictions"), inputs.get("options")
    arrays = [
        store.get("arrays") if isinstance(store, Mapping) else None
        for store in (stores if isinstance(stores, Sequence) else ())
    ]
    if not all(isinstance(own, Mapping) and "predictions" in own for own in arrays):
        return None  # of probabilities
    void = options.get(IGNORE_INDEX) if isinstance(options, Mapping) else None
    if void is None and not inputs.get("labels") and len(arrays) == 1:
        void = inputs.get(IGNORE_INDEX)
    return void if is_number(void) else None
