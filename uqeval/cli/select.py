"""`uqeval select`: which frames or images to label next."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.options import Format
from uqeval.cli.stdout import console, printing
from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.report.table import Table
    from uqeval.usecases.select import Selection


def select(
    report: Annotated[str, typer.Argument(
        metavar="REPORT", show_default=False, help="A report, written by -o FILE.")],
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", help="Number of images or "
    "frames to list.")] = 20,
    by: Annotated[str | None, typer.Option(
        metavar="FIELD", show_default=False,
        help="Rank items by this score, such as pavpu.pavpu (default: temporal.tc for a video, "
        "else the first score with a better direction).")] = None,
    min_gap: Annotated[int, typer.Option(
        metavar="FRAMES", help="Video: skip frames within this distance of a worse one.")] = 1,
    per_sequence: Annotated[int | None, typer.Option(
        metavar="N", show_default=False, help="Video: list at most N frames per sequence.")] = None,
    min_coverage: Annotated[float, typer.Option(
        metavar="SHARE",
        help="Video: skip pairs with a smaller fraction of compared pixels.")] = 0.5,
    keep_cuts: Annotated[bool, typer.Option(
        "--keep-cuts", help="Video: include pairs that look like scene cuts.")] = False,
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False,
        help="Write the list as CSV; - is stdout.")] = None,
    format: Annotated[Format, typer.Option(help="Format of stdout.")] = Format.table,
) -> None:  # fmt: skip
    """List the images or frames to label next: the worst first, without their neighbours.

    Skips scene cuts and pairs where the flow failed. Gives the reason for each listed item.

    Example: uqeval select report.json -n 50 --min-gap 10 -o label_next.csv
    """
    from uqeval.cli.finish import check_outputs
    from uqeval.report.files import write
    from uqeval.report.folder import Named
    from uqeval.usecases.select import select as choose

    if output == "-" and format in (Format.json, Format.markdown):
        raise UsageError(f"-o - prints CSV; give --format {format.value} alone, or -o FILE.")
    loaded = Named.load(Path(report))
    check_outputs(output, inputs=loaded.files)
    found = choose(
        loaded.report, count, field=by, min_gap=min_gap, per_sequence=per_sequence,
        min_coverage=min_coverage, keep_cuts=keep_cuts,
    )  # fmt: skip
    if output == "-":
        format = Format.csv
    elif output is not None:
        write(output, _csv(found))
    with printing():
        if format is Format.table:
            _show(found)
        else:
            writer = {Format.csv: _csv, Format.json: _json, Format.markdown: _markdown}[format]
            sys.stdout.write(writer(found))


def _csv(found: Selection) -> str:
    from uqeval.report.csv import no_formula

    buffer = io.StringIO()
    rows = [
        [rank, no_formula(own.name), own.sequence, repr(own.value), own.reason]
        for rank, own in enumerate(found.chosen, 1)
    ]
    csv.writer(buffer, lineterminator="\n").writerows([_columns(found), *rows])
    return buffer.getvalue()


def _json(found: Selection) -> str:
    record = {
        "field": found.field,
        "chosen": [
            {"name": own.name, "sequence": own.sequence, "value": own.value, "reason": own.reason}
            for own in found.chosen
        ],
        "left_out": found.left_out,
    }
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def _markdown(found: Selection) -> str:
    from uqeval.report.markdown import cell, table_lines

    table = _table(found)
    note = [f"<sub>{cell(table.note)}</sub>"] if table.note else []
    return "\n".join([f"### {table.title}", "", *table_lines(table), "", *note]).rstrip() + "\n"


def _show(found: Selection) -> None:
    from uqeval.report.terminal import print_table

    print_table(_table(found), console())


def _columns(found: Selection) -> list[str]:
    return ["rank", "name", "sequence", found.field, "reason"]


def _table(found: Selection) -> Table:
    from uqeval.report.table import Table, shown

    rows = [
        [str(rank), own.name, own.sequence, shown(own.value), own.reason]
        for rank, own in enumerate(found.chosen, 1)
    ]
    told = "; ".join(f"{why}: {n}" for why, n in found.left_out.items())
    note = f"left out: {told}." if told else ""
    return Table("To label next", _columns(found), rows, note, left=frozenset({1, 2, 4}))
