"""A report with intervals and slices, read off its states."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqeval.errors import UsageError
from uqeval.metrics._signs import with_intervals
from uqeval.report.schema import Report
from uqeval.statistics.draws import DRAWS, Resampling
from uqeval.statistics.from_states import default_groups, default_sequences
from uqeval.statistics.intervals import FEW, Drawn, check_level
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.slices import default_cuts, slice_items, slices
from uqeval.statistics.table import ItemTable, read_table

#: What `group_by` calls the cases that a store's items are slices of.
CASE = "case"


@dataclass(frozen=True)
class CutOptions:
    """What is read off the states of a run beside its results.

    `ci`: the level of intervals; `draws` and `seed` of the resamples. `slices`: a CSV of the items
    with a column `name`; `slice_by`: the columns of each cut, several of one joined by commas
    (default: each column of few values); `group_by`: the column of groups that are drawn whole
    (default: "case" where items are slices of cases).

    Raises `UsageError` for what cannot be.
    """

    ci: float | None = None
    draws: int = DRAWS
    seed: int = 0
    slices: str | Path | None = None
    slice_by: tuple[str, ...] = ()
    group_by: str | None = None

    def __post_init__(self) -> None:
        if self.ci is not None:
            check_level(self.ci)
        Resampling(self.draws, self.seed)
        for name in ("slice_by", "group_by"):
            alone = name == "group_by" and self.group_by == CASE
            if getattr(self, name) and self.slices is None and not alone:
                raise UsageError(
                    f"--{name.replace('_', '-')} names columns of the items' table; give it as "
                    "--slices FILE.csv."
                )
        if self.ci is None and (self.draws, self.seed) != (DRAWS, 0):
            raise UsageError(
                "--draws and --seed say how intervals are drawn, and there are none without a "
                "level; give --ci LEVEL, such as --ci 0.95, or leave them out."
            )
        if self.group_by is not None and self.ci is None:
            raise UsageError("--group-by says how intervals are drawn; give --ci LEVEL.")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to read off."""
        return self.ci is not None or self.slices is not None

    def check(self, names: Sequence[str], cases: Sequence[str] | None = None) -> None:
        """Read the table of the items called `names`, to be refused before they are evaluated.

        `cases`: the case of each item, where items are slices of cases. Raises `StoreError` or
        `UsageError`.
        """
        if self.group_by == CASE and self.slices is None and cases is None:
            raise UsageError(
                "--group-by case: the items are not slices of cases. Give the groups as a column "
                "of --slices FILE.csv."
            )
        if self.slices is not None:
            table = read_table(self.slices, names)
            slice_items(table, cuts_of(self, table))
            if self.group_by is not None and (self.group_by != CASE or cases is None):
                table.column(self.group_by)


def cut(report: Report, scoring: Scoring, options: CutOptions) -> Report:
    """The report with `intervals` and `slices`. Raises `StoreError` or `UsageError`."""
    began = time.perf_counter()
    timing = dict(report.timing)
    table = read_table(options.slices, scoring.names) if options.slices is not None else None
    groups = default_groups(scoring)
    by = None if groups is None else CASE
    if table and options.group_by and (options.group_by != CASE or CASE in table.columns):
        groups, by = table.column(options.group_by), options.group_by
    resampling = Resampling(
        options.draws, options.seed, groups, None if groups else default_sequences(scoring)
    )
    changes: dict[str, Any] = {}
    warnings = list(report.warnings)
    settings = dict(report.settings)
    if options.ci is not None:
        changes["intervals"] = Drawn.of(scoring, resampling).intervals(options.ci)
        units = resampling.units(scoring.items)
        settings["intervals"] = {
            "level": options.ci,
            "draws": options.draws,
            "seed": options.seed,
            "unit": resampling.unit,
            "units": units,
            "group_by": by,
            "groups": list(groups) if groups else None,
            "held_fixed": "thresholds and temperatures; training seeds are not in the intervals",
        }
        if units == 1:
            warnings.append(f"no intervals: there is one {resampling.unit}.")
        elif units < FEW:
            warnings.append(
                f"intervals from {units} {resampling.unit}s are too narrow: below {FEW} "
                "resampling cannot know how much others would differ."
            )
        warnings = with_intervals(warnings, report.results, changes["intervals"])
        timing["intervals_seconds"] = time.perf_counter() - began
    if table is not None:
        began = time.perf_counter()
        changes["slices"] = slices(scoring, table, cuts_of(options, table), options.ci, resampling)
        timing["slices_seconds"] = time.perf_counter() - began
        small = [key for key, own in changes["slices"].items() if own["small"]]
        if small:
            shown = ", ".join(small[:5]) + (" …" if len(small) > 5 else "")
            warnings.append(f"{len(small)} slices have fewer than 10 items: {shown}.")
    changes |= {"settings": settings, "warnings": warnings, "timing": timing}
    return report.model_copy(update=changes)


def cuts_of(options: CutOptions, table: ItemTable) -> list[tuple[str, ...]]:
    """The columns of each cut; none where the table was given for its groups alone."""
    if options.slice_by:
        return [
            (text,) if text in table.columns else tuple(text.split(","))
            for text in options.slice_by
        ]
    return [] if options.group_by is not None else default_cuts(table)
