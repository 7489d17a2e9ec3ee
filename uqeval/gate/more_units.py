"""The number of units that would decide a verdict, and the chance that all rules pass again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from uqeval.records.resampling import Interval
from uqeval.special import special

#: Give no number if the decision needs more than this factor times the present units.
_MOST_TIMES = 100
#: The quantile for the power in `more_units`. It is above 80 %, because the standard error is only
#: estimated. Averaged over estimates, the power is about 80 % (docs/intervals.md).
_POWER = 0.85
#: Warn if the chance that all rules pass again is below this.
_UNLIKELY = 0.5


@dataclass(frozen=True)
class MoreUnits:
    """The number of additional units that decides a verdict with a power of 80 %.

    It assumes that the observed distance to the limit is the true one. `low` and `high` assume a
    distance of one standard error more, and of one less. None: more than 100 times the present
    number of units.
    """

    count: int | None
    low: int | None
    high: int | None
    unit: str


def more_units(
    interval: Interval, measured: Fraction, limit: Fraction, items: int
) -> MoreUnits | None:
    """Return the number of units in addition to n that decides the verdict; None without units.

    Solve distance = (t + t′)·se/√k + a/k for k; the result is k·n − n. t and t′ are the quantiles
    of Student's t at (1 + level)/2 and 85 %, with units − 1 degrees of freedom. a is the distance
    from the value to the end of the interval on the side of the limit, minus t·se.

    n is the number of units of the interval; for a video, whose units are batches, the number of
    pairs (`items`). For a score of exactly 0 or 1, k moves the exact bound to the limit. Older
    reports have no standard error: it is estimated from the width of other intervals.
    """
    video = interval.unit == "batch"
    n, unit = (items, "pair") if video else (interval.count or items, interval.unit)
    if not n:
        return None
    distance, value = float(abs(measured - limit)), float(measured)
    degrees = max((interval.count or items) - 1, 1)
    quantiles = special().stdtrit
    t, of_power = (float(quantiles(degrees, p)) for p in ((1 + interval.level) / 2, _POWER))
    error = interval.error
    exact = interval.exact or (interval.method == "korn-graubard" and value in (0.0, 1.0))
    if error is None and not exact:
        error = (interval.high - interval.low) / (2 * t)
    reach = interval.high - value if limit > measured else value - interval.low

    def count_for(gap: float) -> int | None:
        if gap <= 0:
            return None
        if error:
            skew, straight = max(reach - t * error, 0.0), (t + of_power) * error
            # hypot: float64 may have no square of the terms.
            root = straight + math.hypot(straight, 2 * math.sqrt(skew) * math.sqrt(gap))
            root /= 2 * gap
            additional = n * root * root - n
        else:
            bounds = 0 < reach < 1 and gap < 1
            additional = n * (math.log1p(-reach) / math.log1p(-gap) if bounds else reach / gap) - n
        return max(1, math.ceil(additional)) if additional <= _MOST_TIMES * n else None

    nearer, farther = distance - (error or 0.0), distance + (error or 0.0)
    return MoreUnits(count_for(distance), count_for(farther), count_for(nearer), unit)


@dataclass(frozen=True)
class Margin:
    """The distance of a passing value to its limit, and the interval of the value."""

    name: str
    distance: float
    interval: Interval


def chance_of_all(margins: Sequence[Margin]) -> str | None:
    """Return a warning if the rules with confidence are unlikely to all pass again, else None.

    Suppose that the true value is the observed one. On the same number of new units a rule passes
    with a chance of Φ(distance/se − z), z = Φ⁻¹((1 + level)/2). The chances are multiplied, as if
    the rules were independent. Rules without a standard error are ignored.
    """
    chances: dict[str, float] = {}
    for margin in margins:
        if margin.interval.error:
            z = NormalDist().inv_cdf((1 + margin.interval.level) / 2)
            chances[margin.name] = NormalDist().cdf(margin.distance / margin.interval.error - z)
    chance = math.prod(chances.values())
    if len(chances) < 2 or chance >= _UNLIKELY:
        return None
    weakest = min(chances, key=lambda name: chances[name])
    return (
        f"all {len(chances)} rules with confidence pass. On as many new items, all of them would "
        f"pass again with a chance of about {chance:.0%}; the lowest chance is "
        f"{chances[weakest]:.0%}, of {weakest}. Evaluate more items, or widen the limits."
    )
