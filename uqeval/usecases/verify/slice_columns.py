"""The slices of a report: those of the same columns divide its items.

Each item has one value in a column, so it is in one slice of these columns: a slice that was
removed leaves its items without one. The settings name the columns. An out-of-distribution item
without a value is in all slices of the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uqeval.errors import UsageError, all_listed, cut, listed, number_of
from uqeval.records.addresses import Address
from uqeval.usecases.verify.comparing import Difference, Tally

if TYPE_CHECKING:
    from uqeval.records.report import Report

#: So many names of items are in a message.
_NAMED = 4


def compare_division(report: Report, tally: Tally) -> None:
    """Add a difference where the slices of the same columns leave items out, or have some twice;
    and for columns of the settings that have no slices."""
    names = list(report.item_names)
    out = _out_names(report)
    of_columns: dict[str, Counter[str]] = {}
    slices_of = Counter(_columns(key) for key in report.slices)
    for key, record in report.slices.items():
        counts = of_columns.setdefault(_columns(key), Counter())
        counts.update(str(name) for name in record.get("names", ()))
    for columns, counts in of_columns.items():
        for name in out:  # in one slice or several: the report does not have the table
            if 1 < counts[name] <= slices_of[columns]:
                counts[name] = 1
        _compare(f"the slices of {columns}", counts, names, tally)
    settings = report.settings.get("slices") or {}
    in_settings = {_shown(own): None for own in settings.get("columns") or ()}
    for columns in in_settings.keys() - of_columns.keys():
        tally.add_missing("the report", f"every slice of {columns}")
    for columns in of_columns.keys() - in_settings.keys():
        tally.add_missing("settings of slices", f"columns {columns}")


def _out_names(report: Report) -> set[str]:
    """Return the names of the items of OUT sets, by the records of the items."""
    if "sets" not in report.inputs:
        return set()
    return {
        name
        for name, item in zip(report.item_names, report.items, strict=True)
        if any(isinstance(record, dict) and record.get("out") for record in item.values())
    }


def _columns(key: str) -> str:
    """Return the columns of the slice with this key, as text."""
    try:
        return _shown([column for column, _ in Address.parse(f"slice.items@{key}").where])
    except UsageError:
        return cut(key)


def _shown(columns: Sequence[str]) -> str:
    return all_listed(columns)


def _compare(where: str, counts: Counter[str], names: list[str], tally: Tally) -> None:
    expected = Counter(names)
    if absent := list((expected - counts).elements()):
        shown = f"{number_of(len(absent), 'item')} ({listed(map(cut, absent), _NAMED)})"
        tally.add_missing(where, f"the slice of {shown}")
    if further := list((counts - expected).elements()):
        name = further[0]
        tally.compared += 1
        field = f"the number of slices that have {cut(name)}"
        tally.differences.append(Difference(where, field, counts[name], expected[name]))
