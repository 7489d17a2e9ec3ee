"""The family `sparsification`: the plan from tallies to a section.

A first pass counts pixels and sums errors by the high 19 bits of the uncertainty's key, and by
those of the error's own for the oracle; a second does so by all bits in the bins that hold a cut.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import sparsification_columns
from uqeval.metrics import sparsification_curves as sc
from uqeval.metrics._again import Again
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._ladder import BIN_WIDTH, Ladder
from uqeval.metrics._plan import Plan, Section
from uqeval.metrics._signs import sign_warnings
from uqeval.metrics.failure_columns import SetLadder
from uqeval.metrics.pavpu_settings import check_uncertainty
from uqeval.metrics.sparsification_settings import SparsificationSettings

if TYPE_CHECKING:
    from uqeval.metrics._again import SetStates
    from uqeval.metrics._plan import Counted
    from uqeval.tallies import Error, ItemCurves, RankedErrors, Tally, Uncertainty
    from uqeval.tallies._contract import State

#: Bins split where the area is over every rank: those that widen its bound most.
WIDEST = 128


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, SparsificationSettings]:
    found: dict[str, SparsificationSettings] = variants(
        "sparsification", SparsificationSettings, options, ("uncertainty", "error")
    )
    found = {key: own.for_data(facts.kind, facts.where) for key, own in found.items()}
    for own in found.values():
        check_uncertainty(own.uncertainty, facts)
    return found


def _maps(settings: SparsificationSettings, facts: Facts) -> set[str]:
    from uqeval.tallies import Error

    counts = {TARGET_COUNTS} if facts.kind == "regression" else set()
    return {*Error(settings.error).inputs, settings.uncertainty, *counts}


def plan(settings: SparsificationSettings, facts: Facts) -> Plan:
    """Sum errors by rank, and return the section of one variant."""
    from uqeval.tallies import Error, ItemCurves, TargetCounts, Uncertainty

    score, error = Uncertainty(settings.uncertainty), Error(settings.error)
    every = settings.grid == "every-rank"
    own = ItemCurves(score, error, facts.classes, settings.cuts, every)
    counts = (TargetCounts(),) if facts.kind == "regression" else ()
    if settings.scope == "item":
        counted = yield (own, *counts)
        items, ranked = _items(settings, own, counted[own]), None
        found = _mean(settings, items)
    else:
        found, items, ranked, counted = yield from _pooled(settings, own, counts)
    pixels = [int(own.unpack(data)["kept"][0]) for data in counted[own].items]
    numerics = {"items_undefined": sum(isinstance(one, str) for one in items)}
    results = _results(settings, found)
    warnings = sign_warnings("sparsification", results)
    if ranked is not None:
        zero = "sigma_zero" if settings.uncertainty == "sigma" else "uncertainty_zero"
        numerics[zero] = int(ranked.pixels[ranked.zeros].sum())
        numerics["ties_at_cuts"] = sc.cut_ties(ranked, settings.cuts)
    if facts.kind == "regression":
        numbers.refuse_nothing(sum(pixels), facts)
        numerics["invalid"] = sum(h * w for h, w in facts.sizes) - sum(pixels)
        zeros = numbers.zero_targets(counted[TargetCounts()].total, facts)
        warnings = numbers.void_items(facts.names, pixels) + zeros + warnings
    return Section(
        results,
        [sc.scores(one) for one in items],
        settings=dataclasses.asdict(settings),
        numerics=numerics,
        warnings=warnings,
    )


def _again(
    key: str, settings: SparsificationSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    """The curves of the set by bins of uncertainties and of errors, whose pixels are a tie; where
    they are means over items, the areas alone.
    """
    if settings.scope == "item":
        said = {"uncertainty": settings.uncertainty, "error": settings.error}
        return {
            key: Again(
                scores=lambda states: dict(said),
                means={metric.field: metric.field for metric in sc.METRICS},
            )
        }
    coarse = _coarse(settings, facts.classes)

    def scores(states: Mapping[Tally, State]) -> dict[str, Any]:
        ladders = [Ladder.of(tally, states[tally]) for tally in coarse.values()]
        found = _curves(settings, *ladders) if ladders[0].total else sc.VOID
        return _results(settings, found)

    def columns(states: Mapping[Tally, SetStates], wanted: Collection[str]) -> Any:
        ranked, ideal = (SetLadder.of(states[tally]) for tally in coarse.values())
        return sparsification_columns.columns(settings, ranked, ideal)

    every, tallies = frozenset("*"), tuple(coarse.values())
    return {key: Again(tallies, scores, columns, approximate=every, bound=BIN_WIDTH)}


def _coarse(
    settings: SparsificationSettings, classes: int
) -> dict[Uncertainty | Error, RankedErrors]:
    """What sums errors by the high bits of the uncertainty, and by those of the error itself."""
    from uqeval.tallies import Error, RankedErrors, Uncertainty

    score, error = Uncertainty(settings.uncertainty), Error(settings.error)
    return {by: RankedErrors(by, error, classes) for by in (score, error)}


def _pooled(settings: SparsificationSettings, own: ItemCurves, beside: tuple[Tally, ...]) -> Any:
    """The curves of the whole set, and of each item, in two passes; the ladder of uncertainties,
    in which ties at a cut and the zeros are told apart, and what the first pass counted.
    """
    from uqeval.tallies import RankedErrors

    error, cuts, every = own.error, own.cuts, own.every_rank
    coarse = _coarse(settings, own.classes)
    first = yield (*coarse.values(), own, *beside)
    items = _items(settings, own, first[own])
    ladders = {s: Ladder.of(tally, first[tally].total) for s, tally in coarse.items()}
    if not ladders[error].total:
        return sc.VOID, items, ladders[own.score], first
    wanted: dict[Any, list[RankedErrors]] = {}
    for s, ladder in ladders.items():
        rungs = sc.cut_rungs(ladder, cuts)
        if s == own.score:
            rungs += ladder.zeros
        wanted[s] = []
        if every:
            rungs += _widest(ladder)
            blocks = tuple((0, p) for p in ladder.prefixes(slice(None), 9))
            wanted[s].append(RankedErrors(s, error, own.classes, False, 9, 13, blocks))
        if rungs:
            bins = tuple((0, p) for p in ladder.prefixes(rungs, 19))
            wanted[s].append(RankedErrors(s, error, own.classes, False, 19, 13, bins))
    asked = tuple(dict.fromkeys(t for tallies in wanted.values() for t in tallies))
    counted = (yield asked) if asked else {}
    for s, tallies in wanted.items():
        for tally in tallies:
            finer = Ladder.of(tally, counted[tally].total)
            prefixes = [p for _, p in tally.bins]
            ladders[s] = ladders[s].with_split(finer, tally.skip, prefixes)

    return _curves(settings, *ladders.values()), items, ladders[own.score], first


def _curves(settings: SparsificationSettings, ranked: Ladder, ideal: Ladder) -> sc.Curves | str:
    """The curves of pixels ranked by their uncertainty, and by their error."""
    kept, model = sc.cut_ladder(ranked, settings.cuts)
    by_oracle, oracle = sc.cut_ladder(ideal, settings.cuts)
    more: dict[str, Any] = {"kept_by_oracle": by_oracle}
    if settings.grid == "every-rank":
        (a, a_bound), (b, b_bound) = map(sc.area_of_every_rank, (ranked, ideal))
        more |= {"every": (a, b), "bound": a_bound + b_bound}
    return settings.curves(kept, model, oracle, **more)


def _widest(ladder: Ladder) -> list[int]:
    """The first rung, and those whose ties widen the bound of the area over every rank most."""
    import numpy as np

    width = ladder.errors * (ladder.pixels / ladder.upto) * ladder.open
    order = np.argsort(-width, kind="stable")[:WIDEST]
    return [0, *(int(i) for i in order if width[i] > 0)]


def _items(
    settings: SparsificationSettings, tally: ItemCurves, counted: Counted
) -> list[sc.Curves | str]:
    found = []
    for data in counted.items:
        state = tally.unpack(data)
        more: dict[str, Any] = {"kept_by_oracle": state["kept_by_oracle"].tolist()}
        if tally.every_rank:
            more["every"] = tuple(state["areas"].tolist())
        sums = (state[name].tolist() for name in ("kept", "errors", "oracle"))
        found.append(settings.curves(*sums, **more))
    return found


def _mean(settings: SparsificationSettings, items: list[sc.Curves | str]) -> sc.Curves | str:
    """The mean of the items' curves, areas included; items without curves are left out."""
    good = [one for one in items if isinstance(one, sc.Curves)]
    if not good:
        return next((one for one in items if isinstance(one, str) and one != sc.VOID), sc.VOID)

    def mean(values: list[float]) -> float:
        return math.fsum(values) / len(good)

    model = [mean(list(v)) for v in zip(*(one.model for one in good), strict=True)]
    oracle = [mean(list(v)) for v in zip(*(one.oracle for one in good), strict=True)]
    # A span of its own makes AURG the mean of the items' AURG.
    area = mean([one.areas[0] for one in good])
    span = (mean([one.aurg for one in good]) + area) / model[0] if model[0] else 0.0
    return sc.Curves(
        model, oracle, (area, mean([one.areas[1] for one in good])), span,
        mean([one.by for one in good]),
    )  # fmt: skip


