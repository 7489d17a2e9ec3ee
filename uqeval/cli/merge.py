"""`uqeval merge`: saved states of parts of a run, or of several runs, to one report."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o


def merge(
    states: Annotated[list[str], typer.Argument(
        metavar="STATES...", show_default=False,
        help="Reports with their states beside them, states files, or folders of them: the parts "
        "of one run (--part), or runs of the same settings over different items. One alone is cut "
        "anew (--ci, --slices).")],
    allow_missing: Annotated[bool, typer.Option(
        "--allow-missing",
        help="Some of the parts may be missing; the report is partial.")] = False,
    output: o.Output = None,
    csv: o.Csv = None,
    format: o.Stdout = o.Format.table,
    keep: o.States = None,
    quiet: o.Quiet = False,
    ci: o.Ci = None,
    slices: o.Slices = None,
    slice_by: o.SliceBy = None,
    group_by: o.GroupBy = None,
    draws: o.Draws = 2000,
    seed: o.Seed = 0,
) -> None:  # fmt: skip
    """Join the saved states of several machines or parts into one report; no store is opened.

    The parts have the same settings and thresholds (give those as numbers) and different items.

    Example: uqeval merge part1.json part2.json part3.json -o report.json
    """
    from uqeval.cli.finish import check_outputs, deliver, states_path
    from uqeval.merging import merge as join

    beside = states_path(output, keep)
    check_outputs(output, csv, beside, inputs=states)
    report = join(
        states, states=beside, allow_missing=allow_missing, ci=ci, slices=slices,
        slice_by=slice_by or [], group_by=group_by, draws=draws, seed=seed,
    )  # fmt: skip
    deliver(report, output, csv, format, quiet)
