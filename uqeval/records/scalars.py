"""The single numbers of a report: their addresses and their metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uqeval.errors import UsageError, quoted
from uqeval.keys import family_of
from uqeval.records.addresses import ROWS, values_of

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
        ".".join((key, *fields)): value
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
