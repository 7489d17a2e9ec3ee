"""The names of maps, and which uncertainties they serve."""

from __future__ import annotations

from uqeval.errors import UsageError

#: Uncertainties that `uqeval` computes; each is also the name of the map that it is read from.
UNCERTAINTIES = (
    "entropy",
    "mutual_information",
    "expected_entropy",
    "confidence",
    "variation_ratio",
    "std",
)
#: Undefined for a single sample.
OF_SEVERAL_SAMPLES = frozenset({"mutual_information", "variation_ratio", "std"})
#: Entropies, which `log_base` rescales.
IN_NATS = frozenset({"entropy", "mutual_information", "expected_entropy"})
#: Computed from the samples; `predictions` is their name in a store.
COMPUTED = (
    "prediction",
    "confidence",
    "entropy",
    "expected_entropy",
    "mutual_information",
    "variation_ratio",
    "std",
    "mean_probs",
)
#: The same for every subset of the samples.
OF_ALL_SUBSETS = frozenset(
    {"label", "target", "reference/mean_probs", "reference/mean", "reference/sigma"}
)
#: Computed where labels are there.
OF_LABELS = ("label", "label_probability", "label_rank", "brier")
#: Maps that say which class a pixel has, or how wrong it is: nobody knows them beforehand.
NO_UNCERTAINTY = frozenset({"prediction", "predictions", "labels", "mean_probs", *OF_LABELS})


def of_reference(name: str) -> str:
    """What a map of the reference is called beside those of the predictions."""
    return f"reference/{name}"


def lambda_of(sigma: str) -> str:
    """The name of the map ε/σ for the σ map of this name: `lambda`, or `lambda:NAME`."""
    return "lambda" if sigma == "sigma" else f"lambda:{sigma}"


def void_of(classes: int) -> int:
    """The value that marks void pixels in a `label` map: the largest of its dtype."""
    return 255 if classes <= 255 else 65535


def id_dtype(classes: int) -> str:
    """The dtype of `label` and `prediction` maps: class ids and one more value for void."""
    if classes > 65535:
        raise UsageError(f"{classes} classes; at most 65535 can be evaluated.")
    return "uint8" if classes <= 255 else "uint16"
