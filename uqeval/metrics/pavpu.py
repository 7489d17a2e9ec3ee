"""The family `pavpu`: the plan from tallies to its part of a report, and reading it off states."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.errors import UsageError
from uqeval.metrics import float16, patch_scores
from uqeval.metrics._again import Again
from uqeval.metrics._family import Facts, Family
from uqeval.metrics._plan import Plan, Pooling, Recutting, Section
from uqeval.metrics._signs import sign_warnings
from uqeval.metrics.patch_scores import METRICS
from uqeval.metrics.pavpu_results import columns_of, item_of, results_of
from uqeval.metrics.pavpu_settings import PavpuSettings, settings_of
from uqeval.metrics.thresholds import (
    Fitted,
    Rule,
    best,
    fit,
    is_same,
    refuse_not_held,
    step_of,
    undefined_warnings,
)


def _maps(settings: PavpuSettings, facts: Facts) -> set[str]:
    return {"label", "prediction", *settings.patches(facts.classes).inputs}


def _plans(key: str, settings: PavpuSettings, facts: Facts) -> dict[str, Plan]:
    from uqeval.metrics import accuracy_by_uncertainty

    uncertainty = settings.patches(facts.classes).uncertainty
    halves = uncertainty.name in facts.halves
    plans = {key: plan(settings, facts.classes, facts.class_names, halves)}
    if settings.deciles:
        plans[f"{key}/accuracy_by_uncertainty"] = accuracy_by_uncertainty.plan(
            uncertainty, facts.classes, facts.class_names
        )
    return plans


def plan(
    settings: PavpuSettings, classes: int, class_names: Sequence[str], halves: bool = False
) -> Plan:
    """Fit the threshold, count the patches, and return the section of one variant.

    `halves`: whether the uncertainty is a map that is stored as float16.
    """
    patches = settings.patches(classes)
    rule = Rule.parse(settings.threshold)
    scope = settings.threshold_scope
    fitted = None
    if scope != "item":
        own = _operators(settings)
        fitted = yield from fit(rule, patches, scope == "class", settings.ends(), **own)
    tally = _tally(settings, classes, fitted)
    band = float16.band(tally) if halves else ()
    passed = yield (tally, *band)
    counted = passed[tally]
    results = results_of(settings, fitted, counted.total, class_names)
    states = map(tally.unpack, counted.items)
    items = [item_of(settings, fitted, state, class_names) for state in states]
    return Section(
        results,
        items,
        settings=dataclasses.asdict(settings),
        numerics={f"ties_{k}": v for k, v in results["ties"].items() if isinstance(v, int)},
        warnings=[
            *_undefined(rule, fitted),
            *sign_warnings("pavpu", results),
            *float16.warnings(settings.uncertainty, fitted, [passed[own].total for own in band]),
        ],
        fitted=dataclasses.asdict(fitted) if fitted else {},
    )


def _pooled(settings: PavpuSettings, facts: Facts) -> Pooling:
    """The threshold and the ends of the curve; none where there are several."""
    if settings.threshold_scope != "set":
        return {}
    patches, rule = settings.patches(facts.classes), Rule.parse(settings.threshold)
    fitted = yield from fit(rule, patches, False, settings.ends(), **_operators(settings))
    low, high = fitted.ends[0]
    if fitted.threshold[0] is None:
        return {"threshold": None}
    return {"threshold": repr(fitted.threshold[0]), "curve_range": f"{low!r}:{high!r}"}


def _operators(settings: PavpuSettings) -> dict[str, Any]:
    return {
        "accuracy_threshold": settings.accuracy_threshold,
        "accuracy_op": settings.accuracy_op,
        "uncertainty_op": settings.uncertainty_op,
    }


def _tally(settings: PavpuSettings, classes: int, fitted: Fitted | None) -> Any:
    """What counts patches at the fitted thresholds, or at each item's own."""
    from uqeval.tallies import ItemPatchCounts, PatchCounts

    patches = settings.patches(classes)
    if fitted is None:
        rule = Rule.parse(settings.threshold)
        return ItemPatchCounts(patches, rule.kind, rule.value, **_operators(settings))
    return PatchCounts(patches, fitted.threshold, fitted.ends, **_operators(settings))


def _again(
    key: str, settings: PavpuSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    from uqeval.metrics import accuracy_by_uncertainty

    own = fitted[key]
    thresholds = counted = Fitted.of(own) if own else None
    step = None
    if thresholds and "counted_at" in own:
        counted = dataclasses.replace(thresholds, threshold=tuple(own["counted_at"]))
        step = step_of(thresholds, thresholds.threshold[0])
    tally = _tally(settings, facts.classes, counted)
    found = {
        key: Again(
            (tally,),
            lambda states: results_of(settings, thresholds, states[tally], facts.class_names, step),
            lambda states, wanted: columns_of(settings, thresholds, states[tally], wanted, step),
        )
    }
    table = f"{key}/accuracy_by_uncertainty"
    if "edges" in fitted.get(table, {}):  # else they were fitted on several sets
        found[table] = accuracy_by_uncertainty.again(
            settings.patches(facts.classes).uncertainty, facts.classes, facts.class_names,
            fitted[table],
        )  # fmt: skip
    return found


def _recut(
    rule: str, settings: PavpuSettings, facts: Facts, fitted: Mapping[str, Any]
) -> Recutting:
    """What is fitted where the threshold is another: the one of the run, or one of its curve."""
    if settings.threshold_scope != "set":
        raise UsageError(
            f"--threshold {rule}: its thresholds are those of each {settings.threshold_scope} "
            "(--threshold-scope); one for all takes another look at the pixels."
        )
    wanted, own = Rule.parse(rule), Fitted.of(fitted)
    counted = tuple(fitted.get("counted_at", own.threshold))
    held = Fitted(counted, own.ends)
    value: float | None = wanted.value
    if wanted.kind == "max-surplus":
        tally = _tally(settings, facts.classes, held)
        value = best((yield (tally,))[tally].total["by_threshold"], *own.ends[0])
    elif wanted.kind != "value":
        patches = settings.patches(facts.classes)
        value = (yield from fit(wanted, patches, False)).threshold[0]
    if is_same(value, counted[0]) or (value is None and counted[0] is None):
        return {"threshold": list(counted), "ends": fitted["ends"]}
    step = step_of(held, value)
    if step is None and value is not None:
        refuse_not_held(rule, value, held)
    return {"threshold": [value], "ends": fitted["ends"], "counted_at": list(counted)}


def _undefined(rule: Rule, fitted: Fitted | None) -> list[str]:
    one = fitted is not None and len(fitted.threshold) == 1
    return undefined_warnings(rule, fitted.threshold[0]) if fitted and one else []


_ABOUT = """Patch accuracy vs patch uncertainty: are the wrong patches the uncertain ones?

Computes PAvPU, p(accurate | certain), p(uncertain | inaccurate), phi, the PAvPU Surplus and
their curves, per class and for mixed patches, and the segmentation scores.

Example: uqeval pavpu preds.zarr labels/ -o report.json
"""

FAMILY = Family(
    "pavpu", (*METRICS, *patch_scores.OF_CURVES, *patch_scores.PER_CLASS),
    settings_of, _maps, _plans,
    again=_again, settings_type=PavpuSettings, about=_ABOUT, pooled=_pooled, recut=_recut,
    label="Patch accuracy vs patch uncertainty",
    words={
        "n_ac": "accurate, certain", "n_au": "accurate, uncertain", "n_ic": "inaccurate, certain",
        "n_iu": "inaccurate, uncertain",
    },
)  # fmt: skip
