"""Scores of many sets of items at once, as columns of numbers.

Intervals and permutation tests score thousands of sets: each number is one array [set]. Quantiles
and correlations over items take each item as often as its weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from uqeval.arrays import Array, Floats, State, np
from uqeval.metrics._contract import Metric, set_value

#: The path of a number in results: ("ece",), ("per_class", 3, "iou"), ("coverage", "90").
Place = tuple[Any, ...]
#: The relative rounding of areas, whose sums are in another order.
_ROUNDING = 1e-12
#: Numbers of many sets, [set] by place.
SetColumns: TypeAlias = "dict[Place, Array]"


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


def at_least_0(values: Array) -> Array:
    """Return values that are 0 or more by definition, such as a difference from the best possible
    order, without the -1e-17 of rounding. NaN stays NaN."""
    return np.maximum(values, 0.0)


def difference(area: Array, other: Array) -> Array:
    """Return the difference of two areas; 0 for areas that only rounding separates."""
    found = area - other
    is_rounding = np.abs(found) <= _ROUNDING * np.maximum(np.abs(area), np.abs(other))
    return np.where(is_rounding, 0.0, found)


def without_rounding(spread: Array, squares: Array) -> Array:
    """Return a sum of squares about a mean [set], 0 where it is only the rounding of its terms.

    `squares`: the sum of the squares themselves. The rounding stays below 1e-15 of it.
    """
    return np.where(spread > 1e-15 * squares, spread, 0.0)


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
    return records_of(columns, {metric.field: metric.undefined for metric in metrics})


def records_of(
    columns: Mapping[Place, Array], undefined: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return fields for each set; `undefined`: the reason of each where it is undefined."""
    values = [as_numbers(columns[field,]) for field in undefined]
    records: list[dict[str, Any]] = []
    for set_values in zip(*values, strict=True):
        records.append({})
        for (field, reason), value in zip(undefined.items(), set_values, strict=True):
            set_value(records[-1], field, value, reason)
    return records


def of_rows(columns: Mapping[str, Array], rows: Sequence[Any]) -> SetColumns:
    """Return each column of [set, row], an array [set], under its place in the rows of classes."""
    return {
        ("per_class", row, name): values[:, i]
        for name, values in columns.items()
        for i, row in enumerate(rows)
    }


def class_rows(
    columns: Mapping[Place, Array], names: Sequence[str], undefined: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of the classes with these names, of one set; `undefined`: the reason of each
    of the fields where it is undefined."""
    rows: list[dict[str, Any]] = []
    for c, name in enumerate(names):
        rows.append({"class": c, "name": name})
        for field, reason in undefined.items():
            set_value(rows[-1], field, as_numbers(columns["per_class", c, field])[0], reason)
    return rows


#: The number of items in a run, whose weights are added up first.
_RUN = 128


def quantile(share: float, weights: Array, values: Floats) -> Floats:
    """Return a quantile [set] of values [item] that each set has `weights` [set, item] times.

    Interpolated linearly, as NumPy's. NaN without values.
    """
    return quantiles((share,), [weights], values)[:, 0]


def quantiles(shares: Sequence[float], blocks: Iterable[Array], values: Floats) -> Floats:
    """Return several quantiles [set, share] of values [item]; `blocks` of sets: the weights [set,
    item] of each block."""
    is_defined = np.isfinite(values)
    order = np.argsort(np.where(is_defined, values, np.nan), kind="stable")[: is_defined.sum()]
    of_blocks = [
        _ordered_quantiles(shares, own.take(order, axis=1), values[order]) for own in blocks
    ]
    return np.concatenate(of_blocks) if of_blocks else np.zeros((0, len(shares)))


def _ordered_quantiles(shares: Sequence[float], weights: Array, values: Floats) -> Floats:
    """Return quantiles [set, share] of finite values [item] that increase."""
    if not values.size:
        return np.full((len(weights), len(shares)), np.nan)
    # The sums of runs show which run has the rank. Only this run is added up by item.
    runs = np.add.reduceat(weights, np.arange(0, values.size, _RUN), axis=1, dtype=np.int64)
    upto = runs.cumsum(axis=1)
    total = upto[:, -1]

    def value_at(rank: Array) -> Array:
        run = np.minimum((upto <= rank[:, None]).sum(axis=1), upto.shape[1] - 1)[:, None]
        items = np.minimum(run * _RUN + np.arange(_RUN), values.size - 1)
        before = np.take_along_axis(upto - runs, run, axis=1)
        within = np.take_along_axis(weights, items, axis=1).cumsum(axis=1, dtype=np.int64)
        at = run[:, 0] * _RUN + (before + within <= rank[:, None]).sum(axis=1)
        return values[np.minimum(at, values.size - 1)]

    def of_share(share: float) -> Floats:
        position = (total - 1) * share
        lower = np.floor(position)
        ends = [value_at(rank) for rank in (lower, np.minimum(lower + 1, total - 1))]
        between: Floats = ends[0] + (ends[1] - ends[0]) * (position - lower)
        return np.where(total > 0, between, np.nan)

    return np.stack([of_share(share) for share in shares], axis=1)


def correlation(weights: Array, x: Floats, y: Floats) -> Floats:
    """Return Pearson's r of `x` and `y` [item] by `weights` [set, item]: [set].

    NaN for fewer than three items, and where one of the two is constant.
    """
    finite = np.isfinite(x) & np.isfinite(y)
    w = weights[:, finite].astype(np.float64)
    a, b = (
        values[finite] - values[finite].mean() if finite.any() else values[finite]
        for values in (x, y)
    )
    n = w.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ma, mb = (w @ a) / n, (w @ b) / n
        cov = (w @ (a * b)) / n - ma * mb
        va, vb = (w @ (a * a)) / n - ma * ma, (w @ (b * b)) / n - mb * mb
        r: Floats = cov / np.sqrt(va * vb)
    undefined = (w > 0).sum(axis=1) < 3
    for centred, variance in ((x[finite], va), (y[finite], vb)):
        least = np.where(w > 0, centred, np.inf).min(axis=1, initial=np.inf)
        most = np.where(w > 0, centred, -np.inf).max(axis=1, initial=-np.inf)
        # Practically constant: the remaining variance is rounding.
        undefined |= (least >= most) | (variance <= 1e-12 * centred.var() if centred.size else True)
    r[undefined] = np.nan
    return np.clip(r, -1.0, 1.0)
