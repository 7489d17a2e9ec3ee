"""Labels and headlines of a report's fields, from the records of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from uqeval.errors import option_name
from uqeval.keys import Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from uqeval.metrics import Display, Family, Metric

#: Results that are of no family.
_OTHERS = {"sweep": "Number of samples"}
#: Parts of every family's results.
_PARTS = {"per_class": "by class"}
#: Words of fields that labels write in another way.
_NAMES = {"ace": "ACE", "auce": "AUCE", "brier": "Brier", "classwise": "class-wise",
          "ece": "ECE", "mce": "MCE",
          "pavpu": "PAvPU", "surplus": "Surplus"}  # fmt: skip


def families() -> Mapping[str, Family]:
    """Return the families by their names in reports, in the order of pages and tables."""
    # Imported here: a gate that passes needs no words.
    from uqeval.metrics import FAMILIES_IN_REPORTS

    return FAMILIES_IN_REPORTS


def _metrics(family: str) -> Mapping[str, Metric]:
    known = families().get(family)
    return known.by_field if known else {}


def display_of(family: str) -> Display:
    """Return the declared tables and figures of a family.

    A family that declares no tables has its metrics, of the set and by class.
    """
    from uqeval.metrics import Display, RowTable, ScoreTable

    known = families().get(family)
    if known is None or known.display.tables:
        return known.display if known else Display()
    fields = tuple(metric.field for metric in known.metrics)
    tables = (
        ScoreTable(known.label or family, fields),
        RowTable("By class", "per_class", (*fields, "pixels")),
    )
    return replace(known.display, tables=tables)


def how_to_evaluate(key: str) -> str:
    """Return the command that evaluates a key that a report lacks; empty for an unknown family."""
    parsed = Key.parse(key)
    known = families().get(parsed.family)
    if known is None:
        return ""
    command = {"image_failure": "failure --images", "segmentation": "run"}.get(
        known.name, known.name
    )
    if "video" in known.kinds and known.name != "image_failure":
        inputs = "VIDEO"
    elif known.needs_reference:
        inputs = "PREDS REFERENCE"
    elif known.kinds == ("ood",):
        inputs = "IN_PREDS OUT_PREDS"
    else:
        inputs = "PREDS TARGET" if known.kinds == ("regression",) else "PREDS LABELS"
    words = ["uqeval", command, inputs]
    for change in (parsed.variant or "").split(",") if parsed.variant else ():
        name, equals, value = change.rpartition("=")
        name = name if equals else "uncertainty"
        # The first value of an option has the key without a variant.
        default = default_setting(parsed.family, name)
        first = "FIRST" if default in (None, "") else default
        words += [option_name(name), quote(str(first)), option_name(name), quote(value)]
    if parsed.region is not None:
        words += ["--region", quote(parsed.region)]
    return " ".join([*words, "-o", "DIR" if command == "run" else "REPORT.json"])


def default_setting(family: str, name: str) -> Any:
    """Return the default of a setting as reports have it; None if the family does not have it."""
    known = families().get(family)
    fields = getattr(known.settings_type, "__dataclass_fields__", {}) if known else {}
    default = fields[name].default if name in fields else None
    return list(default) if isinstance(default, tuple) else default


def fields_changed(family: str, setting: str) -> tuple[str, ...]:
    """Return the only fields of results that a setting changes; empty if it may change all."""
    from uqeval.settings import fields_changed as changed_by

    known = families().get(family)
    return changed_by(known.settings_type, setting) if known else ()


def comparable_settings(key: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a result's settings with equal values in one spelling, and
    options without effect at their default."""
    from uqeval.metrics._family import normal_settings

    return normal_settings(key, record)


def recorded_settings(key: str, record: Mapping[str, Any], path: object) -> Any:
    """Return the settings of a result from their record in the report at `path`; None for an
    unknown family. Raises `StoreError` for a value that no run records."""
    from uqeval.metrics._family import recorded_settings as read_recorded

    known = families().get(Key.parse(key).family)
    return read_recorded(known.settings_type, record, path, key) if known else None


def results_read(key: str, record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the keys and fields of other results from whose items a result is computed."""
    from uqeval.metrics._family import results_read as read_by

    return read_by(key, record)


def headlines(key: str) -> tuple[str, ...]:
    """Return the scores of a family, or of one of its results, that a reader sees first; the first
    of them ranks the items. Those of a region leave out scores without meaning there."""
    known = families().get(Key.parse(key).family)
    return tuple(name for name in known.headlines if not no_meaning(key, name)) if known else ()


def no_meaning(key: str, field: str) -> str:
    """Return why a score of a result means nothing in its region; empty if it has a meaning."""
    own = Key.parse(key)
    metric = metric_of(own.family, field)
    if metric is None or own.region is None:
        return ""
    return metric.no_meaning_in.get(own.region.partition(":")[0], "")


def class_field(family: str, field: str) -> str:
    """Return the field of rows by class that belongs to a score: `iou` of `miou`."""
    metric = _metrics(family).get(field)
    return metric.of_class or field if metric else field


def class_headlines(family: str) -> tuple[str, ...]:
    """Return the scores of a class that a reader sees first."""
    fields = headlines(family)
    first = class_field(family, fields[0]) if fields else ""
    return fields if first in fields or not fields else (first,)


def of_items(family: str) -> tuple[str, ...]:
    """Return fields of an item that rank it, where it has none of the headlines."""
    known = families().get(family)
    return known.of_items if known else ()


def metric_of(family: str, field: str) -> Metric | None:
    """Return the metric of a field of a family's results; None where it is no metric."""
    return _metrics(family).get(field)


def label(family: str, field: str) -> str:
    """Return the label of a field of a family's results on pages: "mIoU"; for a nested field, all
    parts.
    """
    if (metric := _metrics(family).get(field)) is not None:
        return metric.label
    start, _, entry = field.partition(".")
    for table in display_of(family).tables if entry else ():
        for column in table.columns:
            if not isinstance(column, str) and column.field == f"{start}.*":
                return column.heading.format(entry)  # "risk at 80 % coverage"
    return ", ".join(_word(family, part) for part in field.split("."))


def headings(family: str, fields: Iterable[str]) -> list[str]:
    """Return the headings of columns of these fields in a table of many columns."""
    metrics = _metrics(family)
    return [metrics[f].heading if f in metrics else label(family, f) for f in fields]


def _word(family: str, part: str) -> str:
    if (metric := _metrics(family).get(part)) is not None:
        return metric.label
    known = families().get(family)
    words = known.words if known else {}
    return words.get(part) or _PARTS.get(part) or _spelled(part)


def _spelled(part: str) -> str:
    """Return a field's name as words: "ECE debiased" for `ece_debiased`."""
    return " ".join(_NAMES.get(word, word) for word in part.split("_"))


def label_of(key: str, field: str) -> str:
    """Return the label of a field of one result on pages: "mIoU [window=7] @boundary:3"."""
    own = Key.parse(key)
    variant = "" if own.variant is None else f" [{own.variant}]"
    region = "" if own.region is None else f" @{own.region}"
    return f"{label(own.family, field)}{variant}{region}"


def family_label(family: str) -> str:
    """Return the heading of a family's part of a page."""
    known = families().get(family)
    return known.label if known else _OTHERS.get(family, family)
