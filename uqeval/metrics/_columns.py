"""Scores of many sets of items at once, as columns of numbers.

Intervals and permutation tests score thousands of sets: each number is one array [set].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from uqeval.arrays import Array, State, np
from uqeval.metrics._contract import Metric, set_value

#: The path of a number in results: ("ece",), ("per_class", 3, "iou"), ("coverage", "90").
Place = tuple[Any, ...]
#: Numbers of many sets, [set] by place.
SetColumns: TypeAlias = "dict[Place, Array]"


class LazyFields(Mapping[str, Array]):
    """Fields of many sets of items by name, each made when it is first read."""

    def __init__(self, make: Mapping[str, Callable[[], Array]]) -> None:
        self._make = make
        self._known: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._known:
            self._known[name] = self._make[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)


@dataclass(frozen=True)
class SetStates:
    """The states of many sets of items: each field [set, …], counts as float64.

    If the tally is read `by_column`, large fields have only the `columns` (of the last axis) that
    are not all zero.
    """

    fields: Mapping[str, Array]
    columns: Array | None = None

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]

    @classmethod
    def of_one(cls, state: State) -> SetStates:
        """Return the state of one set with an axis for sets."""
        return cls({name: values[None] for name, values in state.items()})

    @property
    def sets(self) -> int:
        """Return the number of sets."""
        return len(next(iter(self.fields.values())))


def over(a: Array, b: Array) -> Array:
    """Return a / b, NaN where b is 0."""
    with np.errstate(all="ignore"):
        quotient: Array = np.where(b != 0, a / b, np.nan)
    return quotient


def mean_of_defined(values: Array) -> Array:
    """Return the mean of each row [set, class] over its values except NaN; NaN if all are NaN."""
    is_defined = np.isfinite(values)
    return over(running_sum(np.where(is_defined, values, 0.0)), is_defined.sum(axis=-1))


def running_sum(values: Array) -> Array:
    """Return the sums of the last axis, added up from its first number to its last one, so that
    their bits do not depend on the number of sets.
    """
    return values.cumsum(axis=-1)[..., -1]


def as_number(value: Array) -> float | None:
    """Return the value of one set for a report: None for NaN."""
    return None if value != value else float(value)


def as_numbers(values: Array) -> list[Any]:
    """Return values [set] for a report: None for NaN."""
    return [None if value != value else value for value in values.tolist()]


def scores_of(metrics: Sequence[Metric], columns: Mapping[Place, Array]) -> list[dict[str, Any]]:
    """Return the values of metrics for each set, undefined ones None with their reason."""
    values = [as_numbers(columns[metric.field,]) for metric in metrics]
    records: list[dict[str, Any]] = []
    for set_values in zip(*values, strict=True):
        records.append({})
        for metric, value in zip(metrics, set_values, strict=True):
            set_value(records[-1], metric.field, value, metric.undefined)
    return records


def of_rows(columns: Mapping[str, Array], rows: Sequence[Any]) -> SetColumns:
    """Return each column of [set, row], an array [set], under its place in the rows of classes."""
    return {
        ("per_class", row, name): values[:, i]
        for name, values in columns.items()
        for i, row in enumerate(rows)
    }
