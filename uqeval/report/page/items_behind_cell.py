"""The items behind a cell of a heat map or a bin of a reliability diagram, as lists of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from uqeval.records.report import ItemsByCell, Report


@dataclass(frozen=True)
class CellItems:
    """The items behind one cell: their anchor, and the title and description of the cell."""

    anchor: str
    title: str
    description: str
    items: list[tuple[int, str, int]]


def anchor(report: Report, key: str, *cell: int) -> str:
    """Return the page's anchor for the items behind a cell of a result."""
    return "-".join(map(str, ("behind", list(report.results).index(key), *cell)))


def cell_items(report: Report, behind: ItemsByCell) -> dict[str, list[CellItems]]:
    """Return the items of all cells with pixels, by the key of the result."""
    items_by_cell = {}
    for key, cells in behind.items():
        items_by_cell[key] = [
            CellItems(
                anchor(report, key, *cell),
                title,
                _description(pixels, accuracy),
                [(i, str(report.items[i]["name"]), n) for i, n in cells.get(cell, ())],
            )
            for cell, title, pixels, accuracy in _cells(report.results[key])
        ]
    return items_by_cell


def _description(pixels: int, accuracy: float) -> str:
    wrong = pixels - round(accuracy * pixels)
    if not wrong:
        return f"None of its {pixels:,} pixels is wrong."
    are = "is" if wrong == 1 else "are"
    return f"{wrong:,} of its {pixels:,} pixels {are} wrong, most of them in these items:"


def percentiles(table: Mapping[str, Any]) -> list[str]:
    """Return the columns of a heat map over percentiles."""
    count = len(table["rows"][0]["accuracy"])
    edges = [0.0, *table["percentiles"][: count - 1], 100.0]
    return [f"{low:g}–{high:g} %" for low, high in pairwise(edges)]


def _cells(record: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], str, int, float]]:
    """Yield every cell with pixels: its indices, title, number of pixels and accuracy."""
    if table := record.get("accuracy_by_uncertainty"):
        columns = percentiles(table)
        for y, row in enumerate(table["rows"]):
            for x, (pixels, accuracy) in enumerate(
                zip(row["pixels"], row["accuracy"], strict=True)
            ):
                if accuracy is not None:
                    yield (y, x), f"{row['name']} × {columns[x]}", pixels, accuracy
    if bins := record.get("reliability"):
        rows = zip(bins["lower"], bins["upper"], bins["count"], bins["accuracy"], strict=True)
        for x, (low, high, pixels, accuracy) in enumerate(rows):
            if accuracy is not None:
                yield (x,), f"confidence {low:.4g} – {high:.4g}", pixels, accuracy
