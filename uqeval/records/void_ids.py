"""The void ids on which scores depend, from the record of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uqeval.errors import is_number

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
