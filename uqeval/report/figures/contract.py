"""A figure before it is drawn, and its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import uqeval.report.figures.colours as colours
from uqeval.errors import printable
from uqeval.glossary import label
from uqeval.keys import Key, family_of
from uqeval.records.intervals import class_of, interval
from uqeval.records.report import Report
from uqeval.records.scalars import with_arrow

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Record: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Line:
    """The record of one key of one report, and its label in a legend.

    `place`: the number of its colour, which the report has in all figures.
    """

    label: str
    key: str
    record: Record
    report: Report
    place: int = 0

    @property
    def colour(self) -> str:
        """Return the colour of the line."""
        return colours.colour(self.place)

    @property
    def dashes(self) -> str:
        """Return the dashes of the line."""
        return colours.dashes(self.place)

    def interval(self, field: str) -> tuple[float, float] | None:
        """Return the confidence interval of a field; None if the report has none."""
        return self._ends(field.split("."))

    def class_interval(self, row: Record, field: str) -> tuple[float, float] | None:
        """Return the confidence interval of a field of a row of `per_class`."""
        return self._ends(["per_class", class_of(self.record["per_class"], row), field])

    def _ends(self, fields: list[str]) -> tuple[float, float] | None:
        ends = interval(self.report.intervals, self.key, fields)
        return (ends["low"], ends["high"]) if ends else None


def panel_label(lines: Sequence[Line], field: str) -> str:
    """Return the label of a score of the lines of a family."""
    return label(family_of(lines[0].key), field)


def panel_title(lines: Sequence[Line], field: str) -> str:
    """Return the label with an arrow to better values."""
    metric = lines[0].report.metrics.get(f"{family_of(lines[0].key)}.{field}") or {}
    return with_arrow(panel_label(lines, field), metric.get("direction"))


@dataclass(frozen=True)
class Figure:
    """A figure: its name, texts and size, and the function that draws it.

    `name`: of its file and its anchor. `alt`: the main numbers, for readers who cannot see the
    figure. `caption`: how to read it. `size`: in inches. On a page, marks of the figure may link to
    the items of that mark in the result `behind`, else to the worst items. `links`: a text that
    describes the worst items; empty without such links.
    """

    name: str
    title: str
    alt: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Canvas], None]
    links: str = ""
    behind: str = ""


def lines_with(lines: Iterable[Line], field: str) -> list[Line]:
    """Return the lines whose records have a value for `field`."""
    return [line for line in lines if line.record.get(field)]


def lines_by_risk(lines: Iterable[Line]) -> Iterator[tuple[str, str, list[Line]]]:
    """Yield each risk, the end of its figure's name ("" if there is one risk), and its lines."""
    by_risk: dict[str, list[Line]] = {}
    for line in lines:
        by_risk.setdefault(line.record["risk"], []).append(line)
    for risk, of_risk in by_risk.items():
        suffix = "-" + "".join(c if c.isalnum() else "-" for c in risk)
        yield risk, suffix if len(by_risk) > 1 else "", of_risk


def label_among(line: Line, lines: Iterable[Line], *words: str | None) -> str:
    """Return the label of a curve; for lines of a single report these words and the region."""
    if any(other.report is not line.report for other in lines):
        return line.label
    return " ".join(filter(None, [*words, Key.parse(line.key).region]))


def of_whole_images(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of whole images, without those of regions."""
    return [line for line in lines if Key.parse(line.key).region is None]


def lines_of(reports: Mapping[str, Report]) -> dict[str, list[Line]]:
    """Return lines of all reports by family, in the order of the reports' results.

    The first line of a report has the same colour in all families, also in those that another
    report lacks; lines of its variants and regions have further ones.
    """
    by_family: dict[str, list[Line]] = {}
    for n, (name, report) in enumerate(reports.items()):
        keys = list(report.results)
        for key in keys:
            before = sum(line.report is report for line in by_family.get(family_of(key), ()))
            is_only_variant = sum(family_of(k) == family_of(key) for k in keys) == 1
            parts = [name] if len(reports) > 1 else []
            if not parts or not is_only_variant:
                parts.append(_variant(key, report))
            by_family.setdefault(family_of(key), []).append(
                Line(
                    printable(" · ".join(parts)),
                    key,
                    report.results[key],
                    report,
                    n + before * len(reports),
                )
            )
    return by_family


def _variant(key: str, report: Report) -> str:
    """Return the label of a variant: the setting in its key, or the default of the plain key."""
    own_key = Key.parse(key)
    if own_key.region is not None:
        return " ".join(part for part in (own_key.variant, own_key.region) if part)
    if own_key.variant is not None:
        return own_key.variant
    keys = [Key.parse(k) for k in report.results]
    variants = [
        str(variant_key)
        for variant_key in keys
        if variant_key.family == key and variant_key.variant is not None
    ]
    if not variants and any(
        variant_key.family == key and variant_key.region for variant_key in keys
    ):
        return "whole image"
    record = report.results[key]
    variant_key = record.get("uncertainty") or record.get("model")
    named = any("=" not in (Key.parse(k).variant or "").split(",")[0] for k in variants)
    return str(variant_key) if named and variant_key else key
