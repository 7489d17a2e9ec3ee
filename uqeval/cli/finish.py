"""What every evaluating command does with its report."""

from __future__ import annotations

import sys
from pathlib import Path

from uqeval.cli.options import Format
from uqeval.errors import UsageError
from uqeval.report.files import check_writable, write
from uqeval.report.schema import Report


def states_path(output: str | None, states: bool | None) -> str | None:
    """Where the per-item tallies go. Raises `UsageError` where there is no report to lie beside."""
    beside = output is not None and output != "-"
    if states and not beside:
        raise UsageError("--states keeps the tallies beside the report; give -o FILE.")
    if not beside or states is False:
        return None
    return str(Path(output or "").with_suffix("")) + ".states.zip"


def check_outputs(*paths: str | None) -> None:
    """Fail now, not after the work, for a file that could not be written."""
    for path in paths:
        if path is not None and path != "-":
            check_writable(path)


def deliver(
    report: Report, output: str | None, csv: str | None, stdout: Format, quiet: bool
) -> None:
    """Write the files, print what was asked for, and warn on stderr."""
    from rich.console import Console

    from uqeval.report import csv as csv_writer
    from uqeval.report import markdown, terminal

    if output is not None and output != "-":
        write(output, report.to_json())
    if csv is not None:
        text = csv_writer.to_csv(report)
        if csv == "-":
            sys.stdout.write(text)
        else:
            write(csv, text)
    if output == "-" or stdout is Format.json:
        sys.stdout.write(report.to_json())
    elif stdout is Format.csv:
        sys.stdout.write(csv_writer.to_csv(report))
    elif stdout is Format.markdown:
        sys.stdout.write(markdown.to_markdown(report))
    elif not quiet and csv != "-":
        # A pipe has no width: tables are printed whole there, and cut to fit only a real terminal.
        width = None if sys.stdout.isatty() else 200
        terminal.show(report, Console(width=width))
    if not quiet:
        terminal.show_warnings(report, Console(stderr=True))
    sys.stdout.flush()
