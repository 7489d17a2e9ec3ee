"""Isotonic regression and vector scaling, parts of calibration: scores after recalibration.

Zadrozny & Elkan 2002 (isotonic regression of the confidence), Guo et al. 2017, §4.2 (vector
scaling).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import uqeval.metrics.calibration_gaps as calibration_gaps
import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import Array, State
from uqeval.metrics._columns import Place, SetColumns, SetStates, scores_of
from uqeval.metrics._contract import IntervalKind, Metric, set_value
from uqeval.metrics._dataset_info import fit_items
from uqeval.metrics._evaluation import Gaps, Part, Passes, Run, TallyResult
from uqeval.metrics.calibration_results import of_bins
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.recalibration_fit import NO_PIXEL, fit_vector, pooled
from uqeval.metrics.temperature_fit import folded

if TYPE_CHECKING:
    from uqeval.tallies import Tally

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


class _Recalibration(Part[CalibrationSettings]):
    """Base class: a fit on all or some items, and the scores of all items after it.

    Where it is fitted on some items, `held_out` of a run has the scores of the others, before and
    after. `fitted`: what the results say of the fit, `record`, and whether there is one, `found`.
    """

    noun: ClassVar[str]

    @property
    def can_score(self) -> bool:
        return "record" in self.fitted

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "mean_probs", "label_probability", "brier"}

    def _after(self) -> Tally:
        """Return the tally of the scores after."""
        raise NotImplementedError

    @property
    def _before(self) -> tuple[Tally, Tally]:
        from uqeval.tallies import ProperScores, Reliability

        settings, classes = self.settings, self.info.classes
        return Reliability(classes, settings.binning()), ProperScores(classes, settings.clip)

    def _begin(self) -> tuple[list[int] | None, dict[str, Any]]:
        """Return the items to fit on, and the record of the fit."""
        fit_on = self.settings.fit_on
        return fit_items(fit_on, self.info), {"fitted_on": fit_on or "all items"}

    def tallies(self) -> tuple[Tally, ...]:
        return (self._after(),) if self.fitted.get("found") else ()

    def extra_tallies(self) -> tuple[Tally, ...]:
        held_out = self.settings.fit_on is not None and self.fitted.get("found")
        return self._before if held_out else ()

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        record = dict(self.fitted["record"])
        tallies = self.tallies()
        if tallies:
            state = states[tallies[0]]
            return record | _scores(state, state["sums"], self.settings.at_one)
        for metric in self.metrics:
            set_value(record, metric.field.partition(".")[2], None, self.fitted["reason"])
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        if not self.tallies():
            return {}
        own = states[self.tallies()[0]]
        return _columns(own, own["sums"], self.settings.at_one)

    def gaps(self) -> dict[Place, Gaps]:
        tallies = self.tallies()
        return calibration_gaps.of_bins(tallies[0], self.settings.at_one) if tallies else {}

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Add the scores of the items that are held out of the fit."""
        run = super().run_of(results, exact)
        fitted_on, tallies = fit_items(self.settings.fit_on, self.info), self.tallies()
        if fitted_on is not None and tallies:
            others = sorted(set(range(len(self.info.names))) - set(fitted_on))
            top, proper = (folded(tally, results[tally], others) for tally in self._before)
            after = folded(tallies[0], results[tallies[0]], others)
            at_one = self.settings.at_one
            run.results["held_out"] = {
                "items": len(others), "before": _scores(top, proper["sums"], at_one),
                "after": _scores(after, after["sums"], at_one),
            }  # fmt: skip
        return run

    def warnings(self, run: Run) -> list[str]:
        if self.settings.fit_on is not None:
            return []
        return [
            f"the {self.noun} is fitted on the evaluated items, so the scores after it are "
            "optimistic; --fit-on FILE names other items to fit it on."
        ]


class IsotonicRegression(_Recalibration):
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
        from uqeval.tallies import ConfidenceCounts
        from uqeval.tallies.recalibrated import CONFIDENCE_BINS

        items, record = self._begin()
        tally = ConfidenceCounts(self.info.classes)
        state = folded(tally, (yield (tally,))[tally], items)
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

    def _after(self) -> Tally:
        from uqeval.tallies import Isotonic

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


class VectorScaling(_Recalibration):
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
        items, record = self._begin()
        found = yield from fit_vector(self.info.classes, items, self.settings.clip)
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

    def _after(self) -> Tally:
        from uqeval.tallies import VectorScaled

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


def _columns(states: SetStates, sums: Array, at_one: str) -> SetColumns:
    """Return the scores of bins of confidence, and of `sums` [set, 2] of NLL and Brier score."""
    pixels, (nll, brier) = states["count"].sum(axis=-1), sums.T
    means = {("brier",): cs.mean_score(brier, pixels), ("nll",): cs.mean_score(nll, pixels)}
    return of_bins(states, at_one) | means


def _scores(state: State, sums: Array, at_one: str) -> dict[str, Any]:
    metrics = [cs.BY_FIELD[name] for name, *_ in _SCORES]
    (record,) = scores_of(metrics, _columns(SetStates.of_one(state), sums[None], at_one))
    return record
