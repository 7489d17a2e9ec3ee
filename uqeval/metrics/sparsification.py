"""The family `sparsification`: does the error fall when the least certain pixels are removed?

A first pass counts pixels and sums errors by the high 19 bits of the uncertainty's key, and by
those of the error's own for the oracle; a second does so by all bits in the bins that hold a cut.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
import uqeval.metrics.sparsification_columns as sparsification_columns
import uqeval.metrics.sparsification_curves as sc
from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics._contract import set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, OverItems, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import each
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics._warnings import sign_warnings
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.pavpu_settings import check_uncertainty
from uqeval.metrics.sparsification_settings import SparsificationSettings
from uqeval.metrics.sparsification_tables import DISPLAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import Error, ItemCurves, RankedErrors, Tally, Uncertainty
    from uqeval.tallies._fields import State

#: Bins split where the area is over every rank: those that widen its bound most.
WIDEST = 128


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, SparsificationSettings]:
    settings: dict[str, SparsificationSettings] = variants(
        "sparsification", SparsificationSettings, options, ("uncertainty", "error")
    )
    settings = {key: variant.for_data(info.kind, info.where) for key, variant in settings.items()}
    for variant in settings.values():
        check_uncertainty(variant.uncertainty, info)
    return settings


class Sparsification(Evaluation[SparsificationSettings]):
    """The curves of the set, and of each item.

    The exact curves need ranks. From saved states the curves of the set are read in bins of
    uncertainties and of errors, whose pixels are a tie. With scope "item" the areas are means over
    items.
    """

    @property
    def _of_items(self) -> bool:
        return self.settings.scope == "item"

    @property
    def approximate(self) -> frozenset[str]:
        return frozenset() if self._of_items else frozenset("*")

    @property
    def bound(self) -> float:
        return 0.0 if self._of_items else BIN_WIDTH

    @property
    def _items(self) -> ItemCurves:
        from uqeval.tallies import Error, ItemCurves, Uncertainty

        settings = self.settings
        every_rank = settings.grid == "every-rank"
        score, error = Uncertainty(settings.uncertainty), Error(settings.error)
        return ItemCurves(score, error, self.info.classes, settings.cuts, every_rank)

    @property
    def _coarse(self) -> dict[Uncertainty | Error, RankedErrors]:
        return _coarse(self.settings, self.info.classes)

    def maps(self) -> set[str]:
        from uqeval.tallies import Error

        counts = {TARGET_COUNTS} if self.info.kind == "regression" else set()
        error = Error(self.settings.error)
        return {*error.inputs, self.settings.uncertainty, *counts}

    def exact(self) -> Passes:
        if self._of_items:
            return None
        return (yield from _rank_set(self.settings, self._items))

    def tallies(self) -> tuple[Tally, ...]:
        return () if self._of_items else tuple(self._coarse.values())

    def extra_tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies import TargetCounts

        return (self._items, *((TargetCounts(),) if self.info.kind == "regression" else ()))

    def over_items(self) -> OverItems:
        if not self._of_items:
            return OverItems()
        return OverItems(means={metric.field: metric.field for metric in sc.METRICS})

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        if self._of_items and exact is None:
            return {"uncertainty": self.settings.uncertainty, "error": self.settings.error}
        if exact is not None:
            return _results(self.settings, exact.curves)
        by_score = [RankBins.from_state(tally, states[tally]) for tally in self._coarse.values()]
        curves = _curves(self.settings, *by_score) if by_score[0].total else sc.VOID
        return _results(self.settings, curves)

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> dict[Place, NDArray[Any]]:
        if self._of_items:
            return {}
        ranked, ideal = (SetRankBins.from_states(states[tally]) for tally in self._coarse.values())
        return sparsification_columns.columns(self.settings, ranked, ideal)

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Raise `DataError` if no target is valid."""
        tally = self._items
        items, pixels = _items(self.settings, tally, results[tally])
        if self.info.kind == "regression":
            numbers.refuse_nothing(sum(pixels), self.info, self.region)
        if self._of_items:
            exact = Exact(_mean(items))
        exact = dataclasses.replace(exact, items=items, pixels=pixels)
        return Run(results, exact, self.scores({}, exact), [sc.scores(item) for item in items])

    def numerics(self, run: Run) -> dict[str, int]:
        exact: Exact = run.exact
        counts = {"items_undefined": sum(isinstance(item, str) for item in exact.items)}
        if exact.ranked is not None:
            zero = "sigma_zero" if self.settings.uncertainty == "sigma" else "uncertainty_zero"
            counts[zero] = int(exact.ranked.pixels[exact.ranked.zeros].sum())
            counts["ties_at_cuts"] = sc.cut_ties(exact.ranked, self.settings.cuts)
        if self.info.kind == "regression":
            counts["invalid"] = sum(h * w for h, w in self.info.sizes) - sum(exact.pixels)
        return counts

    def warnings(self, run: Run) -> list[str]:
        from uqeval.tallies import TargetCounts

        messages = []
        if self.info.kind == "regression":
            messages += numbers.void_items(self.info.names, run.exact.pixels, self.region)
            messages += numbers.zero_targets(run.total(TargetCounts()), self.info)
        return messages + sign_warnings("sparsification", run.results)


