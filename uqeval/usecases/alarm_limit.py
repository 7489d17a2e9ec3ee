"""The TC below which a frame raises an alarm, from a report of a good video."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from uqeval.arrays import np
from uqeval.disk.forms import Flag, Number, Whole, formed
from uqeval.errors import FormError, StoreError, UsageError, all_listed, cut, is_number
from uqeval.keys import family_of
from uqeval.maps.flow_method import flow_method
from uqeval.metrics._family import recorded_settings
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.records.report import Report
from uqeval.records.void_ids import PREDICTIONS, void_ids

_Form = TypeVar("_Form")
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
    variant = _variant_of(report, settings, model)
    pairs = [_in_form(_Pair, item.get(variant) or {}) for item in report.items]
    values = [pair.tc for pair in pairs if pair.tc is not None and not pair.cut]
    if not values:
        raise UsageError(
            "--alarm-from: each pair of the report lacks TC_t or is a scene cut, so "
            "it gives no limit. Give --alarm LIMIT."
        )
    return float(np.quantile(values, quantile))


def _variant_of(report: Report, settings: TemporalSettings, model: str | None) -> str:
    """Return the key of the TC_t of these settings, and of this model if there are several.

    Raises `UsageError` without one.
    """
    variants = {
        name: settings_of_variant for name, settings_of_variant in report.settings.items()
        if family_of(name) == "temporal"
    }  # fmt: skip
    for key, settings_of_variant in variants.items():
        _in_form(_Variant, settings_of_variant)
        recorded_settings(TemporalSettings, settings_of_variant, "--alarm-from: the report", key)
    if not variants:
        raise UsageError("--alarm-from: the report has no TC_t; expected a report of `uqeval tc`.")
    fits = [
        name
        for name, settings_of_variant in variants.items()
        if _key(settings_of_variant) == _key(vars(settings))
    ]
    if not fits:
        variant_list = "; ".join(
            f"{cut(name)}: {_settings_text(settings_of_variant)}"
            for name, settings_of_variant in variants.items()
        )
        raise UsageError(
            f"--alarm-from: the report has TC_t of another flow or definition ({variant_list}); "
            f"this command uses {_settings_text(vars(settings))}. Give the --flow and "
            "--flow-scale of the report, or evaluate again with those of this command."
        )
    of = {str(variants[name].get("model")): name for name in reversed(fits)}
    models = all_listed(reversed(of))
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
    return fits[0] if model is None else of[model]


def refuse_other_void(
    report: Report, void: int | None, settings: TemporalSettings, model: str | None = None
) -> None:
    """Raise `UsageError` if the model that `alarm_from` reads has another void id than `void`.

    `void`: None if the predictions have no void pixels.
    """
    variant = _variant_of(report, settings, model)
    used = void_ids(report.inputs, report.settings[variant]).get(PREDICTIONS)
    if void is None or not is_number(used) or used == void:
        return
    raise UsageError(
        f"--alarm-from: the void id of the report is {used}, and this command uses {void}, so TC_t "
        f"compares other pixels. Give --ignore-index {used}, or evaluate again with the void id of "
        "this command."
    )


def refuse_other_step(report: Report, step: int | None) -> str:
    """Raise `UsageError` if the first pair of frames is another `step` apart than each pair of the
    report, because TC_t falls with the distance of the frames.

    Frames without numbers, as of a stream, have no `step` and count as 1 apart. If those of the
    report are not, return a warning; else an empty text.
    """
    rows = [
        row for key, result in report.results.items() if family_of(key) == "temporal"
        for row in _in_form(_Result, result).sequences
    ]  # fmt: skip
    steps = sorted({row.step for row in rows if row.step is not None})
    of_report = " or ".join(map(str, steps))
    # Numbers that are times vary a little.
    distance = 1 if step is None else step
    if not steps or any(max(own, distance) < 1.5 * min(own, distance) for own in steps):
        return ""
    if step is None:
        return (
            f"--alarm-from: the frames of the report are {of_report} numbers apart, and these "
            "frames have no numbers. Check that they are as far apart."
        )
    raise UsageError(
        f"--alarm-from: the frames of the report are {of_report} numbers apart, and the first two "
        f"of this command {step}. TC_t falls with their distance. Give frames as far apart as "
        "those of the report, or evaluate frames like these with uqeval tc, and give that report."
    )


@dataclass
class _SequenceRow:
    """The record of a sequence that is read."""

    step: Whole | None = None


@dataclass
class _Result:
    """The results of a variant that are read."""

    sequences: list[_SequenceRow] = field(default_factory=list)


@dataclass
class _Variant:
    """The settings of a variant that are read."""

    flow: str
    flow_scale: Number = 1.0
    model: str | None = None


@dataclass
class _Pair:
    """The scores of a pair that are read."""

    tc: Number | None = None
    cut: Flag = False


def _in_form(kind: type[_Form], record: Any) -> _Form:
    """Return a record of the report, which may come from anyone. Raises `StoreError`."""
    try:
        read: _Form = formed(kind, record)
    except FormError as error:
        raise StoreError(
            f"--alarm-from: the report has a record of another form: {error}. Evaluate again with "
            "uqeval tc."
        ) from None
    return read


def _key(settings: dict[str, Any]) -> tuple[Any, ...]:
    """Return the settings that TC depends on: the flow as an id, and the options."""
    method = flow_method(str(settings.get("flow")), float(settings.get("flow_scale", 1.0)))
    return (method.id, *(settings.get(name) for name in _CHOICES))


def _settings_text(settings: dict[str, Any]) -> str:
    flow, *choices = _key(settings)
    return f"{flow}, " + ", ".join(
        f"{name} {cut(value)}" for name, value in zip(_CHOICES, choices, strict=True)
    )
