"""The names of maps in stores that `uqeval` computes or reads of its own accord."""

from __future__ import annotations

#: Uncertainties that `uqeval` computes; each is also the name of its map.
UNCERTAINTIES = (
    "entropy",
    "mutual_information",
    "expected_entropy",
    "confidence",
    "variation_ratio",
    "std",
)
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
#: Maps that are computed if there are labels.
OF_LABELS = ("label", "label_probability", "label_rank", "brier")
#: The depth that regions read.
STORED_DEPTH = "depth"
#: All maps that a run may read from a store although no option names them.
READ_BY_NAME = (
    frozenset(UNCERTAINTIES) | frozenset(COMPUTED) | frozenset(OF_LABELS) | {STORED_DEPTH}
) - {"prediction", "label"}
