"""The overview of a run: the gate's verdict, and links to the pages of its stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from uqeval.errors import number_of
from uqeval.gate import Judgement
from uqeval.gate.saved_verdicts import of_stores
from uqeval.glossary import family_label
from uqeval.keys import family_of
from uqeval.records.report import Report
from uqeval.report import verdict_table, verdicts
from uqeval.report.findings import findings_of
from uqeval.report.page.cards import cards, finish_time
from uqeval.report.page.files import link_to
from uqeval.report.page.first_screen import key_numbers
from uqeval.report.page.html import MOST_ROWS, rendered


def cost(report: Report) -> str:
    """Return the amount of work as text: items, seconds, bytes read."""
    timing = report.timing
    parts = [number_of(len(report.items), "item"), f"{timing['seconds']:.1f} s"]
    if read := timing["bytes_read"]:
        parts.append(f"{_bytes(read)} read")
    elif timing.get("items_reused"):
        parts.append("all from saved states")
    return ", ".join(parts)


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def to_overview(
    reports: Mapping[str, Report],
    failed: Mapping[str, str],
    judgement: Judgement | None,
    ungated: str | None,
) -> str:
    """Return the page: the verdicts, then the headlines of each store with a link to its page."""
    stores = [
        (
            name,
            link_to(str(PurePath(f"{name}.html"))),
            cost(report),
            key_numbers(cards(report)),
            report,
        )
        for name, report in reports.items()
    ]
    total = number_of(len(reports.keys() | failed.keys()), "store")
    some = "" if reports.keys() >= failed.keys() else f"{len(reports)} of "
    return rendered(
        "overview.html", title=f"uqeval run of {', '.join(reports)}", stores=stores, failed=failed,
        evaluated=f"{some}{total}", judgement=judgement, ungated=ungated, most_rows=MOST_ROWS,
        verdicts=verdicts, verdict_table=verdict_table,
        finished=finish_time(reports.values()),
        pages={name: link for name, link, *_ in stores},
        findings={
            name: findings_of(report, of_stores(judgement, {name}) if judgement else None)
            for name, report in reports.items()
        },
        families={
            name: ", ".join(dict.fromkeys(family_label(family_of(key)) for key in report.results))
            for name, report in reports.items()
        },
    )  # fmt: skip
