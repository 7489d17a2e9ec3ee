"""A report as a small HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from uqeval.keys import family_of
from uqeval.records.intervals import interval
from uqeval.records.scalars import described

_ARROWS = {"higher": "↑", "lower": "↓"}


def html_of(
    title: str,
    results: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Mapping[str, Any]],
    intervals: Mapping[str, Mapping[str, Any]],
    warnings: Sequence[str],
) -> str:
    """Return the scores of a report as HTML: label, direction, value, interval and meaning."""
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in _rows(results, metrics, intervals)
    )
    listed = "".join(f"<li>{escape(text)}</li>" for text in warnings)
    return (
        f"<p><b>{escape(title)}</b></p>"
        "<table><thead><tr><th>metric</th><th>score</th><th>value</th><th>interval</th>"
        f"<th>meaning</th></tr></thead><tbody>{body}</tbody></table>"
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
            label = f"{metric.get('label', name)} {_ARROWS.get(str(metric.get('direction')), '')}"
            shown = "undefined" if value is None else f"{value:.4g}"
            meaning = record.get(f"{name}_reason") if value is None else metric.get("meaning")
            found = interval(intervals, key, [name])
            ends = "" if found is None else _interval(found)
            yield key, label.strip(), shown, ends, str(meaning or "")


def _interval(found: Mapping[str, Any]) -> str:
    return f"{found['low']:.4g} to {found['high']:.4g} ({100 * found['level']:g} %)"
