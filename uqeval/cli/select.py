"""`uqeval select`: list the frames or images to label next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.declared import with_options
from uqeval.cli.streams import console, print_text, printing
from uqeval.disk.files import json_text
from uqeval.errors import UsageError
from uqeval.settings import Settings, shared_option

if TYPE_CHECKING:
    from uqeval.report.tables.table import Table
    from uqeval.usecases.select import Selection


@dataclass(frozen=True)
class SelectOptions(Settings):
    """The options of `uqeval select`."""

    # fmt: off
    count: int = shared_option(
        20, "Number of images or frames to list.", flags=("-n", "--count"), metavar="N", least=1)
    by: str | None = shared_option(
        None, "Rank items by this score, such as pavpu.pavpu.", metavar="FIELD",
        shown="temporal.tc for a video, else the first score of the uncertainty, such as "
        "pavpu.p_accurate")
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
    format: str = shared_option(
        "table", "Format of stdout.", choices=("table", "json", "csv", "markdown"))
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output == "-" and self.format in ("json", "markdown"):
            raise UsageError(
                f"-o - prints CSV, so --format {self.format} has no effect; leave "
                "out one of them, or give -o FILE."
            )


@with_options(of=SelectOptions)
def select(
    settings: SelectOptions,
    report: Annotated[str, typer.Argument(
        metavar="REPORT", show_default=False, help="A report, written by -o FILE.")],
) -> None:  # fmt: skip
    """List the images or frames to label next: the worst first, without their neighbours.

    Skips scene cuts and pairs where the flow failed. Names the classes that fell most in each
    frame.

    Example: uqeval select report.json -n 50 --min-gap 10 -o label_next.csv
    """
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.disk.outputs import write
    from uqeval.records.folder import Named
    from uqeval.usecases.select import select as choose

    output = settings.output
    loaded = Named.load(Path(report))
    check_outputs(Output(output), inputs=loaded.files)
    selection = choose(
        loaded.report, settings.count, field=settings.by, min_gap=settings.min_gap,
        per_sequence=settings.per_sequence, min_coverage=settings.min_coverage,
        keep_cuts=settings.keep_cuts,
    )  # fmt: skip
    form = "csv" if output == "-" else settings.format
    if output is not None and output != "-":
        write(output, _csv(selection))
    with printing():
        if form == "table":
            _show(selection)
        else:
            print_text({"csv": _csv, "json": _json, "markdown": _markdown}[form](selection))


def _csv(selection: Selection) -> str:
    from uqeval.report.csv import csv_of, table_of

    columns = _columns(selection)
    rows = [
        dict(zip(columns, (rank, item.name, item.sequence, item.value, item.reason), strict=True))
        for rank, item in enumerate(selection.chosen, 1)
    ]
    return csv_of(table_of(columns, rows))


def _json(selection: Selection) -> str:
    record = {
        "field": selection.field,
        "chosen": [
            {
                "name": item.name,
                "sequence": item.sequence,
                "value": item.value,
                "reason": item.reason,
            }
            for item in selection.chosen
        ],
        "left_out": selection.left_out,
    }
    return json_text(record)


def _markdown(selection: Selection) -> str:
    from uqeval.report.markdown import section_lines

    return "\n".join(section_lines(_table(selection))).rstrip() + "\n"


def _show(selection: Selection) -> None:
    from uqeval.report.terminal import print_table

    print_table(_table(selection), console())


def _columns(selection: Selection) -> list[str]:
    return ["rank", "name", "sequence", selection.field, "reason"]


def _table(selection: Selection) -> Table:
    from uqeval.report.tables.table import format_number, text_table

    all_rows = [
        [str(rank), item.name, item.sequence, format_number(item.value), item.reason]
        for rank, item in enumerate(selection.chosen, 1)
    ]
    # Images have no sequence, and no reason besides their score.
    used = [i for i in range(len(all_rows[0])) if any(row[i] for row in all_rows)]
    columns = [_columns(selection)[i] for i in used]
    rows = [[row[i] for i in used] for row in all_rows]
    left_out = "; ".join(f"{reason}: {n}" for reason, n in selection.left_out.items())
    note = f"left out: {left_out}." if left_out else ""
    left = frozenset(i for i, name in enumerate(columns) if name in ("name", "sequence", "reason"))
    return text_table("Worst items", columns, rows, note, left=left)
