"""`uqeval demo`: create small stores, evaluate them, and write reports."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import progress_for


@with_options("quiet", "workers")
def demo(
    shared: Shared,
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Folder to create.",
                                          show_default=True)] = "uqeval-demo",
) -> None:  # fmt: skip
    """Create small synthetic stores, evaluate them, and write reports.

    Class probabilities, predicted depth and a video, with a uqeval.yaml that evaluates them.

    Example: uqeval demo
    """
    from uqeval.cli.run import OutcomePrinter, finish
    from uqeval.usecases.demo.making import demo as make

    outcome = make(
        folder, workers=shared.workers, progress=progress_for(shared.quiet),
        listener=OutcomePrinter(shared.quiet),
    )  # fmt: skip
    finish(outcome, shared.quiet)
    if not shared.quiet:
        typer.echo(
            f"\nLook at {folder}/out/index.html. Now try, in {folder}/:\n"
            "  uqeval inspect preds.zarr labels/\n"
            "  uqeval pavpu preds.zarr labels/ --window 4 --window 8\n"
            "  uqeval run"
        )
    if outcome.status:
        raise typer.Exit(outcome.status)
