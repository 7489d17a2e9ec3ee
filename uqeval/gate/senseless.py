"""Limits that no value can break or keep, and limits on the wrong side, by the range and the
direction of a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from uqeval.errors import UsageError, as_fraction, is_number, joined
from uqeval.gate.bounds import bounds_of
from uqeval.gate.rules import Limits, Rule
from uqeval.gate.waivers import LOW_FAILS, Kind
from uqeval.glossary import families

#: The limit that bounds the other side.
_OPPOSITE: dict[Kind, Kind] = {
    "min": "max", "max_drop": "max_rise", "max_drop_relative": "max_rise_relative",
}  # fmt: skip
_OPPOSITE |= {high: low for low, high in _OPPOSITE.items()}
_ABSOLUTE: tuple[Kind, ...] = ("min", "max")


def refuse_senseless(rules: Iterable[Rule]) -> None:
    """Raise one `UsageError` for all rules with a flaw that is known without a report."""
    flaws = [f"{rule.place}: {flaw}" for rule in rules if (flaw := declared_flaw(rule))]
    if flaws:
        raise UsageError(joined(flaws))


def declared_flaw(rule: Rule) -> str | None:
    """Return what is wrong with a limit of a rule by the metrics of this version, without a report;
    None if nothing is, or if the score is unknown."""
    family = families().get(rule.address.metric)
    metrics = {metric.id: metric.record() for metric in family.metrics} if family else {}
    return flaw_of(rule.limits, bounds_of(metrics, rule.address), rule.address)


def flaw_of(limits: Limits, metric: Mapping[str, Any], address: object) -> str | None:
    """Return what is wrong with a limit of a score, and what to write; None if nothing is.

    `metric`: the record of the score (`bounds_of`); empty for a number without one.
    A limit is wrong if it is outside the values that it bounds, or if no value can break it.
    One of `min` and `max` may be unbreakable if the other one is not: the two are a band.
    A limit of a change is wrong if it, and all others of changes, bound only improvements.
    """
    given = dict(limits.kinds_and_values())
    can_fail = {kind for kind in given if _can_fail(kind, given[kind], metric)}
    for kind, limit in given.items():
        low, high = _values(kind, metric)
        outside = (low is not None and limit < low) or (high is not None and limit > high)
        in_band = kind in _ABSOLUTE and not can_fail.isdisjoint(_ABSOLUTE)
        if outside or not (kind in can_fail or in_band):
            problem = "cannot hold" if outside and kind in can_fail else "cannot fail"
            return f"{kind}: {_text(limit)} {problem}: {_reach(kind, metric, address)}. " + _advice(
                kind, limit, metric
            )
    changes = [kind for kind in given if kind not in _ABSOLUTE]
    if changes and all(_is_against(kind, metric) for kind in changes):
        kind = changes[0]
        return (
            f"{kind} limits only improvements: {metric['direction']} values of {address} are "
            f"better. Write {_OPPOSITE[kind]}: {_text(given[kind])}; or give both, to limit "
            "changes in both directions."
        )
    return None


def notes_on_limit(limits: Limits, kind: Kind, metric: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on a limit that may be meant otherwise: `min` or `max` that bounds only
    improvements of a score, while the other limit does not bound the score from its worse side; and
    a negative limit of a change."""
    value = getattr(limits, kind)
    if kind not in _ABSOLUTE and value < 0:
        change, demanded = ("fall", "rise") if kind in LOW_FAILS else ("rise", "fall")
        yield (
            f"{kind}: {_text(value)} demands that the value {demanded}s; to allow a {change}, "
            f"write {kind}: {_text(-value)}"
        )
    other = _OPPOSITE[kind]
    limit = getattr(limits, other)
    guarded = limit is not None and _can_fail(other, limit, metric)
    if kind in _ABSOLUTE and _is_against(kind, metric) and not guarded:
        yield (
            f"{metric['direction']} values are better, so this limit passes the worst ones; use "
            f"{other} to limit these"
        )


def _is_against(kind: Kind, metric: Mapping[str, Any]) -> bool:
    """Return whether better values break a limit, and worse ones do not."""
    better = metric.get("direction")
    return better in ("higher", "lower") and (kind in LOW_FAILS) != (better == "higher")


def _can_fail(kind: Kind, limit: float, metric: Mapping[str, Any]) -> bool:
    low, high = _values(kind, metric)
    return (low is None or limit > low) if kind == "min" else (high is None or limit < high)


def _values(kind: Kind, metric: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value, drop or rise that a limit can be compared with;
    None if unbounded."""
    low, high = _range(metric)
    if kind in _ABSOLUTE:
        return low, high
    if kind.endswith("relative"):
        no_less = None if low is None or low < 0 else 1.0  # 0 is a drop by all of the value
        return (None, no_less) if kind in LOW_FAILS else (no_less and -no_less, None)
    width = None if low is None or high is None else high - low
    return width and -width, width


def _range(metric: Mapping[str, Any]) -> tuple[float | None, float | None]:
    ends = metric.get("range")
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return None, None
    low, high = (float(end) if is_number(end) else None for end in ends)
    return low, high


def _reach(kind: Kind, metric: Mapping[str, Any], address: object) -> str:
    """Return why a limit is outside, as text."""
    low, high = _range(metric)
    if low is None or high is None:
        side = f"at least {_text(low)}" if low is not None else f"at most {_text(high or 0.0)}"
        text = f"values of {address} are {side}"
    else:
        text = f"values of {address} are from {_text(low)} to {_text(high)}"
    if kind in _ABSOLUTE:
        return text
    if kind.endswith("relative"):
        return f"{text}, and change by at most 100 % of the value"
    return f"{text}, and change by at most {_text(_values(kind, metric)[1] or 1.0)}"


def _advice(kind: Kind, limit: float, metric: Mapping[str, Any]) -> str:
    """Return what to write: a fraction for a limit that looks like a percentage."""
    low, high = _values(kind, metric)
    fraction = as_fraction(limit)
    is_share = high is not None and high <= 1 and (low is None or low >= -1)
    if is_share and 1 <= limit <= 100 and _can_fail(kind, fraction, metric):
        return f"For {_text(limit)} %, write {kind}: {_text(fraction)}."
    return "Give a limit that some values break and others keep."


def _text(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
