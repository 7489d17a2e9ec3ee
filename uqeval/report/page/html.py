"""The report as one self-contained HTML page: no network, no external script, readable as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from uqeval.errors import printable
from uqeval.gate import Judgement
from uqeval.keys import family_of
from uqeval.records.report import ItemClasses, ItemsByCell, Report
from uqeval.report import verdict_table, verdicts
from uqeval.report.figures import Figure, figures_of, forest
from uqeval.report.figures.style import inline_svg
from uqeval.report.findings.compared import findings_of_comparison
from uqeval.report.page.cards import Card, cards, finish_time
from uqeval.report.page.exhibits import (
    MOST_IN_HTML,
    Pictured,
    PictureFiles,
    compared_exhibits,
    exhibits_of,
)
from uqeval.report.page.first_screen import first_screen, key_numbers, replaced
from uqeval.report.page.gallery import Gallery
from uqeval.report.page.item_table import table_of_items
from uqeval.report.page.items_behind_cell import CellItems, cell_items
from uqeval.report.page.several import Several
from uqeval.report.page.side_by_side import SideBySide
from uqeval.report.tables.cells import headlines_without_interval
from uqeval.report.tables.comparison import differences
from uqeval.report.tables.records import tables
from uqeval.report.tables.scores import families, scores, slices
from uqeval.report.tables.settings import pairs, resampling, samples, settings
from uqeval.report.tables.table import LEGEND, ROUGH, Table

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from uqeval.compare import Comparison

#: The largest number of rows of a table, except that of items.
MOST_ROWS = 1000


def to_html(
    reports: Mapping[str, Report],
    gallery: Gallery | None = None,
    exhibits: int = 0,
    behind: ItemsByCell | None = None,
    judgement: Judgement | None = None,
    comparison: Comparison | None = None,
    index: str = "",
    files: PictureFiles | None = None,
    classes: ItemClasses | None = None,
    no_comparison: str = "",
) -> str:
    """Return a page of one report, or of a comparison of several, by name.

    `gallery` gives pictures of the `exhibits` worst items and of a third as many good ones; of
    several reports (`SideBySide`), of the items on which they differ most. For a single report:
    `behind` lists the items behind its cells and bins, `classes` the classes of each item.
    `judgement`: the verdicts of a gate on the reports. `comparison`: the comparison of several
    reports, or `no_comparison`: why there is none. `index`: the page of the run that this page
    links to. `files` receives pictures that are too many for one file.
    """
    environment = _environment()
    if len(reports) > 1:
        several = Several(dict(reports), comparison, no_comparison)
        return _of_several(environment, several, gallery, exhibits, judgement, files)
    (report,) = reports.values()
    behind_cells = cell_items(report, behind or {})
    every_cell = [cell for cell_list in behind_cells.values() for cell in cell_list]
    targets = {cell.anchor for cell in every_cell}
    targets |= {"worst"} if len(report.items) > 1 else set()
    pictured = exhibits_of(report, gallery, exhibits, files) if gallery and exhibits else Pictured()
    linked = {*pictured.items, *(i for cell in every_cell for i, *_ in cell.items)}
    stores = ", ".join(str(store["path"]) for store in report.inputs.get("predictions") or [])
    return environment.get_template("report.html").render(
        **_common(environment, reports, behind_cells, targets, judgement),
        **table_of_items(report, linked, classes),
        title=stores or next(iter(reports)),
        report=report,
        name=next(iter(reports)),
        index=index,
        first=first_screen(report, judgement),
        cards=other_cards(report),
        tables=_tables(report, targets),
        resampling=f"{resampling(report)} {headlines_without_interval(report)}".strip(),
        settings=settings(report),
        samples=samples(report),
        slices=slices(report),
        inputs=pairs(report.inputs),
        numerics=pairs(report.numerics),
        timing=pairs(_rounded(report.timing)),
        exhibits=pictured.exhibits,
        pictured=pictured.items,
        picture_data=pictured.data,
        outside=files is not None and bool(files.files),
        gallery=gallery,
    )


def _of_several(
    environment: Environment,
    several: Several,
    gallery: Gallery | None,
    exhibits: int,
    judgement: Judgement | None,
    files: PictureFiles | None,
) -> str:
    """Return the page of a comparison; the arguments are those of `to_html`."""
    reports, comparison, pictured = several.reports, several.comparison, Pictured()
    if isinstance(gallery, SideBySide) and exhibits:
        first, *_ = reports.values()
        pictured = compared_exhibits(first, gallery, exhibits, files)
    plotted = forest.figure(comparison) if comparison else None
    return environment.get_template("compare.html").render(
        **_common(environment, reports, {}, set(), judgement, several.incomparable),
        forest=(plotted, _svg(plotted, set(), {})) if plotted else None,
        findings=findings_of_comparison(comparison) if comparison else [],
        warnings=several.warnings,
        differences=differences(comparison) if comparison else None,
        differences_note=differences(comparison).note if comparison else "",
        finished_of=finish_time,
        several=True,
        exhibits=pictured.exhibits,
        picture_data=pictured.data,
        outside=files is not None and bool(files.files),
        gallery=gallery,
        title=f"Comparison of {', '.join(reports)}",
    )


def other_cards(report: Report) -> list[Card]:
    """Return the cards that are not on the first screen."""
    all_cards = cards(report)
    first = key_numbers(all_cards)
    return [card for card in all_cards if card not in first]


def _common(
    environment: Environment,
    reports: Mapping[str, Report],
    behind_cells: Mapping[str, list[CellItems]],
    targets: Collection[str],
    judgement: Judgement | None,
    incomparable: Collection[str] = (),
) -> dict[str, Any]:
    """Return the template values of all pages; figures link to anchors in `targets`. The tables
    mark no best value of `incomparable` results.
    """
    figures = figures_of(reports)
    titles = {
        cell.anchor: f"{cell.title}. {cell.description}"
        for of_key in behind_cells.values()
        for cell in of_key
    }
    return {
        "reports": reports,
        "families": families(reports),
        "figures": {
            key: [(f, _svg(f, targets, titles)) for f in of_key] for key, of_key in figures.items()
        },
        "cell_items": behind_cells,
        "judgement": judgement,
        "verdicts": verdicts,
        "verdict_table": verdict_table,
        "scores": {own: scores(reports, own, incomparable) for own in families(reports)},
        "script_hash": _script_hash(environment),
        "most_rows": MOST_ROWS,
        "most_exhibits": MOST_IN_HTML,
        "finished": finish_time(reports.values()),
    }


def _rounded(timing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the timing, rounded to milliseconds."""
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in timing.items()}


