"""The values that a map of an item may have. Kernels check none: they use ids as addresses."""

from __future__ import annotations

from uqeval.arrays import Array, np
from uqeval.maps.names import (
    ERROR_KEY,
    OF_CLASSES,
    OF_REGIONS,
    TARGET_COUNTS,
    VOID,
    is_annotations,
    is_choices,
    is_lambda,
    of_reference,
    sigma_of,
    void_of,
)

#: The largest values, with room for class probabilities that do not quite sum to 1. Larger ones,
#: which a wide --sum-tolerance allows, are read from the store again.
_MOST = {"confidence": 2.0, "label_probability": 2.0, "mean_probs": 2.0, "brier": 2.02}


def has_valid_values(name: str, values: Array, classes: int, kind: str = "classes") -> bool:
    """Return whether all values of a map that was read from outside are possible.

    `classes`: the number of classes of this map. Ids are those of classes, and void where void may
    be. Numbers are finite, and predicted numbers within float32. Probabilities, errors, standard
    deviations and counts are not negative, and the ratio λ may be infinite. Numbers of regions may
    be any.
    """
    if name.startswith(OF_REGIONS):
        return True
    name = name.removeprefix(of_reference("")).removeprefix(OF_CLASSES)
    if kind == "regression":
        return _are_valid_numbers(name, values)
    if name == "prediction" or is_choices(name):
        return bool((values < classes).all())
    if name == "label" or is_annotations(name):
        return bool(((values < classes) | (values == void_of(classes))).all())
    if name in _MOST:
        return bool(((values >= 0) & (values <= _MOST[name])).all())
    return bool(np.isfinite(values).all())


def _are_valid_numbers(name: str, values: Array) -> bool:
    """Return the same of a map of predicted numbers."""
    if name == "label":
        return bool(((values == 0) | (values == VOID)).all())
    if is_lambda(name):
        return bool((values >= 0).all())  # NaN is not
    is_signed = name not in ("error", ERROR_KEY, "sigma", TARGET_COUNTS) and not name.startswith(
        sigma_of("")
    )
    with np.errstate(over="ignore"):
        within = np.isfinite(values.astype(np.float32, copy=False)).all()
    return bool(within and (is_signed or (values >= 0).all()))
