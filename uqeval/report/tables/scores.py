"""The scores of reports as tables of a page: all of a family, and the headlines by slice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from uqeval.errors import listed
from uqeval.glossary import family_label, headlines, label, label_of, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.addresses import Address, innermost
from uqeval.records.intervals import units_of
from uqeval.records.report import Report, reason_at
from uqeval.records.scalars import BESIDE, with_arrow
from uqeval.report.command import command_of
from uqeval.report.tables.cells import about, cell, explained, interval_of
from uqeval.report.tables.table import Cell, Row, Table


def families(reports: Mapping[str, Report]) -> dict[str, str]:
    """Return the titles of the families of all reports."""
    keys = dict.fromkeys(family_of(key) for r in reports.values() for key in r.results)
    return {family: family_label(family) for family in keys}


def scores(reports: Mapping[str, Report], family: str, incomparable: Collection[str] = ()) -> Table:
    """Return all single values of a family: one row per value, one column per variant.

    The best value of a row is marked, except of keys and addresses that are `incomparable`.
    """
    columns = [
        (name, key) for name, r in reports.items() for key in r.results if family_of(key) == family
    ]
    keys, refused = [key for _, key in columns], {*incomparable}
    regions_of_keys = [Key.parse(key).region or "" for key in keys]
    scalars = [dict(_scalars(reports[name].results[key])) for name, key in columns]
    first_name, first_key = columns[0]
    command = command_of(reports[first_name], first_key) if len(reports) == 1 else ""
    rows = []
    for address in innermost(dict.fromkeys(a for of_column in scalars for a in of_column)):
        description = next(
            (k for name, key in columns if (k := about(reports[name], key, address))), {}
        )  # fmt: skip
        cells = [
            cell(
                of_column[address],
                address.rpartition(".")[2],
                interval_of(reports[name].intervals, key, address.split(".")),
            )
            if address in of_column
            else _undefined(reports[name].results[key], address)
            for (name, key), of_column in zip(columns, scalars, strict=True)
        ]
        direction = description.get("direction") or ""
        fields = tuple(address.split("."))
        of_score = str(Address.of_key(first_key, fields))
        title = with_arrow(label(family, address), direction)
        regions = [
            None if {key, Address.of_key(key, fields).within} & refused else region
            for key, region in zip(keys, regions_of_keys, strict=True)
        ]
        metric = metric_of(family, fields[-1])
        is_unordered = metric is not None and metric.no_better(own.number for own in cells)
        marked = _marked(cells, regions, "" if is_unordered else direction)
        anchor = f"score-{of_score}" if len(reports) == 1 else ""
        rows.append(
            Row(
                title,
                marked,
                anchor=anchor,
                about=explained(description, of_score),
                command=command,
            )
        )
    many = len(reports) > 1
    headings = [
        " · ".join([name] * many + [key] * (not many or key != family)) for name, key in columns
    ]
    return Table("All scores", ["score", *headings], rows)


def _undefined(record: Mapping[str, Any], address: str) -> Cell:
    """Return the cell of a value inside a record that is undefined; empty if there is none."""
    reason = reason_at(record, address.split("."))
    return Cell("") if reason is None else Cell("–", None, reason)


def _scalars(
    record: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the address of each single value of a record, with the record that contains it."""
    for name, value in record.items():
        if name.endswith(BESIDE) or name == "parameters":  # one of the settings
            continue
        if isinstance(value, dict):
            if not any(isinstance(v, list) for v in value.values()):
                yield from _scalars(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", record


def _marked(cells: list[Cell], regions: list[str | None], direction: str) -> list[Cell]:
    """Return the cells, with the best cell of each region marked; region None: not comparable."""
    values: dict[str | None, set[float]] = {}
    for score_cell, region in zip(cells, regions, strict=True):
        if score_cell.number is not None and direction and region is not None:
            values.setdefault(region, set()).add(score_cell.number)
    choose = max if direction == "higher" else min
    best = {region: choose(numbers) for region, numbers in values.items() if len(numbers) > 1}
    return [
        replace(
            score_cell,
            best=None not in (score_cell.number, region) and score_cell.number == best.get(region),
        )
        for score_cell, region in zip(cells, regions, strict=True)
    ]


def slices(report: Report) -> Table | None:
    """Return the headlines of all items and of each slice; None without slices."""
    records_of_slices = {
        str(name): slice_record
        for name, slice_record in report.slices.items()
        if isinstance(slice_record, dict) and isinstance(slice_record.get("results"), dict)
    }
    columns = [
        (key, field)
        for key, record in report.results.items()
        for field in headlines(key)
        if field in record
        and any(
            field in slice_record["results"].get(key, {})
            for slice_record in records_of_slices.values()
        )
    ]
    if not columns:
        return None
    all_items = whole_of(report)
    rows = []
    for name, slice_record in {"all items": all_items, **records_of_slices}.items():
        cells = [
            cell(
                slice_record["results"].get(key, {}),
                field,
                interval_of(slice_record.get("intervals") or {}, key, [field]),
            )
            for key, field in columns
        ]
        count = slice_record.get("items", 0)
        hint = f"{count} item{'' if count == 1 else 's'}"
        units = units_of(slice_record)
        hint += f", {units}" if units and units != hint else ""
        rows.append(Row(name, cells, hint + (" (few)" if slice_record.get("small") else "")))
    headings = [
        with_arrow(label_of(key, field), about(report, key, field).get("direction"))
        for key, field in columns
    ]
    return Table("Headlines by slice", ["slice", *headings], rows, _about_ranks(records_of_slices))


def _about_ranks(records_of_slices: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a note that names the families whose ranks come from saved states, if any do."""
    keys = dict.fromkeys(
        Key.parse(key).whole
        for slice_record in records_of_slices.values()
        for key in slice_record.get("approximate", ())
    )
    if not keys:
        return ""
    return (
        f"Ranks of {listed(list(keys), 3)} are approximate, because saved states have bins; a run "
        "with --slices has exact ones."
    )


def whole_of(report: Report) -> dict[str, Any]:
    """Return the record of all items, in the form of a slice's record."""
    count = len(report.items)
    drawn = report.settings.get("intervals") or {}
    units = {"name": drawn.get("unit", "item"), "drawn": drawn.get("units", count)}
    if "effective" in drawn:
        units["effective"] = drawn["effective"]
    return {
        "items": count, "units": units, "results": report.results, "intervals": report.intervals,
    }  # fmt: skip
