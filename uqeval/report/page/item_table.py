"""The table of items of a page: rows as HTML, and further ones as data for the page's script."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import is_number, printable
from uqeval.glossary import display_of, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.addresses import Address
from uqeval.records.report import ItemClasses, Report
from uqeval.report.tables.cells import cell
from uqeval.report.tables.items import Column, columns_of, items, worst_first
from uqeval.report.tables.table import Cell

#: The largest numbers of rows in HTML, of entries in a list of the worst, and of rows that the
#: page's script may add.
MOST_ITEMS, MOST_WORST, MOST_PAGED = 200, 10, 20_000


@dataclass(frozen=True)
class Worst:
    """The worst items by one score: (anchor, name, value)."""

    title: str
    direction: str
    items: list[tuple[str, str, Cell]]


def table_of_items(
    report: Report, linked: Collection[int], classes: ItemClasses | None
) -> dict[str, Any]:
    """Return the table of items, the worst first, among them those that the page has links to
    (`linked`), and the lists of the worst by each score.
    """
    columns = columns_of(report)
    ranking = ranking_of(columns)
    lists = []
    selected: dict[int, None] = dict.fromkeys(linked)
    order: list[int] = []
    for column in columns:
        worst = worst_first(report, column)
        if column is ranking:
            order = worst
        selected |= dict.fromkeys(worst[: MOST_ITEMS if column is ranking else MOST_WORST])
        if column.direction and len(worst) > 1 and Key.parse(column.key).region is None:
            lists.append(_worst(report, column, worst[:MOST_WORST]))
    place = {i: n for n, i in enumerate(order)}
    ranked = sorted(range(len(report.items)), key=lambda i: place.get(i, len(place) + i))
    in_html = sorted(selected, key=lambda i: place.get(i, len(place) + i))
    in_html += [i for i in ranked if i not in selected][: max(0, MOST_ITEMS - len(in_html))]
    listed = set(in_html)
    paged = [i for i in ranked if i not in listed][: max(0, MOST_PAGED - len(in_html))]
    return {
        "items": items(report, in_html, columns),
        "item_data": _data(report, columns, paged) | _classes(report, classes, [*in_html, *paged]),
        "ranking": ranking,
        "worst": lists,
        "tags": _tags(report),
    }


def _worst(report: Report, column: Column, places: Sequence[int]) -> Worst:
    entries = [
        (f"item-{i}", str(report.items[i]["name"]), cell(report.items[i][column.key], column.name))
        for i in places
    ]
    return Worst(column.title, column.direction, entries)


def _data(report: Report, columns: Sequence[Column], paged: Sequence[int]) -> dict[str, Any]:
    """Return the address of each column, and rows [index, name, slices, values…] of the items
    `paged`, with numbers of six digits.
    """
    tags, names = _tags(report), list(report.slices)
    rows: list[list[Any]] = []
    for i in paged:
        item = report.items[i]
        values = [
            _six(record.get(c.name)) if isinstance(record := item.get(c.key), dict) else None
            for c in columns
        ]
        tag_indices = [names.index(name) for name in tags.get(f"item-{i}", ())]
        rows.append([i, printable(str(item["name"])), tag_indices, *values])
    addresses = [str(Address.of_key(c.key, tuple(c.name.split(".")))) for c in columns]
    return {"addresses": addresses, "slices": list(map(printable, names)), "rows": rows}


def _classes(report: Report, classes: ItemClasses | None, places: Sequence[int]) -> dict[str, Any]:
    """Return the names of classes, and for each item its pixels and its wrong pixels by class."""
    rows = report.results.get("segmentation", {}).get("per_class")
    if not classes or not rows:
        return {"classes": [], "items": {}}
    names = {row["class"]: printable(str(row["name"])) for row in rows}
    known = {str(i): [entry for entry in classes[i] if entry[0] in names] for i in places}
    return {"classes": [[c, name] for c, name in names.items()], "items": known}


def _six(value: Any) -> Any:
    if not is_number(value):
        return None
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _tags(report: Report) -> dict[str, list[str]]:
    """Return the slices of each item, by the item's anchor."""
    places = {str(item["name"]): i for i, item in enumerate(report.items)}
    tags: dict[str, list[str]] = {}
    for name, slice_record in report.slices.items():
        names = slice_record.get("names") if isinstance(slice_record, dict) else None
        for item in names if isinstance(names, list) else ():
            if str(item) in places:
                tags.setdefault(f"item-{places[str(item)]}", []).append(str(name))
    return tags


def ranking_of(columns: Sequence[Column]) -> Column | None:
    """Return the column that ranks the items: a risk, such as undetected errors, else the first
    headline of a family that may rank items.
    """
    ranked = [column for column in columns if column.direction]
    of_whole_image = [column for column in ranked if Key.parse(column.key).region is None]
    risks = [
        column
        for column in of_whole_image
        if (metric := metric_of(family_of(column.key), column.name)) is not None and metric.risk
    ]
    if risks:
        return min(risks, key=lambda column: column.direction != "lower")
    ranking = [column for column in ranked if display_of(family_of(column.key)).ranks_items]
    return next(iter(ranking or ranked), None)
