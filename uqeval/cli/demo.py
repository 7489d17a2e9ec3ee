"""`uqeval demo`: make small stores, evaluate them, leave the reports."""

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
    """Make a small store of pretended street predictions, evaluate it, leave the reports.

    Example: uqeval demo
    """
    from rich.console import Console

    from uqeval.cli.progress import progress_for
    from uqeval.demo import demo as make
    from uqeval.report import terminal

    made = make(folder, workers=workers, progress=progress_for(quiet))
    if quiet:
        return
    import sys

    console = Console(width=None if sys.stdout.isatty() else 200)
    terminal.show(made.result, console)
    terminal.show_warnings(made.result, Console(stderr=True))
    console.print(
        f"Left in {folder}/: preds.zarr, labels/, report.json, report.states.zip, report.md, "
        "items.csv\n\nNow try:\n"
        f"  uqeval inspect {made.predictions} {made.labels}\n"
        f"  uqeval pavpu {made.predictions} {made.labels} --window 4 --window 8\n",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
