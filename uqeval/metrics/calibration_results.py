"""Calibration results from counts: for many sets of items, for single items, and for one set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_estimators as estimators
import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import Array
from uqeval.metrics._columns import (
    Place,
    SetColumns,
    SetStates,
    class_rows,
    of_rows,
    over,
    scores_of,
)
from uqeval.metrics._contract import set_value

if TYPE_CHECKING:
    from uqeval.metrics.calibration_settings import CalibrationSettings

#: Bins of equal mass: of the adaptive ECE, and of a published estimator. Names in `fitted`.
ADAPTIVE, ESTIMATOR = "edges", "estimator_edges"
_FIELDS = ("ece", "mce", "ace", "adaptive_ece", "classwise_ece", "brier", "nll")


def columns(
    settings: CalibrationSettings,
    states: Sequence[SetStates],
    massed: Mapping[str, SetStates],
    fields: Collection[str] = _FIELDS,
) -> SetColumns:
    """Return the scores by name, from states of `Reliability`, `ClassReliability` and
    `ProperScores`.

    `massed`: bins of equal mass. Scores of classes are included only if `fields` names them.
    """
    top, per_class, scores = states
    pixels = top["count"].sum(axis=-1)
    binned, nll, brier = _binned(settings, states), *scores["sums"].T
    results: SetColumns = {
        ("ece",): cs.ece(binned, pixels),
        ("mce",): cs.mce(binned),
        ("ace",): cs.ace(binned),
        ("brier",): over(brier, pixels),
        ("nll",): over(nll, pixels),
    }
    if ADAPTIVE in massed:
        results["adaptive_ece",] = cs.ece(cs.Binned.of(massed[ADAPTIVE]), pixels)
    if ESTIMATOR in massed:
        bins = cs.Binned.of(massed[ESTIMATOR])
        for metric in estimators.metrics_of(settings.estimator):
            if metric.field in fields:
                results[metric.field,] = metric.formula(bins)
    if {"per_class", "classwise_ece"} & set(fields):
        classes = cs.Binned.of(per_class, settings.at_one)
        results["classwise_ece",] = cs.classwise_ece(classes, pixels)
        rows = {"ece": cs.class_eces(classes, pixels), "pixels": per_class["correct"].sum(axis=-1)}
        results |= of_rows(rows, range(classes.count.shape[1]))
    return results


def of_bins(states: SetStates, at_one: str) -> SetColumns:
    """Return ECE and MCE of bins of confidence."""
    binned = cs.Binned.of(states, at_one)
    return {("ece",): cs.ece(binned, states["count"].sum(axis=-1)), ("mce",): cs.mce(binned)}


def records(settings: CalibrationSettings, columns: Mapping[Place, Array]) -> list[dict[str, Any]]:
    """Return the scores of each set, undefined ones None with their reason."""
    results = scores_of([cs.BY_FIELD[f] for f in _FIELDS if (f,) in columns], columns)
    for record in results if not settings.adaptive and ("adaptive_ece",) not in columns else ():
        set_value(record, "adaptive_ece", None, "left out by --no-adaptive")
    return results


def results_of(
    settings: CalibrationSettings,
    states: Sequence[SetStates],
    massed: Mapping[str, SetStates],
    class_names: Sequence[str],
) -> dict[str, Any]:
    """Return the results of one set, `states` and `massed` as of `columns`."""
    metrics = estimators.metrics_of(settings.estimator) if ESTIMATOR in massed else ()
    fields = (*_FIELDS, "per_class", *(metric.field for metric in metrics))
    scores = columns(settings, states, massed, fields)
    (record,) = records(settings, scores)
    results = {"bins": settings.bins} | record
    for estimated in scores_of(metrics, scores):
        results |= estimated
    if settings.estimator == "roelofs-sweep" and metrics:
        results["sweep_bins"] = massed[ESTIMATOR]["count"].shape[-1]
    edges = settings.binning().edges().tolist()
    results["reliability"] = cs.reliability(_binned(settings, states), edges)
    undefined = {"ece": cs.BY_FIELD["ece"].undefined, "pixels": ""}
    return results | {"per_class": class_rows(scores, class_names, undefined)}


def _binned(settings: CalibrationSettings, states: Sequence[SetStates]) -> cs.Binned:
    """Return the bins of the top label, or of class 1 where the settings say so of two classes."""
    top, per_class, _ = states
    if settings.is_positive(per_class["count"].shape[1]):
        return cs.Binned.of(per_class, settings.at_one).row(1)
    return cs.Binned.of(top, settings.at_one)
