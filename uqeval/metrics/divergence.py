"""The family `divergence`: KL(predictions ‖ reference), Gustafsson et al. 2020, §4.1."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics import _numbers as numbers
from uqeval.metrics._again import Again, over
from uqeval.metrics._contract import Metric, put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Last, Plan, Section
from uqeval.metrics.divergence_settings import DivergenceSettings

if TYPE_CHECKING:
    from uqeval.metrics._again import SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


def kl(total: float, finite: int, infinite: int) -> float | None:
    """Mean KL(predictions ‖ reference) over the pixels where it is finite, in nats.

    Gustafsson et al. 2020, §4.1. Undefined where it is finite nowhere; the `infinite` pixels are
    told beside it.
    """
    return total / finite if finite else None


METRICS = (
    Metric("divergence", "kl", "nats", "lower", (0.0, None), "Gustafsson et al. 2020, §4.1",
           "no pixel has a finite divergence", kl,
           label="KL divergence", headline=1, column="KL (nats)",
           meaning="How far the predictions are from the reference, in nats.",
           advice="Use more samples, or a method closer to the reference.",
           interval="draws"),
)  # fmt: skip


_NONE = "no pixel is compared"


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, DivergenceSettings]:
    if not facts.reference:
        raise UsageError(
            f"{facts.where}: a divergence needs a reference to compare with; give one."
        )
    found: dict[str, DivergenceSettings] = variants("divergence", DivergenceSettings, options)
    if facts.kind == "regression" and any(own.clip for own in found.values()):
        raise UsageError("--clip is for class probabilities; these are Gaussians.")
    return found


def _maps(settings: DivergenceSettings, facts: Facts) -> set[str]:
    from uqeval.tallies import Divergence

    return set(Divergence(facts.kind, settings.clip).inputs)


def plan(settings: DivergenceSettings, facts: Facts) -> Plan:
    """Sum once; return the section."""
    from uqeval.tallies import Divergence

    tally = Divergence(facts.kind, settings.clip)
    counted = (yield Last((tally,)))[tally]
    results = _scores(counted.total) | {"clip": settings.clip}
    warnings = []
    if results["infinite"]:
        warnings.append(
            f"{results['infinite']:.2%} of the pixels have an infinite divergence and are left out "
            f"of the mean{'; --clip makes them finite' if facts.kind == 'classes' else ''}."
        )
    items = [_scores(tally.unpack(data)) for data in counted.items]
    numerics = {"infinite": int(counted.total["infinite"][0])}
    if facts.kind == "regression":
        numbers.refuse_nothing(results["pixels"], facts)
        numerics["invalid"] = sum(h * w for h, w in facts.sizes) - results["pixels"]
        warnings += numbers.void_items(facts.names, [item["pixels"] for item in items])
    return Section(results, items, dataclasses.asdict(settings), numerics, warnings)


def _scores(state: State) -> dict[str, Any]:
    total, finite, infinite = (state[n][0].item() for n in ("total", "finite", "infinite"))
    record: dict[str, Any] = {}
    (metric,) = METRICS
    why = metric.undefined if infinite else _NONE
    put(record, "kl", metric.formula(total, finite, infinite), why)
    pixels = record["pixels"] = finite + infinite
    put(record, "infinite", infinite / pixels if pixels else None, _NONE)
    return record


def _again(
    key: str, settings: DivergenceSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    from uqeval.tallies import Divergence

    tally = Divergence(facts.kind, settings.clip)

    def columns(states: Mapping[Tally, SetStates], wanted: Collection[str]) -> Any:
        total, finite, infinite = (states[tally][n][:, 0] for n in ("total", "finite", "infinite"))
        pixels = finite + infinite
        return {
            ("kl",): over(total, finite), ("infinite",): over(infinite, pixels),
            ("pixels",): pixels,
        }  # fmt: skip

    return {
        key: Again(
            (tally,), lambda states: _scores(states[tally]) | {"clip": settings.clip}, columns
        )
    }


FAMILY = Family(
    "divergence",
    METRICS,
    _settings,
    _maps,
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("classes", "regression"),
    again=_again,
    settings_type=DivergenceSettings,
    label="Divergence from a reference",
)
