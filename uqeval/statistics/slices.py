"""Slices: the same scores over the items of one weather, one city or one drive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, cut
from uqeval.records.addresses import slice_key
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import intervals
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units import resampling_for
from uqeval.stores.item_table import ItemTable

if TYPE_CHECKING:
    from uqeval.statistics.options import CutOptions

#: Slices of fewer units are marked as small.
SMALL = 10
#: The largest number of slices.
_MOST = 256


def slice_items(table: ItemTable, keys: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Return the items of each slice, by `column=value` or `column=value,column=value`, as
    addresses have it.

    `keys`: the columns of each cut. Raises `UsageError` for a column that is not there or named
    twice, and for more than 256 slices: a column of names or numbers.
    """
    items_by_slice: dict[str, list[int]] = {}
    for columns in dict.fromkeys(map(tuple, keys)):
        if len(set(columns)) < len(columns):
            raise UsageError(
                f"--slice-by {cut(','.join(columns))} names a column twice. Name it once."
            )
        values = [table.column(column) for column in columns]
        for item, item_values in enumerate(zip(*values, strict=True)):
            items_by_slice.setdefault(slice_key(zip(columns, item_values, strict=True)), []).append(
                item
            )
        if len(items_by_slice) > _MOST:
            raise UsageError(
                f"{table.path}: the column {cut(' and '.join(columns))} makes more than {_MOST} "
                "slices; name columns of few values with --slice-by."
            )
    return dict(sorted(items_by_slice.items()))


def default_cuts(table: ItemTable) -> list[tuple[str, ...]]:
    """Return the default columns: those with at least two values, and at most half the items.

    Together they define at most 256 slices."""
    selected: list[tuple[str, ...]] = []
    remaining = _MOST
    for column, values in table.columns.items():
        count = len(set(values))
        if 2 <= count <= min(max(len(values) // 2, 2), remaining):
            selected.append((column,))
            remaining -= count
    if not selected:
        raise UsageError(
            f"{table.path}: no column divides the items into slices; its columns are "
            f"{cut(', '.join(table.columns) or 'none')}. Name some with --slice-by."
        )
    return selected


def _units(scoring: Scoring, items: Sequence[int], resampling: Resampling) -> dict[str, Any]:
    """Return the units of a slice; `defined`: those in which some score of an item is defined."""
    codes = resampling.codes.tolist()
    scored = {c for c, i in zip(codes, items, strict=True) if _scored(scoring.records[i])}
    unit_record: dict[str, Any] = {
        "name": resampling.unit,
        "drawn": resampling.units,
        "defined": len(scored),
    }
    if resampling.effective is not None:
        unit_record |= {"lag1": resampling.lag1, "effective": resampling.effective}
    return unit_record


def _scored(record: Mapping[str, Any]) -> bool:
    """Return whether an item has a score, not only counts."""
    families = [
        record_of_family
        for record_of_family in record.values()
        if isinstance(record_of_family, Mapping)
    ]
    return any(
        isinstance(value, float)
        for record_of_family in families
        for value in record_of_family.values()
    )


def slices(
    scoring: Scoring,
    table: ItemTable,
    keys: Sequence[Sequence[str]],
    options: CutOptions,
    groups: Sequence[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return results of every slice, what was fitted on the whole set held fixed; with intervals if
    `options` has a level.
    """
    slice_records: dict[str, dict[str, Any]] = {}
    for key, items in slice_items(table, keys).items():
        resampling = resampling_for(scoring, options.draws, options.seed, groups, items)
        record: dict[str, Any] = {
            "items": len(items),
            "names": [scoring.names[i] for i in items],
            "units": _units(scoring, items, resampling),
            "small": resampling.units < SMALL,
            "results": scoring.whole(items),
            "approximate": sorted(
                k for k, evaluation in scoring.evaluations.items() if evaluation.approximate
            ),
            "intervals": {},
        }
        if options.ci is not None:
            samples = Samples([scoring], [tuple(items)], resampling)
            record["intervals"] = intervals(samples, options.ci, options.interval_method)
        slice_records[key] = record
    return slice_records
