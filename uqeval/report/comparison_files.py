"""A comparison for programs: JSON, and CSV with a row for each score and model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uqeval.report.csv import csv_of, table_of

if TYPE_CHECKING:
    from uqeval.compare import Cell, Comparison
    from uqeval.gate import Units

SCHEMA = "uqeval.comparison/1"
ONE_TRAINING = "one training; an interval over trainings needs 2"


def to_json(comparison: Comparison) -> str:
    """Return everything, strict; undefined values are null with a reason beside them."""
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
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def to_csv(comparison: Comparison) -> str:
    """Return CSV with one row per score and model; undefined values are empty."""
    return csv_of(table_of(_COLUMNS, _rows(comparison)))


_COLUMNS = (
    "score", "model", "value", "std", "trainings", "best", "difference", "low", "high",
    "approximate", "p", "p_adjusted", "p_least",
    "verdict", "place", "best_share", "kept_share", "items", "unit", "direction",
    "reason", "method", "units", "units_drawn", "units_defined", "effective",
    "mean_low", "mean_high",
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
            }  # fmt: skip


def _flat(found: dict[str, Any]) -> dict[str, Any]:
    """Return a difference with its units in columns."""
    if (units := found.pop("units", None)) is not None:
        found |= {
            "units": units["name"], "units_drawn": units["drawn"],
            "units_defined": units["defined"], "effective": units.get("effective"),
        }  # fmt: skip
    return found


def _mean(cell: Cell) -> dict[str, Any]:
    """Return the interval of the mean over trainings."""
    own = cell.over_trainings
    return {} if own is None else {"mean_low": own.low, "mean_high": own.high}


def _record(cell: Cell, several: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"value": cell.value}
    if cell.value is None:
        found["value_reason"] = cell.reason
    if cell.std is not None:
        found |= {"values": list(cell.values), "std": cell.std}
        found["over_trainings"] = None
        if (own := cell.over_trainings) is not None:
            found["over_trainings"] = {
                "level": own.level, "low": own.low, "high": own.high, "method": own.method,
                "standard_error": own.error, "units": _units(own.units),
            }  # fmt: skip
    elif several and cell.value is not None:
        found |= {"over_trainings": None, "over_trainings_reason": ONE_TRAINING}
    return found | {"best": cell.best} | _difference(cell) | _rank(cell)


def _difference(cell: Cell) -> dict[str, Any]:
    own = cell.difference
    if own is None:
        return {}
    found: dict[str, Any] = {"difference": own.value, "verdict": own.verdict}
    if own.p is not None:
        found |= {"p": own.p, "p_adjusted": own.p_adjusted, "p_least": own.p_least}
    if own.interval is not None:
        found |= {
            "low": own.interval.low,
            "high": own.interval.high,
            "approximate": own.interval.approximate,
            "method": own.interval.method,
            "units": _units(own.interval.units),
        }
    return found


def _units(own: Units) -> dict[str, Any]:
    """Return units as a report has them; of a video also how alike neighbouring pairs are."""
    found: dict[str, Any] = {"name": own.name, "drawn": own.drawn, "defined": own.defined}
    if own.effective is not None:
        found |= {"lag1": own.lag1, "effective": own.effective}
    return found


def _rank(cell: Cell) -> dict[str, Any]:
    own = cell.rank
    if own is None:
        return {}
    return {"place": own.place, "best_share": own.best_share, "kept_share": own.kept_share}
