"""Temperature scaling fitted out of core: Guo et al. 2017, §4.2, on the mean probabilities.

The NLL of p̄^β / Σ p̄^β is convex in β = 1/T, with derivative g(β) = Σ (E_β[ln p̄] - ln p̄_y) and
g'(β) = Σ Var_β[ln p̄]. One pass evaluates both at β = 1/32, 1/16 … 32; the next at nine β around
where the polynomial through them crosses zero; T is read from the polynomial through those.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.metrics import calibration_scores as cs
from uqeval.metrics._contract import put
from uqeval.metrics._plan import Counted, Plan, Section

if TYPE_CHECKING:
    from uqeval.tallies import Bins, Tally
    from uqeval.tallies._contract import State

#: The least and the largest temperature that is looked for.
LEAST, MOST = 1 / 32, 32.0
_DOUBLINGS = 11
#: Around an estimate: so many β, so far apart relative to it. Between two that close the polynomial
#: of degree 7 is exact to rounding.
_AROUND, _CLOSE = 9, 0.01

_WITHOUT = "no pixel gives its label's class a probability above 0"
_CONSTANT = "the NLL is the same at every temperature"


@dataclass(frozen=True)
class Fit:
    """A fitted β = 1/T, or why there is none; pixels that entered, and those with p̄_y = 0."""

    beta: float | None
    reason: str
    pixels: int
    left_out: int


Point = tuple[float, float, float]  # β, g, g'
Fitting = Generator["tuple[Tally, ...]", "dict[Tally, Counted]", Fit]


def plan(
    classes: int,
    bins: Bins,
    at_one: str,
    clip: float,
    items: Sequence[int] | None,
    source: str | None,
) -> Plan:
    """Fit the temperature on `items` (None: all), count at it, and return the part `temperature`.

    `source` names what the items came from. Scores are those of all items; where the fit had only
    some, `held_out` has those of the others, before and after.
    """
    fitted = yield from fit(classes, items)
    results: dict[str, Any] = {}
    temperature = (
        None if fitted.beta is None else cs.BY_FIELD["temperature.value"].formula(fitted.beta)
    )
    put(results, "value", temperature, fitted.reason)
    results["fitted_on"] = "all items" if items is None else source
    results["pixels"] = fitted.pixels
    results["label_probability_zero"] = fitted.left_out
    warnings = []
    if items is None:
        warnings.append(
            "the temperature is fitted on the evaluated set itself: the scores after it flatter; "
            "--fit-on FILE names the items to fit it on."
        )
    if fitted.beta is None:
        for name in ("ece", "mce", "nll"):
            put(results, name, None, cs.BY_FIELD[f"temperature.{name}"].undefined)
        return Section(results, [], warnings=warnings)

    from uqeval.tallies import Tempered

    after = Tempered(classes, fitted.beta, bins, clip)
    if items is None:
        results |= _scores((yield (after,))[after].total, at_one)
        return Section(results, [], warnings=warnings)
    before = Tempered(classes, 1.0, bins, clip)
    counted = yield (before, after)
    results |= _scores(counted[after].total, at_one)
    count = len(counted[after].items)
    others = sorted(set(range(count)) - set(items))
    held_out: dict[str, Any] = {"items": len(others)}
    for name, tally in (("before", before), ("after", after)):
        held_out[name] = _scores(_fold(tally, counted[tally], others), at_one)
    results["held_out"] = held_out
    return Section(results, [], warnings=warnings)


def _scores(state: State, at_one: str) -> dict[str, Any]:
    pixels = int(state["count"].sum())
    binned = cs.Binned.of(state, at_one)
    values = {
        "ece": cs.ece(binned, pixels),
        "mce": cs.mce(binned),
        "nll": cs.mean_score(float(state["nll"][0]), pixels),
    }
    record: dict[str, Any] = {}
    for name, value in values.items():
        put(record, name, value, cs.BY_FIELD[name].undefined)
    return record


def _fold(tally: Tally, counted: Counted, items: Sequence[int] | None) -> State:
    """The state of some items (None: all), folded in the order of items."""
    if items is None:
        return counted.total
    total = tally.empty()
    for i in items:
        tally.merge(total, tally.unpack(counted.items[i]))
    return total


def fit(classes: int, items: Sequence[int] | None) -> Fitting:
    """The β at which the NLL of some items (None: all) is least, within 1e-9 relative."""
    from uqeval.tallies import TemperatureSlopes

    tally = TemperatureSlopes(classes, 1 / MOST, 0.0, _DOUBLINGS)
    state = _fold(tally, (yield (tally,))[tally], items)
    pixels, left_out = state["pixels"].tolist()
    points = _points(tally.betas(), state)
    if not pixels:
        return Fit(None, _WITHOUT, pixels, left_out)
    if all(slope == 0 for _, slope, _ in points):
        return Fit(None, _CONSTANT, pixels, left_out)
    if points[-1][1] <= 0:
        return Fit(
            None, f"it runs to the bound: the NLL still falls at T = {LEAST}", pixels, left_out
        )
    if points[0][1] >= 0:
        return Fit(
            None, f"it runs to the bound: the NLL still falls at T = {MOST}", pixels, left_out
        )
    close = False
    while True:
        upper = next(i for i, (_, slope, _) in enumerate(points) if slope >= 0)
        low, high = points[upper - 1][0], points[upper][0]
        beta = _crossing(points[max(upper - 2, 0) : upper + 2], low, high)
        if high - low <= 1.01 * _CLOSE * beta:
            return Fit(beta, "", pixels, left_out)
        # Around the estimate; where it was too far off, over all that is left.
        step = (high - low) / (_AROUND - 1) if close else _CLOSE * beta
        first = low if close else max(beta - step * (_AROUND // 2), low)
        close = True
        tally = TemperatureSlopes(classes, first, step, _AROUND)
        state = _fold(tally, (yield (tally,))[tally], items)
        found = {point[0]: point for point in points + _points(tally.betas(), state)}
        points = sorted(found.values())


def _points(betas: Sequence[float], state: State) -> list[Point]:
    return list(zip(betas, state["slope"].tolist(), state["curvature"].tolist(), strict=True))


def _crossing(points: Sequence[Point], low: float, high: float) -> float:
    """Where the polynomial in ln β through values and derivatives at `points` is 0.

    Newton's divided differences with each point twice (Hermite), bisected between two points of
    opposite signs.
    """
    nodes = [math.log(beta) for beta, _, _ in points for _ in range(2)]
    column = [slope for _, slope, _ in points for _ in range(2)]
    coefficients = [column[0]]
    for order in range(1, len(nodes)):
        column = [
            points[i // 2][0] * points[i // 2][2]  # dg/d(ln β) = β g'
            if nodes[i + order] == nodes[i]
            else (column[i + 1] - column[i]) / (nodes[i + order] - nodes[i])
            for i in range(len(column) - 1)
        ]
        coefficients.append(column[0])

    def value(x: float) -> float:
        total = 0.0
        for coefficient, node in zip(reversed(coefficients), reversed(nodes), strict=True):
            total = total * (x - node) + coefficient
        return total

    a, b = math.log(low), math.log(high)
    for _ in range(60):
        middle = (a + b) / 2
        if value(middle) < 0:
            a = middle
        else:
            b = middle
    return math.exp((a + b) / 2)
