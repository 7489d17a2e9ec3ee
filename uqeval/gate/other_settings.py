"""Settings in which the results of two reports differ, so that their scores do not compare."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from uqeval.errors import UsageError, data_of_kind, option_name, quoted
from uqeval.gate.other_models import in_one_order, other_models
from uqeval.gate.other_sets import ADVICE as OF_SETS
from uqeval.gate.other_sets import other_sets
from uqeval.gate.same_data import has_equal_coverage, is_void_in_pixels, with_results_read
from uqeval.glossary import comparable_settings, default_setting, fields_changed
from uqeval.keys import family_of
from uqeval.records.addresses import ROWS, without_row_names
from uqeval.records.folder import Named
from uqeval.records.inputs import value_options
from uqeval.records.report import Report
from uqeval.records.units import is_same_unit
from uqeval.records.void_ids import IGNORE_INDEX, LABELS, PREDICTIONS, other_void_ids, void_ids

#: The setting that names the report of a fitted threshold.
_SOURCE = "threshold_from"
#: The setting that names the items of a fit, and the digest of their names in results.
_FIT_ON, _DIGEST = "fit_on", "fitted_on_digest"
_SWEEP_MEANS = "Compare the means over the subsets of a sweep"
#: The unit that stores of predicted numbers declare.
_UNITS = "units"
#: The name of a model does not change its scores; `other_models` tells of another one. The columns
#: of a table of items are data, as predictions are: a model may have its own table, and a table may
#: be copied. `void_ids` compares void ids.
_NO_SETTINGS = ("model", "item_table", IGNORE_INDEX)


class OtherSetting(NamedTuple):
    """A setting that two reports have with other values. `changes_only`: the only fields of results
    that it changes; empty if it may change all scores. `advice`: how to make them comparable."""

    name: str
    value: Any
    other: Any
    changes_only: tuple[str, ...] = ()
    advice: str = "Evaluate both with the same settings"

    def changes(self, fields: Collection[str]) -> bool:
        """Return whether it may change the score at these fields; without fields, all scores."""
        return not self.changes_only or is_among(fields, self.changes_only)


def is_among(fields: Collection[str], changed: Collection[str]) -> bool:
    """Return whether the value at these fields may be one of `changed`: whether its path has one of
    these names, such as `held_out.after.ece` has `ece`. `mtc_pooled` does not have `mtc`."""
    names = [name.removesuffix("_debiased") for name in without_row_names(fields)]
    of_whole = [name for name in names if name not in ROWS and not name.isdigit()]
    paths = [f".{'.'.join(path)}." for path in (names, of_whole)]
    return any(f".{name}." in path for name in changed for path in paths)


def refuse_other_settings(now: Named, baseline: Named, key: str, fields: Collection[str]) -> None:
    """Raise `UsageError` if a score and its baseline have different settings."""
    difference = first_other_setting(now.report, baseline.report, key, fields)
    if difference is None and (option := other_input_option(now.report, baseline.report)):
        difference = OtherSetting(*option)
    if difference is not None:
        raise UsageError(
            f"{difference.name} is {quoted(difference.value)} in this report "
            f"and {quoted(difference.other)} in {baseline.path}; scores of different settings "
            f"cannot be compared. {difference.advice}."
        )


def first_other_setting(
    report: Report, baseline: Report, key: str, fields: Collection[str] = ()
) -> OtherSetting | None:
    """Return the first setting of a score that differs.

    `fields`: those of the score in the result. Without fields, only options that may change all
    scores count. `all_other_settings` says which settings are the same.
    """
    differences = all_other_settings(report, baseline, key)
    return next((own for own in differences if own.changes(fields)), None)


def all_other_settings(report: Report, baseline: Report, key: str) -> Iterator[OtherSetting]:
    """Yield the settings of a result that differ.

    A metric that is computed from the items of other results has the settings of these too.

    A threshold of another report (`threshold_from`) is the same setting as a rule or a number that
    gave the same threshold, and as a threshold of a third report (`other_threshold` tells). Files
    of `fit_on` are the same if they name the same items. The void id is no setting if the numbers
    of pixels tell which are void (`is_void_in_pixels`, `has_equal_coverage`): `uqeval reduce`
    writes another id. Stores need not declare their units.
    """
    for own_key, read_field in with_results_read(report, key):
        for own in _other_settings(report, baseline, own_key):
            if not read_field:
                yield own
            elif own.changes(read_field.split(".")):
                name = f"{own.name} of {own_key}"
                yield own._replace(name=name, changes_only=())


def _other_settings(report: Report, baseline: Report, key: str) -> Iterator[OtherSetting]:
    """Yield the differences in the settings of one result, as `all_other_settings` does."""
    voids = [void_ids(own.inputs, _recorded(own, key)) for own in (report, baseline)]
    for place, is_in_numbers in ((LABELS, is_void_in_pixels), (PREDICTIONS, has_equal_coverage)):
        if voids[0].get(place) != voids[1].get(place) and is_in_numbers(report, baseline, key):
            for ids in voids:
                ids.pop(place, None)
    for difference in other_void_ids(*voids):
        yield OtherSetting(*difference)
    for what, found in other_sets(report, baseline, key):
        changes = () if found.of_kind else ("per_set",)
        yield OtherSetting(what, *found.sets, changes, OF_SETS)
    if models := other_models(report, baseline, key):
        yield OtherSetting("the model", *models, advice=in_one_order(report, baseline, key))
    family = family_of(key)
    settings, baseline_settings = _settings(report, key), _settings(baseline, key)
    units = settings.get(_UNITS), baseline_settings.get(_UNITS)
    if not all(units) or is_same_unit(*units):
        for own in (settings, baseline_settings):
            own.pop(_UNITS, None)
    digests = _fitted_on(report, key), _fitted_on(baseline, key)
    if all(digests):
        files = settings.pop(_FIT_ON, None), baseline_settings.pop(_FIT_ON, None)
        if digests[0] != digests[1]:
            now, before = (
                f"{file} (digest {own[:8]})" for file, own in zip(files, digests, strict=True)
            )
            yield OtherSetting(_FIT_ON, now, before, fields_changed(family, _FIT_ON))
    sources = settings.pop(_SOURCE, None), baseline_settings.pop(_SOURCE, None)
    if any(sources):
        values = _threshold(report, key), _threshold(baseline, key)
        rules = settings.pop("threshold", None), baseline_settings.pop("threshold", None)
        if None not in values and values[0] != values[1] and not all(sources):
            now, before = map(_threshold_in_words, values, rules, sources)
            yield OtherSetting("threshold", now, before, fields_changed(family, "threshold"))
    counts = report.inputs.get("samples"), baseline.inputs.get("samples")
    if "subsets" in settings and counts[0] != counts[1]:
        # Subsets are of a model's own samples, and few samples have few subsets. Means over them
        # are alike; their spread is not, since all samples together are one subset.
        for own in (settings, baseline_settings):
            own.pop("subsets", None)
            own.pop("repeats", None)
        scores = report.results.get(key, {})
        spread = tuple(f"{name}.{of}" for name in scores for of in ("values", "std"))
        yield OtherSetting("the number of samples to draw from", *counts, spread, _SWEEP_MEANS)
    for name in sorted(settings.keys() | baseline_settings.keys()):
        values = settings.get(name), baseline_settings.get(name)
        if values[0] == values[1]:
            continue
        if name == "classes":
            yield _other_classes(*values)
            continue
        # An earlier version without this setting computed what is its default now.
        is_new = not (name in settings and name in baseline_settings)
        value = values[0] if name in settings else values[1]
        if not (is_new and value == default_setting(family, name)):
            yield OtherSetting(name, *values, fields_changed(family, name))


def _other_classes(value: Any, other: Any) -> OtherSetting:
    """Return the difference of the numbers of classes; predicted numbers have none."""
    if value is None or other is None:
        of_value, of_other = (
            data_of_kind("regression" if own is None else "classes") for own in (value, other)
        )
        advice = "Compare reports of one kind of data"
        return OtherSetting("the kind of data", of_value, of_other, advice=advice)
    return OtherSetting("classes", value, other, advice="Compare models of the same classes")


def other_threshold(report: Report, baseline: Report, key: str) -> tuple[str, str] | None:
    """Return the thresholds of a metric in both reports as text, if they differ and are both of
    other reports, or if one is of another report and the other is not recorded; else None."""
    for own_key, _ in with_results_read(report, key):
        if (difference := _other_threshold(report, baseline, own_key)) is not None:
            return difference
    return None


def _other_threshold(report: Report, baseline: Report, key: str) -> tuple[str, str] | None:
    sources = [_settings(own, key).get(_SOURCE) for own in (report, baseline)]
    values = _threshold(report, key), _threshold(baseline, key)
    if not any(sources) or values[0] == values[1] or not (all(sources) or None in values):
        return None
    return _number(values[0]), _number(values[1])


def _fitted_on(report: Report, key: str) -> str:
    """Return the digest of the items that a metric or a part of it is fitted on; empty if it is not
    recorded, as of all items."""
    record = report.results.get(key, {})
    parts = [own for own in (record, *record.values()) if isinstance(own, dict)]
    return next((str(own[_DIGEST]) for own in parts if _DIGEST in own), "")


def _threshold(report: Report, key: str) -> float | None:
    """Return the threshold that a metric used; None if it has no single one."""
    rule = _settings(report, key).get("threshold")
    used: Any = report.results.get(key, {}).get("uncertainty_threshold", rule)
    try:
        return float(used)
    except (TypeError, ValueError):
        return None


def _threshold_in_words(value: float | None, rule: Any, source: Any) -> str:
    return f"{_number(value)} (from {source})" if source else f"{_number(value)} (rule {rule})"


def _number(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.6g}"


def other_input_option(report: Report, baseline: Report) -> tuple[str, Any, Any] | None:
    """Return the first input option that changes numbers and differs: its name and both values."""
    baseline_options = value_options(baseline.inputs)
    for name, value in value_options(report.inputs).items():
        if value != baseline_options[name]:
            return option_name(name), value, baseline_options[name]
    return None


def _recorded(report: Report, key: str) -> dict[str, Any]:
    """Return the recorded settings of a result; empty without any."""
    settings = report.settings.get(key)
    return settings if isinstance(settings, dict) else {}


def _settings(report: Report, key: str) -> dict[str, Any]:
    inputs = report.inputs
    shared: dict[str, Any] = {name: inputs[name] for name in ("classes", _UNITS) if name in inputs}
    if "sets" in inputs or "ood_mask" in inputs:
        # Earlier versions recorded the number of sets as that of classes.
        shared.pop("classes", None)
        shared["sets"] = len(inputs.get("sets") or ("in", "out"))
    settings = comparable_settings(key, _recorded(report, key))
    return shared | {name: value for name, value in settings.items() if name not in _NO_SETTINGS}
