"""The logged content of a report: scores, settings, findings, figures and page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from uqeval.errors import UsageError, cut
from uqeval.records.report import Report
from uqeval.records.scalars import by_address


@dataclass(frozen=True)
class Picture:
    """A figure as a PNG of `size` (width, height)."""

    name: str
    title: str
    png: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height, from the header of the PNG."""
        return int.from_bytes(self.png[16:20], "big"), int.from_bytes(self.png[20:24], "big")


@dataclass(frozen=True)
class Entry:
    """One report for a tracker; `step`: its position on a time axis, such as the epoch."""

    name: str
    report: Report
    pictures: tuple[Picture, ...]
    html: str
    step: int

    def scores(self) -> dict[str, float]:
        """Return the defined scores of the whole set by their addresses, `pavpu.surplus`."""
        return by_address(self.report.results, self.report.metrics)

    def settings(self) -> dict[str, str]:
        """Return the stores, the version and all settings as texts; nested names have dots."""
        inputs = self.report.inputs
        stores = [str(store.get("path")) for store in inputs.get("predictions", [])]
        truth = inputs.get("labels") or inputs.get("target") or {}
        first: dict[str, Any] = {"uqeval": self.report.uqeval_version, "predictions": stores}
        if truth.get("path"):
            first["labels"] = str(truth["path"])
        return dict(_flat(first | self.report.settings))

    def findings(self) -> str:
        """Return one paragraph per finding."""
        from uqeval.report.findings import findings_of

        return "\n\n".join(
            f"{finding.title}: {finding.text}" for finding in findings_of(self.report)
        )


class Tracker(Protocol):
    """One experiment tracker, whose library is imported."""

    def add(self, entry: Entry) -> str:
        """Write a report; return a message. Raises `OutputError` if the tracker refuses it."""


def entries_of(reports: Mapping[str, Report], html: str, step: int) -> list[Entry]:
    """Return entries of reports by name, each with its own figures and the page of them all."""
    from uqeval.report.figures import figures_of
    from uqeval.report.figures.style import render

    entries = []
    for name, report in reports.items():
        figures = [f for of_family in figures_of({name: report}).values() for f in of_family]
        pictures = tuple(Picture(f.name, f.title, render(f, "png")) for f in figures)
        entries.append(Entry(name, report, pictures, html, step))
    return entries


def import_library(library: str, module: str = "") -> None:
    """Import the library of an option of its name. Raises `UsageError` if it is not installed."""
    try:
        import_module(module or library)
    except ImportError:
        raise UsageError(
            f"--{library} needs {library}, which is not installed. Install it: pip install "
            f"{library}"
        ) from None


def reason_of(error: BaseException) -> str:
    """Return the message of an error of a tracker, without its last full stop."""
    return cut(str(error).strip().rstrip("."))


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
