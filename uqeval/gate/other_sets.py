"""Whether two reports of out-of-distribution detection have their items in the same sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from uqeval.errors import quoted
from uqeval.records.report import Report
from uqeval.records.set_names import Moved, is_order_unknown, moved, moved_stores

ADVICE = "Evaluate both with the same IN and OUT stores, in the same order"


def other_sets(report: Report, baseline: Report, key: str) -> Iterator[tuple[str, Moved]]:
    """Yield in words what a result of the two has in other sets, and the sets.

    Items are matched by name. Those of a store without names are called after their set, so paths
    of stores count for these. In another set they are other items, so no score is of the same ones.
    """
    items = _sets_of_items(report, key), _sets_of_items(baseline, key)
    for found in moved(*items, report.inputs, baseline.inputs):
        others = f" and of {found.number - 1} other" + "s" * (found.number > 2)
        yield f"the set of item {quoted(found.first)}{others * (found.number > 1)}", found
    if _has_numbered(*items):
        for found in moved_stores(report.inputs, baseline.inputs):
            yield f"the set of the store {quoted(found.first)}", found._replace(of_kind=True)


def unknown_sets(report: Report, baseline: Report, key: str) -> str:
    """Return a sentence, without its end, if nothing tells whether two reports have their OUT sets
    in the same order; else an empty text."""
    items = _sets_of_items(report, key), _sets_of_items(baseline, key)
    if not _has_numbered(*items) or not is_order_unknown(report.inputs, baseline.inputs):
        return ""
    return (
        "whether the OUT sets are the same is unknown: their items have no names, and the sets "
        "are called by their order. Give the items names, or the OUT stores different file names"
    )


def _sets_of_items(report: Report, key: str) -> dict[str, str]:
    """Return the set of each item by its name; empty if the result has no sets."""
    if "sets" not in report.inputs:  # few reports have any
        return {}
    records = ((str(item.get("name")), item.get(key)) for item in report.items)
    return {
        name: str(record["set"])
        for name, record in records
        if isinstance(record, Mapping) and "set" in record
    }


def _has_numbered(own: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether both have items that are called after their set: `fog/0`."""
    pairs = chain(own.items(), other.items())
    return any(
        name in own and name in other
        for name, label in pairs
        if name.startswith(f"{label}/") and name[len(label) + 1 :].isdigit()
    )
