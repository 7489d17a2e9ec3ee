"""The report: the record of all values, the only input of writers and the gate.

History of the format: 1 is the first.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from uqeval.argument_types import checks_types
from uqeval.disk.files import MOST_REPORT, content_of, parse_json, read_bytes
from uqeval.errors import NotFiniteError, StoreError, cut, number_of, printable, quoted
from uqeval.keys import family_of
from uqeval.records.set_names import recorded_paths
from uqeval.spelling import as_keywords, for_caller, spelled
from uqeval.unicode_names import in_one_spelling

SCHEMA = "uqeval.report/1"
#: Keys of settings that are not those of a result: how intervals and slices were computed.
OF_CUT = frozenset(("intervals", "slices"))
#: The reason of a field that is missing at another threshold than that of the run.
NOT_HELD = "at another threshold this needs the pixels"
#: The list of items of a report in JSON, where it is empty.
_NO_ITEMS = '\n  "items": []'
#: Strict JSON: of the whole report, and of an item in one line.
_WHOLE, _ITEM = json.JSONEncoder(indent=2, allow_nan=False), json.JSONEncoder(allow_nan=False)
#: By the key of a result and by cell, (row, column) or (bin,): places of the items that hold most
#: wrong pixels there, and how many, most first.
ItemsByCell: TypeAlias = "Mapping[str, Mapping[tuple[int, ...], Sequence[tuple[int, int]]]]"
#: For each item and each of its classes: class, labelled pixels, wrong pixels.
ItemClasses: TypeAlias = "Sequence[Sequence[tuple[int, int, int]]]"


@dataclass(kw_only=True)
class Report:
    """The record of one evaluation; `docs/reports.md` describes every key.

    `results` has the scores by family and variant (`pavpu[window=8]`), `items` one record per item,
    `settings` every choice, `intervals` and `slices` those on request, `metrics` unit, direction,
    range, meaning and source of each score. Undefined values are None, with a reason
    (`<key>_reason`), never 0 and never NaN. Fractions lie in [0, 1] and nothing is rounded.
    """

    # For `checks`: a pydantic model would take a tenth of the time to start a command to build.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    uqeval_version: str
    inputs: dict[str, Any]
    settings: dict[str, Any]
    results: dict[str, dict[str, Any]]
    items: list[dict[str, Any]]
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: str | None = None
    states_digest: str | None = None
    numerics: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    partial: bool = False
    warnings: list[str] = field(default_factory=list)
    timing: dict[str, Any] = field(default_factory=dict)

    @property
    def item_names(self) -> tuple[str, ...]:
        """Return the names of the items, in their order."""
        return tuple(str(item.get("name")) for item in self.items)

    def __repr__(self) -> str:
        """Return a summary in one line; `to_json` has everything."""
        partial = ", partial" if self.partial else ""
        first = "".join(f": {as_keywords(cut(text))}" for text in [*self.warnings][:1])
        return (
            f"<Report of {self._stores()}: {number_of(len(self.items), 'item')}{partial}; "
            f"{', '.join(self.results)}; {number_of(len(self.warnings), 'warning')}{first}>"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return the scores as a table, which notebooks show."""
        from uqeval.records.scalars import html_of

        try:
            with content_of("the report"):
                title = f"{self._stores()}: {number_of(len(self.items), 'item')}"
                title += ", partial" if self.partial else ""
                warnings = [as_keywords(str(text)) for text in self.warnings]
                return html_of(title, self.results, self.metrics, self.intervals, warnings)
        except StoreError as error:  # a notebook would show its whole traceback
            return f"<p>{escape(str(error))}</p>"

    def _stores(self) -> str:
        return " + ".join(recorded_paths(self.inputs)) or "?"

    def record(self) -> dict[str, Any]:
        """Return the keys and values of the report in JSON."""
        return {"schema": SCHEMA} | {own.name: getattr(self, own.name) for own in fields(self)}

    def to_json(self) -> str:
        """Return the report as strict JSON, indented by two spaces, with one line per item.

        Raises `NotFiniteError`, a `ValueError`, for NaN or infinity.
        """
        return "".join(self.json_pieces())

    def refuse_not_finite(self) -> None:
        """Raise `NotFiniteError` for the first NaN or infinity, with its key."""
        if (found := _first_not_finite(self.record(), "")) is not None:
            key, value = found
            raise NotFiniteError(
                f"{cut(key)} is {value}; a report has finite numbers only, so it was not written. "
                "The values at some pixels are too large or too small for the score: look for "
                "extreme predictions, and mask them or leave the score out. This is also a bug of "
                "uqeval: such a score should be null with a reason. Please report it."
            )

    def json_pieces(self) -> Iterator[str]:
        """Yield the text of `to_json` in pieces, so the text of many items is never in memory at
        once."""
        record = self.record() | {"items": []}
        text = self._json(record, _WHOLE)
        if self.items:
            head, text = text.split(_NO_ITEMS, 1)
            yield f'{head}\n  "items": [\n'
            for i, item in enumerate(self.items):
                separator = ",\n" if i else ""
                yield f"{separator}    {self._json(item, _ITEM)}"
            yield "\n  ]"
        yield text + "\n"

    def _json(self, record: Mapping[str, Any], encoder: json.JSONEncoder) -> str:
        try:
            return encoder.encode(record)
        except ValueError:
            self.refuse_not_finite()
            raise

    @checks_types()
    def save(self, path: str | Path) -> None:
        """Write the report to a file, as `-o` does: completely or not at all. Raises
        `OutputError`, `UsageError` for a file of another kind, and `NotFiniteError` as `to_json`
        does.
        """
        from uqeval.disk.outputs import refuse_other_kind, write

        refuse_other_kind(path, "path=", "report")
        write(path, self.json_pieces())

    @classmethod
    @checks_types()
    def load(cls, path: str | Path) -> Report:
        """Read a report file. Raises `StoreError` for another file or schema."""
        return load_with_sha256(path)[0]

    @checks_types()
    def to_frame(self) -> list[dict[str, Any]]:
        """Return one flat row per item, for `pandas.DataFrame(report.to_frame())`.

        The columns are `name`, then `<metric>.<field>` for every number of an item. A sweep has one
        row per metric, number of samples `m` and draw; its curves have one row per point (`index`).
        A sweep next to other results is left out.

        Raises `StoreError` for a report whose content is not as uqeval writes it.
        """
        with content_of("the report"):
            return self._rows()

    def _rows(self) -> list[dict[str, Any]]:
        if list(self.results) == ["sweep"]:
            return list(_sweep_rows(self.results["sweep"]))
        rows = []
        for item in self.items:
            row: dict[str, Any] = {"name": item["name"]}
            for key, record in item.items():
                if isinstance(record, dict):
                    row |= {
                        f"{key}.{field}": value
                        for field, value in record.items()
                        if not field.endswith("_reason") and not isinstance(value, dict | list)
                    }
            rows.append(row)
        return rows

    @checks_types()
    def scalars(self, prefix: str = "", per_class: bool = False) -> dict[str, float]:
        """Return the defined scores by name, ready for `mlflow.log_metrics` and `wandb.log`.

        Names have letters, digits and underscores only: `calibration_ece`, `pavpu_window_7_surplus`
        for `pavpu[window=7]`. `prefix`: the start of each name, such as "val/". `per_class`:
        include scores of classes. Raises `UsageError` for an invalid prefix, `StoreError` as
        `to_frame` does.
        """
        from uqeval.records.scalars import for_trackers

        with content_of("the report"):
            return for_trackers(self.results, self.metrics, prefix, per_class)


