"""Murphy's decomposition of the Brier score, a part of calibration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import SetColumns, SetStates, over
from uqeval.metrics._contract import NO_LABEL, Metric, set_value
from uqeval.metrics._evaluation import Part
from uqeval.metrics.calibration_scores import Binned
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.temperature_advice import TEMPERATURE

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.reliability import ClassReliability

_MURPHY = "Murphy 1973, eq. 3"


@dataclass(frozen=True)
class ClassBins:
    """Bins [set, class, bin], the pixels [set] and the frequency of each class [set, class]."""

    bins: Binned
    pixels: Array
    frequency: Array


def reliability(class_bins: ClassBins) -> Array:
    """Return Σ_c Σ_b n_cb/N·(confidence_cb - frequency_cb)² of each set."""
    bins = class_bins.bins
    gaps = np.where(bins.count > 0, over(bins.signed**2, bins.count), 0.0)
    return over(gaps.sum(axis=(1, 2)), class_bins.pixels)


def resolution(class_bins: ClassBins) -> Array:
    """Return Σ_c Σ_b n_cb/N·(frequency_cb - frequency_c)² of each set."""
    bins, frequency = class_bins.bins, class_bins.frequency[..., None]
    in_bin = np.where(bins.count > 0, over(bins.correct, bins.count), frequency)
    spread = bins.count * (in_bin - frequency) ** 2
    return over(spread.sum(axis=(1, 2)), class_bins.pixels)


def uncertainty(class_bins: ClassBins) -> Array:
    """Return Σ_c frequency_c·(1 - frequency_c) of each set."""
    return np.asarray((class_bins.frequency * (1 - class_bins.frequency)).sum(axis=1))


METRICS = (
    Metric("calibration", "brier_decomposition.reliability", "score", "lower", (0.0, 2.0), _MURPHY,
           NO_LABEL, reliability,
           label="Brier reliability",
           meaning="Part of the Brier score that is miscalibration; 0 is best.",
           **TEMPERATURE, interval="biased"),
    Metric("calibration", "brier_decomposition.resolution", "score", "higher", (0.0, 1.0), _MURPHY,
           NO_LABEL, resolution,
           label="Brier resolution",
           meaning="How well the probabilities distinguish pixels of different classes.",
           advice="Train longer, or with more data: calibration cannot add resolution.",
           interval="biased"),
    Metric("calibration", "brier_decomposition.uncertainty", "score", None, (0.0, 1.0), _MURPHY,
           NO_LABEL, uncertainty,
           label="Brier uncertainty",
           meaning="Brier score of a model that always predicts the frequencies of the classes.",
           interval="biased"),
)  # fmt: skip


class BrierDecomposition(Part[CalibrationSettings]):
    """Brier ≈ reliability - resolution + uncertainty, in the bins of the class-wise ECE.

    `remainder`: the Brier score less these three, from probabilities that differ inside bins.
    """

    name = "brier_decomposition"
    metrics = METRICS

    @property
    def _tallies(self) -> tuple[ClassReliability, Tally]:
        from uqeval.tallies.reliability import ClassReliability, ProperScores

        settings, classes = self.settings, self.info.classes
        return (
            ClassReliability(classes, settings.binning()), ProperScores(classes, settings.clip)
        )  # fmt: skip

    def tallies(self) -> tuple[Tally, ...]:
        return self._tallies

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        sets = {tally: SetStates.of_one(states[tally]) for tally in self._tallies}
        record: dict[str, Any] = {}
        for name, value in self._decomposed(sets).items():
            set_value(record, name, float(value[0]) if np.isfinite(value[0]) else None, NO_LABEL)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return {(name,): value for name, value in self._decomposed(states).items()}

    def _decomposed(self, states: Mapping[Tally, SetStates]) -> dict[str, Array]:
        """Return the terms of each set."""
        by_class, scores = (states[tally] for tally in self._tallies)
        pixels = by_class["count"].sum(axis=2)[:, 0]
        frequency = over(by_class["correct"].sum(axis=2), pixels[:, None])
        bins = ClassBins(Binned.of(by_class, self.settings.at_one), pixels, frequency)
        terms = {
            metric.field.removeprefix(f"{self.name}."): metric.formula(bins) for metric in METRICS
        }
        total = terms["reliability"] - terms["resolution"] + terms["uncertainty"]
        return terms | {"remainder": over(scores["sums"][:, 1], pixels) - total}
