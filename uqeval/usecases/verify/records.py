"""Compare what a report says of metrics, inputs and settings; name what nothing compares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from uqeval.errors import cut, is_number
from uqeval.glossary import families
from uqeval.keys import family_of
from uqeval.records.report import OF_CUT, Report
from uqeval.usecases.verify.comparing import Comparison, Difference, ReadSettings
from uqeval.usecases.verify.pooled import sets_of

if TYPE_CHECKING:
    from uqeval.inputs import Inputs

#: Fields of a report that are compared, or from which it is recomputed.
_COMPARED = {
    "uqeval_version", "inputs", "settings", "results", "items", "intervals", "slices", "states",
    "states_digest", "metrics", "partial",
}  # fmt: skip
#: Settings of intervals and slices that are always compared, or that a sentence of their own names:
#: those of a video.
_OF_CUT_COMPARED = {"columns", "lag1", "effective"}
#: In records of inputs: paths may be others, and fingerprints and options have checks of their own.
_NOT_OF_CONTENT = {"path", "fingerprint", "stored_bytes", "options", "name"}
#: By family, the settings that its results repeat.
_REPEATED = {
    "annotators": ("uncertainty",), "calibration": ("bins",), "divergence": ("clip",),
    "conformal": ("method", "risk", "alpha"), "failure": ("uncertainty",), "nmerci": ("alpha",),
    "image_failure": ("risk", "confidence", "uncertainty"), "ood": ("uncertainty",),
    "pavpu": ("uncertainty", "window", "stride", "accuracy_threshold"),
    "sparsification": ("uncertainty", "error"), "temporal": ("model",),
}  # fmt: skip
#: The settings of intervals that nothing else compares, whether they are there or not.
_OF_INTERVALS = {
    "level", "method", "draws", "seed", "numpy", "group_by", "groups", "held_fixed",
}  # fmt: skip
#: The generator of the draws.
_GENERATOR = "PCG64"


def compare_records(comparison: Comparison, inputs: Inputs) -> None:
    """Compare the records of metrics with those of this version, of inputs with the stores, and
    settings that results repeat with the settings."""
    report = comparison.report
    _compare(comparison, "metrics", report.metrics, _metrics_of(report))
    opened = dict(_leaves(json.loads(json.dumps(inputs.record, default=str))))
    _compare(comparison, "inputs", dict(_leaves(report.inputs)), opened)
    parts = [("the set", report.results)]
    parts += [(f"slice {n}", own.get("results") or {}) for n, own in report.slices.items()]
    for where, results in parts:
        for key, record in results.items():
            expected = _repeated(comparison.settings.get(key, {}), key, record)
            _compare(
                comparison, where, {f"{key}.{n}": record[n] for n in expected if n in record},
                {f"{key}.{name}": value for name, value in expected.items()},
            )  # fmt: skip
            if where == "the set":
                comparison.fields_of_set.setdefault(key, set()).update(expected)
    _compare_settings(comparison)
    intervals = report.settings.get("intervals") or {}
    if intervals and "frames" not in report.inputs:
        groups = intervals.get("groups")
        sets = sets_of(report) or [""] * len(report.items)
        units = set(zip(sets, groups or report.item_names, strict=True))
        expected = {
            "unit": "group" if groups else "item", "units": len(units), "generator": _GENERATOR,
        }  # fmt: skip
        own = {name: intervals.get(name) for name in expected}
        _compare(comparison, "settings of intervals", own, expected)
        comparison.of_intervals |= {*expected, "groups"}


def _metrics_of(report: Report) -> dict[str, Any]:
    """Return the records of the metrics of a report's families, as JSON has them."""
    known = families()
    names = dict.fromkeys(map(family_of, (*report.settings, *report.results)))
    records = {m.id: m.record() for name in names if name in known for m in known[name].metrics}
    return dict(json.loads(json.dumps(records)))


def _repeated(
    settings: Mapping[str, Any], key: str, record: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Return the settings that a record of results repeats. Without those of another type: a rule
    has the name of its number, and a flag that of the results that it requests."""
    always = _REPEATED.get(family_of(key), ())
    return {
        name: settings[name] for name in dict.fromkeys((*always, *record))
        if settings.get(name) not in (None, "")
        and (name in always or _kind(settings[name]) is _kind(record[name]))
    }  # fmt: skip


def _compare_settings(comparison: Comparison) -> None:
    """Add a difference for each setting that a run records, and the report lacks."""
    tally = comparison.tallies["records"]
    if "intervals" in comparison.report.settings:
        for name in _OF_INTERVALS - comparison.report.settings["intervals"].keys():
            tally.add_missing("settings of intervals", name)
    for key in comparison.report.results:
        if (known := families().get(family_of(key))) is None:
            continue
        own = comparison.report.settings.get(key) or {}
        for name in known.settings_type.__dataclass_fields__:
            if name not in own:
                tally.add_missing(f"settings of {key}", name)


def _kind(value: Any) -> type:
    return float if is_number(value) else type(value)


def _leaves(record: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the single values inside a record of inputs, with their places."""
    if isinstance(record, dict | list):
        pairs = record.items() if isinstance(record, dict) else enumerate(record)
        for name, value in pairs:
            if name not in _NOT_OF_CONTENT:
                yield from _leaves(value, f"{place}.{name}" if place else str(name))
    elif place:
        yield place, record


def _compare(
    comparison: Comparison, where: str, reported: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Add a difference for each name whose values differ, or that only one of both has."""
    tally = comparison.tallies["records"]
    for name in dict.fromkeys((*expected, *reported)):
        tally.see(where, name)
        first, second = reported.get(name), expected.get(name)
        if name not in reported:
            tally.differences.append(Difference(where, name, None, second, is_missing=True))
        elif isinstance(first, dict) and isinstance(second, dict):
            own = {f"{name}.{field}": value for field, value in first.items()}
            other = {f"{name}.{field}": value for field, value in second.items()}
            _compare(comparison, where, own, other)
        elif first != second:
            tally.differences.append(Difference(where, name, first, second))


def records_left_out(comparison: Comparison) -> list[str]:
    """Return sentences that name the parts of a report, and the settings, that nothing compared."""
    report = comparison.report
    parts = [f.name for f in fields(report) if f.name not in _COMPARED and getattr(report, f.name)]
    parts += [
        "inputs.options", "paths, names and stored_bytes of inputs",
        "names of items that --names gives or the stores do not name", "texts of reasons",
    ]  # fmt: skip
    for name in sorted(OF_CUT & report.settings.keys()):
        own = report.settings[name]
        compared = _OF_CUT_COMPARED | (comparison.of_intervals if name == "intervals" else set())
        parts += [f"settings.{name}.{field}" for field in own if field not in compared]
    messages = [f"Taken from the report, and not compared: {', '.join(map(cut, parts))}."]
    unread = {
        key: names for key, settings in comparison.settings.items()
        if key not in comparison.why_not and isinstance(settings, ReadSettings)
        and (names := [name for name in settings if name not in settings.read])
    }  # fmt: skip
    texts = [f"{key}: {', '.join(map(cut, names))}" for key, names in unread.items()]
    if texts:
        messages.append(f"Settings that no recomputed value depends on: {', '.join(texts)}.")
    return messages
