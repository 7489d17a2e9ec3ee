"""`uqeval inspect`: what is in a store, whether it is sound, what it would cost to evaluate."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.messages import tell

if TYPE_CHECKING:
    from uqeval.inspect import Inspection


class Shown(StrEnum):
    """How the findings are printed."""

    table = "table"
    json = "json"


def inspect(
    paths: o.Paths,
    full: Annotated[bool, typer.Option(
        "--full", help="Check the values of all items, not of three.")] = False,
    format: Annotated[Shown, typer.Option(help="What to print to stdout.")] = Shown.table,
    quiet: o.Quiet = False,
    ignore_index: o.IgnoreIndex = None,
    names: o.Names = None,
    classes: o.Classes = None,
    label_map: o.LabelMap = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    workers: o.Workers = None,
    memory: o.Memory = "512MB",
) -> None:  # fmt: skip
    """Look before you run: arrays, chunks, missing ones, values, memory and time.

    Exit status 2 if something is wrong with the store.

    Example: uqeval inspect preds.zarr labels/
    """
    import dataclasses
    import json

    from uqeval.cli.progress import progress_for
    from uqeval.inspect import inspect as look

    given = o.given(
        ignore_index=ignore_index, names=names, classes=classes, label_map=label_map,
        sum_tolerance=sum_tolerance, missing_chunks=missing_chunks,
    )  # fmt: skip
    predictions, labels = o.split_paths(paths, labels_alone=True)
    found = look(
        predictions, labels, full=full, memory=o.parse_memory(memory), workers=workers,
        progress=progress_for(quiet), **given,
    )  # fmt: skip
    if format is Shown.json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2, allow_nan=False))
    elif not quiet:
        _show(found)
    if not quiet:
        for text in found.warnings:
            tell(f"warning: {text}")
        for text in found.problems:
            tell(f"problem: {text}")
    if found.problems:
        raise typer.Exit(2)


def _show(found: Inspection) -> None:
    import sys

    from rich import box, filesize
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from uqeval.report.safe import printable

    console = Console(width=None if sys.stdout.isatty() else 120)
    path = escape(printable(found.path))
    console.print(f"[bold]{path}[/]  {found.items:,} items", soft_wrap=True)
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
    console.print(table)
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
        console.print(f"  {key.replace('_', ' '):<18} {text}", soft_wrap=True)
    if found.cost:
        console.print(
            f"  {'memory':<18} {filesize.decimal(found.cost['bytes_a_worker'])} a worker, "
            f"{found.cost['workers_within_memory']} workers fit"
        )
        console.print(
            f"  {'time':<18} about {found.cost['seconds_estimated']:.1f} s to read all items once"
        )
    console.print("[bold red]not sound[/]" if found.problems else "[bold green]sound[/]")
