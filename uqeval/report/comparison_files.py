"""A comparison for a programme: JSON, and CSV of one row a score and model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uqeval.report.csv import no_formula

if TYPE_CHECKING:
    from uqeval.compare import Cell, Comparison

SCHEMA = "uqeval.comparison/1"


def to_json(comparison: Comparison) -> str:
    """Everything, strict; undefined values are null with a reason beside them."""
    choice = comparison.choice
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
                    name: _record(cell)
                    for name, cell in zip(comparison.names, row.cells, strict=True)
                },
            }
            for row in comparison.rows
        ],
        "warnings": list(comparison.warnings),
    }
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def to_csv(comparison: Comparison) -> str:
    """One row a score and model, under a header line; what is undefined is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(comparison))
    return buffer.getvalue()


_COLUMNS = (
    "score", "model", "value", "std", "trainings", "best", "difference", "low", "high",
    "approximate", "p", "p_adjusted", "p_least",
    "verdict", "place", "best_share", "kept_share", "items", "unit", "direction",
    "reason", "method",
)  # fmt: skip


def _rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for row in comparison.rows:
        for model, cell in zip(comparison.models, row.cells, strict=True):
            yield {
                "score": str(row.address),
                "model": no_formula(model.name),
                "trainings": len(model.trainings),
                "items": row.items, "unit": row.unit, "direction": row.direction,
                "value": cell.value, "reason": cell.reason, "std": cell.std, "best": cell.best,
                **_difference(cell), **_rank(cell),
            }  # fmt: skip


def _record(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {"value": cell.value}
    if cell.value is None:
        found["value_reason"] = cell.reason
    if cell.std is not None:
        found |= {"values": list(cell.values), "std": cell.std}
    return found | {"best": cell.best} | _difference(cell) | _rank(cell)


def _difference(cell: Cell) -> dict[str, Any]:
    own = cell.difference
    if own is None:
        return {}
    found = {"difference": own.value, "verdict": own.verdict}
    if own.p is not None:
        found |= {"p": own.p, "p_adjusted": own.p_adjusted, "p_least": own.p_least}
    if own.interval is not None:
        found |= {
            "low": own.interval.low,
            "high": own.interval.high,
            "approximate": own.interval.approximate,
            "method": own.interval.method,
        }
    return found


def _rank(cell: Cell) -> dict[str, Any]:
    own = cell.rank
    if own is None:
        return {}
    return {"place": own.place, "best_share": own.best_share, "kept_share": own.kept_share}
