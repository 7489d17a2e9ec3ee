"""A report as a small HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

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
            metric = described(metrics, key.partition("@")[0].partition("[")[0], [name])
            if not metric or not isinstance(value, int | float | None):
                continue
            label = f"{metric.get('label', name)} {_ARROWS.get(str(metric.get('direction')), '')}"
            shown = "undefined" if value is None else f"{value:.4g}"
            meaning = record.get(f"{name}_reason") if value is None else metric.get("meaning")
            interval = _interval(intervals.get(f"{key}.{name}", {}))
            yield key, label.strip(), shown, interval, str(meaning or "")


def _interval(interval: Mapping[str, Any]) -> str:
    low, high = interval.get("low"), interval.get("high")
    if low is None or high is None:
        return ""
    return f"{low:.4g} to {high:.4g} ({100 * interval['level']:g} %)"
