"""`uqeval demo`: make small stores, run everything on them, leave the reports."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o


def demo(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Folder to make.",
                                          show_default=True)] = "uqeval-demo",
    quiet: o.Quiet = False,
    workers: o.Workers = None,
) -> None:  # fmt: skip
    """Make small stores of pretended predictions, run everything on them, leave the reports.

    Class probabilities, predicted depth and a film, with the uqeval.yaml that evaluates them.

    Example: uqeval demo
    """
    from uqeval.cli.outcome import Shown, finish
    from uqeval.cli.progress import progress_for
    from uqeval.demo import demo as make

    outcome = make(folder, workers=workers, progress=progress_for(quiet), listener=Shown(quiet))
    finish(outcome, quiet)
    if not quiet:
        typer.echo(
            f"\nLook at {folder}/out/index.html. Now try, in {folder}/:\n"
            "  uqeval inspect preds.zarr labels/\n"
            "  uqeval pavpu preds.zarr labels/ --window 4 --window 8\n"
            "  uqeval run"
        )
    if outcome.status:
        raise typer.Exit(outcome.status)
