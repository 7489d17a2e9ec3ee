"""`uqeval merge`: join the saved states of shards or of several runs into one report."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options


@with_options(*o.OUTPUTS, *o.CUTS)
def merge(
    shared: Shared,
    parts: Annotated[list[str], typer.Argument(
        metavar="STATES...", show_default=False,
        help="Reports with their saved states, states files, or folders of them: all shards of "
        "one run (--part), or runs with the same settings on different items. Give one alone "
        "to recompute it with --ci or --slices.")],
    allow_missing: Annotated[bool, typer.Option(
        "--allow-missing",
        help="Accept missing shards; the report is then partial.")] = False,
    threshold: Annotated[str | None, typer.Option(
        "--threshold", metavar="RULE", show_default=False,
        help="Recompute PAvPU at another uncertainty threshold of its curve: range:T, "
        "max-surplus, or a number.")] = None,
) -> None:  # fmt: skip
    """Join the saved states of several machines or shards into one report.

    Opens no store. All shards need the same settings and thresholds (give these as numbers).

    Example: uqeval merge part1.json part2.json part3.json -o report.json
    """
    from uqeval.cli.finish import check_outputs, deliver, refuse_other_format, states_path
    from uqeval.usecases.merge import files_of
    from uqeval.usecases.merge import merge as join

    refuse_other_format(shared)
    o.refuse_draws_without_level(shared.typed, shared.ci)
    states_file = states_path(shared)
    check_outputs(shared.output, shared.csv, states_file, inputs=[*files_of(parts), shared.slices])
    report = join(
        parts, states=states_file, allow_missing=allow_missing, threshold=threshold,
        **shared.values_of(*o.CUTS),
    )  # fmt: skip
    deliver(report, shared)
