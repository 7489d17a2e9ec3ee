"""The single numbers of a report: their addresses and their metrics; as a small HTML table for
notebooks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from uqeval.errors import UsageError, decimals, quoted
from uqeval.keys import family_of
from uqeval.records.addresses import ROWS, Address, values_of
from uqeval.records.intervals import interval

#: Endings of fields next to a score: the reason why it is undefined, and the bound of its error.
BESIDE = ("_reason", "_bound")
#: Which way is better.
ARROWS = {"higher": "↑", "lower": "↓"}
#: MLflow's rules for a name: its characters, and a path that is in order; its longest.
_PREFIX = re.compile(r"[\w.\- :/]*", re.ASCII)
_MOST = 250
#: The score that is the mean over classes of a field of rows by class, as metrics declare it
#: (`of_class`). Repeated here because metrics import reports, to read thresholds from them.
_MEANS_OF = {"iou": "miou", "accuracy": "mean_accuracy"}


def with_arrow(text: str, direction: object) -> str:
    """Return a label with an arrow to better values."""
    return f"{text} {ARROWS.get(str(direction), '')}".strip()


def described(
    metrics: Mapping[str, Mapping[str, Any]], metric: str, fields: Sequence[str]
) -> dict[str, Any]:
    """Return the record of a number in a report's `metrics`: unit, direction, …; empty if it has
    none."""
    prefixes: tuple[str, ...] = ("",)
    if fields[0] in ROWS:
        prefixes, fields = ("per_class.*.", "per_class.", ""), fields[2:]
    for end in range(len(fields), 0, -1):
        name = ".".join(fields[:end])
        for known in (*(prefix + name for prefix in prefixes), _MEANS_OF.get(name)):
            if (found := metrics.get(f"{metric}.{known}")) is not None:
                return dict(found)
    return {}


def for_trackers(
    results: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Mapping[str, Any]],
    prefix: str,
    per_class: bool,
) -> dict[str, float]:
    """Return the values of metrics under names that every experiment tracker accepts: `prefix`,
    then ASCII letters, digits and underscores.

    Raises `UsageError` for a prefix that MLflow would refuse.
    """
    steps = prefix.removesuffix("/").split("/")
    if not _PREFIX.fullmatch(prefix) or (prefix and not {"", ".", ".."}.isdisjoint(steps)):
        raise UsageError(
            f"the prefix {quoted(prefix)} cannot begin a name in experiment trackers; use "
            "letters, digits, _ and single slashes, such as 'val/'."
        )
    found: dict[str, float] = {}
    for key, fields, value in _of_metrics(results, metrics, per_class):
        found[_unused(f"{prefix}{_plain('_'.join((key, *fields)))}", found)] = value
    return found


def by_address(
    results: Mapping[str, Mapping[str, Any]], metrics: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Return the values of metrics by their addresses, `pavpu[window=7].surplus`, without those of
    classes."""
    return {
        Address.of_key(key, fields).within: value
        for key, fields, value in _of_metrics(results, metrics, per_class=False)
    }


def _of_metrics(
    results: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Mapping[str, Any]],
    per_class: bool,
) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Yield key, fields and value of each number of a metric."""
    for key, record in results.items():
        metric = family_of(key)
        for fields, _, value in values_of(record):
            is_left_out = fields[0] == "per_class" and not per_class
            if value is not None and not is_left_out and described(metrics, metric, fields):
                yield key, fields, float(value)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")


def _unused(name: str, used: Mapping[str, float]) -> str:
    """Return the name, shortened to MLflow's limit, with a number if two names become equal."""
    found, n = name[:_MOST], 1
    while found in used:
        n += 1
        found = f"{name[: _MOST - len(str(n)) - 1]}_{n}"
    return found


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
    """Return a count with separators, or a number with four decimals, or more if it is small."""
    return f"{value:,}" if isinstance(value, int) else decimals(value, 4)


#: Relative difference of equal scores whose sums are in another order.
ROUNDING = 1e-12


def is_rounding(value: float, other: float) -> bool:
    """Return whether two scores differ by rounding at most."""
    return abs(value - other) <= ROUNDING * max(abs(value), abs(other))


def is_below(value: Fraction | float, other: Fraction | float, size: Fraction | float = 0) -> bool:
    """Return whether a number is below another by more than rounding.

    `size`: for differences, the size of the numbers that were subtracted.
    """
    if math.inf in (abs(value), abs(other)):
        return value < other
    number, limit = Fraction(value), Fraction(other)
    return number < limit - max(abs(number), abs(limit), Fraction(size)) * Fraction(ROUNDING)
