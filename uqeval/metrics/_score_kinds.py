"""Scores that need more than sums of states: sums of absolute gaps, and scores over items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, Floats, State, np

if TYPE_CHECKING:
    from uqeval.metrics._columns import SetStates
    from uqeval.tallies._contract import Tally


@dataclass(frozen=True)
class Gaps:
    """A score that is Σ_b w_b·|g_b|, a sum of absolute gaps; with `largest`, the greatest of them;
    with `one_sided`, of those above 0 alone; with `area`, that of the products w·g [set, bin].

    From the states of many sets, `signed` returns the gaps g [set, bin] (correct minus expected),
    which add up over items; `weights` returns w [set, bin], for example 1/N. The first set holds
    the items of all others.
    """

    signed: Callable[[Mapping[Tally, SetStates]], Floats]
    weights: Callable[[Mapping[Tally, SetStates]], Floats]
    largest: bool = False
    one_sided: bool = False
    area: Callable[[Floats], Floats] | None = None

    def score(self, signed: Floats, weights: Floats) -> Floats:
        """Return the score [set] of gaps [set, bin] and weights [bin]."""
        if self.area is not None:
            return self.area(signed * weights)
        sizes = np.maximum(signed, 0.0) if self.one_sided else np.abs(signed)
        best = np.max if self.largest else np.sum
        return best(sizes * weights, axis=1)


@dataclass(frozen=True)
class OfFields:
    """A score of sets of items that is computed from fields of the items' records.

    `score(weights, *values)` returns the score [set], NaN where undefined. `weights` [set, item]:
    how often each item is in each set. `values` [item]: of each of the `fields`, NaN where
    undefined. `only`: a field and its values; items with another value are in no set. `by_order`:
    fields of which the score reads only the order over items, not the values.
    `without(is_counted, *values)`: the score of the items that are counted [item] but for each one,
    [item], in less time than by weights.
    """

    fields: tuple[str, ...]
    score: Callable[..., Floats]
    only: tuple[str, frozenset[str]] | None = None
    by_order: frozenset[str] = frozenset()
    without: Callable[..., Floats] | None = None

    def of_all(self, *columns: Floats) -> float | None:
        """Return the score of all items, from the `fields` of each [item]; None if undefined."""
        with np.errstate(all="ignore"):
            value = float(self.score(np.ones((1, len(columns[0])), np.int64), *columns)[0])
        return value if np.isfinite(value) else None

    def counted(self, records: Iterable[Mapping[str, Any]]) -> Array | None:
        """Return which items are counted, from their records; None for all."""
        if self.only is None:
            return None
        field, values = self.only
        return np.array([record.get(field) in values for record in records], bool)


@dataclass(frozen=True)
class OverItems:
    """Scores that are computed from single items, not from counts of all items together.

    `means`: each is the mean of a field of the items' records, where it is defined.
    `of_fields`: each is computed from several such fields, with a weight for each item.
    `of_states`: each is the mean of values that are read from the items' own states of a tally,
    where they are defined.
    `quantiles`: each is a quantile of a field of the items' records; the field, and its share.
    `counts`: each is the number of items with this true field; empty for all items.
    An item with a true field `leaves_out` is in no mean or quantile, and in no sum of states of
    `kept_only`.
    `kept`: the field with the number of the other items. `none_kept`: the reason where there are
    none, of all scores except the fields `fitted`.
    """

    means: Mapping[str, str] = field(default_factory=dict)
    of_fields: Mapping[str, OfFields] = field(default_factory=dict)
    of_states: Mapping[str, tuple[Tally, Callable[[State], Sequence[float | None]]]] = field(
        default_factory=dict
    )
    counts: Mapping[str, str] = field(default_factory=dict)
    leaves_out: str | None = None
    kept_only: frozenset[Tally] = frozenset()
    kept: str = ""
    none_kept: str = ""
    fitted: frozenset[str] = frozenset()
    quantiles: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all these scores."""
        return (*self.means, *self.quantiles, *self.of_fields, *self.of_states)
