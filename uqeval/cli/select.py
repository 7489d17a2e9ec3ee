"""`uqeval select`: which frames or images to label next."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.declared import with_options
from uqeval.cli.shared import OutputOptions
from uqeval.cli.stdout import console, printing
from uqeval.errors import UsageError
from uqeval.settings import Settings, same_option, shared_option

if TYPE_CHECKING:
    from uqeval.report.table import Table
    from uqeval.usecases.select import Selection


@dataclass(frozen=True)
class SelectOptions(Settings):
    """The options of `uqeval select`."""

    # fmt: off
    count: int = shared_option(
        20, "Number of images or frames to list.", flags=("-n", "--count"), metavar="N", least=1)
    by: str | None = shared_option(
        None, "Rank items by this score, such as pavpu.pavpu.", metavar="FIELD",
        shown="temporal.tc for a video, else the first score with a better direction")
    min_gap: int = shared_option(
        1, "Video: skip frames within this distance of a worse one.", metavar="FRAMES", least=0)
    per_sequence: int | None = shared_option(
        None, "Video: list at most N frames per sequence.", metavar="N", least=1)
    min_coverage: float = shared_option(
        0.5, "Video: skip pairs with a smaller fraction of compared pixels.", metavar="SHARE",
        least=0, most=1)
    keep_cuts: bool = shared_option(False, "Video: include pairs that look like scene cuts.")
    output: str | None = shared_option(
        None, "Write the list as CSV; - is stdout.", flags=("-o", "--output"), metavar="FILE")
    format: str = same_option(OutputOptions, "format", panel=None)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output == "-" and self.format in ("json", "markdown"):
            raise UsageError(f"-o - prints CSV; give --format {self.format} alone, or -o FILE.")


@with_options(of=SelectOptions)
def select(
    settings: SelectOptions,
    report: Annotated[str, typer.Argument(
        metavar="REPORT", show_default=False, help="A report, written by -o FILE.")],
) -> None:  # fmt: skip
    """List the images or frames to label next: the worst first, without their neighbours.

    Skips scene cuts and pairs where the flow failed. Gives the reason for each listed item.

    Example: uqeval select report.json -n 50 --min-gap 10 -o label_next.csv
    """
    from uqeval.cli.finish import check_outputs
    from uqeval.report.files import write
    from uqeval.report.folder import Named
    from uqeval.usecases.select import select as choose

    output = settings.output
    loaded = Named.load(Path(report))
    check_outputs(output, inputs=loaded.files)
    found = choose(
        loaded.report, settings.count, field=settings.by, min_gap=settings.min_gap,
        per_sequence=settings.per_sequence, min_coverage=settings.min_coverage,
        keep_cuts=settings.keep_cuts,
    )  # fmt: skip
    form = "csv" if output == "-" else settings.format
    if output is not None and output != "-":
        write(output, _csv(found))
    with printing():
        if form == "table":
            _show(found)
        else:
            sys.stdout.write({"csv": _csv, "json": _json, "markdown": _markdown}[form](found))


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
    from uqeval.report.table import format_number, text_table

    rows = [
        [str(rank), own.name, own.sequence, format_number(own.value), own.reason]
        for rank, own in enumerate(found.chosen, 1)
    ]
    told = "; ".join(f"{why}: {n}" for why, n in found.left_out.items())
    note = f"left out: {told}." if told else ""
    return text_table("To label next", _columns(found), rows, note, left=frozenset({1, 2, 4}))
