"""`uqeval compare`: models side by side, and how far they differ."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.cli import parsing
from uqeval.cli.messages import warn
from uqeval.cli.stdout import console, printing
from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.compare import Comparison

_WHAT, _OUT, _HOW = "Scores", "Output", "Intervals"
_REPLICATES = "--replicates"
#: Between the paths of one --replicates; no path can hold it.
_BETWEEN = "\0"


class Format(StrEnum):
    """What a comparison is written as."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


_ENDINGS = {".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}


class Command(parsing.Command):
    """Takes `--replicates A B C`: all that stands up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, those of each --replicates as one."""
        return super().parse_args(ctx, gathered(args))


def gathered(args: list[str]) -> list[str]:
    """The arguments with the values of each --replicates joined to one."""
    end = args.index("--") if "--" in args else len(args)
    found: list[str] = []
    open_ = False
    for arg in args[:end]:
        if arg == _REPLICATES or arg.startswith(f"{_REPLICATES}="):
            name, equals, first = arg.partition("=")
            found += [name, first] if equals else [name]
            open_ = True
        elif open_ and not arg.startswith("-"):
            if found[-1] == _REPLICATES:
                found.append(arg)
            else:
                found[-1] += f"{_BETWEEN}{arg}"
        else:
            open_ = False
            found.append(arg)
    return found + args[end:]


def compare(
    context: typer.Context,
    reports: Annotated[list[str] | None, typer.Argument(
        metavar="REPORT...", show_default=False,
        help="Two or more reports, one per model. Or folders of reports, matched by name, or "
        "one folder with one report per model.")] = None,
    replicates: Annotated[list[str] | None, typer.Option(
        _REPLICATES, metavar="REPORT REPORT...", show_default=False,
        help="Reports of separate trainings of one method, up to the next option. They form "
        "one model: mean ± std over the trainings. Repeat for another method.")] = None,
    name: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="Name of a model, once per model, in order, replicates last (default: the part of "
        "the path that differs).")] = None,
    baseline: Annotated[str | None, typer.Option(
        metavar="NAME", show_default=False,
        help="Model to compare the others with (default: the first).")] = None,
    metrics: Annotated[list[str] | None, typer.Option(
        metavar="ADDRESS", show_default=False, rich_help_panel=_WHAT,
        help="Compare this score, such as calibration.ece or segmentation.miou@weather=night. "
        "Repeat for more (default: headline scores).")] = None,
    every: Annotated[bool, typer.Option(
        "--all", rich_help_panel=_WHAT,
        help="Compare all scores that have a better direction.")] = False,
    per_class: Annotated[bool, typer.Option(
        "--per-class", rich_help_panel=_WHAT,
        help="Also compare the scores of each class.")] = False,
    ci: Annotated[float, typer.Option(
        metavar="LEVEL", rich_help_panel=_HOW, help="Level of the intervals.")] = 0.95,
    intervals: Annotated[bool, typer.Option(
        "--intervals/--no-intervals", rich_help_panel=_HOW,
        help="Compute paired intervals by resampling the same items of all models; needs the "
        "saved states.")]
        = True,
    draws: Annotated[int, typer.Option(
        metavar="N", rich_help_panel=_HOW, help="Number of bootstrap draws.")] = 2000,
    seed: Annotated[int, typer.Option(rich_help_panel=_HOW,
        help="Seed of the bootstrap draws.")] = 0,
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False, rich_help_panel=_OUT,
        help="Write the comparison as CSV, Markdown or LaTeX (.csv, .md, .tex), else as JSON. "
        "- writes JSON to stdout.")] = None,
    format: Annotated[Format, typer.Option(
        help="Format of stdout.", rich_help_panel=_OUT)] = Format.table,
    quiet: Annotated[bool, typer.Option(
        "-q", "--quiet", rich_help_panel=_OUT, help="Print no table and no warnings.")] = False,
) -> None:  # fmt: skip
    """Compare models: scores, paired differences with intervals, and ranks.

    Each draw uses the same items for all models, so items that are hard for all do not hide a
    difference. Intervals need the states that -o FILE saves with a report.

    Example: uqeval compare mc.json ensemble.json --replicates seed1.json seed2.json seed3.json
    """
    from uqeval.cli.finish import check_outputs
    from uqeval.cli.parsing import typed_options
    from uqeval.compare import Choice, load_models
    from uqeval.compare import compare as hold

    typed = typed_options(context)
    if not intervals and (given := [name for name in ("ci", "draws", "seed") if name in typed]):
        told = ", ".join(f"--{name}" for name in given)
        raise UsageError(f"{told}: for intervals, which --no-intervals leaves out. Give one.")
    if output == "-" and format not in (Format.table, Format.json):
        raise UsageError(f"-o - prints JSON; give --format {format.value} alone, or -o FILE.")
    groups = [own.split(_BETWEEN) for own in replicates or []]
    models = load_models(reports or [], groups, name or [])
    files = [p for m in models for t in m.trainings for r in t.reports.values() for p in r.files]
    check_outputs(output, inputs=files)
    choice = Choice(
        tuple(metrics or ()), every, per_class, baseline, ci if intervals else None, draws, seed
    )
    with _waiting(quiet or not intervals):
        found = hold(models, choice)
    warn((f"{text}." for text in found.warnings), quiet)
    _write(found, output)
    with printing():
        _print(found, output, format, quiet)


def _write(found: Comparison, output: str | None) -> None:
    from uqeval.report.files import write

    if output is not None and output != "-":
        write(output, _text(found, _ENDINGS.get(Path(output).suffix.lower(), Format.json)))


def _print(found: Comparison, output: str | None, format: Format, quiet: bool) -> None:
    if output == "-":
        sys.stdout.write(_text(found, Format.json))
    elif format is not Format.table:
        sys.stdout.write(_text(found, format))
    elif not quiet:
        _show(found)


def _text(found: Comparison, form: Format) -> str:
    from uqeval.report import comparison_files, comparison_tables, latex

    writers = {
        Format.json: comparison_files.to_json,
        Format.csv: comparison_files.to_csv,
        Format.markdown: comparison_tables.to_markdown,
        Format.latex: latex.to_latex,
    }
    return writers[form](found)


def _show(found: Comparison) -> None:
    from uqeval.report.comparison_tables import tables_of
    from uqeval.report.terminal import print_table, split

    stdout = console()
    for table in tables_of(found):
        for part in split(table, stdout.width):
            print_table(part, stdout)


def _waiting(quiet: bool) -> AbstractContextManager[object]:
    """A sign of life on a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("resampling")
