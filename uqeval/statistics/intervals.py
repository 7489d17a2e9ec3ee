"""Intervals of scores by resampling items: percentiles over the draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import UsageError
from uqeval.gate.addresses import Address
from uqeval.report.scalars import described
from uqeval.statistics.alike import Alike, Units
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
    units: Units

    @classmethod
    def of(
        cls, scoring: Scoring, resampling: Resampling, items: Sequence[int] | None = None
    ) -> Drawn:
        """Resample some items (None: all). Scores are those of which the run's metrics have a
        record; none where there is one unit only, of which nothing can be drawn."""
        places = tuple(range(scoring.items)) if items is None else tuple(items)
        own = Alike([scoring], [places], resampling.only(places))
        addresses = measured(scoring) if own.resampling.units(len(places)) > 1 else ()
        (values,) = own.values(addresses)
        known = np.isfinite(values)
        addresses, values = tuple(compress(addresses, known)), values[known]
        draws = own.draws(addresses)[0] if addresses else np.empty((0, 0))
        units = Units(own, addresses)
        return cls(scoring, own.resampling, places, addresses, values, draws, units)

    def intervals(self, level: float) -> dict[str, dict[str, Any]]:
        """Those of all scores that have one, by address: `level`, `low`, `high`, `method`,
        `approximate`."""
        found: dict[str, dict[str, Any]] = {}
        for column, address in enumerate(self.addresses):
            draws, value = self.draws[:, column], float(self.values[column])
            units = partial(self.units, column) if is_share(self.scoring, address) else None
            own = interval(draws, value, level, units)
            if own is not None:
                approximate = is_approximate(self.scoring, address)
                found[address] = {"level": level, **own, "approximate": approximate}
        return found


def interval(
    draws: NDArray[np.float64], value: float, level: float, units: Callable[[], int] | None
) -> dict[str, Any] | None:
    """The two-sided percentile interval of a value: `low`, `high`, `method`.

    `units`, for a share: how many it is of. A share of 0 or 1 in every draw has the exact interval
    of Clopper and Pearson for them. None where too many draws are undefined (NaN), or all are the
    same: of that resampling knows nothing.
    """
    known = _known(np.isfinite(draws))
    if known is None:
        return None
    drawn = draws[known]
    if (drawn != drawn[0]).any():
        return _percentiles(drawn, level)
    if units is None or not _without_events(drawn, value):
        return None
    low, high = _exact_ends(value, level, units())
    return {"low": low, "high": high, "method": "clopper-pearson"}


def change(
    values: Sequence[float],
    draws: NDArray[np.float64],
    level: float,
    units: Callable[[], int] | None,
    relative: bool = False,
) -> dict[str, Any] | None:
    """The two-sided interval of a value less another, `values`, over `draws` [of the two, draw] of
    the same items: `low`, `high`, `method`; `relative` to the absolute value of the other.

    The percentiles of the differences. For two shares of `units` without any event (each 0 or 1 in
    every draw) they would be a single number; there the exact bounds of both are held against each
    other. That covers at least as often as the level says, for the same units have not shown an
    event of the one without the other either. None where too many draws are undefined, or all
    differ alike.
    """
    (value, base), (ours, theirs) = values, draws
    known = _known(np.isfinite(ours) & np.isfinite(theirs) & ~(relative & (theirs == 0)))
    if known is None:
        return None
    ours, theirs = ours[known], theirs[known]
    if units is not None and _without_events(ours, value) and _without_events(theirs, base):
        (a, b), (c, d) = (_exact_ends(own, level, units()) for own in (value, base))
        low, high = (a / d - 1, b / c - 1) if relative else (a - d, b - c)
        return {"low": low, "high": high, "method": "clopper-pearson"}
    differences = ours - theirs
    if relative:
        differences = differences / np.abs(theirs)
    if (differences == differences[0]).all() and differences[0] != 0:
        return None
    return _percentiles(differences, level)  # 0 and 0: the same everywhere


def _known(known: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Which draws are defined; None where too many are not."""
    return known if known.sum() >= (1 - _UNDEFINED) * known.size and known.any() else None


def _percentiles(drawn: NDArray[np.float64], level: float) -> dict[str, Any]:
    tail = (1 - level) / 2
    low, high = (float(v) for v in np.quantile(drawn, [tail, 1 - tail]))
    return {"low": low, "high": high, "method": "percentile"}


def _without_events(drawn: NDArray[np.float64], value: float) -> bool:
    """Whether a share is 0, or 1, in every draw."""
    return value in (0.0, 1.0) and bool((drawn == value).all())


def _exact_ends(value: float, level: float, units: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson (Biometrika 26:404, 1934) of none, or all, of `units`."""
    reach = 1 - ((1 - level) / 2) ** (1 / max(units, 1))
    return (0.0, reach) if value == 0 else (1 - reach, 1.0)


def measured(scoring: Scoring) -> tuple[str, ...]:
    """The addresses of a run that are of a metric: no counts, no settings."""
    known = scoring.index["metrics"]
    return tuple(text for text in scoring.addresses if metric_of(known, text))


def metric_of(metrics: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The record of the metric that an address is of, in a report's `metrics`; empty if of none."""
    address = Address.parse(text)
    return described(metrics, address.metric, address.fields)


def is_share(scoring: Scoring, text: str) -> bool:
    """Whether a score lies between 0 and 1, both of which it may be."""
    return bool(metric_of(scoring.index["metrics"], text).get("range") == [0.0, 1.0])


def is_approximate(scoring: Scoring, text: str) -> bool:
    """Whether a score read off states is averaged inside bins."""
    address = Address.parse(text)
    again = scoring.agains.get(address.key)
    if again is None:
        return False
    return "*" in again.approximate or bool(set(address.fields) & again.approximate)
