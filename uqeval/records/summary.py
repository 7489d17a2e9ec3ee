"""A report as a small HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from uqeval.keys import family_of
from uqeval.records.intervals import interval
from uqeval.records.scalars import described, with_arrow

_HEADINGS = ("metric", "score", "value", "interval", "meaning")
_ALIGN = ("left", "left", "right", "right", "left")


def html_of(
    title: str,
    results: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Mapping[str, Any]],
    intervals: Mapping[str, Mapping[str, Any]],
    warnings: Sequence[str],
) -> str:
    """Return the scores of a report as HTML: label, direction, value, interval and meaning.

    The column of intervals is left out if there are none.
    """
    rows = list(_rows(results, metrics, intervals))
    shown = [i for i in range(len(_HEADINGS)) if i != 3 or any(row[3] for row in rows)]
    head = "".join(f"<th style='text-align:{_ALIGN[i]}'>{_HEADINGS[i]}</th>" for i in shown)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:{_ALIGN[i]}'>{escape(row[i])}</td>" for i in shown)
        + "</tr>"
        for row in rows
    )
    listed = "".join(f"<li>{escape(text)}</li>" for text in warnings)
    return (
        f"<p><b>{escape(title)}</b></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<p>Warnings:</p><ul>{listed}</ul>" if listed else "")
    )


def _rows(
    results: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Mapping[str, Any]],
    intervals: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str, str, str, str]]:
    for key, record in results.items():
        for name, value in record.items():
            metric = described(metrics, family_of(key), [name])
            if not metric or not isinstance(value, int | float | None):
                continue
            label = with_arrow(str(metric.get("label", name)), metric.get("direction"))
            shown = "undefined" if value is None else _number(value)
            meaning = record.get(f"{name}_reason") if value is None else metric.get("meaning")
            found = interval(intervals, key, [name])
            ends = "" if found is None else _interval(found)
            yield key, label, shown, ends, str(meaning or "")


def _interval(found: Mapping[str, Any]) -> str:
    low, high = _number(found["low"]), _number(found["high"])
    return f"{low} to {high} ({100 * found['level']:g} %)"


def _number(value: float) -> str:
    """Return a count with separators, or a number with four decimals, never rounded to 0."""
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.4f}"
    return text if float(text) or not value else f"{value:.3g}"
