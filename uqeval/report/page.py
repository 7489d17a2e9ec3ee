"""What stands on a page, computed from reports before any of it becomes HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uqeval.report.behind import anchor, percentiles
from uqeval.report.figures.contract import family_of, lines_of
from uqeval.report.glossary import ARROWS, HEADLINES, OF_ITEMS, family_label, label, meaning
from uqeval.report.intervals import class_of, in_words, interval
from uqeval.report.schema import Report
from uqeval.report.tables import Table, shown

#: Further variants on a card; all of them stand in the tables.
MOST_VARIANTS = 6
_WORDS = {"higher": "higher is better", "lower": "lower is better"}


@dataclass(frozen=True)
class Cell:
    """A value in a table: its text, why it is undefined, its interval, whether it is the best, and
    the anchor that it leads to."""

    text: str
    number: float | None = None
    reason: str = ""
    interval: str = ""
    best: bool = False
    link: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: its heading, a hint, an anchor and a link for it, and cells."""

    name: str
    cells: list[Cell]
    hint: str = ""
    anchor: str = ""
    link: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: `corner` heads the rows' names. `notes` are the reasons of what is undefined."""

    title: str
    corner: str
    columns: list[str]
    rows: list[Row]
    folded: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        reasons = [cell.reason for row in self.rows for cell in row.cells if cell.reason]
        self.notes.extend(dict.fromkeys(reasons))

    def mark(self, cell: Cell) -> str:
        """The number of a cell's note."""
        return str(self.notes.index(cell.reason) + 1) if cell.reason else ""


@dataclass(frozen=True)
class Card:
    """A headline: a value with all that is needed to read it.

    Where there are `others`, by what they are called, it is that of `variant`; `more` are counted.
    """

    title: str
    key: str
    cell: Cell
    arrow: str
    direction: str
    unit: str
    range: str
    meaning: str
    reference: str
    variant: str = ""
    others: list[tuple[str, Cell]] = field(default_factory=list)
    more: int = 0


