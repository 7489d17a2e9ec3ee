"""A comparison for programs: JSON, and CSV with a row for each score and model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import json_text
from uqeval.report.csv import csv_of, table_of
from uqeval.report.tables.layouts import pivot
from uqeval.report.tables.table import Table

if TYPE_CHECKING:
    from uqeval.compare import Cell, Comparison
    from uqeval.gate import Units

SCHEMA = "uqeval.comparison/1"
ONE_TRAINING = "one training; an interval over trainings needs 2"


def to_json(comparison: Comparison) -> str:
    """Return the comparison as strict JSON; an undefined value is null, with a `reason`."""
    choice = comparison.choice
    several = any(len(model.trainings) > 1 for model in comparison.models)
    record = {
        "schema": SCHEMA,
        "models": [
            {
                "name": model.name,
                "trainings": len(model.trainings),
                "reports": [str(r.path) for t in model.trainings for r in t.reports.values()],
            }
            for model in comparison.models
        ],
        "baseline": comparison.names[comparison.baseline],
        "level": choice.level,
        "draws": choice.draws,
        "seed": choice.seed,
        "tests": comparison.tests,
        "tests_of_parts": comparison.tests_of_parts,
        "scores": [
            {
                "address": str(row.address),
                "unit": row.unit,
                "direction": row.direction,
                "items": row.items,
                "models": {
                    name: _record(cell, several)
                    for name, cell in zip(comparison.names, row.cells, strict=True)
                },
            }
            for row in comparison.rows
        ],
        "warnings": list(comparison.warnings),
    }
    return json_text(record)


def to_csv(comparison: Comparison, layout: str = "scores") -> str:
    """Return CSV with one row per score and model; undefined values are empty. The last column has
    the warnings of the comparison, the same in each row.

    `layout`: "models" or "classes" give one row per model or class, and one column per score.
    Scores are not rounded.
    """
    if layout != "scores":
        return csv_of(_pivoted(comparison, pivot(comparison, layout).table))
    return csv_of(table_of(_COLUMNS, _rows(comparison)))


def _pivoted(comparison: Comparison, table: Table) -> Table:
    rows = [
        {
            **dict(zip(table.columns, [row.name, *(c.number for c in row.cells)], strict=True)),
            _WARNINGS: _warnings(comparison),
        }
        for row in table.rows
    ]
    return table_of([*table.columns, _WARNINGS], rows)


def _warnings(comparison: Comparison) -> str:
    return " ".join(comparison.sentences)


_WARNINGS = "warnings"
_COLUMNS = (
    "score", "model", "value", "std", "trainings", "best", "difference", "low", "high",
    "approximate", "p", "p_adjusted", "p_least",
    "verdict", "place", "best_share", "kept_share", "items", "unit", "direction",
    "reason", "method", "units", "units_drawn", "units_defined", "effective",
    "mean_low", "mean_high", "mean_approximate", _WARNINGS,
)  # fmt: skip


def _rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for row in comparison.rows:
        for model, cell in zip(comparison.models, row.cells, strict=True):
            yield {
                "score": str(row.address),
                "model": model.name,
                "trainings": len(model.trainings),
                "items": row.items, "unit": row.unit, "direction": row.direction,
                "value": cell.value, "reason": cell.reason, "std": cell.std, "best": cell.best,
                **_flat(_difference(cell)), **_rank(cell), **_mean(cell),
                _WARNINGS: _warnings(comparison),
            }  # fmt: skip


def _flat(difference: dict[str, Any]) -> dict[str, Any]:
    """Return a difference with its units in columns, and the reason for no interval or no p-value
    in `reason`."""
    for name in ("interval_reason", "p_reason"):
        if (reason := difference.pop(name, None)) is not None:
            difference["reason"] = reason
    if (units := difference.pop("units", None)) is not None:
        difference |= {
            "units": units["name"], "units_drawn": units["drawn"],
            "units_defined": units["defined"], "effective": units.get("effective"),
        }  # fmt: skip
    return difference


def _mean(cell: Cell) -> dict[str, Any]:
    """Return the interval of the mean over trainings."""
    interval = cell.over_trainings
    if interval is None:
        return {}
    return {
        "mean_low": interval.low, "mean_high": interval.high,
        "mean_approximate": interval.approximate,
    }  # fmt: skip


def _record(cell: Cell, several: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"value": cell.value}
    if cell.value is None:
        record["value_reason"] = cell.reason
    if cell.std is not None:
        record |= {"values": list(cell.values), "std": cell.std}
        record["over_trainings"] = None
        if (interval := cell.over_trainings) is not None:
            record["over_trainings"] = {
                "level": interval.level, "low": interval.low, "high": interval.high,
                "approximate": interval.approximate, "method": interval.method,
                "standard_error": interval.error, "units": _units(interval.units),
            }  # fmt: skip
    elif several and cell.value is not None:
        record |= {"over_trainings": None, "over_trainings_reason": ONE_TRAINING}
    return record | {"best": cell.best} | _difference(cell) | _rank(cell)


def _difference(cell: Cell) -> dict[str, Any]:
    difference = cell.difference
    if difference is None:
        return {}
    record: dict[str, Any] = {"difference": difference.value, "verdict": difference.verdict}
    if difference.p is not None:
        record |= {
            "p": difference.p,
            "p_adjusted": difference.p_adjusted,
            "p_least": difference.p_least,
        }
    if difference.interval is not None:
        record |= {
            "low": difference.interval.low,
            "high": difference.interval.high,
            "approximate": difference.interval.approximate,
            "method": difference.interval.method,
            "units": _units(difference.interval.units),
        }
        if difference.reason is not None:
            record |= {"p": None, "p_reason": difference.reason}
    elif difference.reason is not None:
        record |= {"low": None, "high": None, "interval_reason": difference.reason}
    return record


def _units(units: Units) -> dict[str, Any]:
    """Return the record of units; for a video with the lag-1 autocorrelation of pairs."""
    record: dict[str, Any] = {"name": units.name, "drawn": units.drawn, "defined": units.defined}
    if units.effective is not None:
        record |= {"lag1": units.lag1, "effective": units.effective}
    return record


def _rank(cell: Cell) -> dict[str, Any]:
    rank = cell.rank
    if rank is None:
        return {}
    return {"place": rank.place, "best_share": rank.best_share, "kept_share": rank.kept_share}
