"""Reading the scores of a variant off saved states again, what was fitted held fixed.

Slices, merged parts, intervals by resampling and paired comparisons are all this, over different
sums of the states of items; no store is opened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


#: Where a number stands in results: ("ece",), ("per_class", 3, "iou"), ("coverage", "90").
Place = tuple[Any, ...]


@dataclass(frozen=True)
class SetStates:
    """The states of many sets of items: each field [set, …], counts as float64.

    Of a tally that is read `by_column`, the last axis of large fields is of those `columns` alone
    that hold anything.
    """

    fields: Mapping[str, NDArray[Any]]
    columns: NDArray[Any] | None = None

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.fields[name]

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return len(next(iter(self.fields.values())))


#: Numbers [set] by their places, NaN where undefined, of states of many sets: those wanted, which
#: are named by the first word of their places, and perhaps others.
Columns = Callable[["Mapping[Tally, SetStates]", "Collection[str]"], "Mapping[Place, NDArray[Any]]"]


@dataclass(frozen=True)
class Gaps:
    """A score that is Σ_b w_b·|g_b|, a sum of absolute gaps, or with `largest` the greatest one.

    Of states of many sets `signed` returns the gaps g [set, bin], right less expected, which add up
    over items; `weights` w [set, bin], 1/N say.
    """

    signed: Callable[[Mapping[Tally, SetStates]], NDArray[np.float64]]
    weights: Callable[[Mapping[Tally, SetStates]], NDArray[np.float64]]
    largest: bool = False


@dataclass(frozen=True)
class Again:
    """What it takes to score a variant again.

    `tallies`: whose folded states `scores` is given, by tally; it returns numbers, rows and curves
    as they stand in the report's results, undefined ones None with their reason. `columns` returns
    the numbers alone, of many sets of items at once, to the last places.
    `means`: fields of the results that are the mean of a field of the items' records,
    over those where it is defined; `correlations`: fields that are Pearson's r of two such.
    `leaves_out`: a field of the items' records that is true where the item is in no mean, and in no
    sum of the states of the tallies `kept_only`. `of_states`: fields that are the mean of what is
    read off the items' own states of a tally, several values each, over those that are defined.
    `approximate`: the fields whose values are averaged inside bins, and so differ from an exact run
    by the relative width of a bin at most, `bound`; "*" for all. `gaps`: scores that are sums of
    absolute gaps, by their place in what `scores` returns: ("ece",), ("per_class", 3, "ece").
    """

    tallies: tuple[Tally, ...] = ()
    scores: Callable[[Mapping[Tally, State]], dict[str, Any]] = lambda states: {}
    columns: Columns = lambda states, wanted: {}
    means: Mapping[str, str] = field(default_factory=dict)
    correlations: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    leaves_out: str | None = None
    kept_only: frozenset[Tally] = frozenset()
    of_states: Mapping[str, tuple[Tally, Callable[[State], Sequence[float | None]]]] = field(
        default_factory=dict
    )
    approximate: frozenset[str] = frozenset()
    bound: float = 0.0
    gaps: Mapping[tuple[Any, ...], Gaps] = field(default_factory=dict)


def settings_of(kind: Any, record: Mapping[str, Any]) -> Any:
    """Settings of a dataclass `kind` from what a report says of them."""
    known = kind.__dataclass_fields__
    return kind(**{name: value for name, value in record.items() if name in known})


def over(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return a / b, NaN where b is 0."""
    import numpy as np

    with np.errstate(all="ignore"):
        found: NDArray[Any] = np.where(b != 0, a / b, np.nan)
    return found


def mean_of_defined(values: NDArray[Any]) -> NDArray[Any]:
    """Return the means of rows [set, …] over what is no NaN, NaN where all is."""
    import numpy as np

    known = np.isfinite(values)
    return over(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


def of_rows(columns: Mapping[str, NDArray[Any]], rows: Sequence[Any]) -> dict[Place, NDArray[Any]]:
    """Return columns [set, row] by the places of the rows of classes, each [set]."""
    return {
        ("per_class", row, name): values[:, i]
        for name, values in columns.items()
        for i, row in enumerate(rows)
    }
