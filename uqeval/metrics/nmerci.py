"""The family `nmerci`: settings, presets, and the plan from tallies to a section.

Percentiles are exact: a first pass counts λ and ε by the high bits of their keys, a second the low
bits where a percentile lies. Where means are trimmed at every α, a third sums what lies up to each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import TARGET_COUNTS, lambda_of
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import nmerci_scores as ns
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Plan, Section
from uqeval.metrics._signs import sign_warnings
from uqeval.metrics.nmerci_again import again
from uqeval.metrics.nmerci_by_depth import by_depth
from uqeval.metrics.nmerci_records import CURVE, record_of, results_of, running, sums_of, tallies_of
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._contract import State


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
    from uqeval.tallies import ErrorSums, TargetCounts

    alone, coarse = tallies_of(settings)
    # The ends of the target are those of the intervals of depth.
    sums = () if settings.depth_step is None else (ErrorSums(settings.sigma),)
    counted = yield (alone, coarse, TargetCounts(), *sums)
    total = counted[alone].total
    pixels = int(total["pixels"][0])
    numbers.refuse_nothing(pixels, facts)
    every = sums_of(total)
    steps = [_percentiles(settings, every, counted[coarse].total["coarse"], facts.where)]
    for tally in sums:
        ends = float(counted[tally].total["least"][0]), float(counted[tally].total["most"][0])
        steps.append(by_depth(settings, *ends))
    parts, *depth = yield from numbers.together(*steps)

    results = results_of(parts, settings)
    if depth:
        results |= depth[0]
    items = [
        record_of(_item_parts(alone.unpack(data), settings), settings)
        for data in counted[alone].items
    ]
    warnings = numbers.void_items(facts.names, [item["pixels"] for item in items])
    warnings += numbers.zero_targets(counted[TargetCounts()].total, facts)
    return Section(
        results, items, dataclasses.asdict(settings), numbers.counts_of(total),
        warnings + _warnings(results, settings),
    )  # fmt: skip


def _percentiles(
    settings: NmerciSettings, every: ns.Sums, coarse: NDArray[Any], where: str
) -> numbers.Steps:
    """The parts of n-MeRCI at the chosen α and at all of the curve, by α.

    `coarse` [(λ, ε), bin]: how many pixels have these high bits of their keys.
    """
    import numpy as np

    from uqeval.tallies import ErrorRanks, ErrorsUpto, SumsBelow
    from uqeval.tallies.percentiles import Wanted

    alphas = sorted({settings.alpha, *map(float, CURVE)})
    ratio, error = (Wanted(own, alphas, settings.interpolation) for own in coarse)
    bins = tuple((k, b) for k, own in enumerate((ratio, error)) for b in own.bins)
    fine = ErrorRanks(settings.sigma, bins, max(ratio.most, error.most) < 1 << 16)
    # By the paper's definition the curve needs no trimmed sums, and the one trimmed MAE no pass of
    # its own: what lies below the bin of max^α is summed while the bin is told apart.
    every_alpha = settings.over == "kept" or settings.mae == "trimmed"
    lower = None if every_alpha else error.limit(settings.alpha)
    sums = [] if lower is None else [ErrorsUpto(lower, error.bins_of(settings.alpha))]
    counted = yield (fine, *sums)
    by_ratio, by_error = np.split(counted[fine].total["fine"], [len(ratio.bins)])
    ratios, errors = ratio.values(by_ratio, where), error.values(by_error, where)
    below: dict[float | None, ns.Sums] = {}
    for tally in sums:
        most = errors[settings.alpha]
        assert most is not None
        under = counted[tally].total
        count, total = error.between(by_error, under["fine"], settings.alpha, most)
        below[most] = ns.Sums(
            int(under["count"][0]) + count, float(under["sum"][0]) + total, math.nan
        )
    by = ratios if settings.over == "kept" else errors
    limits = sorted({v for v in by.values() if v is not None and math.isfinite(v)})
    if every_alpha and limits:
        upto = SumsBelow(settings.trimmed_by, (tuple(limits),), settings.sigma)
        below |= zip(limits, running((yield (upto,))[upto].total, 0), strict=False)
    return {
        alpha: ns.Parts(every, ratios[alpha], errors[alpha], below.get(by[alpha]))
        for alpha in alphas
    }


def _item_parts(own: State, settings: NmerciSettings) -> ns.Parts:
    ratio, most = (float(v) if v > -math.inf else None for v in own["own"])
    kept = ns.Sums(
        int(own["count"][0]), float(own["sums"][0]), float(own["sums"][1]), float(own["most"][0])
    )
    endless = settings.over == "kept" and ratio == math.inf
    return ns.Parts(sums_of(own), ratio, most, kept if kept.pixels and not endless else None)


def _warnings(results: dict[str, Any], settings: NmerciSettings) -> list[str]:
    found = []
    if settings.alpha < 1:
        found.append(
            f"--alpha {settings.alpha:g} is {settings.alpha:g} %; did you mean "
            f"{100 * settings.alpha:g}?"
        )
    if results["nmerci"] is None:
        found.append(f"n-MeRCI is undefined: {results['nmerci_reason']}.")
    return found + sign_warnings("nmerci", results)


def _maps(settings: NmerciSettings, facts: Facts) -> set[str]:
    wanted = {"label", "error", TARGET_COUNTS, settings.sigma}
    if settings.depth_step is not None:
        wanted.add("target")
    if settings.depth_step is not None or settings.over == "kept":  # else made where it is counted
        wanted.add(lambda_of(settings.sigma))
    return wanted


_ABOUT = """n-MeRCI: does the predicted uncertainty follow the error, at any scale?

0 means an uncertainty equal to the error, 1 a constant one. Computes MeRCI and n-MeRCI, the
curve over α, and a table by interval of the ground truth.

Example: uqeval nmerci depth.zarr kitti/ --depth-step 5 -o report.json
"""

FAMILY = Family(
    "nmerci",
    ns.METRICS,
    _settings,
    _maps,
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("regression",),
    again=again,
    settings_type=NmerciSettings,
    about=_ABOUT,
    label="n-MeRCI",
    words={"alpha": "α", "by_depth": "by interval of the target"},
)
