"""Results from counted patches: scores, rows of classes, curves and their peaks; and the accuracy
by predicted class and uncertainty percentile (Ma et al. 2024, §10.1.1, Figures 4, 5).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.patch_scores as patch_scores
from uqeval.arrays import Array, State, np
from uqeval.errors import listed
from uqeval.metrics._columns import SetColumns, SetStates, as_numbers, of_rows
from uqeval.metrics._contract import set_value
from uqeval.metrics._evaluation import Part, Passes
from uqeval.metrics.patch_scores import METRICS
from uqeval.metrics.pavpu_settings import PavpuSettings
from uqeval.metrics.thresholds import Fitted, Rule
from uqeval.records.report import NOT_HELD

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._values import Uncertainty


def results_of(
    settings: PavpuSettings,
    fitted: Fitted | None,
    state: State,
    class_names: Sequence[str],
    step: int | None = None,
) -> dict[str, Any]:
    """Return the results from the counts of patches.

    `fitted`: the thresholds to report. `step`: use the threshold of this step of the curve,
    although patches were counted at another one. Ties and the curve over the accuracy threshold are
    then unknown.
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
    if fitted:
        reasons = _undefined_reason(rule, fitted, state["counts"], class_names)
    else:
        some = math.isnan(float(state["own"][0]))
        reasons = f"no threshold for some items: {rule.undefined}" if some else ""
    if fitted and fitted.is_single:
        set_value(results, "uncertainty_threshold", fitted.threshold[0], rule.undefined)
    else:
        scope = "class" if fitted else "item"
        results["uncertainty_threshold_reason"] = f"fitted for each {scope} separately"
    (scores,) = _records(at.sum(axis=0)[None], [reasons])
    results |= scores
    results["ties"] = dict(zip(("accuracy", "uncertainty"), state["ties"].tolist(), strict=True))
    if step is not None or reasons:
        set_value(results["ties"], "uncertainty", None, reasons or NOT_HELD)
    results["per_class"] = _rows(rule, fitted, at, reasons, class_names)
    ends = fitted.ends[0] if fitted and fitted.is_single else None
    results |= _curve(state["by_threshold"], ends)
    if step is None and not reasons:
        results["accuracy_curve"] = _accuracy_curve(state["by_accuracy"])
    else:
        set_value(results, "accuracy_curve", None, reasons or NOT_HELD)
    return results


