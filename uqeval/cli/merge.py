"""`uqeval merge`: join the saved states of shards or of several runs into one report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shlex import quote
from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import printing, tell
from uqeval.disk.files import content_of
from uqeval.errors import UsageError, option_name
from uqeval.statistics.options import OF_INTERVALS


@with_options(*o.OUTPUTS, *o.CUTS)
def merge(
    shared: Shared,
    parts: Annotated[list[str], typer.Argument(
        metavar="STATES...", show_default=False,
        help="Reports with their saved states, states files, or folders of them: all shards of "
        "one run (--part), or runs with the same settings on different items. Give a single one "
        "to recompute its scores with --ci or --slices.")],
    allow_missing: Annotated[bool, typer.Option(
        "--allow-missing",
        help="Accept missing shards; the report is then partial.")] = False,
    threshold: Annotated[str | None, typer.Option(
        "--threshold", metavar="RULE", show_default=False,
        help="Recompute PAvPU at another uncertainty threshold of its curve: range:T, "
        "max-surplus, or a number.")] = None,
    fit: Annotated[bool, typer.Option(
        "--fit",
        help="Add up the counts of all shards of a run, and write them to -o FILE for the next "
        "pass (--fitted FILE). Prints `done` after the last pass, else `next: …`.")] = False,
) -> None:  # fmt: skip
    """Join the saved states of several machines or shards into one report.

    Opens no store. The report has intervals only with --ci, even if the joined reports have some.
    Some metrics need several passes over all shards (--part): after each pass,
    --fit writes the file for the next one. Repeat until it prints `done`.

    Example: uqeval merge shard1.json shard2.json shard3.json -o report.json
    """
    if fit:
        _fit(shared, parts)
        return
    deliver_merged(parts, shared, allow_missing=allow_missing, threshold=threshold)


def deliver_merged(
    paths: Sequence[str], shared: Shared, more_inputs: Sequence[Any] = (), **options: Any
) -> None:
    """Merge saved reports with the requested intervals and slices and these options of
    `uqeval.merge`, and deliver the report."""
    from uqeval.cli.finish import (
        check_outputs,
        deliver,
        refuse_other_format,
        report_outputs,
        states_path,
    )
    from uqeval.usecases.merge import files_of
    from uqeval.usecases.merge import merge as join

    refuse_other_format(shared)
    o.refuse_draws_without_level(shared.typed, shared.ci)
    states_file = states_path(shared)
    inputs = [*files_of(paths), shared.slices, *more_inputs]
    check_outputs(*report_outputs(shared, states_file), inputs=inputs)
    # A default does not override what the reports record.
    cuts = [name for name in o.CUTS if name in shared.typed or name not in OF_INTERVALS]
    with content_of(", ".join(paths)):
        report = join(paths, states=states_file, **shared.values_of(*cuts), **options)
    deliver(report, shared)


def _fit(shared: Shared, parts: list[str]) -> None:
    """Write the file for the next pass of the shards; print the metrics that need it, or `done`."""
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.usecases.merge import files_of
    from uqeval.usecases.rounds.fitting import fit_shards

    unused = sorted(shared.typed - {"fit", "output", "quiet", "parts"})
    if unused:
        raise UsageError(
            f"{option_name(unused[0])} has no effect with --fit, which writes no report; give it "
            "to the merge after the last pass."
        )
    if shared.output is None or shared.output == "-":
        raise UsageError("--fit writes a file for the shards; give -o FITTED.json.")
    check_outputs(Output(shared.output, kind="fitted"), inputs=files_of(parts))
    fitted = fit_shards(parts, shared.output)
    for text in fitted.warnings:
        tell(f"warning: {text}")
    passes = f"{fitted.passes} {'pass' if fitted.passes == 1 else 'passes'}"
    if not shared.quiet:
        tell(
            f"uqeval: {passes} counted. Repeat the command of each shard with --fitted "
            f"{quote(shared.output)}."
            if fitted.unfinished
            else f"uqeval: {passes} counted; that was the last. Join the shards: uqeval merge "
            f"{' '.join(map(quote, parts))} -o report.json"
        )
    with printing():
        sys.stdout.write(
            f"next: {', '.join(fitted.unfinished)}\n" if fitted.unfinished else "done\n"
        )
