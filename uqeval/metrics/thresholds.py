"""Uncertainty thresholds: rules, and their fit on counts.

Mukhoti & Gal 2018 take the mean of all pixels, or a place in their range (eq. 4); Ma et al. 2024
the median of the patches, or the best Surplus. A rule is fitted once and then held fixed.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from uqeval.arrays import State, np
from uqeval.errors import UsageError, number_in, quoted
from uqeval.maps.names import IN_NATS, UNCERTAINTIES
from uqeval.metrics._dataset_info import DatasetInfo, all_void
from uqeval.metrics._evaluation import TallyResult
from uqeval.settings import number_text

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.patches import Patches

SPELLINGS = "mean, median, pNN (p0 … p100), range:T (T from 0 to 1), max-surplus, or a number"


@dataclass(frozen=True)
class Rule:
    """A parsed threshold: `kind` is mean, percentile, range, max-surplus or value."""

    kind: str
    value: float = 0.0

    @property
    def undefined(self) -> str:
        """Return the reason if the rule gives no threshold."""
        if self.kind == "max-surplus":
            return "no Surplus is defined: all patches are accurate, none is, or there are none"
        return "there are no patches with a valid pixel"

    @property
    def text(self) -> str:
        """Return the one spelling of the rule, which reports record."""
        number = number_text(self.value)
        if self.kind == "percentile":
            return "median" if self.value == 50 else f"p{number}"
        return {"range": f"range:{number}", "value": number}.get(self.kind, self.kind)

    @classmethod
    def parse(cls, text: str | float) -> Rule:
        """Read a rule as users write it. Raises `UsageError` for anything else."""
        word = str(text).strip().lower()
        if word in ("mean", "max-surplus"):
            return cls(word)
        if word == "median":
            return cls("percentile", 50.0)
        for prefix, kind, low, high in (("p", "percentile", 0, 100), ("range:", "range", 0, 1)):
            if word.startswith(prefix):
                value = _number(word.removeprefix(prefix))
                if value is not None and low <= value <= high:
                    return cls(kind, value)
        value = _number(word)
        if value is None:
            raise UsageError(f"--threshold {quoted(text)} is not valid; expected {SPELLINGS}.")
        return cls("value", value)


def rule_text(text: str | float) -> str:
    """Return the one spelling of a rule. Raises `UsageError`."""
    return Rule.parse(text).text


def ends_of(text: str) -> tuple[float, float]:
    """Return the ends of a curve from "LOW:HIGH". Raises `UsageError` for an invalid range."""
    try:
        low, high = (number_in(end) for end in text.split(":"))
    except ValueError:
        low, high = math.nan, math.nan
    if not (low <= high and math.isfinite(high - low)):
        raise UsageError(f"--curve-range {quoted(text)}; expected LOW:HIGH, such as 0:1.5.")
    return low, high


def ends_text(text: str) -> str:
    """Return the one spelling of the ends of a curve. Raises `UsageError`."""
    return ":".join(map(number_text, ends_of(text)))


def check_threshold(text: str | float, uncertainty: Uncertainty, info: DatasetInfo) -> None:
    """Raise `UsageError` for a number that no value of a computed uncertainty can pass or reach."""
    rule, most = Rule.parse(text), _most(uncertainty, info)
    if (
        rule.kind == "value"
        and most is not None
        and not (-_ROUNDING <= rule.value <= most * (1 + _ROUNDING))
    ):
        raise UsageError(
            f"--threshold {text} is out of range: {_bounds(uncertainty, info)}. Give a value "
            "inside."
        )


def check_ends(text: str | None, uncertainty: Uncertainty, info: DatasetInfo) -> None:
    """Raise `UsageError` for the ends of a curve without a value of the uncertainty between them.

    An end may lie outside, so that models of different uncertainties get equal ends.
    """
    if text is None:
        return
    (low, high), most = ends_of(text), _most(uncertainty, info)
    if low == high:
        raise UsageError(f"--curve-range {text} is empty; expected LOW below HIGH, such as 0:1.5.")
    if most is not None and not (low < most and high > 0):
        raise UsageError(
            f"--curve-range {text} is out of range: {_bounds(uncertainty, info)}. Give a range "
            "with some of these values."
        )


#: Uncertainties of float32, and so thresholds of other sets, may pass a bound by rounding.
_ROUNDING = 1e-5


def _most(uncertainty: Uncertainty, info: DatasetInfo) -> float | None:
    """Return the greatest value of a computed uncertainty; None for a map of the store, and for one
    class, which has no uncertainty."""
    if uncertainty.name not in UNCERTAINTIES or info.classes < 2:
        return None
    if uncertainty.name not in IN_NATS:
        return 1.0
    return math.log(info.classes) / math.log(uncertainty.log_base)


def _bounds(uncertainty: Uncertainty, info: DatasetInfo) -> str:
    return (
        f"{uncertainty.name} of {info.classes} classes lies between 0 and "
        f"{_most(uncertainty, info):.6g}"
    )


def _number(text: str) -> float | None:
    try:
        value = number_in(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Fitted:
    """Thresholds of uncertainty and ends of the curve's range: one for all, or one per category.

    A threshold is None where its rule gives none (`Rule.undefined`).
    """

    threshold: tuple[float | None, ...]
    ends: tuple[tuple[float, float], ...]

    @property
    def is_single(self) -> bool:
        """Return whether there is one threshold for all patches."""
        return len(self.threshold) == 1

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Fitted:
        """Return the thresholds of a record from `dataclasses.asdict`, also if it was saved as
        JSON."""
        ends = tuple((low, high) for low, high in record["ends"])
        return cls(tuple(record["threshold"]), ends)


Fitting = Generator["tuple[Tally, ...]", "dict[Tally, TallyResult]", Fitted]


def fit(
    info: DatasetInfo,
    rule: Rule,
    patches: Patches,
    by_category: bool,
    curve: tuple[float, float] | None = None,
    region: str = "",
    **operators: Any,
) -> Fitting:
    """Fit a rule on the set, or on each category of patches separately.

    The pixels of a class are those with its label; `mixed` uses the pixels of the whole set. The
    threshold of a category without patches is not used. A threshold is None if its rule is
    undefined. `curve`: the ends of the one curve, if they are not the least and the greatest
    uncertainty; its best threshold is `max-surplus`. A `region` may have no pixels.
    """
    from uqeval.tallies.patches import PatchCounts
    from uqeval.tallies.ranks import Moments, Ranks, bins_of

    moments = Moments(patches.uncertainty, patches.classes)
    ranks = Ranks(patches, patches.classes, by_category)
    percentile = rule.kind == "percentile"
    results = yield (moments, ranks) if percentile else (moments,)
    pixels = results[moments].total
    overall = _ends(pixels, None)
    if overall is None and region:
        return Fitted((None,), (curve or (0.0, 0.0),))
    if overall is None:
        raise all_void(info)
    ends = [overall]
    if by_category:
        ends = [_ends(pixels, c) or overall for c in range(patches.classes)] + [overall]

    if percentile:
        coarse = results[ranks].total["coarse"]
        bins = bins_of(coarse, (rule.value,))
        fine: Any = []
        if bins:
            detail = Ranks(patches, patches.classes, by_category, bins)
            fine = (yield (detail,))[detail].total["fine"]
        threshold = _percentiles(coarse, fine, bins, rule.value)
    elif rule.kind == "max-surplus":
        ends = [curve] if curve is not None else ends
        first = PatchCounts(patches, tuple(low for low, _ in ends), tuple(ends), **operators)
        by_threshold = (yield (first,))[first].total["by_threshold"]
        threshold = [
            best(by_threshold[c : c + 1] if by_category else by_threshold, *end)
            for c, end in enumerate(ends)
        ]
    else:
        means = [_mean(pixels, None)]
        if by_category:
            means = [_mean(pixels, c) for c in range(patches.classes)] + means
        threshold = [
            {"mean": mean, "value": rule.value}.get(rule.kind, low + rule.value * (high - low))
            for mean, (low, high) in zip(means, ends, strict=True)
        ]
    return Fitted(tuple(threshold), tuple(ends) if curve is None else (curve,))


def undefined_warnings(rule: Rule, threshold: float | None) -> list[str]:
    """Return the warning that a rule gave no threshold, if it gave none."""
    if threshold is not None:
        return []
    return [
        f"the uncertainty threshold is undefined: {rule.undefined}. Scores that need it are null; "
        "--threshold mean is always defined."
    ]


def lacks_threshold(fitted: Mapping[str, Any] | None) -> bool:
    """Return whether a fitted threshold, as saved states have it, is undefined."""
    threshold = (fitted or {}).get("threshold", ())
    return threshold is None or (isinstance(threshold, list | tuple) and None in threshold)


def is_same(first: float | None, second: float | None) -> bool:
    """Return whether two defined thresholds are equal in float32, as patches are compared."""
    return None not in (first, second) and bool(np.float32(first) == np.float32(second))


def step_of(fitted: Fitted, value: float | None) -> int | None:
    """Return the step of the curve that is the threshold `value`; None if none is."""
    steps = _steps(fitted)
    return next((i for i, step in enumerate(steps) if is_same(step, value)), None)


class ThresholdNotHeld(UsageError):
    """A threshold at which no patches were counted: the problem, what to do, and t of the nearest
    threshold of the curve."""

    def __init__(self, problem: str, advice: str, t: float) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem, self.t = problem, t


def refuse_not_held(rule: str, value: float, fitted: Fitted) -> NoReturn:
    """Raise `UsageError` with the thresholds at which patches were counted, the nearest by name."""
    steps = _steps(fitted)
    t = max(sum(step < value for step in steps), 1) if value > steps[0] else 0
    neighbours = [i for i in (t - 1, t) if 0 <= i < len(steps)]
    values = " and ".join(f"{steps[i]!r} (t = {i / (len(steps) - 1):g})" for i in neighbours)
    threshold_rule = Rule.parse(rule)
    description = (
        f"{rule}, which is {value!r},"
        if threshold_rule.kind not in ("value", "percentile")
        else rule
    )
    at = fitted.threshold[0]
    counted_at = "" if at is None else f"{at!r}, at which patches were counted, and "
    nearest = min(neighbours, key=lambda i: abs(steps[i] - value))
    raise ThresholdNotHeld(
        f"--threshold {description} is none of the thresholds that the states hold: {counted_at}"
        f"the {len(steps)} of the curve, from {steps[0]!r} to {steps[-1]!r}.",
        f"The nearest of these are {values}; give one as a number (range:T takes t of the set's "
        "range), or evaluate again.",
        nearest / (len(steps) - 1),
    )


def _steps(fitted: Fitted) -> list[float]:
    from uqeval.tallies.patches import curve_thresholds

    return curve_thresholds(*fitted.ends[0])


def best(by_threshold: Any, low: float, high: float) -> float | None:
    """Return the threshold of a curve from `low` to `high` with the greatest Surplus.

    `by_threshold`: counts of patches at each of its steps. None where the Surplus is undefined.
    """
    from uqeval.tallies.patches import best_step, curve_thresholds

    step = best_step(by_threshold)
    return None if step is None else curve_thresholds(low, high)[step]


def _ends(pixels: State, c: int | None) -> Any:
    selection = slice(None) if c is None else slice(c, c + 1)
    if not pixels["count"][selection].sum():
        return None
    return float(pixels["least"][selection].min()), float(pixels["most"][selection].max())


def _mean(pixels: State, c: int | None) -> float:
    selection = slice(None) if c is None or not pixels["count"][c] else slice(c, c + 1)
    return math.fsum(pixels["total"][selection].tolist()) / int(pixels["count"][selection].sum())


def _percentiles(coarse: Any, fine: Any, bins: Any, p: float) -> list[float | None]:
    from uqeval.tallies.ranks import percentile

    values: list[float | None] = []
    for group, counts in enumerate(coarse):
        counts_by_bin = {b: fine[i] for i, (g, b) in enumerate(bins) if g == group}
        values.append(percentile(counts, counts_by_bin, p))
    return values