def cell(record: Mapping[str, Any], name: str, interval: str = "") -> Cell:
    """The cell of a record's field, with its reason where it is undefined."""
    value = record.get(name)
    if value is None and name in record:
        return Cell("–", None, str(record.get(f"{name}_reason") or "the report gives no reason"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell("" if name not in record else str(value))
    return Cell(shown(value), value, "", interval)


def interval_of(
    intervals: Mapping[str, Any], key: str, fields: Sequence[str], level: bool = False
) -> str:
    """The interval of a value for the eye: its ends, whether it is approximate, and its level where
    that does not stand beside it."""
    found = interval(intervals, key, fields)
    if found is None:
        return ""
    about = "≈ " if found.get("approximate") else ""
    at = f"{100 * found['level']:.4g} %: " if level and found.get("level") else ""
    return f"{at}{about}[{shown(found['low'])}, {shown(found['high'])}]"


def about(report: Report, key: str, name: str) -> dict[str, Any]:
    """Unit, direction, range and reference of a field, or nothing."""
    family = family_of(key)
    place = name.rpartition(".")[0] or name  # coverage.95 is described under coverage
    return report.metrics.get(f"{family}.{name}") or report.metrics.get(f"{family}.{place}") or {}


def cards(report: Report) -> list[Card]:
    """The headlines of all results, those of further variants on the card of the first."""
    found = []
    for family, (first, *variants) in lines_of({"": report}).items():
        for name in HEADLINES.get(family, ()):
            if name not in first.record:
                continue
            known = about(report, first.key, name)
            direction = known.get("direction") or ""
            value, *others = (
                cell(own.record, name, interval_of(report.intervals, own.key, [name], own is first))
                for own in (first, *variants)
            )
            named = [(v.label, o) for v, o in zip(variants, others, strict=True) if o.text]
            found.append(
                Card(
                    label(name), first.key, value,
                    ARROWS.get(direction, ""), _WORDS.get(direction, ""),
                    _unit(known), _range(known), meaning(family, name),
                    known.get("reference") or "",
                    first.label if named else "", named[:MOST_VARIANTS],
                    len(named[MOST_VARIANTS:]),
                )
            )  # fmt: skip
    return found


def _unit(known: Mapping[str, Any]) -> str:
    unit = known.get("unit") or ""
    return {"target": "in the target's unit", "1": ""}.get(unit, unit)


def _range(known: Mapping[str, Any]) -> str:
    low, high = known.get("range") or (None, None)
    if low is None and high is None:
        return ""
    return f"{'−∞' if low is None else f'{low:g}'} … {'∞' if high is None else f'{high:g}'}"


def scalars(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Addresses of a record's single values, with the record that each lies in."""
    for name, value in record.items():
        if name.endswith(("_reason", "_bound")) or name == "parameters":  # one of the settings
            continue
        if isinstance(value, dict):
            if not any(isinstance(v, list) for v in value.values()):
                yield from scalars(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", record


def scores(reports: Mapping[str, Report], family: str) -> Grid:
    """All single values of a family, one row each, one column a variant (and report)."""
    columns = [
        (name, key) for name, r in reports.items() for key in r.results if family_of(key) == family
    ]
    held = [dict(scalars(reports[name].results[key])) for name, key in columns]
    rows = []
    for address in dict.fromkeys(a for own in held for a in own):
        known = next(
            (k for name, key in columns if (k := about(reports[name], key, address))), {}
        )  # fmt: skip
        cells = [
            cell(own[address], address.rpartition(".")[2],
                 interval_of(reports[name].intervals, key, address.split(".")))
            if address in own else Cell("")
            for (name, key), own in zip(columns, held, strict=True)
        ]  # fmt: skip
        direction = known.get("direction") or ""
        hint = " · ".join(
            text for text in (_WORDS.get(direction, ""), _unit(known), known.get("reference") or "",
                              meaning(family, address)) if text
        )  # fmt: skip
        title = f"{label(address)} {ARROWS.get(direction, '')}".strip()
        rows.append(Row(title, _marked(cells, direction), hint))
    many = len(reports) > 1
    headings = [
        " · ".join([name] * many + [key] * (not many or "[" in key)) for name, key in columns
    ]
    return Grid("All scores", "score", headings, rows)


def _marked(cells: list[Cell], direction: str) -> list[Cell]:
    """The cells, the best of them marked where there is a choice."""
    values = [c.number for c in cells if c.number is not None]
    if len(values) < 2 or not direction or len(set(values)) == 1:
        return cells
    best = max(values) if direction == "higher" else min(values)
    return [
        Cell(c.text, c.number, c.reason, c.interval, best=c.number == best) if c.text else c
        for c in cells
    ]


def tables(report: Report, key: str, targets: Collection[str] = ()) -> list[Grid]:
    """Rows that a record holds (by class, by depth, …), and its curves, folded.

    What has items behind it links to those of the page's `targets`.
    """

    def link(*cell: int) -> str:
        own = anchor(report, key, *cell)
        return own if own in targets else ""

    found: list[Grid] = []
    for name, value in report.results[key].items():
        title = f"{label(name)} ({key})"
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found.append(_of_rows(title, value, report, key, name))
        elif isinstance(value, dict) and family_of(key) != "sweep":
            rows = value.get("rows")
            columns = {
                n: v for n, v in value.items()
                if isinstance(v, list) and v and not isinstance(v[0], dict | list)
            }  # fmt: skip
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                found.append(_of_lists(title, rows, percentiles(value), link))
            elif columns and len({len(v) for v in columns.values()}) == 1:
                own = link if name == "reliability" else lambda *cell: ""
                found.append(_of_columns(title, columns, value, own))
    return found


def _of_rows(
    title: str, rows: Sequence[Mapping[str, Any]], report: Report, key: str, place: str
) -> Grid:
    names = [n for n in dict.fromkeys(n for row in rows for n in row)
             if not n.endswith(("_reason", "_bound")) and n not in ("class", "name")
             and not isinstance(rows[0].get(n), list)]  # fmt: skip
    flat = [(row, {n: row.get(n) for n in names if isinstance(row.get(n), dict)}) for row in rows]
    names = [n for n in names if not any(n in nested for _, nested in flat)]
    head = names.pop(0) if "name" not in rows[0] and "lower" not in rows[0] else ""
    if "lower" in names and "upper" in names:
        names = [n for n in names if n not in ("lower", "upper")]
    found = []
    for row in rows:
        if "name" in row:
            title_of = str(row["name"])
        elif head:
            title_of = shown(row.get(head))
        else:
            title_of = f"{row['lower']:g} – {row['upper']:g}"
        of = class_of(rows, row)
        cells = [cell(row, n, interval_of(report.intervals, key, (place, of, n))) for n in names]
        found.append(Row(title_of, cells))
    corner = "class" if "class" in rows[0] else label(head) if head else "interval"
    return Grid(title, corner, [label(n) for n in names], found)


def _of_lists(
    title: str, rows: Sequence[Mapping[str, Any]], columns: list[str], link: Callable[..., str]
) -> Grid:
    """Rows that hold lists, such as the cells of a heat map: one table of each cell's values."""
    names = [n for n, v in rows[0].items() if isinstance(v, list)]
    found = []
    for y, row in enumerate(rows):
        cells = [
            Cell(" / ".join(shown(row[n][x], 3) for n in names), link=link(y, x))
            for x in range(len(columns))
        ]
        found.append(Row(str(row.get("name")), cells))
    return Grid(f"{title}: {' / '.join(names)}", "class", columns, found, folded=True)


def _of_columns(
    title: str, columns: Mapping[str, Sequence[Any]], record: Mapping[str, Any],
    link: Callable[..., str],
) -> Grid:  # fmt: skip
    names = list(columns)
    rows = []
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        cells = [
            Cell("–", None, str(record.get(f"{n}_reason") or "nothing there")) if v is None
            else Cell(shown(v), v if isinstance(v, int | float) else None)
            for n, v in zip(names[1:], values[1:], strict=True)
        ]  # fmt: skip
        rows.append(Row(shown(values[0]), cells, link=link(i)))
    return Grid(title, label(names[0]), [label(n) for n in names[1:]], rows, folded=True)


@dataclass(frozen=True)
class Column:
    """A score of every item: where it lies, what it is called, and which way is better."""

    key: str
    name: str
    title: str
    direction: str


def columns_of(report: Report) -> list[Column]:
    """Which scores of items a page shows: the headlines of each result that items hold."""
    found = []
    for key in report.results:
        family = family_of(key)
        for name in (*HEADLINES.get(family, ()), *OF_ITEMS.get(family, ())):
            if any(isinstance(item.get(key), dict) and name in item[key] for item in report.items):
                direction = about(report, key, name).get("direction") or (
                    "higher" if family in OF_ITEMS else ""
                )
                text = label(name)
                title = f"{text} [{key.partition('[')[2]}" if "[" in key else text
                found.append(Column(key, name, title, direction))
    return found


def worst_first(report: Report, column: Column) -> list[int]:
    """Places of the items where the score is defined, the worst first."""
    known = [
        (item[column.key][column.name], i)
        for i, item in enumerate(report.items)
        if isinstance(item.get(column.key), dict)
        and isinstance(item[column.key].get(column.name), int | float)
    ]
    sign = -1 if column.direction == "lower" else 1
    return [i for _, i in sorted(known, key=lambda pair: (sign * pair[0], pair[1]))]


def items(report: Report, order: Sequence[int], columns: Sequence[Column]) -> Grid:
    """Rows of these items."""
    rows = [
        Row(
            str(report.items[i]["name"]),
            [
                cell(record, c.name) if isinstance(record := report.items[i].get(c.key), dict)
                else Cell("")
                for c in columns
            ],
            anchor=f"item-{i}",
        )
        for i in order
    ]  # fmt: skip
    titles = [f"{c.title} {ARROWS.get(c.direction, '')}".strip() for c in columns]
    return Grid("Items", "item", titles, rows)


def pairs(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested record as lines `a.b` = text, for settings and inputs."""
    found: list[tuple[str, str]] = []
    for name, value in record.items():
        if isinstance(value, dict) and value:
            found += pairs(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, own in enumerate(value):
                found += pairs(own, f"{prefix}{name}[{i}].")
        else:
            found.append((f"{prefix}{name}", _plain(value)))
    return found


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, list):
        text = ", ".join(_plain(v) for v in value)
        return text if len(text) <= 300 else f"{text[:299]}…"
    return str(value)


def settings(report: Report) -> Grid:
    """Every setting, one row each, one column a result; those of intervals are said in words."""
    columns = [name for name in report.settings if name != "intervals"]
    held = [
        dict(pairs(own)) if isinstance(own := report.settings[name], dict) else {"": _plain(own)}
        for name in columns
    ]
    rows = [
        Row(name, [Cell(own.get(name, "")) for own in held])
        for name in dict.fromkeys(n for own in held for n in own)
    ]
    return Grid("Settings", "setting", columns, rows)


def resampling(report: Report) -> str:
    """How the report's intervals were drawn, where it has any."""
    return in_words(report.settings.get("intervals")) if report.settings.get("intervals") else ""


def grid_of(table: Table) -> Grid:
    """A table of text, as it stands."""
    rows = [Row(row[0], [Cell(text) for text in row[1:]]) for row in table.rows]
    return Grid(table.title, table.columns[0], table.columns[1:], rows)


def slices(report: Report) -> Grid | None:
    """The headlines of all items and of each slice, where the report has slices."""
    held = {
        str(name): own
        for name, own in report.slices.items()
        if isinstance(own, dict) and isinstance(own.get("results"), dict)
    }
    columns = [
        (key, field)
        for key, record in report.results.items()
        for field in HEADLINES.get(family_of(key), ())
        if field in record and any(field in own["results"].get(key, {}) for own in held.values())
    ]
    if not columns:
        return None
    whole = {"items": len(report.items), "results": report.results, "intervals": report.intervals}
    rows = []
    for name, own in {"all items": whole, **held}.items():
        cells = [
            cell(own["results"].get(key, {}), field,
                 interval_of(own.get("intervals") or {}, key, [field]))
            for key, field in columns
        ]  # fmt: skip
        count = own.get("items", 0)
        few = ", which is few" if own.get("small") else ""
        rows.append(Row(name, cells, f"{count} item{'' if count == 1 else 's'}{few}"))
    return Grid("Headlines by slice", "slice", [_heading(report, *c) for c in columns], rows)


def _heading(report: Report, key: str, field: str) -> str:
    """What a column of scores is called: its score, its variant, and which way is better."""
    variant = f" [{key.partition('[')[2]}" if "[" in key else ""
    arrow = ARROWS.get(about(report, key, field).get("direction") or "", "")
    return f"{label(field)}{variant} {arrow}".strip()


def families(reports: Mapping[str, Report]) -> dict[str, str]:
    """The families of all reports, and what they are called."""
    keys = dict.fromkeys(family_of(key) for r in reports.values() for key in r.results)
    return {family: family_label(family) for family in keys}
