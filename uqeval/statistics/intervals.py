"""Intervals of scores by resampling items: percentiles over the draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import UsageError
from uqeval.gate.addresses import Address
from uqeval.report.scalars import described
from uqeval.statistics.draws import Resampling
from uqeval.statistics.scoring import Scoring

#: Fewer units than this carry no interval worth the name; it is given, and said.
FEW = 10
#: An interval is undefined where more of the draws than this have no value.
_UNDEFINED = 0.05


def check_level(level: float, option: str = "--ci") -> float:
    """The level. Raises `UsageError` for one that cannot be."""
    if not 0.5 <= level < 1:
        raise UsageError(f"{option} {level:g}; expected a level from 0.5 to below 1, such as 0.95.")
    return level


@dataclass(frozen=True)
class Drawn:
    """Scores of some items, `values` [address], and of their resamples, `draws` [draw, address]."""

    scoring: Scoring
    resampling: Resampling
    items: tuple[int, ...]
    addresses: tuple[str, ...]
    values: NDArray[np.float64]
    draws: NDArray[np.float64]

    @classmethod
    def of(
        cls, scoring: Scoring, resampling: Resampling, items: Sequence[int] | None = None
    ) -> Drawn:
        """Resample some items (None: all). Scores are those of which the run's metrics have a
        record; none where there is one unit only, of which nothing can be drawn."""
        places = tuple(range(scoring.items)) if items is None else tuple(items)
        own = resampling.only(places)
        addresses = measured(scoring)
        if own.units(len(places)) < 2:
            addresses = ()
        values = _table(scoring, places, np.ones((1, len(places)), np.int64), addresses)[0]
        known = np.isfinite(values)
        addresses, values = tuple(compress(addresses, known)), values[known]
        draws = np.empty((0, 0))
        if addresses:
            draws = _table(scoring, places, own.weights(len(places)), addresses)
        return cls(scoring, own, places, addresses, values, draws)

    def intervals(self, level: float) -> dict[str, dict[str, Any]]:
        """Those of all scores that have one, by address: `level`, `low`, `high`, `method`,
        `approximate`."""
        found: dict[str, dict[str, Any]] = {}
        for column, address in enumerate(self.addresses):
            draws, value = self.draws[:, column], float(self.values[column])
            ends = metric_of(self.scoring.index["metrics"], address)["range"]
            own = interval(
                draws, value, level, partial(self._units, column) if ends == [0.0, 1.0] else None
            )
            if own is not None:
                approximate = is_approximate(self.scoring, address)
                found[address] = {"level": level, **own, "approximate": approximate}
        return found

    def _units(self, column: int) -> int:
        return int(self._units_with[column])

    @cached_property
    def _units_with(self) -> NDArray[np.int64]:
        """How many units have a value of their own, [address]."""
        found = np.zeros(len(self.addresses), np.int64)
        rows = 0
        for alone in self.resampling.alone(len(self.items)):
            own = _table(self.scoring, self.items, alone, self.addresses)
            found += np.isfinite(own).sum(axis=0)
            rows += len(alone)
        # Items of a block are no independent ones.
        return -(-found * self.resampling.units(len(self.items)) // rows)


def interval(
    draws: NDArray[np.float64], value: float, level: float, units: Callable[[], int] | None
) -> dict[str, Any] | None:
    """The two-sided percentile interval of a value: `low`, `high`, `method`.

    `units`, for a share: how many it is of. A share of 0 or 1 in every draw has the exact interval
    of Clopper and Pearson for them. None where too many draws are undefined (NaN), or all are the
    same: of that resampling knows nothing.
    """
    tail = (1 - level) / 2
    known = draws[np.isfinite(draws)]
    if len(known) < (1 - _UNDEFINED) * len(draws):
        return None
    if (known != known[0]).any():
        low, high = (float(v) for v in np.quantile(known, [tail, 1 - tail]))
        return {"low": low, "high": high, "method": "percentile"}
    if units is None or value not in (0.0, 1.0) or known[0] != value:
        return None
    reach = 1 - tail ** (1 / max(units(), 1))
    low, high = (0.0, reach) if value == 0 else (1 - reach, 1.0)
    return {"low": low, "high": high, "method": "clopper-pearson"}


def _table(
    scoring: Scoring, items: Sequence[int], weights: NDArray[np.int64], addresses: Sequence[str]
) -> NDArray[np.float64]:
    """Scores by weights of some items [set, item of them]."""
    of_all = np.zeros((len(weights), scoring.items), np.int64)
    of_all[:, list(items)] = weights
    return scoring.table(of_all, addresses)


def measured(scoring: Scoring) -> tuple[str, ...]:
    """The addresses of a run that are of a metric: no counts, no settings."""
    known = scoring.index["metrics"]
    return tuple(text for text in scoring.addresses if metric_of(known, text))


def metric_of(metrics: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The record of the metric that an address is of, in a report's `metrics`; empty if of none."""
    address = Address.parse(text)
    return described(metrics, address.metric, address.fields)


def is_approximate(scoring: Scoring, text: str) -> bool:
    """Whether a score read off states is averaged inside bins."""
    address = Address.parse(text)
    again = scoring.agains.get(address.key)
    if again is None:
        return False
    return "*" in again.approximate or bool(set(address.fields) & again.approximate)
