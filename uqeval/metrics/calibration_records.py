"""Calibration results from counts: of a set, of an item and of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_estimators as estimators
import uqeval.metrics.calibration_scores as cs
from uqeval.metrics._contract import set_value

if TYPE_CHECKING:
    from uqeval.metrics.calibration_settings import CalibrationSettings
    from uqeval.tallies._fields import State

#: Bins of equal mass: of the adaptive ECE, and of a published estimator. Names in `fitted`.
ADAPTIVE, ESTIMATOR = "edges", "estimator_edges"


def results_of(
    settings: CalibrationSettings,
    states: Sequence[State],
    massed: Mapping[str, cs.Binned],
    class_names: Sequence[str],
) -> dict[str, Any]:
    """Return the results of a set from states as of `scores_of`; `massed`: bins of equal mass, by
    name.
    """
    top, per_class, _ = states
    results = {"bins": settings.bins} | scores_of(settings, states, massed.get(ADAPTIVE))
    if ESTIMATOR in massed:
        results |= estimators.scores_of(settings.estimator, massed[ESTIMATOR])
    binned = _binned(settings, top, per_class)
    results["reliability"] = cs.reliability(binned, settings.binning().edges().tolist())
    results["per_class"] = _per_class(settings, per_class, int(top["count"].sum()), class_names)
    return results


def scores_of(
    settings: CalibrationSettings, states: Sequence[State], adaptive: cs.Binned | None
) -> dict[str, Any]:
    """Return the scores of states of `Reliability`, `ClassReliability` and `ProperScores`, and of
    bins of equal mass, if there are any.

    Undefined ones have a reason beside them.
    """
    top, per_class, scores = states
    pixels = int(top["count"].sum())
    binned = _binned(settings, top, per_class)
    nll, brier = scores["sums"].tolist()
    values = {
        "ece": cs.ece(binned, pixels),
        "mce": cs.mce(binned),
        "ace": cs.ace(binned),
        **({"adaptive_ece": cs.ece(adaptive, pixels)} if adaptive else {}),
        "classwise_ece": cs.classwise_ece(_by_class(settings, per_class), pixels),
        "brier": cs.mean_score(brier, pixels),
        "nll": cs.mean_score(nll, pixels),
    }
    record: dict[str, Any] = {}
    for name, value in values.items():
        set_value(record, name, value, cs.BY_FIELD[name].undefined)
    if not (adaptive or settings.adaptive):
        set_value(record, "adaptive_ece", None, "left out by --no-adaptive")
    return record


def _binned(settings: CalibrationSettings, top: State, per_class: State) -> cs.Binned:
    """Return the bins of the top label, or of class 1 where the settings say so of two classes."""
    classes = _by_class(settings, per_class)
    if settings.is_positive(len(classes)):
        return classes[1]
    return cs.Binned.from_state(top, settings.at_one)


def _by_class(settings: CalibrationSettings, per_class: State) -> list[cs.Binned]:
    names = ("count", "correct", "confidence")
    return [
        cs.Binned.from_state({name: per_class[name][c] for name in names}, settings.at_one)
        for c in range(len(per_class["count"]))
    ]


def _per_class(
    settings: CalibrationSettings, class_state: State, pixels: int, names: Sequence[str]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for c, binned in enumerate(_by_class(settings, class_state)):
        row: dict[str, Any] = {"class": c, "name": names[c]}
        set_value(row, "ece", cs.ece(binned, pixels), cs.BY_FIELD["ece"].undefined)
        rows.append(row | {"pixels": int(class_state["correct"][c].sum())})
    return rows
