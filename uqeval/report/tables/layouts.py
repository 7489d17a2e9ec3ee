"""Layouts of a comparison's scores, as tables of papers have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.errors import UsageError
from uqeval.glossary import label
from uqeval.records.addresses import Address
from uqeval.records.scalars import with_arrow
from uqeval.report.tables.comparison import notes_on_trainings, score_cell
from uqeval.report.tables.table import Cell, Row, Table

if TYPE_CHECKING:
    from uqeval.compare import Comparison
    from uqeval.compare import Row as ScoreRow

_WHOLE = "whole set"


@dataclass(frozen=True)
class Pivot:
    """A table whose columns have two headings: of a group, such as a model, and of a score."""

    table: Table
    groups: tuple[str, ...]
    heads: tuple[str, ...]


def pivot(comparison: Comparison, layout: str) -> Pivot:
    """Return the scores with one row per model or per class.

    Raises `UsageError` for a layout of classes if no score of a class is compared.
    """
    return _by_model(comparison) if layout == "models" else _by_class(comparison)


def paper_heading(address: Address, direction: str | None) -> str:
    """Return the heading of a score in a paper, with an arrow to the better direction."""
    parts = [address.store] if address.store else []
    parts.append(label(address.metric, ".".join(f for f in address.fields if f != "per_class")))
    where = (f"{column}={value}" for column, value in address.where)
    extra = [part for part in (address.variant, address.region, *where) if part]
    text = " ".join([*parts, *([f"({', '.join(extra)})"] if extra else [])])
    return with_arrow(text, direction)


def _by_model(comparison: Comparison) -> Pivot:
    """Return one row per model, one column per score."""
    heads = tuple(paper_heading(row.address, row.direction) for row in comparison.rows)
    rows = [
        Row(name, [score_cell(row.cells[m]) for row in comparison.rows])
        for m, name in enumerate(comparison.names)
    ]
    note = _note(comparison, "score")
    table = Table("Scores", ["model", *heads], rows, note)
    return Pivot(table, ("",) * len(heads), heads)


def _by_class(comparison: Comparison) -> Pivot:
    """Return one row per class, one column per model and score; the whole set is last."""
    by_score: dict[str, dict[str | None, ScoreRow]] = {}  # None: of the whole set
    classes: dict[str | None, None] = {}
    for row in comparison.rows:
        of_class = row.address.fields[0] == "per_class"
        name = row.address.fields[1] if of_class else None
        by_score.setdefault(_score_of(row), {})[name] = row
        if of_class:
            classes[name] = None
    scores = {head: rows for head, rows in by_score.items() if set(rows) & set(classes)}
    if not scores:
        add = "Name" if comparison.choice.per_class else "Add --per-class, or name"
        raise UsageError(
            f"--layout classes: no score of a class is compared. {add} one with --metric, such as "
            "pavpu.per_class.CLASS.pavpu."
        )
    names = [*classes, *([None] if any(None in rows for rows in scores.values()) else [])]
    columns = [(m, head) for m in range(len(comparison.models)) for head in scores]
    rows = [
        Row(_WHOLE if name is None else name, [
            score_cell(scores[head][name].cells[m]) if name in scores[head] else Cell("–")
            for m, head in columns
        ])
        for name in names
    ]  # fmt: skip
    groups = tuple(comparison.names[m] for m, _ in columns)
    heads = tuple(head for _, head in columns)
    titles = [f"{group} {head}" for group, head in zip(groups, heads, strict=True)]
    title = "Scores of classes"
    return Pivot(
        Table(title, ["class", *titles], rows, _note(comparison, "class")), groups, heads
    )  # fmt: skip


def _score_of(row: ScoreRow) -> str:
    """Return the heading of a score without its class."""
    address = row.address
    fields = address.fields[2:] if address.fields[0] == "per_class" else address.fields
    plain = Address(address.metric, fields, address.variant, address.store, address.where,
                    address.region)  # fmt: skip
    return paper_heading(plain, row.direction)


def _note(comparison: Comparison, of: str) -> str:
    """Return the note; it holds also for the transposed table of a narrow terminal."""
    stars = any(cell.best for row in comparison.rows for cell in row.cells)
    best = f"★: the best value of a {of}." if stars else ""
    return " ".join([*([best] if best else []), *notes_on_trainings(comparison)])
