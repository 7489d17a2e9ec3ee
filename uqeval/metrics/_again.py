"""Reading the scores of a variant off saved states again, what was fitted held fixed.

Slices, merged parts, intervals by resampling and paired comparisons are all this, over different
sums of the states of items; no store is opened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


@dataclass(frozen=True)
class Gaps:
    """A score that is Σ_b w_b·|g_b|, a sum of absolute gaps, or with `largest` the greatest one.

    `signed(states)`: the gaps g [bin] of any items, right less expected, which add up over items;
    `weights(states)`: w [bin] of the whole set, 1/N say.
    """

    signed: Callable[[Mapping[Tally, State]], NDArray[np.float64]]
    weights: Callable[[Mapping[Tally, State]], NDArray[np.float64]]
    largest: bool = False


@dataclass(frozen=True)
class Again:
    """What it takes to score a variant again.

    `tallies`: whose folded states `scores` is given, by tally; it returns numbers and rows as they
    stand in the report's results, undefined ones None with their reason, and with `whole` the
    curves too. `means`: fields of the results that are the mean of a field of the items' records,
    over those where it is defined; `correlations`: fields that are Pearson's r of two such.
    `leaves_out`: a field of the items' records that is true where the item is in no mean, and in no
    sum of the states of the tallies `kept_only`. `of_states`: fields that are the mean of what is
    read off the items' own states of a tally, several values each, over those that are defined.
    `approximate`: the fields whose values are averaged inside bins, and so differ from an exact run
    by the relative width of a bin at most, `bound`; "*" for all. `gaps`: scores that are sums of
    absolute gaps, by their place in what `scores` returns: ("ece",), ("per_class", 3, "ece").
    """

    tallies: tuple[Tally, ...] = ()
    scores: Callable[[Mapping[Tally, State], bool], dict[str, Any]] = lambda states, whole: {}
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
