"""Comparison with several annotators: formulas of sums over items and pixels."""

from __future__ import annotations

from typing import Literal

from uqeval.arrays import Array, np
from uqeval.metrics._columns import at_least_0, over, running_sum
from uqeval.metrics._contract import LARGE_GAP, Chance, IntervalKind, Metric

_KOHL, _VALUES = "Kohl et al. 2018, §3", "Kahl et al. 2024"
_GED_NEEDS = "needs samples, and an item with labels of two annotators or more"
NO_SAMPLES = (
    "the maps store has no `sample_predictions`: give the samples, or reduce them again with the "
    "labels of all annotators"
)
TWO = "no item has labels of two annotators or more"
VOID = "no pixel is labelled by all annotators of its item"
CONSTANT = "no item in which both the annotators' disagreement and the uncertainty vary"
_DIVERSITY = (
    "Compare the diversity of the samples with that of the annotators: train on all labels."
)
_SOFT = "Train on the labels of all annotators (soft labels), or fit a temperature."
_UNIT = (0.0, 1.0)


def ged(of_both: Array, of_samples: Array, of_annotators: Array, items: Array) -> Array:
    """Return 2·E d(S, Y) - E d(S, S') - E d(Y, Y'), averaged over items [set]; NaN without items.

    Kohl et al. 2018, §3. The first three arguments are sums over items.
    """
    return over(2 * of_both - of_samples - of_annotators, items)


def kl(cross_entropy: Array, entropy: Array, pixels: Array) -> Array:
    """Return the mean KL(votes ‖ probabilities) in nats [set]; NaN without pixels."""
    return at_least_0(over(cross_entropy - entropy, pixels))


def ece(count: Array, share: Array, total: Array) -> Array:
    """Return Σ_b |share_b - confidence_b| / N of summed shares and confidences [set, bin]."""
    return over(running_sum(abs(share - total)), count.sum(axis=-1))


def kappa(pairs: Array, agreeing: Array, votes: Array) -> Array:
    """Return Fleiss' kappa (P - P_e)/(1 - P_e) [set]; NaN without pairs, or for votes of one class.

    Fleiss 1971. `pairs` of annotators at a pixel and those that agree; `votes` of each class
    [set, class].
    """
    total = votes.sum(axis=-1)
    expected = running_sum(over(votes, total[:, None]) ** 2)
    observed = over(agreeing, pairs)
    rest = np.where(votes.max(axis=-1) < total, 1 - expected, 0.0)
    return over(observed - expected, rest)


def _metric(
    field: str, unit: str, better: str, limits: tuple[float | None, float | None], reference: str,
    undefined: str, formula: object, label: str, meaning: str, *, interval: IntervalKind,
    headline: int = 0, advice: str = "", column: str = "", chance: Chance | None = None,
    of_class: str = "", best: Literal["end"] | float = "end", large: float | None = None,
) -> Metric:  # fmt: skip
    return Metric(
        "annotators", field, unit, better or None, limits, reference, undefined, formula,  # type: ignore[arg-type]
        label=label, meaning=meaning, interval=interval, headline=headline, advice=advice,
        column=column, chance=chance, of_class=of_class, best=best, large=large,
        of_part="error" if field in ("ged", "ncc") else "calibration" if headline else None,
    )  # fmt: skip


METRICS = (
    _metric("ged", "distance", "lower", (-2.0, 2.0), _KOHL, _GED_NEEDS, ged, "GED",
            "Distance between the distribution of the samples and that of the annotators' maps.",
            interval="linear", headline=1, advice=_DIVERSITY, of_class="ged", best=0.0),
    _metric("ncc", "1", "higher", (-1.0, 1.0), _VALUES, CONSTANT, over, "NCC",
            "Correlation of the uncertainty with the annotators' disagreement, within an image.",
            interval="linear", headline=2,
            advice="Try --uncertainty expected_entropy: people disagree where the image is "
            "ambiguous, not where the network lacks data.",
            chance=Chance(0.0, "the uncertainty finds where annotators disagree")),
    _metric("ece", "fraction", "lower", _UNIT, "docs/metrics.md, Several annotators", VOID, ece,
            "ECE against annotators",
            "Mean gap between confidence and the share of annotators who chose the same class.",
            interval="gaps", headline=3, advice=_SOFT, large=LARGE_GAP, column="ECE"),
    _metric("kl", "nats", "lower", (0.0, None), "Kullback & Leibler 1951", VOID, kl,
            "KL from annotators",
            "How far the probabilities are from the shares of the annotators' votes.",
            interval="positive", headline=4, advice=_SOFT, column="KL"),
    _metric("cross_entropy", "nats", "lower", (0.0, None), "Peterson et al. 2019", VOID, over,
            "cross-entropy",
            "Mean negative logarithm of the probabilities, weighted by the annotators' votes.",
            interval="positive", advice=_SOFT),
    _metric("label_entropy", "nats", "", (0.0, None), "Peterson et al. 2019", VOID, over,
            "entropy of votes",
            "Entropy of the annotators' votes: the least cross-entropy that a model can reach.",
            interval="positive"),
    _metric("brier", "score", "lower", (0.0, 2.0), "Brier 1950", VOID, over,
            "Brier score against annotators",
            "Mean squared difference of the probabilities and the shares of the votes.",
            interval="positive", advice=_SOFT, column="Brier"),
    _metric("accuracy", "fraction", "higher", _UNIT, "docs/metrics.md, Several annotators", VOID,
            over, "accuracy against annotators",
            "Share of annotators, averaged over pixels, who chose the predicted class.",
            interval="logit", advice="Look at the classes with the highest GED first.",
            column="accuracy"),
    _metric("distance", "distance", "lower", _UNIT, _KOHL, _GED_NEEDS, over,
            "distance to annotators", "Expected distance of a sample to an annotator.",
            interval="logit", advice=_DIVERSITY, column="d(S, Y)"),
    _metric("diversity", "distance", "", _UNIT, _KOHL, _GED_NEEDS, over, "diversity of samples",
            "Expected distance of two samples.", interval="logit", column="d(S, S')"),
    _metric("annotator_diversity", "distance", "", _UNIT, _KOHL, TWO, over,
            "diversity of annotators", "Expected distance of two annotators, who may be the same.",
            interval="logit", column="d(Y, Y')"),
    _metric("annotator_ged", "distance", "", (-2.0, 2.0), "docs/metrics.md, Several annotators",
            TWO, over, "GED of an annotator",
            "GED of one annotator to the others: what a model that copies a person would reach.",
            interval="linear", column="GED of one"),
    _metric("agreement", "fraction", "", _UNIT, "docs/metrics.md, Several annotators", TWO, over,
            "agreement of annotators", "Mean overlap (1 - distance) of two different annotators.",
            interval="logit", column="agreement", of_class="agreement"),
    _metric("kappa", "1", "", (-1.0, 1.0), "Fleiss 1971",
            "needs two annotators at a pixel, and votes for two classes", kappa, "Fleiss' kappa",
            "Agreement of the annotators at a pixel beyond chance: 1 is perfect, 0 is chance.",
            interval="linear", column="kappa"),
)  # fmt: skip
