"""`uqeval compare`: models side by side, and how far they differ."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.cli import parsing
from uqeval.cli.declared import FORMATS, Shared, with_options
from uqeval.cli.streams import console, error_console, print_text, printing, warn
from uqeval.errors import UsageError, quoted
from uqeval.settings import Settings, same_option, shared_option
from uqeval.statistics.options import CutOptions

if TYPE_CHECKING:
    from uqeval.compare import Choice, Comparison, Model
    from uqeval.records.report import Report
    from uqeval.report.tables.table import Table

_WHAT, _OUT, _HOW = "Scores", "Output", "Intervals"
_REPLICATES = "--replicates"
#: Separates the paths of one --replicates; no path contains it.
_BETWEEN = "\0"
_ENDINGS = {".csv": "csv", ".md": "markdown", ".tex": "latex", ".html": "page"}


@dataclass(frozen=True)
class CompareOptions(Settings):
    """The options of `uqeval compare`."""

    # fmt: off
    replicates: Sequence[str] = shared_option(
        (), "Reports of separate trainings of one method: all paths up to the next option. They "
        "form one model: mean ± t·s/√n, the interval over the trainings. Repeat for another "
        "method.",
        flags=(_REPLICATES,), metavar="REPORT…", list_by="repeat")
    name: Sequence[str] = shared_option(
        (), "Name of a model. Give one per model, in their order; models of --replicates come "
        "last.",
        metavar="NAME", list_by="repeat", shown="the part of the path that differs")
    against: str | None = shared_option(
        None, "Model to compare the others with.", metavar="NAME", shown="the first")
    metric: Sequence[str] = shared_option(
        (), "Compare this score, such as calibration.ece or segmentation.miou@weather=night. "
        "Repeat for more.", metavar="ADDRESS", panel=_WHAT,
        list_by="repeat", shown="headline scores")
    every: bool = shared_option(
        False, "Compare all scores that can be better or worse.", flags=("--all",), panel=_WHAT)
    per_class: bool = shared_option(
        False, "Also compare the scores of each class; with --metric, only the named scores.",
        panel=_WHAT)
    ci: float = same_option(
        CutOptions, "ci", 0.95, help="Level of the intervals.", panel=_HOW)
    intervals: bool = shared_option(
        True, "Compute paired intervals by resampling the same items of all models; needs the "
        "saved states.", panel=_HOW)
    draws: int = same_option(CutOptions, "draws", panel=_HOW)
    seed: int = same_option(CutOptions, "seed", panel=_HOW)
    layout: str = shared_option(
        "scores", "Rows of the table of scores: one for each score, model or class. `models` and "
        "`classes` also take a single report.",
        choices=("scores", "models", "classes"), panel=_OUT)
    differences: bool = shared_option(
        False, "In LaTeX, also write the differences with their intervals, as a second tabular. "
        "The other formats always have them.", panel=_OUT)
    output: str | None = shared_option(
        None, "Write the comparison as CSV, Markdown, LaTeX or a page (.csv, .md, .tex, .html), "
        "else as JSON. - writes JSON to stdout.", flags=("-o", "--output"), metavar="FILE",
        panel=_OUT)
    format: str = shared_option("table", "Format of stdout.", choices=FORMATS, panel=_OUT)
    quiet: bool = shared_option(
        False, "Print no table and no warnings.", flags=("-q", "--quiet"), panel=_OUT)
    # fmt: on

    def check_typed(self, typed: frozenset[str]) -> None:
        """Raise `UsageError` for options without effect; `typed`: names on the command line."""
        of_intervals = [name for name in ("ci", "draws", "seed") if name in typed]
        if not self.intervals and of_intervals:
            options = ", ".join(f"--{name}" for name in of_intervals)
            raise UsageError(f"{options} has no effect with --no-intervals; leave one of them out.")
        if self.differences and "latex" not in self.forms:
            raise UsageError(
                "--differences is for LaTeX; the other formats have the differences anyway. Leave "
                "it out, or give --format latex or an output that ends in .tex."
            )
        if self.output == "-" and self.format not in ("table", "json"):
            raise UsageError(
                f"-o - prints JSON, so --format {self.format} has no effect; leave "
                "out one of them, or give -o FILE."
            )
        if self.layout != "scores" and "page" in self.forms:
            raise UsageError(
                f"--layout {self.layout} applies to tables, not to a page. Leave --layout out, or "
                "give an output that ends in .csv, .md or .tex."
            )
        if self.layout != "scores" and "json" in self.forms:
            raise UsageError(
                f"--layout {self.layout} applies to tables; JSON is the same in any layout. "
                "Give another --format, or an output that ends in .csv, .md or .tex."
            )

    def refuse_of_one(self, models: Sequence[Model], typed: frozenset[str]) -> None:
        """Raise `UsageError` for options of differences if there is only one training."""
        if len(models) > 1 or len(models[0].trainings) > 1:
            return
        names = ("against", "ci", "draws", "seed", "differences")
        if unused := [f"--{name}" for name in names if name in typed]:
            raise UsageError(
                f"{', '.join(unused)} has no effect on one model: it is for differences between "
                "models. Leave it out, or give two models."
            )

    def without_effect(self, models: Sequence[Model], typed: frozenset[str]) -> list[str]:
        """Return the warning about options of draws if no differences are drawn."""
        unused = [f"--{name}" for name in ("draws", "seed") if name in typed]
        if len(models) > 1 or not unused:
            return []
        return [
            f"{', '.join(unused)} has no effect on one model: the interval of its trainings is "
            "Student's t, without draws."
        ]

    @property
    def forms(self) -> list[str]:
        """Return the formats that are written."""
        if self.output is None:
            return [self.format]
        return [self.format, _ENDINGS.get(Path(self.output).suffix.lower(), "json")]

    def choice(self) -> Choice:
        """Return the options of the comparison."""
        from uqeval.compare import Choice

        level = self.ci if self.intervals else None
        return Choice(
            tuple(self.metric), self.every, self.per_class, self.against, level, self.draws,
            self.seed,
        )  # fmt: skip


class Command(parsing.Command):
    """Command whose --replicates takes all values up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; the values of each --replicates become one value."""
        return super().parse_args(ctx, join_replicates(args))


def join_replicates(args: list[str]) -> list[str]:
    """Return the arguments with the values of each --replicates joined."""
    end = args.index("--") if "--" in args else len(args)
    paths: list[str] = []
    open_ = False
    for arg in args[:end]:
        if arg == _REPLICATES or arg.startswith(f"{_REPLICATES}="):
            name, equals, first = arg.partition("=")
            paths += [name, first] if equals else [name]
            open_ = True
        elif open_ and not arg.startswith("-"):
            if paths[-1] == _REPLICATES:
                paths.append(arg)
            else:
                paths[-1] += f"{_BETWEEN}{arg}"
        else:
            open_ = False
            paths.append(arg)
    return paths + args[end:]


@with_options(of=CompareOptions)
def compare(
    shared: Shared,
    settings: CompareOptions,
    reports: Annotated[list[str] | None, typer.Argument(
        metavar="REPORT...", show_default=False,
        help="Two or more reports, one per model. Or folders of reports, matched by name, or "
        "one folder with one report per model.")] = None,
) -> None:  # fmt: skip
    """Compare models: scores, paired differences with intervals, and ranks.

    Each draw uses the same items for all models, so items that are hard for all do not hide a
    difference. Intervals need the states that -o FILE saves with a report.

    Example: uqeval compare mc.json ensemble.json --replicates seed1.json seed2.json seed3.json
    """
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.compare import compare as compare_models
    from uqeval.compare import load_models

    settings.check_typed(shared.typed)
    groups = [paths.split(_BETWEEN) for paths in settings.replicates]
    least = 2 if settings.layout == "scores" else 1
    models = load_models(reports or [], groups, list(settings.name), least)
    settings.refuse_of_one(models, shared.typed)
    warn(settings.without_effect(models, shared.typed), settings.quiet)
    files = [p for m in models for t in m.trainings for r in t.reports.values() for p in r.files]
    kind = "comparison" if settings.forms[-1] == "json" else None
    check_outputs(Output(settings.output, kind=kind), inputs=files)
    reports_of_page = _reports_of_page(models) if "page" in settings.forms else {}
    choice = settings.choice()
    with _waiting(settings.quiet or not settings.intervals):
        comparison = compare_models(models, choice)
    warn(comparison.sentences, settings.quiet)
    _write(comparison, settings, reports_of_page)
    with printing():
        _print(comparison, settings)


def _reports_of_page(models: Sequence[Model]) -> dict[str, Report]:
    """Return the report of each model. Raises `UsageError` for a model with several."""
    reports_by_model = {}
    for model in models:
        reports = [named for training in model.trainings for named in training.reports.values()]
        if len(reports) > 1:
            raise UsageError(
                f"-o FILE.html: a page has one report of each model; {quoted(model.name)} has "
                f"{len(reports)}. Give one report of each, or an output that ends in .md or .tex."
            )
        reports_by_model[model.name] = reports[0].report
    return reports_by_model


def _write(comparison: Comparison, settings: CompareOptions, reports: Mapping[str, Report]) -> None:
    from uqeval.disk.outputs import write

    output = settings.output
    if output is not None and output != "-":
        form = _ENDINGS.get(Path(output).suffix.lower(), "json")
        if form == "page":
            from uqeval.report.page.html import to_html

            write(output, to_html(reports, comparison=comparison))
            return
        write(output, _text(comparison, form, settings))


def _print(comparison: Comparison, settings: CompareOptions) -> None:
    if settings.output == "-":
        print_text(_text(comparison, "json", settings))
    elif settings.format != "table":
        print_text(_text(comparison, settings.format, settings))
    elif not settings.quiet:
        _show(comparison, settings.layout)


def _text(comparison: Comparison, form: str, settings: CompareOptions) -> str:
    from uqeval.report import comparison_files, latex
    from uqeval.report.tables.comparison import to_markdown

    if form == "json":
        return comparison_files.to_json(comparison)
    if form == "csv":
        return comparison_files.to_csv(comparison, settings.layout)
    if form == "latex":
        return latex.to_latex(comparison, settings.layout, settings.differences)
    return to_markdown(comparison, _in_layout(comparison, settings.layout))


def _in_layout(comparison: Comparison, layout: str) -> Table | None:
    """Return the scores in another layout; None in the default one."""
    from uqeval.report.tables.layouts import pivot

    return None if layout == "scores" else pivot(comparison, layout).table


def _show(comparison: Comparison, layout: str) -> None:
    from uqeval.report.findings.compared import findings_of_comparison
    from uqeval.report.tables.comparison import tables_of
    from uqeval.report.terminal import fitted, print_table, show_findings

    stdout = console()
    for table in tables_of(comparison, _in_layout(comparison, layout)):
        for table_part in fitted(table, stdout.width):
            print_table(table_part, stdout)
    show_findings(findings_of_comparison(comparison), stdout)


def _waiting(quiet: bool) -> AbstractContextManager[object]:
    """Return a status line on a terminal, else a context that does nothing."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()

    return error_console().status("resampling")
