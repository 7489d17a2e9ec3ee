"""The kinds of arrays in a store, and their axes."""

from __future__ import annotations

from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import StoredArray, canonical_axes

_PROBABILITIES = (("item", "sample", "class", "y", "x"), ("item", "class", "y", "x"))
_MEMBERS = (("item", "sample", "y", "x"), ("item", "y", "x"))
_MAP = (("item", "y", "x"),)
#: What a pixel of a frame or of a flow holds lies on the axis that is called class elsewhere.
_CHANNELS = (("item", "y", "x", "class"),)

#: Arrays that say a standard deviation σ beside `mean`, and the formula that gives it; logarithms
#: are natural. `log_b` is of the scale of a Laplace distribution.
SPREADS = {
    "std": "std",
    "variance": "sqrt(variance)",
    "log_variance": "exp(log_variance / 2)",
    "log_var": "exp(log_var / 2)",
    "logvar": "exp(logvar / 2)",
    "log_std": "exp(log_std)",
    "log_sigma": "exp(log_sigma)",
    "log_b": "sqrt(2) * exp(log_b)",
}

#: The axes that each kind of array may have, in the order for its rank.
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "probs": _PROBABILITIES,
    "logits": _PROBABILITIES,
    "mean_probs": (("item", "class", "y", "x"),),
    "mean": _MEMBERS,
    **dict.fromkeys(SPREADS, _MEMBERS),
    "samples": (("item", "sample", "y", "x"),),
    "frames": _CHANNELS,
    "flow": _CHANNELS,
    "flow_forward": _CHANNELS,
}

#: Arrays that lie between the items, one row less than these.
FLOWS = frozenset({"flow", "flow_forward"})

#: Arrays that must be sound where they are there; any other [N, H, W] is a map by its own name.
KNOWN = frozenset(KINDS) | {"predictions", "labels", "target", "valid"}

#: What hold predictions; a group that has `labels` and none of them is a store of labels.
PREDICTIONS = frozenset({"probs", "logits", "predictions", "mean_probs", "mean", "samples"})

#: Numbers with a target.
REGRESSION = frozenset({"mean", *SPREADS, "samples", "target", "valid"})

#: What other tools call the arrays that they save.
ALIASES = {"softmax": "probs", "probabilities": "probs", "pred": "probs"}

#: What a store of predictions has to hold, for messages.
PREDICTIONS_EXPECTED = (
    "probs or logits [N, T, C, H, W], or predictions and a map of an uncertainty [N, H, W], with "
    "labels, for classes; or mean with std, variance, log_variance, log_std or log_b, or samples, "
    "with target, for numbers"
)


def known_as(name: str, array: StoredArray) -> str:
    """Return the kind of a member of an .npz by its name, also by names that other tools use.

    Probabilities have a class axis: a `pred` without is some other prediction.
    """
    return name if name == "pred" and len(array.shape) < 4 else ALIASES.get(name, name)


def axes_of(array: StoredArray, kind: str, *, is_single: bool = False) -> tuple[str, ...]:
    """Return the canonical axes of `array`: those that it names, else those of its rank.

    `is_single`: the array is of one image, in `items/<name>/`. Raises `StoreError` if its rank or
    its axes are not those of a `kind`.
    """
    forms = KINDS.get(kind, _MAP)
    short_forms = tuple(form[1:] for form in forms)
    if is_single:
        forms = short_forms
    expected = " or ".join(f"[{', '.join(form)}]" for form in forms)
    if forms[0][-1] == "class":
        expected = expected.replace("class", "channel")
    if array.dimension_names and any(array.dimension_names):
        axes = canonical_axes(array.dimension_names, array.where)
        # A named array may be of one item only; without names its rank would say otherwise.
        if any(set(axes) == set(form) for form in (*forms, *short_forms)):
            return axes
        raise StoreError(
            f"{array.where}: has the axes [{', '.join(axes)}], expected {expected}, in any order. "
            "Rename the dimensions, or store it with these axes."
        )
    for form in forms:
        if len(form) == len(array.shape):
            return form
    raise StoreError(
        f"{array.where}: has the shape {array.shape}, expected {expected}. Store {quoted(kind)} "
        "with these axes, or name the axes in dimension_names."
    )


def resolve(array: StoredArray, kind: str, *, is_single: bool = False) -> None:
    """Set `array.axes`; raises `StoreError` if its axes or numbers are not those of a `kind`."""
    ids = kind in ("labels", "predictions")
    if array.dtype.kind not in ("biu" if ids else "biuf"):
        expected = "class ids as integers" if ids else "numbers"
        raise StoreError(
            f"{array.where}: holds {array.dtype}, expected {expected}. Convert it and write it "
            "again."
        )
    array.axes = axes_of(array, kind, is_single=is_single)
    array.check_claims()
    empty = [a for a, n in zip(array.axes, array.shape, strict=True) if n == 0 and a != "item"]
    if empty:
        raise StoreError(
            f"{array.where}: has the shape {array.shape}, with nothing along "
            f"{cut(', '.join(empty))}. Write it again with the shape that the data have."
        )
    array.suit(array.axes)
