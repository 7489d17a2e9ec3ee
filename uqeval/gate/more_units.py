"""The data that a verdict still needs, and the chance that all rules pass again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from uqeval.records.resampling import Interval

#: Beyond so many times the units that there are a rule is too close to call.
_MOST_TIMES = 100
#: The quantile that `MoreUnits.count` adds for its power. It is above 80 % because the number comes
#: from an estimated standard error: averaged over these, 80 % is what comes out (docs/gate.md).
_POWER = 0.85
#: Below this chance that all rules pass again there is a note.
_UNLIKELY = 0.5


@dataclass(frozen=True)
class MoreUnits:
    """How many more units decide with a power of 80 % if the true distance is the observed one.

    `low` and `high`: the same at the observed distance plus and less one standard error. None: more
    than 100 times the units that there are.
    """

    count: int | None
    low: int | None
    high: int | None
    unit: str


def more_units(
    interval: Interval, measured: Fraction, limit: Fraction, items: int
) -> MoreUnits | None:
    """Return how many more units than n decide; None without units.

    k·n units decide where h/√k + a/k + t′·se/√k is the distance to the limit: h = t·se; a, by which
    the end of the interval beside the limit lies farther off than h, falls faster; t and t′ are
    quantiles of Student's t at (1 + level)/2 and 85 %, with units − 1 degrees of freedom, since the
    standard error of few units is itself uncertain. n counts the units of the interval; of a video,
    whose units are batches, pairs (`items`). A share without events needs as many units as move its
    exact bound to the limit. Of an interval without a standard error, as in older reports,
    the error is estimated from its width.
    """
    from scipy.special import stdtrit

    video = interval.unit == "batch"
    n, unit = (items, "pair") if video else (interval.count or items, interval.unit)
    if not n:
        return None
    distance, value = float(abs(measured - limit)), float(measured)
    degrees = max((interval.count or items) - 1, 1)
    t, of_power = (float(stdtrit(degrees, p)) for p in ((1 + interval.level) / 2, _POWER))
    error = interval.error
    if error is None and not interval.exact:
        error = (interval.high - interval.low) / (2 * t)
    reach = interval.high - value if limit > measured else value - interval.low

    def needed(gap: float) -> int | None:
        if gap <= 0:
            return None
        if error:
            skew, straight = max(reach - t * error, 0.0), (t + of_power) * error
            root = (straight + math.sqrt(straight * straight + 4 * skew * gap)) / (2 * gap)
            more = n * root * root - n
        else:
            bounds = 0 < reach < 1 and gap < 1
            more = n * (math.log1p(-reach) / math.log1p(-gap) if bounds else reach / gap) - n
        return max(1, math.ceil(more)) if more <= _MOST_TIMES * n else None

    nearer, farther = distance - (error or 0.0), distance + (error or 0.0)
    return MoreUnits(needed(distance), needed(farther), needed(nearer), unit)


@dataclass(frozen=True)
class Margin:
    """How far a rule passes: the distance of a value to its limit, and the value's interval."""

    name: str
    distance: float
    interval: Interval


def chance_of_all(margins: Sequence[Margin]) -> str | None:
    """Return a note where it is unlikely that all rules that pass with confidence pass again.

    For each, the chance on as many other units if its true value is the observed one is
    Φ(distance/se − z); the rules are taken as independent. Rules without a standard error are left
    out.
    """
    chances: dict[str, float] = {}
    for own in margins:
        if own.interval.error:
            z = NormalDist().inv_cdf((1 + own.interval.level) / 2)
            chances[own.name] = NormalDist().cdf(own.distance / own.interval.error - z)
    together = math.prod(chances.values())
    if len(chances) < 2 or together >= _UNLIKELY:
        return None
    weakest = min(chances, key=lambda name: chances[name])
    return (
        f"all {len(chances)} rules with confidence pass, but on as many other items all of them "
        f"would pass again with a chance of about {together:.0%} (least: {weakest}, "
        f"{chances[weakest]:.0%}): evaluate more items, or widen the limits."
    )
