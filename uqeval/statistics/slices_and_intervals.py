"""A report with intervals and slices, computed from its states."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.errors import UsageError
from uqeval.metrics._contract import set_value
from uqeval.metrics._warnings import with_intervals
from uqeval.records.report import Report
from uqeval.statistics.draws import GENERATOR, Resampling
from uqeval.statistics.intervals import (
    debiased,
    intervals,
)
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import LEAST_DRAWN
from uqeval.statistics.no_interval import few_units
from uqeval.statistics.options import CASE, CutOptions
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.slices import SMALL, default_cuts, slice_items, slices
from uqeval.statistics.units import cases_of, resampling_for
from uqeval.stores.item_table import ItemTable, read_table


def check_cut(
    options: CutOptions, names: Sequence[str], cases: Sequence[str] | None = None
) -> None:
    """Read the table of the items `names`, so that errors appear before the evaluation.

    `cases`: the case of each item, if items are slices of cases. Raises `StoreError` or
    `UsageError`.
    """
    if options.group_by == CASE and options.slices is None and cases is None:
        raise UsageError(
            "--group-by case: the items are not slices of cases. Give the groups as a column "
            "of --slices FILE.csv."
        )
    if options.slices is not None:
        table = read_table(options.slices, names)
        slice_items(table, cuts_of(options, table))
        if options.group_by is not None and (options.group_by != CASE or cases is None):
            table.column(options.group_by)


def with_slices_and_intervals(report: Report, scoring: Scoring, options: CutOptions) -> Report:
    """Return the report with `intervals` and `slices`. Raises `StoreError` or `UsageError`."""
    began = time.perf_counter()
    timing = dict(report.timing)
    table = read_table(options.slices, scoring.names) if options.slices is not None else None
    groups = cases_of(scoring)
    group_name = None if groups is None else CASE
    if table and options.group_by and (options.group_by != CASE or CASE in table.columns):
        groups, group_name = table.column(options.group_by), options.group_by
    changes: dict[str, Any] = {}
    warnings = list(report.warnings)
    settings = dict(report.settings)
    if options.ci is not None:
        resampling = resampling_for(scoring, options.draws, options.seed, groups)
        samples = Samples.of_run(scoring, resampling)
        changes["intervals"] = intervals(samples, options.ci, options.interval_method)
        changes["results"] = with_debiased(report.results, samples)
        warnings = with_intervals(warnings, report.results, changes["intervals"])
        settings["intervals"] = _settings(options, resampling, groups, group_name)
        warnings += few_units(resampling)
        timing["intervals_seconds"] = time.perf_counter() - began
    if table is not None:
        began = time.perf_counter()
        changes["slices"] = slices(scoring, table, cuts_of(options, table), options, groups)
        timing["slices_seconds"] = time.perf_counter() - began
        small = [key for key, slice_record in changes["slices"].items() if slice_record["small"]]
        if small:
            small_slices = ", ".join(small[:5]) + (" …" if len(small) > 5 else "")
            warnings.append(f"{len(small)} slices have fewer than {SMALL} units: {small_slices}.")
    changes |= {"settings": settings, "warnings": warnings, "timing": timing}
    return dataclasses.replace(report, **changes)


def with_debiased(
    results: Mapping[str, Mapping[str, Any]], samples: Samples
) -> dict[str, dict[str, Any]]:
    """Return the results with `<field>_debiased` for each calibration error of the set."""
    with_bias = {key: dict(record) for key, record in results.items()}
    for text, (key, *place) in samples.runs[0].addresses.items():
        metric = metric_at(text)
        if metric is None or metric.interval != "gaps" or "." in metric.field or len(place) > 1:
            continue
        if key in with_bias and np.isfinite(samples.value(text)):
            reason = f"it needs draws of at least {LEAST_DRAWN} units"
            set_value(with_bias[key], f"{place[0]}_debiased", debiased(samples, text), reason)
    return with_bias


def _settings(
    options: CutOptions,
    resampling: Resampling,
    groups: Sequence[str] | None,
    group_name: str | None,
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "level": options.ci,
        "method": options.interval_method,
        "draws": options.draws,
        "seed": options.seed,
        "generator": GENERATOR,
        "numpy": np.__version__,
        "unit": resampling.unit,
        "units": resampling.units,
        "group_by": group_name,
        "groups": list(groups) if groups else None,
        "held_fixed": "thresholds and temperatures; the variance of training is not included",
    }
    if resampling.effective is not None:
        record |= {"lag1": resampling.lag1, "effective": resampling.effective}
    return record


def cuts_of(options: CutOptions, table: ItemTable) -> list[tuple[str, ...]]:
    """Return the columns of each kind of slice; empty if the table is only for groups."""
    if options.slice_by:
        return [
            (text,) if text in table.columns else tuple(text.split(","))
            for text in options.slice_by
        ]
    return [] if options.group_by is not None else default_cuts(table)
