"""Formulas of calibration, over binned counts and summed scores.

Guo et al. 2017 (ECE, MCE, temperature), Nixon et al. 2019 (adaptive bins), Kull et al. 2019
(class-wise), Brier 1950. Intervals use the signed gaps of bins (right pixels minus summed
confidences) to test whether a calibration error differs from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, Floats, np
from uqeval.metrics._columns import SetStates, as_numbers, over
from uqeval.metrics._contract import LARGE_GAP, NO_LABEL, Metric
from uqeval.metrics._fitted_apart import on_items
from uqeval.metrics._items import exact_sums
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.temperature_advice import TEMPERATURE, by_temperature

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: What becomes of pixels whose confidence is not below 1.
AT_ONE = ("last", "own", "drop")


@dataclass(frozen=True)
class Binned:
    """Pixels [set, …, bin], those that are right, and the sums of their confidences."""

    count: Array
    correct: Array
    confidence: Array

    @classmethod
    def of(cls, states: SetStates, at_one: str = "own") -> Binned:
        """Return the bins of states whose last bin holds the confidences not below 1.

        `at_one`: these lie in the "last" of the other bins, in a bin of their "own", or in none
        ("drop").
        """
        columns = [states[name] for name in ("count", "correct", "confidence")]
        if at_one != "own":
            top = [column[..., -1] for column in columns]
            columns = [column[..., :-1].copy() for column in columns]
            for column, last in zip(columns, top, strict=True):
                column[..., -1] += last if at_one == "last" else 0
        return cls(*columns)

    def row(self, c: int) -> Binned:
        """Return the bins [set, bin] of one class."""
        return Binned(self.count[:, c], self.correct[:, c], self.confidence[:, c])

    @property
    def signed(self) -> Array:
        """Return right pixels minus the sum of confidences, for each bin."""
        return self.correct - self.confidence

    @property
    def mean_gaps(self) -> Array:
        """Return |accuracy - confidence| of each bin, NaN where it is empty."""
        return over(abs(self.signed), self.count)


def ece(binned: Binned, pixels: Array) -> Array:
    """Return Σ_b n_b/N · |accuracy_b - confidence_b| (Guo et al. 2017, eq. 3), N all `pixels`.

    NaN without pixels.
    """
    return over(exact_sums(abs(binned.signed)), pixels)


def mce(binned: Binned) -> Array:
    """Return the largest |accuracy_b - confidence_b| of the bins with pixels (Guo et al. 2017, eq.
    5).

    NaN where no bin has any.
    """
    return np.fmax.reduce(binned.mean_gaps, axis=-1)


def ace(binned: Binned) -> Array:
    """Return the mean |accuracy_b - confidence_b| of the bins with pixels, each counted once.

    Nixon et al. 2019, §3, in the bins of the ECE, as ValUES has it. NaN where no bin has any.
    """
    gaps = np.where(binned.count > 0, binned.mean_gaps, 0.0)
    return over(exact_sums(gaps), (binned.count > 0).sum(axis=-1))


def classwise_ece(classes: Binned, pixels: Array) -> Array:
    """Return the mean over all classes [set, class, bin] of the ECE of one class against the rest
    (Kull et al. 2019, eq. 3).
    """
    return exact_sums(class_eces(classes, pixels)) / classes.count.shape[1]


def class_eces(classes: Binned, pixels: Array) -> Array:
    """Return the ECE of each class against the rest [set, class]."""
    return ece(classes, pixels[:, None])


_EMPTY = "no bin holds a pixel"
_UNFITTED = "there is no fitted temperature"
_TEMPERATURE = on_items("temperature")
_OF_NLL = by_temperature("nll")
_MORE = (
    "If it is no better than before, fit it on more images (--fit-on), or fit more parameters "
    "(--isotonic, --vector)."
)
_GUO = "Guo et al. 2017"

METRICS = (
    Metric("calibration", "ece", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 3", NO_LABEL, ece,
           label="ECE", headline=1, of_part="calibration",
           meaning="Mean gap between confidence and accuracy.",
           **TEMPERATURE, large=LARGE_GAP, interval="gaps"),
    Metric("calibration", "mce", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 5", _EMPTY, mce,
           label="MCE", headline=2,
           meaning="Largest gap between confidence and accuracy of any bin.",
           **TEMPERATURE, interval="gaps"),
    Metric("calibration", "ace", "fraction", "lower", (0.0, 1.0), "Kahl et al. 2024 (ValUES)",
           _EMPTY, ace,
           label="ACE",
           meaning="Mean gap between confidence and accuracy of the bins, each counted once.",
           **TEMPERATURE, interval="gaps"),
    Metric("calibration", "adaptive_ece", "fraction", "lower", (0.0, 1.0),
           "Nixon et al. 2019, §3, on the top label", NO_LABEL, ece,
           label="adaptive ECE",
           meaning="Mean gap between confidence and accuracy, in bins of equally many pixels.",
           **TEMPERATURE, interval="gaps"),
    Metric("calibration", "classwise_ece", "fraction", "lower", (0.0, 1.0),
           "Kull et al. 2019, eq. 3", NO_LABEL, classwise_ece,
           label="class-wise ECE",
           meaning="Mean gap between probability and frequency, over all classes.",
           **TEMPERATURE, interval="gaps"),
    Metric("calibration", "brier", "score", "lower", (0.0, 2.0), "Brier 1950", NO_LABEL, over,
           label="Brier score", headline=3, column="Brier", of_part="calibration",
           meaning="Mean squared error of the class probabilities.",
           **_OF_NLL, interval="positive"),
    Metric("calibration", "nll", "nats", "lower", (0.0, None), f"{_GUO}, eq. 6", NO_LABEL,
           over, label="NLL", headline=4, of_part="calibration",
           meaning="Mean negative logarithm of the probability of the right class.",
           **_OF_NLL, interval="positive"),
    Metric("calibration", "temperature.value", "1", None, (0.0, None), f"{_GUO}, eq. 9",
           "the NLL has no minimum over T > 0", lambda beta: 1 / beta,
           label="temperature T",
           meaning="The temperature with the lowest NLL; above 1 the model is over-confident.",
           interval="draws", fitted_apart=_TEMPERATURE),
    Metric("calibration", "temperature.ece", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 3",
           _UNFITTED, ece,
           label="ECE at T",
           meaning="ECE after scaling by the fitted temperature.",
           advice=_MORE, interval="gaps", fitted_apart=_TEMPERATURE),
    Metric("calibration", "temperature.mce", "fraction", "lower", (0.0, 1.0), f"{_GUO}, eq. 5",
           _UNFITTED, mce,
           label="MCE at T",
           meaning="MCE after scaling by the fitted temperature.",
           advice=_MORE, interval="gaps", fitted_apart=_TEMPERATURE),
    Metric("calibration", "temperature.nll", "nats", "lower", (0.0, None), f"{_GUO}, eq. 6",
           _UNFITTED, over,
           label="NLL at T",
           meaning="NLL after scaling by the fitted temperature.",
           advice=_MORE, interval="positive", fitted_apart=_TEMPERATURE),
)  # fmt: skip

BY_FIELD: dict[str, Metric] = {metric.field: metric for metric in METRICS}


def reliability(binned: Binned, edges: Sequence[float]) -> dict[str, list[Any]]:
    """Return the reliability diagram of one set: of each bin its edges, pixels, mean confidence and
    accuracy.

    None where a bin is empty. A bin of confidence 1 alone runs from 1 to 1.
    """
    upper = [*edges[1:], edges[-1]]
    (count,) = binned.count
    return {
        "lower": list(edges)[: count.size],
        "upper": upper[: count.size],
        "count": count.tolist(),
        "confidence": as_numbers(over(binned.confidence[0], count)),
        "accuracy": as_numbers(over(binned.correct[0], count)),
    }


def of_set(
    top: Tally, per_class: Tally, massed: Sequence[Tally], at_one: str, classes: int
) -> dict[tuple[Any, ...], Gaps]:
    """Return the gaps of all calibration errors of a set, and of the ECE of each class."""
    gaps = of_bins(top, at_one)
    for tally in massed:
        gaps["adaptive_ece",] = _gaps(_BinsOf(tally, "own"), pixels_of=top)
    of_classes = _BinsOf(per_class, at_one)
    gaps["classwise_ece",] = _gaps(of_classes, pixels_of=top, over=classes)
    for c in range(classes):
        gaps["per_class", c, "ece"] = _gaps(of_classes, pixels_of=top, row=c)
    return gaps


def of_bins(tally: Tally, at_one: str) -> dict[tuple[Any, ...], Gaps]:
    """Return the gaps of the ECE, MCE and ACE of a tally of confidence bins."""
    bins = _BinsOf(tally, at_one)
    return {
        ("ece",): _gaps(bins, pixels_of=tally),
        ("mce",): _gaps(bins, pixels_of=tally, of_each=True, largest=True),
        ("ace",): _gaps(bins, pixels_of=tally, of_each=True),
    }


class _BinsOf:
    """The bins of a tally's states, with a cache of the last ones for further scores."""

    def __init__(self, tally: Tally, at_one: str) -> None:
        self._tally, self._at_one = tally, at_one
        self._last: tuple[SetStates, Binned] | None = None

    def __call__(self, states: Mapping[Tally, SetStates]) -> Binned:
        own, last = states[self._tally], self._last
        if last is None or last[0] is not own:
            self._last = last = own, Binned.of(own, self._at_one)
        return last[1]


def _gaps(
    bins_of: _BinsOf,
    *,
    pixels_of: Tally,
    over: int = 1,
    row: int | None = None,
    of_each: bool = False,
    largest: bool = False,
) -> Gaps:
    """Return the gaps of bins, `over` so many classes or of one `row`.

    `of_each`: relative to the pixels of the bin; `largest`: the score is the greatest of them, not
    their mean."""

    def binned(states: Mapping[Tally, SetStates]) -> Binned:
        bins = bins_of(states)
        return bins if row is None else bins.row(row)

    def signed(states: Mapping[Tally, SetStates]) -> Floats:
        gaps = binned(states).signed
        return gaps.reshape(len(gaps), -1)

    def weights(states: Mapping[Tally, SetStates]) -> Floats:
        counts = binned(states).count
        counts = counts.reshape(len(counts), -1)
        if of_each:
            bins = 1 if largest else (counts > 0).sum(axis=1, keepdims=True)
            return np.where(counts > 0, 1 / np.maximum(counts * bins, 1), 0.0)
        pixels = np.maximum(states[pixels_of]["count"].sum(axis=-1), 1)
        return np.broadcast_to(1 / (pixels * over)[:, None], counts.shape)

    return Gaps(signed, weights, largest)
