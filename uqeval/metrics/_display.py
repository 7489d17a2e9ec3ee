"""How the results of a family are shown. These are declarations; `uqeval.report` reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from uqeval.records.report import Report

Record: TypeAlias = "Mapping[str, Any]"


def _key(key: str, record: Record) -> str:
    return key


def _name(record: Record) -> str:
    return str(record.get("name", record.get("class")))


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `field`: of a record, with dots into its parts (`surplus_peak.value`). `coverage.*` is a column
    for each entry of the part. `heading`: by default the heading of the metric; `{}` is the
    entry. `digits`: after the point; `form`: a format in place of them. `value` computes the value
    from the record and the report. Tables leave out a column whose field no record has.
    """

    field: str
    heading: str = ""
    digits: int = 4
    form: str = ""
    value: Callable[[Record, Report], Any] | None = None


@dataclass(frozen=True)
class ScoreTable:
    """A table with a row for each variant.

    `row` returns the heading of a row from the key and the record. Variants with the
    same heading have one row.
    `below` returns rows of their own below it, each a heading and a record.
    """

    title: str
    columns: tuple[str | Column, ...]
    note: str = ""
    corner: str = ""
    row: Callable[[str, Record], str] = _key
    below: Callable[[Record], Iterable[tuple[str, Record]]] | None = None


@dataclass(frozen=True)
class RowTable:
    """A table with a row for each record of the list `field`, or for each bin of a record of lists.

    It is of the first variant, or, with `every`, of each. `row` returns the heading of a row.
    `last`: a further row, its heading and the field of its record. `least`: show no table of fewer
    rows; `most`: show no more rows.
    """

    title: str
    field: str
    columns: tuple[str | Column, ...]
    note: str = ""
    corner: str = "class"
    row: Callable[[Record], str] = _name
    every: bool = False
    last: tuple[str, str] | None = None
    least: int = 1
    most: int | None = None


@dataclass(frozen=True)
class Panel:
    """A panel of bars: a field of rows by class, its title, and a line to compare with.

    `mark`: where the line is and what it means.
    """

    field: str
    title: str
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class ClassBars:
    """A figure of bars for each class."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Display:
    """How the results of a family are shown.

    `tables`: on a terminal and in Markdown; by default its metrics, of the set and by class.
    `bars`: a figure of the rows by class. `figures`: modules of `uqeval.report.figures` that draw
    its results. `ranks_items`: its first headline may rank the items.
    """

    tables: tuple[ScoreTable | RowTable, ...] = ()
    bars: ClassBars | None = None
    figures: tuple[str, ...] = ()
    ranks_items: bool = True
