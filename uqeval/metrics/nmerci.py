"""The family `nmerci`: settings, presets, and the plan from tallies to a section.

Percentiles are exact: a first pass counts λ and ε by the high bits of their keys, a second the low
bits where a percentile lies. Where means are trimmed at every α, a third sums what lies up to each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.maps.names import lambda_of
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import nmerci_scores as ns
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Plan, Section
from uqeval.metrics._settings import check_choices, of_definition
from uqeval.metrics.nmerci_again import again
from uqeval.metrics.nmerci_by_depth import by_depth

if TYPE_CHECKING:
    from uqeval.tallies import Ranks
    from uqeval.tallies._contract import State

#: What each definition in use changes of the defaults, which are Moukari et al.'s paper. The one
#: public implementation sorts by λ, keeps the first ⌊N·α⌋ pixels, and takes λ, MAE, mean σ and the
#: largest error of those alone.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "trimmed-mae": {"mae": "trimmed"},
    "public-code": {"interpolation": "truncated", "over": "kept"},
}
CHOICES = {
    "interpolation": ("linear", "inverted_cdf", "truncated"),
    "over": ("all", "kept"),
    "mae": ("full", "trimmed"),
    "definition": tuple(DEFINITIONS),
}
CURVE = tuple(range(1, 101))


@dataclass(frozen=True)
class NmerciSettings:
    """Choices behind an n-MeRCI; the defaults are those of Moukari et al. 2019.

    `uncertainty`: sigma, or a map of the store. `alpha` in (0, 100], in percent. `interpolation` of
    percentiles: see `uqeval.tallies.percentiles`. `over`: means over all pixels, or over the kept
    ones, with λ up to λ^α. `mae`: of all pixels, or trimmed to errors up to max^α. `depth_step`:
    width of the intervals of the target that are evaluated apart.

    Raises `UsageError` for what cannot be.
    """

    uncertainty: str = "sigma"
    alpha: float = 95.0
    interpolation: str = "linear"
    over: str = "all"
    mae: str = "full"
    depth_step: float | None = None
    definition: str = "paper"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        object.__setattr__(self, "alpha", float(self.alpha))
        if not 0 < self.alpha <= 100:
            raise UsageError(
                f"--alpha {self.alpha:g}; expected a number above 0 and up to 100 (per cent)."
            )
        if self.depth_step is not None and not 0 < self.depth_step < math.inf:
            raise UsageError(f"--depth-step {self.depth_step:g}; expected a number above 0.")
        if self.over == "kept" and self.mae == "trimmed":
            raise UsageError("--over kept takes every mean over the kept pixels; drop --mae.")

    @classmethod
    def of(cls, **given: Any) -> NmerciSettings:
        """Settings of a definition, with what is `given` in place of its choices."""
        return of_definition(cls, DEFINITIONS, given)

    @property
    def sigma(self) -> str:
        """The map of σ."""
        return numbers.sigma_map(self.uncertainty)

    @property
    def trimmed_by(self) -> str:
        """The map whose percentile says which pixels a trimmed mean keeps."""
        return lambda_of(self.sigma) if self.over == "kept" else "error"


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, NmerciSettings]:
    chosen = dict(options)
    if "alpha" in chosen:  # 85, not 85.0, in the names of variants
        given = chosen["alpha"]
        alphas = list(given) if isinstance(given, list | tuple) else [given]
        chosen["alpha"] = [int(a) if float(a).is_integer() else float(a) for a in alphas]
    found: dict[str, NmerciSettings] = variants(
        "nmerci", NmerciSettings, chosen, ("uncertainty", "interpolation")
    )
    for own in found.values():
        numbers.check_sigma(own.uncertainty, facts)
    return found


def plan(settings: NmerciSettings, facts: Facts) -> Plan:
    """Fit the percentiles, sum what lies up to them, and return the section of one variant."""
    from uqeval.tallies import ErrorSums, ItemErrors

    ratio = lambda_of(settings.sigma)
    sums = ErrorSums(settings.sigma)
    coarse = ranks_of_maps(settings)
    alone = ItemErrors(
        ratio, settings.alpha, settings.interpolation, settings.over == "kept", settings.sigma
    )
    counted = yield (sums, *coarse.values(), alone)
    total = counted[sums].total
    pixels = int(total["count"][0])
    numbers.refuse_nothing(pixels, facts)
    every = sums_of(total)
    steps = [_percentiles(settings, every, {n: counted[t].total for n, t in coarse.items()})]
    if settings.depth_step is not None:
        ends = float(total["least"][0]), float(total["most"][0])
        steps.append(by_depth(settings, *ends))
    parts, *depth = yield from numbers.together(*steps)

    results = results_of(parts, settings)
    if depth:
        results |= depth[0]
    states = [sums.unpack(data) for data in counted[sums].items]
    items = [
        _record(_item_parts(own, alone.unpack(data)), settings)
        for own, data in zip(states, counted[alone].items, strict=True)
    ]
    warnings = numbers.void_items(facts.names, [item["pixels"] for item in items])
    return Section(
        results, items, dataclasses.asdict(settings), numbers.counts_of(total),
        warnings + _warnings(results, settings),
    )  # fmt: skip


def ranks_of_maps(settings: NmerciSettings) -> dict[str, Ranks]:
    """What counts λ and ε by the high bits of their keys."""
    from uqeval.tallies import Ranks, RawMap

    return {name: Ranks(RawMap(name), 1) for name in (lambda_of(settings.sigma), "error")}


def results_of(
    parts: Mapping[float, ns.Parts], settings: NmerciSettings, whole: bool = True
) -> dict[str, Any]:
    """What the parts of an n-MeRCI by α say; without the curve over α unless `whole`."""
    results = {"alpha": settings.alpha} | _record(parts[settings.alpha], settings)
    if whole:
        curve = [ns.score(parts[float(a)], settings.over, settings.mae)[2] for a in CURVE]
        results["curve"] = {"alpha": list(CURVE), "nmerci": curve}
    return results


def _record(parts: ns.Parts, settings: NmerciSettings) -> dict[str, Any]:
    return ns.record(parts, settings.alpha, settings.over, settings.mae)


def sums_of(state: State) -> ns.Sums:
    """All pixels of a state of `ErrorSums`."""
    return ns.Sums(
        int(state["count"][0]), float(state["sums"][0, 0]), float(state["sums"][0, 2])
    )  # fmt: skip


def _percentiles(
    settings: NmerciSettings, every: ns.Sums, coarse: Mapping[str, State]
) -> numbers.Steps:
    """The parts of n-MeRCI at the chosen α and at all of the curve, by α."""
    from uqeval.tallies import Ranks, RawMap, SumsBelow
    from uqeval.tallies.percentiles import Wanted

    alphas = sorted({settings.alpha, *map(float, CURVE)})
    wanted = {
        name: Wanted(state["coarse"][0], alphas, settings.interpolation)
        for name, state in coarse.items()
    }
    fine = {name: Ranks(RawMap(name), 1, bins=own.bins) for name, own in wanted.items() if own.bins}
    # By the paper's definition the curve needs no trimmed sums, and the one trimmed MAE no pass of
    # its own: what lies below the bin of max^α is summed while the bin is told apart.
    every_alpha = settings.over == "kept" or settings.mae == "trimmed"
    lower = None if every_alpha else wanted["error"].limit(settings.alpha)
    sums = [] if lower is None else [SumsBelow("error", ((lower,),), settings.sigma)]
    counted = yield (*fine.values(), *sums)
    states = {name: counted[tally].total["fine"] for name, tally in fine.items()}
    found = {name: own.values(states[name]) for name, own in wanted.items()}
    ratios, errors = found.values()
    below: dict[float | None, ns.Sums] = {}
    for tally in sums:
        most = errors[settings.alpha]
        assert most is not None
        (under, _) = running(counted[tally].total, 0)
        count, total = wanted["error"].between(states["error"], settings.alpha, most)
        below[most] = ns.Sums(under.pixels + count, under.error + total, math.nan)
    by = found[settings.trimmed_by]
    limits = sorted({v for v in by.values() if v is not None and math.isfinite(v)})
    if every_alpha and limits:
        tally = SumsBelow(settings.trimmed_by, (tuple(limits),), settings.sigma)
        below |= zip(limits, running((yield (tally,))[tally].total, 0), strict=False)
    return {
        alpha: ns.Parts(every, ratios[alpha], errors[alpha], below.get(by[alpha]))
        for alpha in alphas
    }


def running(state: State, group: int) -> Sequence[ns.Sums]:
    """Sums of all pixels of a group at or below each limit, from a state of `SumsBelow`."""
    import numpy as np

    counts = np.cumsum(state["count"][group]).tolist()
    errors, sigmas = np.cumsum(state["sums"][group], axis=0).T.tolist()
    most = np.maximum.accumulate(state["most"][group]).tolist()
    return [ns.Sums(*four) for four in zip(counts, errors, sigmas, most, strict=True)]


def _item_parts(sums: State, own: State) -> ns.Parts:
    ratio, most = (float(v) if v > -math.inf else None for v in own["own"])
    kept = ns.Sums(
        int(own["count"][0]), float(own["sums"][0]), float(own["sums"][1]), float(own["most"][0])
    )
    return ns.Parts(sums_of(sums), ratio, most, kept if kept.pixels else None)


def _warnings(results: dict[str, Any], settings: NmerciSettings) -> list[str]:
    found = []
    if results["nmerci"] is None:
        found.append(f"n-MeRCI is undefined: {results['nmerci_reason']}.")
    elif results["nmerci"] < 0:
        found.append(
            f"n-MeRCI is {results['nmerci']:.4f}, below 0: that can be for α < 100 (here "
            f"{settings.alpha:g}), where the worst errors have small σ and leave λ^α small."
        )
    return found


def _maps(settings: NmerciSettings, facts: Facts) -> set[str]:
    return {"label", "error", "target", settings.sigma, lambda_of(settings.sigma)}


FAMILY = Family(
    "nmerci",
    ns.METRICS,
    _settings,
    _maps,
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("regression",),
    again=again,
    settings_type=NmerciSettings,
)