def _results(settings: SparsificationSettings, found: sc.Curves | str) -> dict[str, Any]:
    """What curves say."""
    results: dict[str, Any] = {
        "uncertainty": settings.uncertainty,
        "error": settings.error,
        **sc.scores(found),
    }
    if settings.grid == "every-rank":
        put(
            results, "ause_bound",
            *((None, found) if isinstance(found, str) else (found.bound, "")),
        )  # fmt: skip
    return results | _record(settings, found)


def _record(settings: SparsificationSettings, found: sc.Curves | str) -> dict[str, Any]:
    steps = settings.steps
    record: dict[str, Any] = {"fractions": [k / steps for k in range(steps)]}
    if isinstance(found, str):
        for name in ("curve", "oracle", "error_curve", "normalisation"):
            record |= {name: None, f"{name}_reason": found}
        return record
    model, oracle = list(found.model), list(found.oracle)
    if settings.end == "zero":
        record["fractions"].append(1.0)
        model.append(0.0)
        oracle.append(0.0)
    return record | {
        "curve": model,
        "oracle": oracle,
        "error_curve": [a - b for a, b in zip(model, oracle, strict=True)],
        "normalisation": found.by,
    }


_ABOUT = """Sparsification: does the error fall when you remove the least certain pixels?

Computes the error over the removed fraction, the oracle (removes the largest errors first),
AUSE (the area between the two) and AURG (the gain over random removal).

Example: uqeval sparsification preds.zarr labels/ --error brier --error zero-one
"""

FAMILY = Family(
    "sparsification",
    sc.METRICS,
    _settings,
    _maps,
    lambda key, settings, facts: {key: plan(settings, facts)},
    kinds=("classes", "regression"),
    again=_again,
    settings_type=SparsificationSettings,
    about=_ABOUT,
    label="Sparsification",
)
