"""Formulas of calibration, over binned counts and summed scores.

Guo et al. 2017 (ECE, MCE, temperature), Nixon et al. 2019 (adaptive bins), Kull et al. 2019
(class-wise), Brier 1950.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics._contract import TEMPERATURE, Metric

if TYPE_CHECKING:
    from uqeval.tallies._fields import State

#: What becomes of pixels whose confidence is not below 1.
AT_ONE = ("last", "own", "drop")


@dataclass(frozen=True)
class Binned:
    """Pixels of each bin, those that are right, and the sum of their confidences."""

    count: list[int]
    correct: list[int]
    confidence: list[float]

    @classmethod
    def from_state(cls, state: State, at_one: str = "own") -> Binned:
        """Return the bins of a state [bin], whose last holds the confidences not below 1.

        `at_one`: they lie in the "last" of the other bins, in one of their "own", or in none
        ("drop").
        """
        columns = [state[name].tolist() for name in ("count", "correct", "confidence")]
        if at_one != "own":
            for column in columns:
                top = column.pop()
                if at_one == "last":
                    column[-1] += top
        return cls(*columns)

    def gaps(self) -> list[float]:
        """Return |Σ confidence - right pixels| of each bin."""
        return [abs(s - k) for s, k in zip(self.confidence, self.correct, strict=True)]


def ece(binned: Binned, pixels: int) -> float | None:
    """Return Σ_b n_b/N · |accuracy_b - confidence_b| (Guo et al. 2017, eq. 3), N all `pixels`.

    Undefined without pixels.
    """
    return math.fsum(binned.gaps()) / pixels if pixels else None


def mce(binned: Binned) -> float | None:
    """Return the largest |accuracy_b - confidence_b| of the bins with pixels (Guo et al. 2017, eq.
    5).

    Undefined where no bin has any.
    """
    return max((g / n for g, n in zip(binned.gaps(), binned.count, strict=True) if n), default=None)


def ace(binned: Binned) -> float | None:
    """Return the mean |accuracy_b - confidence_b| of the bins with pixels, each counted once.

    Nixon et al. 2019, §3, in the bins of the ECE, as ValUES has it. Undefined where no bin has any.
    """
    gaps = [g / n for g, n in zip(binned.gaps(), binned.count, strict=True) if n]
    return math.fsum(gaps) / len(gaps) if gaps else None


def classwise_ece(classes: Sequence[Binned], pixels: int) -> float | None:
    """Return mean over all classes of the ECE of one class against the rest (Kull et al. 2019, eq.
    3).
    """
    values = [ece(binned, pixels) for binned in classes]
    defined = [v for v in values if v is not None]
    return math.fsum(defined) / len(classes) if defined else None


def mean_score(total: float, pixels: int) -> float | None:
    """Return the mean of a score that was summed over `pixels`; undefined without any."""
    return total / pixels if pixels else None


_VOID = "no labelled pixel: all are void"
_EMPTY = "no bin holds a pixel"
_UNFITTED = "there is no fitted temperature"
_GUO = "Guo et al. 2017"

METRICS = (
    Metric("calibration", "ece", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 3", _VOID, ece,
           label="ECE", headline=1,
           meaning="Mean gap between confidence and accuracy.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "mce", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 5", _EMPTY, mce,
           label="MCE", headline=2,
           meaning="Largest gap between confidence and accuracy of any bin.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "ace", "fraction", "lower", (0.0, 1.0), "Kahl et al. 2024 (ValUES)",
           _EMPTY, ace,
           label="ACE",
           meaning="Mean gap between confidence and accuracy of the bins, each counted once.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "adaptive_ece", "fraction", "lower", (0.0, 1.0),
           "Nixon et al. 2019, §3, on the top label", _VOID, ece,
           label="adaptive ECE",
           meaning="Mean gap between confidence and accuracy, in bins of equally many pixels.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "classwise_ece", "fraction", "lower", (0.0, 1.0),
           "Kull et al. 2019, eq. 3", _VOID, classwise_ece,
           label="class-wise ECE",
           meaning="Mean gap between probability and frequency, over all classes.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "brier", "score", "lower", (0.0, 2.0), "Brier 1950", _VOID, mean_score,
           label="Brier score", headline=3, column="Brier",
           meaning="Mean squared error of the class probabilities.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "nll", "nats", "lower", (0.0, None), f"{_GUO}, eq. 6", _VOID, mean_score,
           label="NLL", headline=4,
           meaning="Mean negative logarithm of the probability of the right class.",
           advice=TEMPERATURE, interval="draws"),
    Metric("calibration", "temperature.value", "1", None, (0.0, None), f"{_GUO}, eq. 9",
           "the NLL has no least value over T > 0", lambda beta: 1 / beta,
           label="temperature T",
           meaning="The temperature with the lowest NLL; above 1 the model is over-confident.",
           interval="draws"),
    Metric("calibration", "temperature.ece", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 3",
           _UNFITTED, ece,
           label="ECE at T",
           meaning="ECE after scaling by the fitted temperature.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "temperature.mce", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 5",
           _UNFITTED, mce,
           label="MCE at T",
           meaning="MCE after scaling by the fitted temperature.",
           advice=TEMPERATURE, interval="gaps"),
    Metric("calibration", "temperature.nll", "nats", "lower", (0.0, None), f"{_GUO}, eq. 6",
           _UNFITTED, mean_score,
           label="NLL at T",
           meaning="NLL after scaling by the fitted temperature.",
           advice=TEMPERATURE, interval="draws"),
)  # fmt: skip

BY_FIELD: dict[str, Metric] = {metric.field: metric for metric in METRICS}


def reliability(binned: Binned, edges: Sequence[float]) -> dict[str, list[Any]]:
    """Return the reliability diagram: of each bin its edges, pixels, mean confidence and accuracy.

    None where a bin is empty. A bin of confidence 1 alone runs from 1 to 1.
    """
    upper = [*edges[1:], edges[-1]]
    n = len(binned.count)
    return {
        "lower": list(edges)[:n],
        "upper": upper[:n],
        "count": binned.count,
        "confidence": _ratios(binned.confidence, binned.count),
        "accuracy": _ratios(binned.correct, binned.count),
    }


def _ratios(sums: Sequence[float], counts: Sequence[int]) -> list[float | None]:
    return [s / n if n else None for s, n in zip(sums, counts, strict=True)]