@dataclass(frozen=True)
class Exact:
    """The exact curves of the set, or why there are none.

    `ranked`: bins of uncertainties, in which ties at a cut and the zeros have bins of their own.
    `items`: the curves of each item, or why it has none; `pixels`: how many each evaluates.
    """

    curves: sc.Curves | str
    ranked: RankBins | None = None
    items: Sequence[sc.Curves | str] = ()
    pixels: Sequence[int] = ()


def _coarse(
    settings: SparsificationSettings, classes: int
) -> dict[Uncertainty | Error, RankedErrors]:
    """Return what sums errors by the high bits of the uncertainty, and by those of the error
    itself.
    """
    from uqeval.tallies import Error, RankedErrors, Uncertainty

    score, error = Uncertainty(settings.uncertainty), Error(settings.error)
    return {ranking: RankedErrors(ranking, error, classes) for ranking in (score, error.ranking)}


def _rank_set(settings: SparsificationSettings, item_tally: ItemCurves) -> Passes:
    """Rank the pixels of the whole set in two passes; return their `Exact` curves."""
    from uqeval.tallies import RankedErrors

    error, cuts, every_rank = item_tally.error, item_tally.cuts, item_tally.every_rank
    coarse = _coarse(settings, item_tally.classes)
    first = yield tuple(coarse.values())
    by_score = {s: RankBins.from_state(tally, first[tally].total) for s, tally in coarse.items()}
    if not by_score[error.ranking].total:
        return Exact(sc.VOID, by_score[item_tally.score])
    split_tallies: dict[Any, list[RankedErrors]] = {}
    for s, rank_bins in by_score.items():
        split_bins = sc.bins_to_split(rank_bins, cuts)
        if s == item_tally.score:
            split_bins += rank_bins.zeros
        split_tallies[s] = []
        if every_rank:
            split_bins += _widest(rank_bins)
            blocks = tuple((0, p) for p in rank_bins.prefixes(slice(None), 9))
            split_tallies[s].append(
                RankedErrors(s, error, item_tally.classes, False, 9, 13, blocks)
            )
        if split_bins:
            bins = tuple((0, p) for p in rank_bins.prefixes(split_bins, 19))
            split_tallies[s].append(RankedErrors(s, error, item_tally.classes, False, 19, 13, bins))
    requested = tuple(dict.fromkeys(t for tallies in split_tallies.values() for t in tallies))
    results = (yield requested) if requested else {}
    for s, tallies in split_tallies.items():
        for tally in tallies:
            finer = RankBins.from_state(tally, results[tally].total)
            prefixes = [p for _, p in tally.bins]
            by_score[s] = by_score[s].with_split(finer, tally.skip, prefixes)

    return Exact(_curves(settings, *by_score.values()), by_score[item_tally.score])


