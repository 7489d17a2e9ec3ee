"""Calibration errors of many sets of items at once, from binned counts [set, …, bin]."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics import calibration_estimators as estimators
from uqeval.metrics._columns import of_rows, over
from uqeval.metrics.calibration_records import ADAPTIVE, ESTIMATOR
from uqeval.metrics.calibration_scores import Binned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.metrics.calibration_settings import CalibrationSettings


@dataclass(frozen=True)
class SetBins:
    """Pixels [set, …, bin], those that are right, and the sums of their confidences."""

    count: NDArray[Any]
    correct: NDArray[Any]
    confidence: NDArray[Any]

    @classmethod
    def of(cls, states: SetStates, at_one: str = "own") -> SetBins:
        """Return the bins of states whose last bin holds the confidences not below 1.

        `at_one` as of `calibration_scores.Binned.of`.
        """
        columns = [states[name] for name in ("count", "correct", "confidence")]
        if at_one != "own":
            top = [own[..., -1] for own in columns]
            columns = [own[..., :-1].copy() for own in columns]
            for own, last in zip(columns, top, strict=True):
                own[..., -1] += last if at_one == "last" else 0
        return cls(*columns)

    def row(self, c: int) -> SetBins:
        """Return the bins [set, bin] of one class."""
        return SetBins(self.count[:, c], self.correct[:, c], self.confidence[:, c])

    @property
    def signed(self) -> NDArray[Any]:
        """Right pixels less the sum of confidences of each bin."""
        found: NDArray[Any] = self.correct - self.confidence
        return found

    def ece(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return Σ_b |gap_b| / pixels, NaN without pixels."""
        return over(abs(self.signed).sum(axis=-1), pixels)

    def mce(self) -> NDArray[Any]:
        """Return the largest |gap_b| / n_b of the bins with pixels, NaN where there are none."""
        import numpy as np

        found: NDArray[Any] = np.fmax.reduce(over(abs(self.signed), self.count), axis=-1)
        return found


def columns(
    settings: CalibrationSettings,
    states: Sequence[SetStates],
    massed: Mapping[str, SetStates],
    wanted: Collection[str],
) -> dict[Place, NDArray[Any]]:
    """Return the scores of states of `Reliability`, `ClassReliability` and `ProperScores`, and of
    `massed` bins, of equal mass, by name."""
    import numpy as np

    top, each, scores = states
    pixels = top["count"].sum(axis=-1)
    classes = SetBins.of(each, settings.at_one)
    count = classes.count.shape[1]
    binned = classes.row(1) if settings.is_positive(count) else SetBins.of(top, settings.at_one)
    nll, brier = scores["sums"].T
    found: dict[Place, NDArray[Any]] = {
        ("ece",): binned.ece(pixels),
        ("mce",): binned.mce(),
        ("brier",): over(brier, pixels),
        ("nll",): over(nll, pixels),
    }
    if ADAPTIVE in massed:
        found["adaptive_ece",] = SetBins.of(massed[ADAPTIVE]).ece(pixels)
    if ESTIMATOR in massed:
        found |= _estimated(settings.estimator, SetBins.of(massed[ESTIMATOR]), wanted)
    if {"per_class", "classwise_ece"} & set(wanted):
        own = classes.ece(np.broadcast_to(pixels[:, None], classes.count.shape[:2]))
        found["classwise_ece",] = own.sum(axis=1) / count
        rows = {"ece": own, "pixels": each["correct"].sum(axis=-1)}
        found |= of_rows(rows, range(count))
    return found


def _estimated(estimator: str, bins: SetBins, wanted: Collection[str]) -> dict[Place, NDArray[Any]]:
    """Return the scores of a published estimator, set by set: it has few bins."""
    import numpy as np

    metrics = [own for own in estimators.METRICS if own.field in wanted]
    rows = zip(bins.count, bins.correct, bins.confidence, strict=True)
    each = [Binned(*(own.tolist() for own in row)) for row in rows]
    known = estimators.fields_of(estimator)
    return {
        (own.field,): np.array([own.formula(binned) for binned in each], np.float64)
        for own in metrics if own.field in known
    }  # fmt: skip


def of_temperature(
    states: SetStates, at_one: str, record: Mapping[str, Any]
) -> dict[Place, NDArray[Any]]:
    """Return the scores of states of `Tempered`, and the numbers of the fit's `record`."""
    import numpy as np

    pixels = states["count"].sum(axis=-1)
    binned = SetBins.of(states, at_one)
    nll = over(states["nll"][:, 0], pixels)
    fitted = {
        (name,): np.full(states.sets, float(value))
        for name, value in record.items() if isinstance(value, int | float)
    }  # fmt: skip
    return fitted | {("ece",): binned.ece(pixels), ("mce",): binned.mce(), ("nll",): nll}