def _with_options(text: str) -> Markup:
    """Return a text whose command-line options, and numbers before "%", do not break across
    lines."""
    from markupsafe import Markup, escape

    escaped = str(escape(printable(text))).replace(" %", "&nbsp;%")
    return Markup(re.sub(r"(?<!\S)--[a-z][a-z-]*", r'<span class="option">\g<0></span>', escaped))


def _unbroken(text: str) -> Markup:
    """Return a heading that never has a line with a single "|", as of `p(accurate | certain)`."""
    from markupsafe import Markup, escape

    return Markup(str(escape(printable(text))).replace(" |", "&nbsp;|"))


def _svg(figure: Figure, targets: Collection[str], titles: Mapping[str, str]) -> Markup:
    from markupsafe import Markup

    return Markup(inline_svg(figure, targets, titles))


def _tables(report: Report, targets: Collection[str]) -> dict[str, list[Table]]:
    """Return tables of all results, by family."""
    by_family: dict[str, list[Table]] = {}
    for key in report.results:
        by_family.setdefault(family_of(key), []).extend(tables(report, key, targets))
    return by_family


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def safe_text(value: Any) -> Any:
        # Names come from data. Escaping does not remove control characters; this does.
        return printable(value) if type(value) is str else value

    environment = Environment(
        loader=PackageLoader("uqeval.report.page", "templates"), autoescape=True,
        finalize=safe_text,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"with_options": _with_options, "unbroken": _unbroken}
    environment.globals |= {"rough": ROUGH, "legend": LEGEND}
    return environment


def with_first_screen(
    page: str, report: Report, judgement: Judgement | None, comparison: Comparison | None
) -> str:
    """Return a page of a report with its verdicts, and its change from a baseline."""
    first = (
        _environment()
        .get_template("first_screen.html")
        .render(
            first=first_screen(report, judgement, comparison),
            verdicts=verdicts,
            verdict_table=verdict_table,
            most_rows=MOST_ROWS,
        )
    )
    return replaced(page, first)


def rendered(template: str, **values: Any) -> str:
    """Return a page made from a template."""
    environment = _environment()
    return environment.get_template(template).render(
        **values, script_hash=_script_hash(environment)
    )


def _script_hash(environment: Environment) -> str:
    """Return the hash of the script exactly as in the page, for the page's policy."""
    script = environment.get_template("page.js").render()
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