def _curves(settings: SparsificationSettings, ranked: RankBins, ideal: RankBins) -> sc.Curves | str:
    """Return the curves of pixels ranked by their uncertainty, and by their error."""
    retained, model = sc.values_at_cuts(ranked, settings.cuts)
    by_oracle, oracle = sc.values_at_cuts(ideal, settings.cuts)
    details: dict[str, Any] = {"kept_by_oracle": by_oracle}
    if settings.grid == "every-rank":
        (a, a_bound), (b, b_bound) = map(sc.area_of_every_rank, (ranked, ideal))
        details |= {"every_rank": (a, b), "bound": a_bound + b_bound}
    return settings.curves(retained, model, oracle, **details)


def _widest(rank_bins: RankBins) -> list[int]:
    """Return the first bin, and those whose ties widen the bound of the area over every
    rank most.
    """
    import numpy as np

    width = rank_bins.errors * (rank_bins.pixels / rank_bins.upto) * rank_bins.open
    order = np.argsort(-width, kind="stable")[:WIDEST]
    return [0, *(int(i) for i in order if width[i] > 0)]


def _items(
    settings: SparsificationSettings, tally: ItemCurves, results: TallyResult
) -> tuple[list[sc.Curves | str], list[int]]:
    """Return the curves of each item, or why it has none, and its evaluated pixels."""
    curves, pixels = [], []
    for state in each(tally, results.items):
        pixels.append(int(state["kept"][0]))
        details: dict[str, Any] = {"kept_by_oracle": state["kept_by_oracle"].tolist()}
        if tally.every_rank:
            details["every_rank"] = tuple(state["areas"].tolist())
        sums = (state[name].tolist() for name in ("kept", "errors", "oracle"))
        curves.append(settings.curves(*sums, **details))
    return curves, pixels


def _mean(items: list[sc.Curves | str]) -> sc.Curves | str:
    """Return the mean of the items' curves, areas included; items without curves are left out."""
    good = [item for item in items if isinstance(item, sc.Curves)]
    if not good:
        return next((item for item in items if isinstance(item, str) and item != sc.VOID), sc.VOID)

    def mean(values: list[float]) -> float:
        return math.fsum(values) / len(good)

    model = [mean(list(v)) for v in zip(*(curves.model for curves in good), strict=True)]
    oracle = [mean(list(v)) for v in zip(*(curves.oracle for curves in good), strict=True)]
    # With this span, AURG is the mean of the items' AURG.
    area = mean([curves.areas[0] for curves in good])
    span = (mean([curves.aurg for curves in good]) + area) / model[0] if model[0] else 0.0
    return sc.Curves(
        model, oracle, (area, mean([curves.areas[1] for curves in good])), span,
        mean([curves.by for curves in good]),
    )  # fmt: skip


def _results(settings: SparsificationSettings, curves: sc.Curves | str) -> dict[str, Any]:
    """Return what curves say."""
    results: dict[str, Any] = {
        "uncertainty": settings.uncertainty,
        "error": settings.error,
        **sc.scores(curves),
    }
    if settings.grid == "every-rank":
        set_value(
            results, "ause_bound",
            *((None, curves) if isinstance(curves, str) else (curves.bound, "")),
        )  # fmt: skip
    return results | _record(settings, curves)


def _record(settings: SparsificationSettings, curves: sc.Curves | str) -> dict[str, Any]:
    steps = settings.steps
    record: dict[str, Any] = {"fractions": [k / steps for k in range(steps)]}
    if isinstance(curves, str):
        for name in ("curve", "oracle", "error_curve", "normalisation"):
            record |= {name: None, f"{name}_reason": curves}
        return record
    model, oracle = list(curves.model), list(curves.oracle)
    if settings.end == "zero":
        record["fractions"].append(1.0)
        model.append(0.0)
        oracle.append(0.0)
    return record | {
        "curve": model,
        "oracle": oracle,
        "error_curve": [a - b for a, b in zip(model, oracle, strict=True)],
        "normalisation": curves.by,
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
    Sparsification,
    SparsificationSettings,
    kinds=("classes", "regression"),
    about=_ABOUT,
    display=DISPLAY,
    label="Sparsification",
    on_subsets=OnSubsets(default=("regression",)),
)
