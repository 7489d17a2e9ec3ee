"""Output of a run over stores: each store's headline scores, the verdict, and the files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from uqeval.cli.finish import tell_reused
from uqeval.cli.streams import console, printing, tell, warn
from uqeval.records.report import Report
from uqeval.usecases.run import Listener, Outcome


class OutcomePrinter(Listener):
    """Printer of each store's headline scores on stdout, and of errors on stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def done(self, name: str, report: Report, path: Path) -> None:
        """Print the cost of a store and its scores."""
        from rich.console import Console

        from uqeval.report.findings import findings_of
        from uqeval.report.page.overview import cost
        from uqeval.report.tables.of_report import headline_table
        from uqeval.report.terminal import fitted, print_table, show_findings, show_warnings

        if self._quiet:
            return
        tell_reused(report)
        warnings = [f"{name}: {text}" for text in report.warnings]
        show_warnings(dataclasses.replace(report, warnings=warnings), Console(stderr=True))
        table = headline_table(
            report, f"{name}: {_members(report)}{cost(report)}{_read_off(report)}"
        )
        with printing():
            stdout = console()
            for part in fitted(table, stdout.width):
                print_table(part, stdout)
            show_findings(findings_of(report, path=str(path)), stdout)

    def failed(self, name: str, reason: str) -> None:
        """Print the error of a store, even with -q."""
        tell(f"uqeval: {name}: {reason}")

    def warned(self, text: str) -> None:
        """Print which rule cannot be judged, even with -q."""
        tell(f"uqeval: {text}")


def _members(report: Report) -> str:
    """Return how many stores were joined as the members of one ensemble; empty for one store."""
    stores = report.inputs.get("predictions", ())
    if len(stores) < 2 or "sets" in report.inputs or "temporal" in report.results:
        return ""
    return f"{len(stores)} stores as members of one ensemble, "


def _read_off(report: Report) -> str:
    """Return the times of intervals and slices as text; empty if there are none."""
    parts = {step: report.timing.get(f"{step}_seconds") for step in ("intervals", "slices")}
    return "".join(f", {step} {took:.1f} s" for step, took in parts.items() if took is not None)


def finish(outcome: Outcome, quiet: bool) -> None:
    """Print the verdict, the errors, and in the last line the written files."""
    if outcome.judgement is not None and not quiet:
        from uqeval.cli.gate import show

        warn(outcome.judgement.warnings, quiet)
        show(outcome.judgement)
    if outcome.judgement is not None and not outcome.failed:
        from uqeval.cli.gate import tell_not_evaluated

        tell_not_evaluated(outcome.judgement)
    if outcome.ungated is not None:
        tell(f"uqeval: {outcome.ungated}")
    if outcome.failed:
        total = len(outcome.failed.keys() | outcome.reports.keys())
        tell(
            f"uqeval: {len(outcome.failed)} of {total} stores could not be evaluated: "
            f"{', '.join(outcome.failed)}."
        )
    if outcome.files and not quiet:
        typer.echo(f"wrote {', '.join(map(str, reversed(outcome.files)))}")
