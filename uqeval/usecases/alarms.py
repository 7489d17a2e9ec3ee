"""Compute the TC below which a frame raises an alarm from a report of a good video."""

from __future__ import annotations

from typing import Any

from uqeval.arrays import np
from uqeval.errors import UsageError
from uqeval.keys import family_of
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.records.report import Report

#: Options, except the flow, that change TC_t of a pair. The observer has the paper's values.
_CHOICES = ("absent", "least_pixels", "grid", "out_of_frame")


def alarm_from(
    report: Report, quantile: float, settings: TemporalSettings, model: str | None = None
) -> float:
    """Return a quantile of the TC_t in a report of `uqeval tc`, without scene cuts.

    Interpolates linearly between ranks. `model`: name of a model, for a report with several. Raises
    `UsageError` for a report without a TC_t of these `settings`: with another flow or definition,
    TC_t differs.
    """
    if not 0 <= quantile <= 1:
        raise UsageError(f"--alarm-quantile {quantile}; expected 0 to 1.")
    variants = {
        name: settings_of_variant for name, settings_of_variant in report.settings.items()
        if family_of(name) == "temporal"
    }  # fmt: skip
    if not variants:
        raise UsageError("--alarm-from: the report has no TC_t; expected a report of `uqeval tc`.")
    fits = [
        name
        for name, settings_of_variant in variants.items()
        if _key(settings_of_variant) == _key(vars(settings))
    ]
    if not fits:
        variant_list = "; ".join(
            f"{name}: {_settings_text(settings_of_variant)}"
            for name, settings_of_variant in variants.items()
        )
        raise UsageError(
            f"--alarm-from: the report has TC_t of another flow or definition ({variant_list}); "
            f"this command uses {_settings_text(vars(settings))}. Give the --flow and "
            "--flow-scale of the report, or evaluate again with those of this command."
        )
    of = {str(variants[name].get("model")): name for name in reversed(fits)}
    models = ", ".join(reversed(of))
    if model is None and len(of) > 1:
        raise UsageError(
            f"--alarm-from: the report has several models with this flow: {models}; choose one "
            "with --alarm-model NAME."
        )
    if model is not None and model not in of:
        raise UsageError(
            f"--alarm-model {model}: the report has no such model with this flow; expected one of "
            f"{models}."
        )
    variant = fits[0] if model is None else of[model]
    records: list[dict[str, Any]] = [item.get(variant) or {} for item in report.items]
    values = [r["tc"] for r in records if r.get("tc") is not None and not r.get("cut")]
    if not values:
        raise UsageError(
            "--alarm-from: each pair of the report lacks TC_t or is a scene cut, so "
            "it gives no limit. Give --alarm LIMIT."
        )
    return float(np.quantile(values, quantile))


def _key(settings: dict[str, Any]) -> tuple[Any, ...]:
    """Return the settings that TC depends on: the flow as an id, and the options."""
    from uqeval.maps.flow_method import flow_method

    method = flow_method(str(settings.get("flow")), float(settings.get("flow_scale", 1.0)))
    return (method.id, *(settings.get(name) for name in _CHOICES))


def _settings_text(settings: dict[str, Any]) -> str:
    flow, *choices = _key(settings)
    return f"{flow}, " + ", ".join(
        f"{name} {value}" for name, value in zip(_CHOICES, choices, strict=True)
    )
