"""Isotonic regression and vector scaling, parts of calibration: scores after recalibration.

Zadrozny & Elkan 2002 (isotonic regression of the confidence), Guo et al. 2017, §4.2 (vector
scaling).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import State
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._contract import IntervalKind, Metric, set_value
from uqeval.metrics._evaluation import Passes, Run
from uqeval.metrics._fitted_part import Recalibration
from uqeval.metrics.calibration_results import of_bins
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.recalibration_fit import NO_PIXEL, fit_vector, pooled

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: Vector scaling has second derivatives of all pairs of classes.
MOST_CLASSES = 64
#: Fewer pixels than this, and the steps of isotonic regression are mostly noise.
_FEW = 1000
_SCORES: tuple[tuple[str, str, str, IntervalKind, Any, tuple[float, float | None]], ...] = (
    ("ece", "ECE", "fraction", "gaps", cs.ece, (0.0, 1.0)),
    ("mce", "MCE", "fraction", "gaps", cs.mce, (0.0, 1.0)),
    ("brier", "Brier score", "score", "positive", cs.mean_score, (0.0, 2.0)),
    ("nll", "NLL", "nats", "positive", cs.mean_score, (0.0, None)),
)


def _metrics(part: str, noun: str, reference: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            "calibration", f"{part}.{field}", unit, "lower", limits, reference,
            f"there is no fitted {noun}", formula, label=f"{label} after {noun}",
            meaning=f"{label} after {noun} that is fitted on the items of --fit-on.",
            advice="If it is no better than before, fit it on more images (--fit-on).",
            interval=interval,
        )
        for field, label, unit, interval, formula, limits in _SCORES
    )  # fmt: skip


class _Recalibrated(Recalibration):
    """Base class: scores after a fit that is not a temperature.

    `fitted`: what the results say of the fit, `record`, and whether there is one, `found`.
    """

    optimistic = "the scores after it are"
    recomputed = tuple(cs.BY_FIELD[name] for name, *_ in _SCORES)

    @property
    def can_score(self) -> bool:
        return "record" in self.fitted

    @property
    def is_found(self) -> bool:
        return bool(self.fitted.get("found"))

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "mean_probs", "label_probability", "brier"}

    @property
    def before(self) -> tuple[Tally, Tally]:
        from uqeval.tallies.proper_scores import ProperScores
        from uqeval.tallies.reliability import Reliability

        settings, classes = self.settings, self.info.classes
        return Reliability(classes, settings.binning()), ProperScores(classes, settings.clip)

    def _begin(self) -> dict[str, Any]:
        """Return the record of the fit."""
        return {"fitted_on": self.fit_on or "all items"}

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        record = dict(self.fitted["record"])
        if self.is_found:
            return record | self.recomputed_of(states[self.after()])
        for metric in self.metrics:
            set_value(record, metric.field.partition(".")[2], None, self.fitted["reason"])
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return self.columns_of(states[self.after()]) if self.is_found else {}

    def columns_of(self, *states: SetStates) -> SetColumns:
        pixels, (nll, brier) = states[0]["count"].sum(axis=-1), states[-1]["sums"].T
        means = {("brier",): cs.mean_score(brier, pixels), ("nll",): cs.mean_score(nll, pixels)}
        return of_bins(states[0], self.settings.at_one) | means


class IsotonicRegression(_Recalibrated):
    """The confidence of the predicted class becomes the share of right pixels at it.

    `fitted` also has the knots of the function: `places`, bins of confidence, and `values`.
    """

    name = "isotonic"
    noun = "isotonic regression"
    metrics = _metrics("isotonic", noun, "Zadrozny & Elkan 2002")

    @classmethod
    def is_requested(cls, settings: CalibrationSettings) -> bool:
        return settings.isotonic

    def fit(self) -> Passes:
        from uqeval.tallies.recalibrated import CONFIDENCE_BINS, ConfidenceCounts

        record = self._begin()
        tally = ConfidenceCounts(self.info.classes)
        state = (yield (tally,))[tally].of(tally, self.items)
        knots = pooled(state["count"].tolist(), state["correct"].tolist())
        record |= {
            "pixels": knots.pixels, "steps": knots.steps, "bin_width": 1 / CONFIDENCE_BINS,
            "curve": {
                "confidence": [(place + 0.5) / CONFIDENCE_BINS for place in knots.places],
                "calibrated": knots.values,
            },
        }  # fmt: skip
        found = knots.pixels > 0
        self.fitted |= {"places": knots.places, "values": knots.values}
        self.fitted |= {"found": found, "reason": NO_PIXEL, "record": record}

    def after(self) -> Tally:
        from uqeval.tallies.recalibrated import Isotonic

        settings, fitted = self.settings, self.fitted
        knots = tuple(fitted["places"]), tuple(fitted["values"])
        return Isotonic(self.info.classes, settings.binning(), settings.clip, *knots)

    def warnings(self, run: Run) -> list[str]:
        messages = super().warnings(run)
        if 0 < (pixels := self.fitted["record"]["pixels"]) < _FEW:
            messages.append(
                f"the isotonic regression is fitted on {pixels} pixels; with fewer than {_FEW:,} "
                "it follows their noise. Name more items in --fit-on, or use the temperature."
            )
        return messages


class VectorScaling(_Recalibrated):
    """A weight and a bias for the logarithm of each class's probability.

    `fitted` also has `weights` and `biases`.
    """

    name = "vector"
    noun = "vector scaling"
    metrics = _metrics("vector", noun, "Guo et al. 2017, §4.2")

    @classmethod
    def is_requested(cls, settings: CalibrationSettings) -> bool:
        return settings.vector

    def fit(self) -> Passes:
        record = self._begin()
        found = yield from fit_vector(self.info.classes, self.items, self.settings.clip)
        record |= {"pixels": found.pixels, "classes_without_labels": found.absent}
        for name in ("weights", "biases"):
            values: list[float | None] = list(getattr(found, name))
            for c in found.absent if values else ():
                values[c] = None
            record[name] = values or None
            if not values:
                record[f"{name}_reason"] = found.reason
        self.fitted |= {"fixed": found.absent}
        self.fitted |= {"weights": found.weights, "biases": found.biases}
        self.fitted |= {"found": not found.reason, "reason": found.reason, "record": record}

    def after(self) -> Tally:
        from uqeval.tallies.recalibrated import VectorScaled

        settings, fitted = self.settings, self.fitted
        numbers = tuple(fitted["weights"]), tuple(fitted["biases"])
        return VectorScaled(
            self.info.classes, settings.binning(), settings.clip, *numbers, tuple(fitted["fixed"])
        )

    def warnings(self, run: Run) -> list[str]:
        messages = super().warnings(run)
        if absent := self.fitted["record"]["classes_without_labels"]:
            names = ", ".join(self.info.class_names[c] for c in absent)
            messages.append(
                f"vector scaling does not change the probabilities of {len(absent)} of "
                f"{self.info.classes} classes ({names}): no item that it is fitted on has a pixel "
                "of them."
            )
        return messages
