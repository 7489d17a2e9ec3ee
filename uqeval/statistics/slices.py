"""The same scores over the items of one weather, one city, one drive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, cut
from uqeval.gate.addresses import slice_key
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import intervals
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.table import ItemTable
from uqeval.statistics.units import resampling_for

if TYPE_CHECKING:
    from uqeval.statistics.options import CutOptions

#: A slice of fewer units is flagged.
SMALL = 10
#: More slices than this are no table that anybody reads.
_MOST = 256


def slice_items(table: ItemTable, by: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """The items of each slice, by `column=value` or `column=value,column=value`, as addresses have
    it.

    `by`: the columns of each cut. Raises `UsageError` for a column that is not there or named
    twice, and for more than 256 slices: a column of names or numbers.
    """
    found: dict[str, list[int]] = {}
    for columns in dict.fromkeys(map(tuple, by)):
        if len(set(columns)) < len(columns):
            raise UsageError(f"--slice-by {cut(','.join(columns))} names a column twice.")
        values = [table.column(column) for column in columns]
        for item, own in enumerate(zip(*values, strict=True)):
            found.setdefault(slice_key(zip(columns, own, strict=True)), []).append(item)
        if len(found) > _MOST:
            raise UsageError(
                f"{table.path}: the column {cut(' and '.join(columns))} makes more than {_MOST} "
                "slices; name columns of few values with --slice-by."
            )
    return dict(sorted(found.items()))


def default_cuts(table: ItemTable) -> list[tuple[str, ...]]:
    """Every column by itself that has at least two values, and no more than half the items; as many
    as make no more than 256 slices."""
    chosen: list[tuple[str, ...]] = []
    left = _MOST
    for column, values in table.columns.items():
        count = len(set(values))
        if 2 <= count <= min(max(len(values) // 2, 2), left):
            chosen.append((column,))
            left -= count
    if not chosen:
        raise UsageError(
            f"{table.path}: no column cuts the items into slices; its columns are "
            f"{cut(', '.join(table.columns) or 'none')}. Name some with --slice-by."
        )
    return chosen


def _units(scoring: Scoring, items: Sequence[int], resampling: Resampling) -> dict[str, Any]:
    """Return the units of a slice; `defined`: those in which some score of an item is defined."""
    codes = resampling.codes.tolist()
    scored = {c for c, i in zip(codes, items, strict=True) if _scored(scoring.records[i])}
    own: dict[str, Any] = {
        "name": resampling.unit,
        "drawn": resampling.units,
        "defined": len(scored),
    }
    if resampling.effective is not None:
        own |= {"lag1": resampling.lag1, "effective": resampling.effective}
    return own


def _scored(record: Mapping[str, Any]) -> bool:
    """Whether an item has some score; counts alone are none."""
    families = [own for own in record.values() if isinstance(own, Mapping)]
    return any(isinstance(value, float) for own in families for value in own.values())


def slices(
    scoring: Scoring,
    table: ItemTable,
    by: Sequence[Sequence[str]],
    options: CutOptions,
    groups: Sequence[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Results of every slice, what was fitted on the whole set held fixed; with intervals if
    `options` has a level."""
    found: dict[str, dict[str, Any]] = {}
    for key, items in slice_items(table, by).items():
        resampling = resampling_for(scoring, options.draws, options.seed, groups, items)
        record: dict[str, Any] = {
            "items": len(items),
            "names": [scoring.names[i] for i in items],
            "units": _units(scoring, items, resampling),
            "small": resampling.units < SMALL,
            "results": scoring.whole(items),
            "approximate": sorted(k for k, own in scoring.evaluations.items() if own.approximate),
            "intervals": {},
        }
        if options.ci is not None:
            samples = Samples([scoring], [tuple(items)], resampling)
            record["intervals"] = intervals(samples, options.ci, options.interval_method)
        found[key] = record
    return found
