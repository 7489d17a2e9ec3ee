"""`uqeval inspect`: what is in a store, whether it is sound, what it would cost to evaluate."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.messages import tell, warn
from uqeval.cli.stdout import console
from uqeval.cli.taking import taking
from uqeval.sizes import parse_memory

if TYPE_CHECKING:
    from uqeval.inspect import Inspection


class Shown(StrEnum):
    """How the findings are printed."""

    table = "table"
    json = "json"


@taking("quiet", *o.READING, *o.RUNNING)
def inspect(
    shared: o.Shared,
    paths: o.Paths,
    full: Annotated[bool, typer.Option(
        "--full", help="Check the values of all items, not of three.")] = False,
    format: Annotated[Shown, typer.Option(help="What to print to stdout.")] = Shown.table,
) -> None:  # fmt: skip
    """Look before you run: arrays, chunks, missing ones, values, memory and time.

    Exit status 2 if something is wrong with the store.

    Example: uqeval inspect preds.zarr labels/
    """
    import dataclasses
    import json

    from uqeval.cli.progress import progress_for
    from uqeval.inspect import inspect as look

    predictions, labels = o.split_paths(paths or [], labels_alone=True)
    found = look(
        predictions, labels, full=full, memory=parse_memory(shared.memory),
        workers=shared.workers, progress=progress_for(shared.quiet), **shared.given(*o.READING),
    )  # fmt: skip
    if format is Shown.json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2, allow_nan=False))
    elif not shared.quiet:
        _show(found)
    if not shared.quiet:
        warn(found.warnings, shared.quiet)
        for text in found.problems:
            tell(f"problem: {text}")
    if found.problems:
        raise typer.Exit(2)


def _show(found: Inspection) -> None:
    from rich import box, filesize
    from rich.markup import escape
    from rich.table import Table

    from uqeval.report.safe import printable

    stdout = console(120)
    path = escape(printable(found.path))
    stdout.print(f"[bold]{path}[/]  {found.items:,} items", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("array", "axes", "shape", "dtype", "chunk", "a chunk", "on disk", "missing"):
        table.add_column(
            column, justify="right" if column in ("a chunk", "on disk", "missing") else "left"
        )
    for array in found.arrays:
        shape = array.shape if isinstance(array.shape, str) else "×".join(map(str, array.shape))
        table.add_row(
            escape(printable(array.name)), ", ".join(array.axes), shape, array.dtype,
            "×".join(map(str, array.chunks)), filesize.decimal(array.chunk_bytes),
            f"{filesize.decimal(array.stored_bytes)} "
            f"({array.stored_bytes / max(array.logical_bytes, 1):.0%})",
            f"{array.missing_chunks:,}",
        )  # fmt: skip
    stdout.print(table)
    facts = dict(found.facts)
    facts["names"] = (
        "none"
        if found.names is None
        else ", ".join(found.names[:3]) + (" …" if len(found.names) > 3 else "")
    )
    if isinstance(facts.get("class_names"), list):
        facts["class_names"] = ", ".join(facts["class_names"])
    for key, value in (facts | found.values).items():
        text = escape(printable(str(value)))
        stdout.print(f"  {key.replace('_', ' '):<18} {text}", soft_wrap=True)
    if found.cost:
        stdout.print(
            f"  {'memory':<18} {filesize.decimal(found.cost['bytes_a_worker'])} a worker, "
            f"{found.cost['workers_within_memory']} workers fit"
        )
        stdout.print(
            f"  {'time':<18} about {found.cost['seconds_estimated']:.1f} s to read all items once"
        )
    stdout.print("[bold red]not sound[/]" if found.problems else "[bold green]sound[/]")