def for_python(report: Report) -> Report:
    """Return a report whose warnings spell options as keywords; unchanged while a command runs."""
    return replace(report, warnings=[spelled(text) for text in report.warnings])


def model_of(report: Report, key: str) -> str:
    """Return the name of the model of a result if the report has several models of its family."""
    models: dict[str, str] = {}
    for other in report.results:
        settings = report.settings.get(other)
        if family_of(other) == family_of(key) and isinstance(settings, dict):
            models[other] = printable(str(settings.get("model") or ""))
    return models.get(key, "") if len(set(models.values())) > 1 else ""


def reason_at(results: Mapping[str, Any], path: Sequence[str]) -> str | None:
    """Return why the value at a path of results is undefined: its reason, or that of the record
    around it. None without a reason."""
    value: Any = results
    reason = None
    for name in path:
        if not isinstance(value, Mapping):
            break
        reason = value.get(f"{name}_reason", reason)
        value = value.get(name)
    return reason if isinstance(reason, str) else None


def load_with_sha256(path: str | Path) -> tuple[Report, str]:
    """Return a report, and the SHA-256 of the bytes that it was read from: a file that is hashed
    later may have another content. Raises `StoreError` as `Report.load` does."""
    from uqeval.records.checks import checked

    try:
        data = read_bytes(path, MOST_REPORT)
        record = parse_json(data)
        schema = record.pop("schema", None) if isinstance(record, dict) else None
        if schema != SCHEMA:
            raise StoreError(f"{cut(path)}: schema {quoted(schema)}; this uqeval reads {SCHEMA!r}.")
        try:
            report: Report = checked(Report, record)
        except ValueError as error:
            raise StoreError(f"{cut(path)} is not a uqeval report: {error}.") from None
        _spell_names(report)
        return report, hashlib.sha256(data).hexdigest()
    except OSError as error:
        raise StoreError(
            f"{cut(path)}: {error.strerror}; expected a report, as "
            f"{for_caller('-o', 'Report.save')} writes it."
        ) from None
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{cut(path)} is not a uqeval report (not JSON): {error}.") from None


def _spell_names(report: Report) -> None:
    """Spell the names of items as names of stores: earlier versions kept their spelling."""
    names = report.item_names
    spelled = dict(zip(names, in_one_spelling(names), strict=True))
    if tuple(spelled) == tuple(spelled.values()):
        return
    for item, name in zip(report.items, names, strict=True):
        item["name"] = spelled[name]
    for part in report.slices.values():
        if isinstance(own := part.get("names"), list):
            part["names"] = [spelled.get(name, name) for name in own]


def _first_not_finite(value: Any, key: str) -> tuple[str, float] | None:
    """Return the key of the first NaN or infinity in a record, and it; None without one."""
    if isinstance(value, Mapping):
        parts: Iterable[tuple[str, Any]] = (
            (f"{key}.{k}" if key else k, v) for k, v in value.items()
        )
    elif isinstance(value, list | tuple):
        parts = ((f"{key}[{i}]", v) for i, v in enumerate(value))
    else:
        is_flaw = isinstance(value, float) and not math.isfinite(value)
        return (key, value) if is_flaw else None
    return next((f for k, v in parts if (f := _first_not_finite(v, k)) is not None), None)


def _sweep_rows(sweep: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, found in sweep.items():
        for m, values in zip(found["m"], found["values"], strict=True):
            for draw, value in enumerate(values):
                row = {"name": name, "m": m, "draw": draw}
                if isinstance(value, list):
                    for index, point in enumerate(value):
                        yield row | {"index": index, "value": point}
                else:
                    yield row | {"index": None, "value": value}


def now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
