"""Calibration errors of many sets of items at once, from binned counts [set, …, bin]."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_estimators as estimators
from uqeval.metrics._columns import SetStates, of_rows, over
from uqeval.metrics._items import exact_sums
from uqeval.metrics.calibration_records import ADAPTIVE, ESTIMATOR, scores_of
from uqeval.metrics.calibration_scores import Binned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place
    from uqeval.metrics.calibration_settings import CalibrationSettings
    from uqeval.tallies._fields import State


@dataclass(frozen=True)
class SetBins:
    """Pixels [set, …, bin], those that are right, and the sums of their confidences."""

    count: NDArray[Any]
    correct: NDArray[Any]
    confidence: NDArray[Any]

    @classmethod
    def from_states(cls, states: SetStates, at_one: str = "own") -> SetBins:
        """Return the bins of states whose last bin holds the confidences not below 1.

        `at_one` as of `calibration_scores.Binned.from_state`.
        """
        columns = [states[name] for name in ("count", "correct", "confidence")]
        if at_one != "own":
            top = [column[..., -1] for column in columns]
            columns = [column[..., :-1].copy() for column in columns]
            for column, last in zip(columns, top, strict=True):
                column[..., -1] += last if at_one == "last" else 0
        return cls(*columns)

    def row(self, c: int) -> SetBins:
        """Return the bins [set, bin] of one class."""
        return SetBins(self.count[:, c], self.correct[:, c], self.confidence[:, c])

    @property
    def signed(self) -> NDArray[Any]:
        """Return right pixels less the sum of confidences of each bin."""
        difference: NDArray[Any] = self.correct - self.confidence
        return difference

    def ece(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return Σ_b |gap_b| / pixels, NaN without pixels."""
        return over(abs(self.signed).sum(axis=-1), pixels)

    def of_bins(self) -> NDArray[Any]:
        """Return |gap_b| / n_b of each bin, 0 where it is empty."""
        import numpy as np

        gaps: NDArray[Any] = np.where(
            self.count > 0, abs(self.signed) / np.maximum(self.count, 1), 0.0
        )
        return gaps

    def mce(self) -> NDArray[Any]:
        """Return the largest |gap_b| / n_b of the bins with pixels, NaN where there are none."""
        import numpy as np

        maximum: NDArray[Any] = np.fmax.reduce(over(abs(self.signed), self.count), axis=-1)
        return maximum


def columns(
    settings: CalibrationSettings,
    states: Sequence[SetStates],
    massed: Mapping[str, SetStates],
    fields: Collection[str],
) -> dict[Place, NDArray[Any]]:
    """Return the scores of states of `Reliability`, `ClassReliability` and `ProperScores`, and of
    `massed` bins, of equal mass, by name."""
    import numpy as np

    top, per_class, scores = states
    pixels = top["count"].sum(axis=-1)
    classes = SetBins.from_states(per_class, settings.at_one)
    count = classes.count.shape[1]
    binned = (
        classes.row(1) if settings.is_positive(count) else SetBins.from_states(top, settings.at_one)
    )
    nll, brier = scores["sums"].T
    results: dict[Place, NDArray[Any]] = {
        ("ece",): binned.ece(pixels),
        ("mce",): binned.mce(),
        ("ace",): over(binned.of_bins().sum(axis=-1), (binned.count > 0).sum(axis=-1)),
        ("brier",): over(brier, pixels),
        ("nll",): over(nll, pixels),
    }
    if ADAPTIVE in massed:
        results["adaptive_ece",] = SetBins.from_states(massed[ADAPTIVE]).ece(pixels)
    if ESTIMATOR in massed:
        results |= _estimated(settings.estimator, SetBins.from_states(massed[ESTIMATOR]), fields)
    if {"per_class", "classwise_ece"} & set(fields):
        class_eces = classes.ece(np.broadcast_to(pixels[:, None], classes.count.shape[:2]))
        results["classwise_ece",] = class_eces.sum(axis=1) / count
        rows = {"ece": class_eces, "pixels": per_class["correct"].sum(axis=-1)}
        results |= of_rows(rows, range(count))
    return results


def _estimated(estimator: str, bins: SetBins, fields: Collection[str]) -> dict[Place, NDArray[Any]]:
    """Return the scores of a published estimator, set by set: it has few bins."""
    import numpy as np

    metrics = [metric for metric in estimators.METRICS if metric.field in fields]
    rows = zip(bins.count, bins.correct, bins.confidence, strict=True)
    binned_rows = [Binned(*(column.tolist() for column in row)) for row in rows]
    available = estimators.fields_of(estimator)
    return {
        (metric.field,): np.array([metric.formula(binned) for binned in binned_rows], np.float64)
        for metric in metrics if metric.field in available
    }  # fmt: skip


def of_temperature(
    states: SetStates, at_one: str, record: Mapping[str, Any]
) -> dict[Place, NDArray[Any]]:
    """Return the scores of states of `Tempered`, and the numbers of the fit's `record`."""
    import numpy as np

    pixels = states["count"].sum(axis=-1)
    binned = SetBins.from_states(states, at_one)
    nll = over(states["nll"][:, 0], pixels)
    fitted = {
        (name,): np.full(states.sets, float(value))
        for name, value in record.items() if isinstance(value, int | float)
    }  # fmt: skip
    return fitted | {("ece",): binned.ece(pixels), ("mce",): binned.mce(), ("nll",): nll}


def records_of_items(
    settings: CalibrationSettings, states: Sequence[State]
) -> Iterator[dict[str, Any]]:
    """Yield what `scores_of` returns for each of several items, to the bit.

    `states`: those of `scores_of` and of `ItemAdaptive`, with the items as the first axis.
    """
    import numpy as np

    top, per_class, scores, adaptive = states
    pixels = top["count"].sum(axis=-1)
    classes = SetBins.from_states(SetStates(per_class), settings.at_one)
    count = classes.count.shape[1]
    is_positive = settings.is_positive(count)
    binned = classes.row(1) if is_positive else SetBins.from_states(SetStates(top), settings.at_one)
    massed = SetBins.from_states(SetStates(adaptive))
    # 0/0 is undefined: NaN, which no score of probabilities is.
    with np.errstate(all="ignore"):
        of_classes = [exact_sums(abs(classes.row(c).signed)) / pixels for c in range(count)]
        nll, brier = scores["sums"].T
        values = {
            "ece": exact_sums(abs(binned.signed)) / pixels,
            "mce": binned.mce(),
            "ace": exact_sums(binned.of_bins()) / (binned.count > 0).sum(axis=-1),
            "adaptive_ece": exact_sums(abs(massed.signed)) / pixels,
            "classwise_ece": exact_sums(np.stack(of_classes, axis=1)) / count,
            "brier": brier / pixels,
            "nll": nll / pixels,
        }
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    is_defined = np.isfinite(np.stack(list(values.values()))).all(axis=0)
    for item, (row, defined) in enumerate(zip(rows, is_defined.tolist(), strict=True)):
        if defined:
            yield dict(zip(values, row, strict=True))
        else:
            own = [{name: field[item] for name, field in state.items()} for state in states]
            yield scores_of(settings, own[:3], Binned.from_state(own[3]))