def _rows(
    rule: Rule, fitted: Fitted | None, counts: Array, reasons: str, class_names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the scores of patches of each class, then of mixed ones.

    `reasons`: why the set has no threshold. With a threshold by class, a class has its own reason.
    """
    rows: list[dict[str, Any]] = []
    row_reasons: list[str] = []
    for c, class_counts in enumerate(counts):
        mixed = c == len(class_names)
        rows.append(
            {"class": "mixed" if mixed else c, "name": "mixed" if mixed else class_names[c]}
        )
        row_reasons.append(reasons)
        if fitted and not fitted.is_single:
            threshold = fitted.threshold[c] if class_counts.any() else None
            reason = rule.undefined if class_counts.any() else "no patch of this class"
            set_value(rows[-1], "uncertainty_threshold", threshold, reason)
            row_reasons[-1] = reason if class_counts.any() and threshold is None else ""
    for row, class_scores in zip(rows, _records(counts, row_reasons), strict=True):
        row |= class_scores
    return rows


def _records(counts: Array, reasons: Sequence[str]) -> list[dict[str, Any]]:
    """Return the scores of counts [set, accurate, uncertain]; `reasons`: why a set has no
    threshold.
    """
    return patch_scores.records(_four(counts), reasons)


def _four(counts: Array) -> list[Array]:
    """Return n_ac, n_au, n_ic, n_iu [set, …] of counts [set, …, accurate, uncertain]."""
    return [counts[..., accurate, uncertain] for accurate in (1, 0) for uncertain in (0, 1)]


def _undefined_reason(rule: Rule, fitted: Fitted, counts: Array, names: Sequence[str]) -> str:
    """Return why a threshold that the pooled counts need is undefined; "" if all are defined."""
    if fitted.is_single:
        return rule.undefined if fitted.threshold[0] is None else ""
    reasons = [
        name
        for name, value, class_counts in zip(
            (*names, "mixed"), fitted.threshold, counts, strict=True
        )
        if value is None and class_counts.any()
    ]
    if not reasons:
        return ""
    return f"no threshold for class {listed(reasons)}: {rule.undefined}"


def counts_at(by_threshold: Any, step: int) -> Any:
    """Return counts [category, accurate, uncertain] at one threshold of the curve."""
    certain = by_threshold[..., : step + 1].sum(axis=-1)
    return np.stack([certain, by_threshold.sum(axis=-1) - certain], axis=-1)


def _curve(by_threshold: Any, ends: tuple[float, float] | None) -> dict[str, Any]:
    """Return the scores over the uncertainty threshold, their peaks, and the area under the
    Surplus.
    """
    from uqeval.tallies.patches import best_step, counts_along, curve_thresholds

    values = patch_scores.columns(counts_along(by_threshold))
    n = values["surplus"].size
    t = [i / (n - 1) for i in range(n)]
    threshold: list[float | None] = [None] * n
    if ends:
        threshold = list(curve_thresholds(*ends))
    curve: dict[str, Any] = {"t": t, "threshold": threshold}
    for field in ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus"):
        _put_curve(curve, field, values[field])
    # Ma et al. 2024, §6: where the Surplus is negative, the uncertainty is worse than chance, so
    # the PAvPU there is misleading.
    curve["misleading"] = [value is not None and value < 0 for value in curve["surplus"]]
    record: dict[str, Any] = {"curve": curve}
    for field, best in (("pavpu", _peak(curve["pavpu"])), ("surplus", best_step(by_threshold))):
        record[f"{field}_peak"] = (
            None if best is None
            else {"t": t[best], "threshold": threshold[best], "value": curve[field][best]}
        )  # fmt: skip
        if best is None:
            record[f"{field}_peak_reason"] = patch_scores.BY_FIELD[field].undefined
    (area,) = as_numbers(patch_scores.surplus_auc(values["surplus"][None]))
    set_value(record, "surplus_auc", area, patch_scores.BY_FIELD["surplus"].undefined)
    return record


def _put_curve(curve: dict[str, Any], field: str, values: Array) -> None:
    """Add the values of a score along a curve, with the reason for undefined ones."""
    curve[field] = as_numbers(values)
    if None in curve[field]:
        curve[f"{field}_reason"] = patch_scores.BY_FIELD[field].undefined


def columns_of(
    fitted: Fitted | None, states: SetStates, fields: Collection[str], step: int | None = None
) -> SetColumns:
    """Return the scores of many sets at once, `fitted` and `step` as of `results_of`."""
    at = states["counts"] if step is None else counts_at(states["by_threshold"], step)
    sets, categories = at.shape[:2]
    undefined: Array
    if fitted is None:
        undefined = np.repeat(np.isnan(states["own"][:, :1]), categories, axis=1)
    elif fitted.is_single:
        undefined = np.full((sets, categories), fitted.threshold[0] is None)
    else:
        none = np.array([value is None for value in fitted.threshold])
        undefined = none & at.any(axis=(2, 3))
    set_scores = _defined(
        patch_scores.columns(_four(at.sum(axis=1))), np.asarray(undefined.any(axis=1))
    )
    results: SetColumns = {(name,): values for name, values in set_scores.items()}
    if "per_class" in fields:
        rows = [*range(categories - 1), "mixed"]
        results |= of_rows(_defined(patch_scores.columns(_four(at)), undefined), rows)
    if {"pavpu_peak", "surplus_peak", "surplus_auc"} & set(fields):
        results |= _peaks(states["by_threshold"])
    return results


def _defined(scores: Mapping[str, Array], undefined: Array) -> dict[str, Array]:
    """Return scores, NaN where the threshold is undefined; the accurate share needs none."""
    return {
        name: values if name == "p_accurate" else np.where(undefined, np.nan, values)
        for name, values in scores.items()
    }


def _peaks(by_threshold: Array) -> SetColumns:
    """Return the scores of the curves over the uncertainty threshold, of many sets."""
    from uqeval.tallies.patches import counts_along

    scores = patch_scores.columns(counts_along(by_threshold))
    return {
        ("pavpu_peak", "value"): patch_scores.peak(scores["pavpu"]),
        ("surplus_peak", "value"): patch_scores.peak(scores["surplus"]),
        ("surplus_auc",): patch_scores.surplus_auc(scores["surplus"]),
    }


def _peak(values: list[float | None]) -> int | None:
    defined = [v for v in values if v is not None]
    return values.index(max(defined)) if defined else None


def _accuracy_curve(by_accuracy: Array) -> dict[str, list[Any]]:
    """Return the scores over the accuracy threshold 0, 0.01 … 1, at the fitted uncertainty
    threshold.
    """
    certain, uncertain = by_accuracy.T
    ic, iu = certain.cumsum()[:-1], uncertain.cumsum()[:-1]
    values = patch_scores.columns((certain.sum() - ic, uncertain.sum() - iu, ic, iu))
    n = ic.size
    curve: dict[str, list[Any]] = {"accuracy_threshold": [i / (n - 1) for i in range(n)]}
    for metric in METRICS:
        _put_curve(curve, metric.field, values[metric.field])
    return curve


def items_of(
    settings: PavpuSettings, fitted: Fitted | None, class_names: Sequence[str], states: SetStates
) -> list[dict[str, Any]]:
    """Return the scores of each item from states [item, …]; with its threshold if each item has
    one."""
    rule, counts = Rule.parse(settings.threshold), states["counts"]
    if fitted is not None:
        reasons = [
            _undefined_reason(rule, fitted, item_counts, class_names) for item_counts in counts
        ]
        return _records(counts.sum(axis=1), reasons)
    thresholds = states["own"][:, 0].tolist()
    reasons = [rule.undefined if math.isnan(value) else "" for value in thresholds]
    records = _records(counts.sum(axis=1), reasons)
    for record, value, reason in zip(records, thresholds, reasons, strict=True):
        finite = value if math.isfinite(value) else None
        set_value(record, "uncertainty_threshold", finite, reason or "no patch")
    return records


#: Inner edges of ten bins of equal mass.
PERCENTILES = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)


class AccuracyTable(Part[PavpuSettings]):
    """The table over the fitted deciles of the pixels' uncertainty."""

    name = "accuracy_by_uncertainty"
    requested_by = "deciles"
    needs_fitted = ("edges",)  # else parts of a run fitted several

    @property
    def _uncertainty(self) -> Uncertainty:
        return self.settings.patches(self.info.classes).uncertainty

    def maps(self) -> set[str]:
        return {"label", "prediction", *self.settings.patches(self.info.classes).inputs}

    def fit(self) -> Passes:
        from uqeval.tallies.ranks import Ranks, bins_of, percentile

        ranks = Ranks(self._uncertainty, self.info.classes)
        coarse = (yield (ranks,))[ranks].total["coarse"]
        bins = bins_of(coarse, PERCENTILES)
        detail = Ranks(self._uncertainty, self.info.classes, bins=bins)
        fine: Any = (yield (detail,))[detail].total["fine"] if bins else []
        counts_by_bin = {b: fine[i] for i, (_, b) in enumerate(bins)}
        edges = [percentile(coarse[0], counts_by_bin, p) for p in PERCENTILES]
        self.fitted["edges"] = tuple(e for e in edges if e is not None)

    def tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.segmentation import AccuracyByUncertainty

        if not self.can_score:
            return ()
        edges = tuple(self.fitted["edges"])
        return (AccuracyByUncertainty(self._uncertainty, self.info.classes, edges),)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        (tally,) = self.tallies()
        return table(states[tally], self.fitted["edges"], self.info.class_names)


def table(state: Any, edges: Sequence[float], class_names: Sequence[str]) -> dict[str, Any]:
    """Return accuracy and pixels of each predicted class in each bin; None where there are no
    pixels.
    """
    rows: list[dict[str, Any]] = []
    counts = zip(state["pixels"].tolist(), state["correct"].tolist(), strict=True)
    for c, (pixels, correct) in enumerate(counts):
        row: dict[str, Any] = {"class": c, "name": class_names[c]}
        row["accuracy"] = [k / n if n else None for k, n in zip(correct, pixels, strict=True)]
        if None in row["accuracy"]:
            row["accuracy_reason"] = "no pixel of that uncertainty is predicted as this class"
        rows.append(row | {"pixels": pixels})
    return {"percentiles": list(PERCENTILES), "thresholds": list(edges), "rows": rows}
