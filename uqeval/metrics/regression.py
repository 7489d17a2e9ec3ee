"""The family `regression`: settings, presets, and the plan from tallies to a section."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import regression_scores as rs
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Plan, Section

if TYPE_CHECKING:
    from uqeval.tallies._contract import State

#: What each definition in use changes of the defaults. The paper says 100 values of p in ]0, 1[,
#: its code takes 0.01 … 0.99, which is what the default follows.
DEFINITIONS: dict[str, dict[str, Any]] = {"paper": {}, "gustafsson-code": {"levels": 99}}
CHOICES = {"distribution": ("gaussian", "laplace"), "definition": tuple(DEFINITIONS)}
_MOST_LEVELS = 9999


@dataclass(frozen=True)
class RegressionSettings:
    """Choices behind the scores of a regression.

    `uncertainty`: sigma, or a map of the store that stands for σ. `distribution` whose standard
    deviation σ is. `levels`: the calibration plot has the levels k/(levels + 1).

    Raises `UsageError` for what cannot be.
    """

    uncertainty: str = "sigma"
    distribution: str = "gaussian"
    levels: int = 99
    definition: str = "paper"

    def __post_init__(self) -> None:
        numbers.check_choices(self, CHOICES)
        if type(self.levels) is not int or not 2 <= self.levels <= _MOST_LEVELS:
            raise UsageError(
                f"--levels {self.levels}; expected a whole number from 2 to {_MOST_LEVELS}."
            )

    @classmethod
    def of(cls, **given: Any) -> RegressionSettings:
        """Settings of a definition, with what is `given` in place of its choices."""
        found: RegressionSettings = numbers.of_definition(cls, DEFINITIONS, given)
        return found

    @property
    def sigma(self) -> str:
        """The map of σ."""
        return numbers.sigma_map(self.uncertainty)

    @property
    def plotted(self) -> tuple[float, ...]:
        """The levels of the calibration plot."""
        return tuple(k / (self.levels + 1) for k in range(1, self.levels + 1))

    @property
    def all_levels(self) -> tuple[float, ...]:
        """These, and those whose coverage is always told, ascending."""
        return tuple(sorted({*self.plotted, *rs.LEVELS}))


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, RegressionSettings]:
    found: dict[str, RegressionSettings] = variants(
        "regression", RegressionSettings, options, ("uncertainty", "distribution")
    )
    for own in found.values():
        numbers.check_sigma(own.uncertainty, facts)
    return found


def plan(settings: RegressionSettings, facts: Facts) -> Plan:
    """Count once; return the section of one variant."""
    from uqeval.tallies import ErrorSums, IntervalCounts, PredictiveScores

    sigma = settings.sigma
    sums = ErrorSums(sigma)
    scores = PredictiveScores(
        settings.distribution == "laplace", rs.LEVELS,
        rs.factors(rs.LEVELS, settings.distribution), sigma,
    )  # fmt: skip
    held = IntervalCounts(rs.factors(settings.all_levels, settings.distribution), sigma)
    counted = yield (sums, scores, held)
    total = counted[sums].total
    pixels = int(total["count"][0])
    numbers.refuse_nothing(pixels, facts)
    states = [sums.unpack(data) for data in counted[sums].items]
    results = _record(
        settings, total, counted[scores].total, counted[held].total, _target_spread(states)
    )
    items = []
    for own, score, count in zip(
        states, counted[scores].items, counted[held].items, strict=True
    ):  # fmt: skip
        record = _record(
            settings, own, scores.unpack(score), held.unpack(count), float(own["within"][0])
        )
        items.append({k: v for k, v in record.items() if not isinstance(v, dict)})
    warnings = numbers.void_items(facts.names, [int(own["count"][0]) for own in states])
    zero = int(total["zero"][0, 0])
    if zero:
        warnings.append(
            f"σ = 0 at {zero} of {pixels} evaluated pixels: no likelihood; intervals of width 0 "
            "hold a target only where the prediction is exact."
        )
    return Section(
        results, items, dataclasses.asdict(settings),
        numbers.counts_of(total) | {"ties": int(counted[held].total["ties"][0])}, warnings,
    )  # fmt: skip


def _target_spread(states: list[State]) -> float:
    """Σ (y - ȳ)² over all items: within them, and of their means."""
    counts = [int(s["count"][0]) for s in states]
    totals = [float(s["sums"][0, 4]) for s in states]
    mean = math.fsum(totals) / sum(counts)
    between = [n * (t / n - mean) ** 2 for n, t in zip(counts, totals, strict=True) if n]
    return math.fsum([*(float(s["within"][0]) for s in states), *between])


def _record(
    settings: RegressionSettings, sums: State, scores: State, held: State, spread: float
) -> dict[str, Any]:
    """All scores of the whole set or of one item."""
    n, zero = int(sums["count"][0]), int(sums["zero"][0, 0])
    error, squares, _, variances, _ = (float(v) for v in sums["sums"][0])
    found = dict(
        zip(settings.all_levels, itertools.accumulate(held["counts"].tolist()), strict=False)
    )
    observed = [found[p] / n if n else None for p in settings.plotted]
    gaps = (settings.plotted, observed)
    values = {
        "rmse": (squares, n), "mae": (error, n), "nmse": (squares, spread),
        "auce": gaps, "auce_over": gaps, "auce_under": gaps,
        "nll": (float(scores["nll"][0]), n, zero), "crps": (float(scores["crps"][0]), n),
        "sharpness": (variances, n),
    }  # fmt: skip
    record: dict[str, Any] = {"pixels": n}
    for field, given in values.items():
        metric = rs.BY_FIELD[field]
        value = None if field.startswith("auce") and not n else metric.formula(*given)
        reason = metric.undefined
        if field == "nll" and zero:
            reason = f"σ = 0 at {zero} of {n} evaluated pixels: their likelihood is 0 or unbounded"
        put(record, field, value, reason)
    record["calibration"] = {"p": list(settings.plotted), "observed": observed}
    record["interval_score"] = {
        _percent(p): rs.mean(float(total), n)
        for p, total in zip(rs.LEVELS, scores["intervals"], strict=True)
    }
    record["coverage"] = {_percent(p): rs.mean(found[p], n) for p in rs.LEVELS}
    return record


def _percent(p: float) -> str:
    return f"{100 * p:g}"


FAMILY = Family(
    "regression",
    rs.METRICS,
    _settings,
    lambda settings, facts: {"label", "error", "target", settings.sigma},
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("regression",),
)
