"""Results from counted patches: scores, rows of classes, curves and their peaks."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.patch_scores as patch_scores
from uqeval.errors import listed
from uqeval.metrics._columns import of_rows
from uqeval.metrics._contract import set_value
from uqeval.metrics.patch_scores import METRICS
from uqeval.metrics.pavpu_settings import PavpuSettings
from uqeval.metrics.thresholds import Fitted, Rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies._fields import State

#: Why something is not known at another threshold than that of the run.
NOT_HELD = "at another threshold this needs the pixels"


def results_of(
    settings: PavpuSettings,
    fitted: Fitted | None,
    state: State,
    class_names: Sequence[str],
    step: int | None = None,
) -> dict[str, Any]:
    """Return the results from the counts of patches.

    `fitted` are the thresholds to say. With `step`, the one of that step of the curve: patches were
    counted at another, and what takes both thresholds (ties, the curve over the accuracy threshold)
    is not known.
    """
    at = state["counts"] if step is None else counts_at(state["by_threshold"], step)
    rule = Rule.parse(settings.threshold)
    results: dict[str, Any] = {
        "uncertainty": settings.uncertainty,
        "window": settings.window,
        "stride": settings.stride,
        "accuracy_threshold": settings.accuracy_threshold,
        "uncertainty_threshold": None,
    }
    is_single = fitted is not None and len(fitted.threshold) == 1
    reasons = _undefined_reason(rule, fitted, state, class_names)
    if fitted and is_single:
        set_value(results, "uncertainty_threshold", fitted.threshold[0], rule.undefined)
    else:
        scope = "class" if fitted else "item"
        results["uncertainty_threshold_reason"] = f"fitted for each {scope} apart"
    results |= _scored(at.sum(axis=0), reasons)
    results["ties"] = dict(zip(("accuracy", "uncertainty"), state["ties"].tolist(), strict=True))
    if step is not None or reasons:
        set_value(results["ties"], "uncertainty", None, reasons or NOT_HELD)
    rows = []
    for c, class_counts in enumerate(at):
        mixed = c == len(class_names)
        row: dict[str, Any] = {
            "class": "mixed" if mixed else c,
            "name": "mixed" if mixed else class_names[c],
        }
        if fitted and not is_single:
            threshold = fitted.threshold[c] if class_counts.any() else None
            reason = rule.undefined if class_counts.any() else "no patch of this class"
            set_value(row, "uncertainty_threshold", threshold, reason)
            rows.append(
                row
                | _scored(class_counts, reason if class_counts.any() and threshold is None else "")
            )
        else:
            rows.append(row | _scored(class_counts, reasons))
    results["per_class"] = rows
    ends = fitted.ends[0] if fitted and is_single else None
    results |= _curve(state["by_threshold"], ends)
    if step is None and not reasons:
        results["accuracy_curve"] = _accuracy_curve(state["by_accuracy"])
    else:
        set_value(results, "accuracy_curve", None, reasons or NOT_HELD)
    return results


def _scored(counts: Any, reason: str) -> dict[str, Any]:
    """Return the scores of counts [accurate, uncertain]; `reason`: why there is no threshold."""
    if reason:
        inaccurate, accurate = counts.sum(axis=1).tolist()
        return patch_scores.scores_of_accuracy(accurate, inaccurate, reason)
    return patch_scores.scores(*four(counts.tolist()))


def _undefined_reason(rule: Rule, fitted: Fitted | None, state: State, names: Sequence[str]) -> str:
    """Return why a threshold that the pooled counts need is undefined; "" if all are defined."""
    if fitted is None:
        if math.isnan(float(state["own"][0])):
            return f"no threshold for some items: {rule.undefined}"
        return ""
    if len(fitted.threshold) == 1:
        return rule.undefined if fitted.threshold[0] is None else ""
    reasons = [
        name
        for name, value, class_state in zip(
            (*names, "mixed"), fitted.threshold, state["counts"], strict=True
        )
        if value is None and class_state.any()
    ]
    if not reasons:
        return ""
    return f"no threshold for class {listed(reasons)}: {rule.undefined}"


def counts_at(by_threshold: Any, step: int) -> Any:
    """Return counts [category, accurate, uncertain] at one threshold of the curve."""
    import numpy as np

    certain = by_threshold[..., : step + 1].sum(axis=-1)
    return np.stack([certain, by_threshold.sum(axis=-1) - certain], axis=-1)


def four(counts: list[list[int]]) -> tuple[int, int, int, int]:
    """Return n_ac, n_au, n_ic, n_iu of counts [accurate, uncertain]."""
    (ic, iu), (ac, au) = counts
    return ac, au, ic, iu


def _curve(by_threshold: Any, ends: tuple[float, float] | None) -> dict[str, Any]:
    """Return the scores over the uncertainty threshold, their peaks, and the area under the
    Surplus.
    """
    from uqeval.tallies.patches import best_step, counts_along, curve_thresholds

    counts = counts_along(by_threshold).tolist()
    n = len(counts)
    t = [i / (n - 1) for i in range(n)]
    threshold: list[float | None] = [None] * n
    if ends:
        threshold = list(curve_thresholds(*ends))
    fields = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus")
    curve: dict[str, Any] = {"t": t, "threshold": threshold}
    for field in fields:
        formula = patch_scores.BY_FIELD[field].formula
        curve[field] = [formula(*four) for four in counts]
        if None in curve[field]:
            curve[f"{field}_reason"] = patch_scores.BY_FIELD[field].undefined
    # Ma et al. 2024, §6: where the Surplus is negative the uncertainty says less than nothing, and
    # the PAvPU there should not be read.
    curve["misleading"] = [value is not None and value < 0 for value in curve["surplus"]]
    record: dict[str, Any] = {"curve": curve}
    for field, best in (("pavpu", _peak(curve["pavpu"])), ("surplus", best_step(by_threshold))):
        record[f"{field}_peak"] = (
            None if best is None
            else {"t": t[best], "threshold": threshold[best], "value": curve[field][best]}
        )  # fmt: skip
        if best is None:
            record[f"{field}_peak_reason"] = patch_scores.BY_FIELD[field].undefined
    area = patch_scores.surplus_auc(curve["surplus"])
    set_value(record, "surplus_auc", area, patch_scores.BY_FIELD["surplus"].undefined)
    return record


def columns_of(
    fitted: Fitted | None,
    states: SetStates,
    fields: Collection[str],
    step: int | None = None,
) -> dict[Place, NDArray[Any]]:
    """Return the scores of many sets at once, `fitted` and `step` as of `results_of`."""
    import numpy as np

    at = states["counts"] if step is None else counts_at(states["by_threshold"], step)
    sets, categories = at.shape[:2]
    undefined: NDArray[Any]
    if fitted is None:
        undefined = np.repeat(np.isnan(states["own"][:, :1]), categories, axis=1)
    elif len(fitted.threshold) == 1:
        undefined = np.full((sets, categories), fitted.threshold[0] is None)
    else:
        none = np.array([value is None for value in fitted.threshold])
        undefined = none & at.any(axis=(2, 3))
    set_scores = patch_scores.columns(at.sum(axis=1), np.asarray(undefined.any(axis=1)))
    results: dict[Place, NDArray[Any]] = {(name,): values for name, values in set_scores.items()}
    if "per_class" in fields:
        rows = [*range(categories - 1), "mixed"]
        results |= of_rows(patch_scores.columns(at, undefined), rows)
    if {"pavpu_peak", "surplus_peak", "surplus_auc"} & set(fields):
        results |= _peaks(states["by_threshold"])
    return results


def _peaks(by_threshold: NDArray[Any]) -> dict[Place, NDArray[Any]]:
    """Return the scores of the curves over the uncertainty threshold, of many sets."""
    import numpy as np

    inaccurate, accurate = np.moveaxis(by_threshold.sum(axis=1), 1, 0)
    ic, ac = (np.cumsum(counts, axis=1)[:, :-1] for counts in (inaccurate, accurate))
    all_ic, all_ac = (counts.sum(axis=1, keepdims=True) for counts in (inaccurate, accurate))
    curve = np.stack([np.stack([ic, all_ic - ic], -1), np.stack([ac, all_ac - ac], -1)], -2)
    scores = patch_scores.columns(curve, np.zeros(ic.shape, bool))
    surplus = scores["surplus"]
    return {
        ("pavpu_peak", "value"): np.fmax.reduce(scores["pavpu"], axis=1),
        ("surplus_peak", "value"): np.fmax.reduce(surplus, axis=1),
        ("surplus_auc",): ((surplus[:, 1:] + surplus[:, :-1]) / 2).mean(axis=1),
    }


def _peak(values: list[float | None]) -> int | None:
    defined = [v for v in values if v is not None]
    return values.index(max(defined)) if defined else None


def _accuracy_curve(by_accuracy: Any) -> dict[str, list[Any]]:
    """Return the scores over the accuracy threshold 0, 0.01 … 1, at the fitted uncertainty
    threshold.
    """
    certain, uncertain = by_accuracy.T.tolist()
    n = len(certain) - 1
    fields = [m.field for m in METRICS]
    curve: dict[str, list[Any]] = {"accuracy_threshold": [i / (n - 1) for i in range(n)]}
    curve |= {field: [] for field in fields}
    ic = iu = 0
    for i in range(n):
        ic += certain[i]
        iu += uncertain[i]
        for metric in METRICS:
            curve[metric.field].append(
                metric.formula(sum(certain) - ic, sum(uncertain) - iu, ic, iu)
            )
    reasons: dict[str, Any] = {
        f"{m.field}_reason": m.undefined for m in METRICS if None in curve[m.field]
    }
    return curve | reasons


def item_of(
    settings: PavpuSettings, fitted: Fitted | None, state: State, class_names: Sequence[str]
) -> dict[str, Any]:
    """Return the scores of one item's state; with its threshold where each item has its own."""
    rule = Rule.parse(settings.threshold)
    counts = state["counts"].sum(axis=0)
    if fitted is not None:
        return _scored(counts, _undefined_reason(rule, fitted, state, class_names))
    value = float(state["own"][0])
    reason = rule.undefined if math.isnan(value) else ""
    record = _scored(counts, reason)
    finite = value if math.isfinite(value) else None
    set_value(record, "uncertainty_threshold", finite, reason or "no patch")
    return record
