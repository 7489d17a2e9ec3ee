"""Isotonic regression and vector scaling, parts of calibration: fit, and scores after it.

Both are fitted out of core. Isotonic regression of the confidence pools adjacent violators
(Zadrozny & Elkan 2002) over exact counts by bin of confidence: one pass. Vector scaling (Guo et al.
2017, §4.2) minimises the NLL of softmax(w·z + b) by Newton's method: one pass per step, with exact
gradients, and second derivatives of some pixels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import SetColumns, SetStates, over
from uqeval.metrics._contract import IntervalKind, Metric, set_value
from uqeval.metrics._evaluation import Passes, Run
from uqeval.metrics._fitted_apart import on_items
from uqeval.metrics._fitted_part import Recalibration
from uqeval.metrics.calibration_results import of_bins

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: Vector scaling ends when a step would lower the mean NLL by less than this, and after this number
#: of passes at the latest.
_SMALL, _PASSES = 1e-12, 60
#: Weights beyond this run to infinity, and so do those at which the mean NLL is below this.
_MOST, _CERTAIN = 1e4, 1e-9
#: Part of the curvature's trace that is added to its diagonal.
_RIDGE = 1e-12
NO_PIXEL = "no item that it is fitted on has a labelled pixel"
UNBOUNDED = "the NLL has no minimum: it still falls as the weights grow"


@dataclass(frozen=True)
class Knots:
    """A fitted isotonic function: linear between values at bins of confidence."""

    places: list[int]
    values: list[float]
    pixels: int
    steps: int


def pooled(count: Sequence[int], correct: Sequence[int]) -> Knots:
    """Return the isotonic regression of the share of right pixels in each bin.

    Adjacent bins whose shares fall are pooled: comparisons are of integers, so exact.
    """
    blocks: list[tuple[int, int, int, int]] = []  # first bin, last bin, pixels, right ones
    for b, (n, k) in enumerate(zip(count, correct, strict=True)):
        if not n:
            continue
        first, last = b, b
        while blocks and blocks[-1][3] * n >= k * blocks[-1][2]:
            before = blocks.pop()
            first, n, k = before[0], n + before[2], k + before[3]
        blocks.append((first, last, n, k))
    places: list[int] = []
    values: list[float] = []
    for first, last, n, k in blocks:
        ends = [first] if first == last else [first, last]
        places += ends
        values += [k / n] * len(ends)
    return Knots(places, values, sum(count), len(blocks))


@dataclass(frozen=True)
class Vector:
    """Fitted weights and biases, or why there are none; pixels, and passes that it took."""

    weights: list[float]
    biases: list[float]
    reason: str
    pixels: int
    absent: list[int]


def fit_vector(classes: int, items: Sequence[int] | None, clip: float) -> Passes:
    """Return the `Vector` with the least NLL of some items (None: all).

    Classes without a labelled pixel keep their probability. A step that raises the NLL is halved.
    """
    from uqeval.tallies.recalibrated import LogitSlopes

    point = np.stack([np.ones(classes), np.zeros(classes)])
    best: Array | None = None
    least, step = np.inf, np.zeros_like(point)
    absent: list[int] = []
    for _ in range(_PASSES):
        weights, biases = point.tolist()
        tally = LogitSlopes(
            classes, tuple(weights), tuple(biases), clip, tuple(absent), items is not None
        )
        state = (yield (tally,))[tally].of(tally, items)
        pixels = int(state["labels"].sum())
        if not pixels:
            return Vector([], [], NO_PIXEL, 0, [])
        if not absent and (absent := np.flatnonzero(state["labels"] == 0).tolist()):
            continue  # count again, without these classes
        nll = float(state["nll"][0]) / pixels
        if best is not None and not nll <= least + _SMALL:
            step = step / 2
            point = best + step
            continue
        best, least = point, nll
        step, gain = _newton(state, pixels, absent)
        if gain <= _SMALL:
            if nll <= _CERTAIN:
                break
            return Vector(weights, biases, "", pixels, absent)
        point = best + step
        if float(abs(point).max()) > _MOST:
            break
    return Vector([], [], UNBOUNDED, pixels, absent)


def _newton(state: State, pixels: int, absent: Sequence[int]) -> tuple[Array, float]:
    """Return the step [2, class] of Newton's method, and the decrease of the mean NLL."""
    ww, wb, bb = state["curvature"] / pixels
    slopes = state["slopes"] / pixels
    classes = len(ww)
    hessian = np.block([[ww, wb], [wb.T, bb]])
    # A constant added to all biases changes nothing: their mean stays.
    hessian[classes:, classes:] += 1 / classes
    hessian[np.diag_indices(2 * classes)] += _RIDGE * max(np.trace(hessian), 1.0)
    is_free = np.ones((2, classes), bool)
    is_free[:, list(absent)] = False
    free = np.flatnonzero(is_free)
    step = np.zeros(2 * classes)
    gradient = slopes.reshape(-1)
    step[free] = -np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
    return step.reshape(2, classes), float(-gradient @ step) / 2


#: Vector scaling has second derivatives of all pairs of classes.
MOST_CLASSES = 64
#: Fewer pixels than this, and the steps of isotonic regression are mostly noise.
_FEW = 1000
_SCORES: tuple[tuple[str, str, str, IntervalKind, Any, tuple[float, float | None]], ...] = (
    ("ece", "ECE", "fraction", "gaps", cs.ece, (0.0, 1.0)),
    ("mce", "MCE", "fraction", "gaps", cs.mce, (0.0, 1.0)),
    ("brier", "Brier score", "score", "positive", over, (0.0, 2.0)),
    ("nll", "NLL", "nats", "positive", over, (0.0, None)),
)


def _metrics(part: str, noun: str, reference: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            "calibration", f"{part}.{field}", unit, "lower", limits, reference,
            f"there is no fitted {noun}", formula, label=f"{label} after {noun}",
            meaning=f"{label} after {noun}, fitted on the items of --fit-on, or else on all.",
            advice="If it is no better than before, fit it on more images (--fit-on).",
            interval=interval, fitted_apart=on_items(noun),
        )
        for field, label, unit, interval, formula, limits in _SCORES
    )  # fmt: skip


class _Recalibrated(Recalibration):
    """Base class: scores after a fit that is not a temperature.

    `fitted`: what the results say of the fit, `record`, and whether there is one, `found`.
    """

    optimistic = "the scores after it are"
    recomputed = tuple(cs.BY_FIELD[name] for name, *_ in _SCORES)
    needs_fitted = ("record",)

    @property
    def is_found(self) -> bool:
        return bool(self.fitted.get("found"))

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "mean_probs", "label_probability", "brier"}

    @property
    def before(self) -> tuple[Tally, Tally]:
        from uqeval.tallies.reliability import ProperScores, Reliability

        settings, classes = self.settings, self.info.classes
        return Reliability(classes, settings.binning()), ProperScores(classes, settings.clip)

    def _begin(self) -> dict[str, Any]:
        """Return the record of the fit."""
        return dict(self.fitted_on)

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
        means = {("brier",): over(brier, pixels), ("nll",): over(nll, pixels)}
        return of_bins(states[0], self.settings.at_one) | means


class IsotonicRegression(_Recalibrated):
    """The confidence of the predicted class becomes the share of right pixels at it.

    `fitted` also has the knots of the function: `places`, bins of confidence, and `values`.
    """

    name = "isotonic"
    noun = "isotonic regression"
    metrics = _metrics("isotonic", noun, "Zadrozny & Elkan 2002")
    requested_by = "isotonic"

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
    requested_by = "vector"

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
