"""The report of one store: one read for all metrics, another for a sweep."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from uqeval.engine.options import Progress, RunOptions
from uqeval.errors import NegativeSigma
from uqeval.records.report import Report
from uqeval.usecases.evaluate import run
from uqeval.usecases.plans import without_sigma
from uqeval.usecases.run.tasks import Task


def of_families(task: Task, folder: Path, options: RunOptions) -> Report | None:
    """Return the report of all metrics except a sweep, from one read; None if there are no others.

    If the user did not name metrics, those whose map of σ has negative values are left out.
    """
    inputs, families = task.inputs, task.families
    options = dataclasses.replace(
        options, states=folder / f"{task.name}.states.zip", cut=task.cut,
        progress=_Prefixed(task.name, options.progress),
    )  # fmt: skip
    while families:
        try:
            return run(inputs, families, options)
        except NegativeSigma as error:
            if not task.everything or "part" in inputs.record:  # shards leave out the same
                raise
            families, inputs = without_sigma(inputs, families, error)
    return None


def with_sweep(task: Task, report: Report | None, options: RunOptions) -> Report:
    """Return the report with the requested sweep, which reads the store again."""
    if task.sweep is None:
        assert report is not None
        return report
    from uqeval.usecases.sweep import run_sweep

    options = dataclasses.replace(
        options, progress=_Prefixed(task.name, options.progress), resume=False
    )
    swept = run_sweep(task.sweep, options)
    return swept if report is None else _with_sweep(report, swept)


def without_sweep(report: Report, error: BaseException) -> Report:
    """Return the report with a warning that its sweep is missing."""
    reason = str(error) or "it was interrupted."
    return dataclasses.replace(report, warnings=[*report.warnings, f"no sweep: {reason}"])


def _with_sweep(report: Report, swept: Report) -> Report:
    """Return one report of both, the sweep under its own keys."""
    families = {
        key: family_settings for key, family_settings in swept.settings.items() if key != "sweep"
    }
    timing = {key: report.timing[key] + swept.timing[key] for key in ("seconds", "bytes_read")}
    timing["finished"] = swept.timing["finished"]
    return dataclasses.replace(
        report,
        results=report.results | swept.results,
        settings=report.settings | {"sweep": swept.settings["sweep"] | {"families": families}},
        metrics=swept.metrics | report.metrics,
        warnings=report.warnings
        + [f"sweep: {text}" for text in swept.warnings if text not in report.warnings],
        timing=report.timing | timing | {"sweep_bytes_read": swept.timing["bytes_read"]},
    )


@dataclass
class _Prefixed:
    """Progress with the name of its store."""

    name: str
    inner: Progress

    def begin(self, activity: str, items: int) -> None:
        self.inner.begin(f"{self.name}: {activity}", items)

    def advance(self, nbytes: int, items: int) -> None:
        self.inner.advance(nbytes, items)

    def end(self) -> None:
        self.inner.end()
