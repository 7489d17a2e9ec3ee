"""The report of one store: one read for all metrics, another for a sweep."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from uqeval.report.schema import Report
from uqeval.run import Progress, RunOptions, run
from uqeval.running.outcome import RunSettings
from uqeval.running.tasks import Task, options_of


def evaluated(task: Task, folder: Path, options: RunOptions, chosen: RunSettings) -> Report:
    """The report of one store: one read for all metrics, another for a sweep."""
    states = folder / f"{task.name}.states.zip"
    own = dataclasses.replace(
        options, states=states, cut=task.cut, progress=_Prefixed(task.name, options.progress)
    )
    report = run(task.inputs, task.families, own) if task.families else None
    if task.sweep is None:
        assert report is not None
        return report
    swept = _swept(task, own, chosen)
    return swept if report is None else _joined(report, swept)


def _swept(task: Task, options: RunOptions, chosen: RunSettings) -> Report:
    from uqeval.sweeping import arguments, sweep

    store = task.store
    assert store.predictions is not None
    asked = {"reference": store.reference} | arguments(task.sweep or {})
    return sweep(
        store.predictions, store.truth, **asked, workers=options.workers, memory=options.memory,
        progress=options.progress, **options_of(store, chosen),
    )  # fmt: skip


def _joined(report: Report, swept: Report) -> Report:
    """One report of both: the sweep under its own keys."""
    families = {key: own for key, own in swept.settings.items() if key != "sweep"}
    timing = {key: report.timing[key] + swept.timing[key] for key in ("seconds", "bytes_read")}
    return report.model_copy(
        update={
            "results": report.results | swept.results,
            "settings": report.settings
            | {"sweep": swept.settings["sweep"] | {"families": families}},
            "metrics": swept.metrics | report.metrics,
            "warnings": report.warnings
            + [f"sweep: {text}" for text in swept.warnings if text not in report.warnings],
            "timing": report.timing | timing | {"sweep_bytes_read": swept.timing["bytes_read"]},
        }
    )


@dataclass
class _Prefixed:
    """Progress that says which store it is of."""

    name: str
    inner: Progress

    def begin(self, what: str, items: int) -> None:
        self.inner.begin(f"{self.name}: {what}", items)

    def advance(self, nbytes: int, items: int) -> None:
        self.inner.advance(nbytes, items)

    def end(self) -> None:
        self.inner.end()
