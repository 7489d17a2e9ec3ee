"""The report that a run will have, as far as it is known before any data are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from uqeval import version
from uqeval.inputs import Inputs
from uqeval.keys import family_of
from uqeval.metrics import FAMILIES
from uqeval.records.report import Report
from uqeval.statistics.options import CutOptions
from uqeval.usecases.plans import evaluations_of, with_companions


def foreseen_report(
    inputs: Inputs,
    families: Mapping[str, Mapping[str, Any]],
    cut_options: CutOptions | None,
    keys: Collection[str],
) -> Report:
    """Return the report of opened inputs as if no pixel were evaluated, of the results `keys`.

    It has the fields and slices of the report of the run, with undefined scores.
    """
    from uqeval.metrics._foreseen import results_without_pixels

    info = inputs.info()
    known = {family_of(key) for key in keys}
    chosen = {
        name: options
        for name, options in with_companions(families, info).items()
        if FAMILIES[name].in_reports in known
    }
    results: dict[str, dict[str, Any]] = {}
    if chosen:
        evaluations, _ = evaluations_of(info, chosen, inputs.region_names())
        results = results_without_pixels(evaluations)
    if cut_options is not None and cut_options.ci is not None:
        from uqeval.statistics.slices_and_intervals import debiased_field

        for key, record in results.items():
            record |= dict.fromkeys(filter(None, (debiased_field(key, name) for name in record)))
    slices: dict[str, dict[str, Any]] = {}
    if cut_options is not None and cut_options.slices is not None:
        from uqeval.statistics.slices_and_intervals import check_cut

        keys = check_cut(cut_options, inputs.source.names, inputs.groups, inputs.sets)
        slices = {key: {"results": results} for key in keys}
    return Report(
        uqeval_version=version.VERSION, inputs={}, settings={}, items=[], results=results,
        slices=slices,
    )  # fmt: skip
