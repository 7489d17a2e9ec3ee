"""`uqeval gate`: check reports against rules, with an exit status for CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from uqeval.cli.declared import with_options
from uqeval.cli.streams import console, printing, tell, warn
from uqeval.errors import UsageError, printable
from uqeval.settings import Settings, shared_option
from uqeval.spelling import spelled

if TYPE_CHECKING:
    from rich.console import Console

    from uqeval.gate import Judgement, NotEvaluated, Resampler, Rule
    from uqeval.records.folder import Named

_OUT, _CI = "Output", "Continuous integration"

#: Largest job summary that GitHub accepts, in bytes.
_MOST_SUMMARY = 1 << 20


@dataclass(frozen=True)
class GateOptions(Settings):
    """The options of `uqeval gate`."""

    # fmt: off
    baseline: str | None = shared_option(
        None, "Report or folder of reports from which drops and rises are measured.",
        metavar="REPORT")
    output: str | None = shared_option(
        None, "Write the verdicts as JSON; - is stdout.", flags=("-o", "--output"),
        metavar="FILE", panel=_OUT)
    format: str = shared_option(
        "table", "Format of stdout.", choices=("table", "json", "markdown"), panel=_OUT)
    quiet: bool = shared_option(
        False, "Print no table and no warnings.", flags=("-q", "--quiet"), panel=_OUT)
    junit: str | None = shared_option(
        None, "Write the verdicts as JUnit XML.", metavar="FILE", panel=_CI)
    markdown: str | None = shared_option(
        None, "Write the verdicts as Markdown.", metavar="FILE", panel=_CI)
    github: bool | None = shared_option(
        None, "Write annotations to stderr, and append Markdown to $GITHUB_STEP_SUMMARY.",
        flags=("--github/--no-github",), panel=_CI, shown="if GITHUB_ACTIONS is true")
    today: str | None = shared_option(
        None, "Check waivers against this day instead of today (UTC). For tests of rules, not for "
        "releases.", metavar="YYYY-MM-DD", panel=_CI)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if "-" in (self.junit, self.markdown) and self.format != "table":
            raise UsageError("two outputs go to stdout; give each its own file.")
        if self.output == "-" and self.format == "markdown":
            raise UsageError(
                "-o - prints JSON, so --format markdown has no effect; leave out "
                "one of them, or give -o FILE."
            )

    @property
    def on_github(self) -> bool:
        """Return whether to write annotations and a job summary for GitHub."""
        in_action = os.environ.get("GITHUB_ACTIONS") == "true"
        return in_action if self.github is None else self.github


@with_options(of=GateOptions)
def gate(
    settings: GateOptions,
    report: Annotated[str, typer.Argument(
        metavar="REPORT", show_default=False,
        help="A report, or a folder of reports. In a folder, each report has the name of its "
        "file.")],
    rules: Annotated[str | None, typer.Argument(
        metavar="RULES", show_default=False,
        help="YAML file of rules, or a uqeval.yaml with a `gate:` section (default: uqeval.yaml).")]
        = None,
) -> None:  # fmt: skip
    """Check reports against rules. Status 0: all hold; 1: a rule fails; 2: not judged.

    A rule is an address with limits: pavpu.pavpu: {min: 0.78, confidence: 0.95}. A rule fails
    if its value breaks the limit. It also fails if the value is undefined or its interval
    contains the limit, unless the rule allows that.

    Example: uqeval gate report.json gate.yaml --baseline main.json --junit gate.xml
    """
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.config import load_rules_file
    from uqeval.disk.outputs import refuse_overlap
    from uqeval.gate import judge
    from uqeval.gate.baseline import refuse_unused_baseline
    from uqeval.gate.leftovers import with_leftovers
    from uqeval.gate.rules import day_of, refuse_unused_day
    from uqeval.records.folder import digests_of, load_reports

    file = rules or _default_rules()
    summary = os.environ.get("GITHUB_STEP_SUMMARY") or None
    day = day_of(settings.today)
    rules_file = load_rules_file(file)
    demanded = rules_file.rules
    if day is not None:
        refuse_unused_day(day, demanded, file)
    if settings.baseline is not None:
        refuse_unused_baseline(demanded)
    reports = load_reports(report)
    before = load_reports(settings.baseline) if settings.baseline is not None else []
    read_files = [path for named_report in (*reports, *before) for path in named_report.files]
    outputs = (
        Output(settings.output, kind="verdicts"), Output(settings.junit, "--junit"),
        Output(settings.markdown, "--markdown"),
    )  # fmt: skip
    check_outputs(*outputs, inputs=[file, *read_files])
    refuse_overlap([summary], [file, *read_files], "give GITHUB_STEP_SUMMARY another file")
    states = cast("Resampler", _Tallies(demanded, [*reports, *before]))
    judgement = judge(reports, demanded, before, states, today=day).dated(day)
    if Path(report).is_dir():  # a single report was chosen on purpose
        judgement = with_leftovers(judgement, reports, rules_file.stores, file)
    inputs: dict[str, Any] = {"report": report, "baseline": settings.baseline, "rules": file}
    inputs["sha256"] = digests_of(reports, before, rules_file.sha256)
    _deliver(judgement, inputs, settings)
    tell_not_evaluated(judgement.not_evaluated)
    if not judgement.passed:
        raise typer.Exit(2 if judgement.not_evaluated else 1)


def _deliver(judgement: Judgement, read: dict[str, Any], settings: GateOptions) -> None:
    """Write the files, and print the requested output. `read`: the files of the gate."""
    from uqeval.disk.outputs import write

    outputs = {"json": settings.output, "junit": settings.junit, "markdown": settings.markdown}
    for form, path in outputs.items():
        if path is not None and path != "-":
            write(path, _text(judgement, read, form))
    if settings.on_github:
        _tell_github(judgement)
    warn(judgement.warnings, settings.quiet)
    printed = next((form for form, path in outputs.items() if path == "-"), settings.format)
    with printing():
        if printed != "table":
            sys.stdout.write(_text(judgement, read, printed))
        elif not settings.quiet:
            show(judgement)


def _text(judgement: Judgement, read: dict[str, Any], form: str) -> str:
    """Return verdicts as JSON, JUnit or Markdown; imports only the module that writes this."""
    if form == "markdown":
        from uqeval.report.verdict_table import to_markdown

        return to_markdown(judgement)
    from uqeval.report.verdict_files import to_json, to_junit

    return to_junit(judgement) if form == "junit" else to_json(judgement, read)


def tell_not_evaluated(rules: Sequence[NotEvaluated]) -> None:
    """Print which rules could not be judged and why, one line for each reason, even with -q."""
    from uqeval.gate.verdict import by_reason

    for place, why in by_reason(rules):
        tell(f"uqeval: {place}: not evaluated: {why}")


def _default_rules() -> str:
    """Return the rules file of the working folder."""
    from uqeval.config import FILE, no_file

    if not Path(FILE).is_file():
        raise UsageError(
            f"no RULES given, and {no_file()}; give a YAML file of rules, such as "
            "pavpu.pavpu: {min: 0.78}."
        )
    return FILE


def show(judgement: Judgement, announced: int = 0) -> None:
    """Print the table of verdicts, details of all that are not a plain pass, and the outcome.

    `announced`: of how many rules, the first that are not evaluated, the reasons are printed here;
    `tell_not_evaluated` prints those of the others.
    """
    from rich.markup import escape

    from uqeval.report import verdicts as words
    from uqeval.report.terminal import fitted, print_table
    from uqeval.report.verdict_table import table

    stdout = console()
    for table_part in fitted(table(judgement), stdout.width):
        print_table(table_part, stdout)
    here = replace(judgement, not_evaluated=judgement.not_evaluated[:announced])
    for name, facts in words.findings(here):
        stdout.print(
            f"[bold]{escape(printable(name))}[/]", highlight=False,
            soft_wrap=not sys.stdout.isatty(),
        )  # fmt: skip
        for fact in facts:
            _print_indented(stdout, printable(spelled(fact)))
        stdout.print()
    colour = "green" if judgement.passed else "red"
    stdout.print(f"[bold {colour}]{words.summary(judgement)}[/]", highlight=False)


def _print_indented(stdout: Console, fact: str) -> None:
    """Print a line of a list; on a terminal, wrapped lines are indented too."""
    from rich.padding import Padding
    from rich.text import Text

    if not sys.stdout.isatty():
        stdout.print(f"  {fact}", highlight=False, markup=False, soft_wrap=True)
        return
    stdout.print(Padding(Text(fact), (0, 0, 0, 2), expand=False))


def _tell_github(judgement: Judgement) -> None:
    from uqeval.disk.publishing import writing
    from uqeval.report.verdict_files import to_annotations

    for line in to_annotations(judgement):
        typer.echo(line, err=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        text = _text(judgement, {}, "markdown").encode("utf-8", "backslashreplace")
        if len(text) > _MOST_SUMMARY:
            text = text[: text.rfind(b"\n", 0, _MOST_SUMMARY - 100)] + b"\n\nand more.\n"
        with writing(path), Path(path).open("ab") as file:
            file.write(text)


class _Tallies:
    """Resampler that imports `uqeval.statistics`, and with it NumPy, at its first use."""

    def __init__(self, rules: Sequence[Rule], loaded: Sequence[Named]) -> None:
        self._rules, self._loaded = rules, loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resampler, name)

    @cached_property
    def _resampler(self) -> Resampler:
        from uqeval.statistics import resampler

        return resampler((rule.address for rule in self._rules), self._loaded)
