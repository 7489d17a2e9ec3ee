"""The family `sparsification`: does the error fall when the least certain pixels are removed?

A first pass counts pixels and sums errors by the high 19 bits of the uncertainty's key, and by
those of the error's own for the oracle; a second does so by all bits in the bins that hold a cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
import uqeval.metrics.sparsification_curves as sc
from uqeval.arrays import State, np
from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._contract import Column, Display, Record, ScoreTable, set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import joined_states
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics._score_kinds import OverItems
from uqeval.metrics._warnings import sign_warnings
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.pavpu_settings import check_uncertainty
from uqeval.metrics.sparsification_settings import SparsificationSettings

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._errors import Error
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.item_curves import ItemCurves
    from uqeval.tallies.ranked_errors import RankedErrors

#: Removed fractions at which a table reads the curves.
_REMOVED = (0.0, 0.1, 0.2, 0.5, 0.8, 0.9)


def _at(fraction: float) -> Callable[[Record, Report], float | None]:
    """Return a function that reads a curve at the grid point nearest to the fraction."""

    def value(record: Record, report: Report) -> float | None:
        if record["curve"] is None:
            return None
        points = zip(record["fractions"], record["curve"], strict=True)
        return float(min(points, key=lambda point: abs(point[0] - fraction))[1])

    return value


def _oracle(record: Record) -> Iterator[tuple[str, Record]]:
    if record["oracle"] is not None:
        yield "  oracle", {**record, "curve": record["oracle"]}


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Sparsification",
            ("uncertainty", "error", "ause", "aurg", Column("normalisation", "divided by")),
            "AUSE: area between the curve and the oracle; 0 is best. AURG: gain over random "
            "removal; below 0 random removal is better. divided by: the error of all pixels, or 1.",
        ),
        ScoreTable(
            "Error of the remaining pixels",
            tuple(Column("curve", f"{f:.0%} removed", value=_at(f)) for f in _REMOVED),
            below=_oracle,
        ),
    ),
    figures=("sparsification",),
)


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
        from uqeval.tallies._errors import Error
        from uqeval.tallies._values import Uncertainty
        from uqeval.tallies.item_curves import ItemCurves

        settings = self.settings
        every_rank = settings.grid == "every-rank"
        score, error = Uncertainty(settings.uncertainty), Error(settings.error)
        return ItemCurves(score, error, self.info.classes, settings.cuts, every_rank)

    @property
    def _coarse(self) -> dict[Uncertainty | Error, RankedErrors]:
        return _coarse(self.settings, self.info.classes)

    def maps(self) -> set[str]:
        from uqeval.tallies._errors import Error

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
        from uqeval.tallies.error_sums import TargetCounts

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
        return _results(self.settings, _curves(self.settings, *by_score))

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        if self._of_items:
            return {}
        ranked, ideal = (SetRankBins(states[tally]) for tally in self._coarse.values())
        return columns(self.settings, ranked, ideal)

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Raise `DataError` if no target is valid."""
        records, pixels, curves = self._each_item(results[self._items])
        if self.info.kind == "regression":
            numbers.refuse_nothing(sum(pixels), self.info, self.region)
        if self._of_items:
            exact = Exact(sc.mean_over_items(sc.joined(curves)))
        if exact is None:  # only the items' records are needed
            return Run(results, None, {}, records)
        exact = dataclasses.replace(exact, pixels=pixels)
        return Run(results, exact, self.scores({}, exact), records)

    def _each_item(
        self, result: TallyResult
    ) -> tuple[list[dict[str, Any]], list[int], list[sc.Curves]]:
        """Return the scores of each item, its evaluated pixels, and, if the set's scores are means
        over items, the curves of some items in a row."""
        tally, all_curves = self._items, []
        records: list[dict[str, Any]] = []
        pixels: list[int] = []
        for (state,) in joined_states([tally], [result.items]):
            every_rank = tuple(state["areas"].T) if tally.every_rank else None
            curves = self.settings.curves(
                sc.CutSums(
                    state["kept"], state["errors"], state["kept_by_oracle"], state["oracle"],
                    every_rank,
                )
            )  # fmt: skip
            records += sc.scores(curves)
            pixels += state["kept"][:, 0].tolist()
            if self._of_items:
                all_curves.append(curves)
        return records, pixels, all_curves

    def numerics(self, run: Run) -> dict[str, int]:
        exact: Exact = run.exact
        counts = {"items_undefined": sum(item["ause"] is None for item in run.items)}
        if exact.ranked is not None:
            zero = "sigma_zero" if self.settings.uncertainty == "sigma" else "uncertainty_zero"
            counts[zero] = int(exact.ranked.pixels[exact.ranked.zeros].sum())
            counts["ties_at_cuts"] = sc.cut_ties(exact.ranked, self.settings.cuts)
        if self.info.kind == "regression":
            counts["invalid"] = sum(h * w for h, w in self.info.sizes) - sum(exact.pixels)
        return counts

    def warnings(self, run: Run) -> list[str]:
        from uqeval.tallies.error_sums import TargetCounts

        messages = []
        if self.info.kind == "regression":
            targets = TargetCounts()
            pixels = [int(targets.unpack(own)["counts"][0]) for own in run.counted[targets].items]
            messages += numbers.void_items(self.info.names, pixels, self.region)
            messages += numbers.zero_targets(run.total(targets), self.info)
            if not self.region:
                messages += numbers.marked_targets(run, self.info)
        return messages + sign_warnings("sparsification", run.results)


@dataclass(frozen=True)
class Exact:
    """The exact curves of the set.

    `ranked`: bins of uncertainties, in which ties at a cut and the zeros have bins of their own.
    `pixels`: how many each item evaluates.
    """

    curves: sc.Curves
    ranked: RankBins | None = None
    pixels: Sequence[int] = ()


def _coarse(
    settings: SparsificationSettings, classes: int
) -> dict[Uncertainty | Error, RankedErrors]:
    """Return the tallies that sum errors by the high bits of the uncertainty, and of the error."""
    from uqeval.tallies._errors import Error
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors

    score, error = Uncertainty(settings.uncertainty), Error(settings.error)
    return {ranking: RankedErrors(ranking, error, classes) for ranking in (score, error.ranking)}


def _rank_set(settings: SparsificationSettings, item_tally: ItemCurves) -> Passes:
    """Rank the pixels of the whole set in two passes; return their `Exact` curves."""
    from uqeval.tallies.ranked_errors import RankedErrors

    error, cuts, every_rank = item_tally.error, item_tally.cuts, item_tally.every_rank
    coarse = _coarse(settings, item_tally.classes)
    first = yield tuple(coarse.values())
    by_score = {s: RankBins.from_state(tally, first[tally].total) for s, tally in coarse.items()}
    if not by_score[error.ranking].total:
        return Exact(_curves(settings, *by_score.values()), by_score[item_tally.score])
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
            prefixes = np.array(tally.bins)[:, 1]
            by_score[s] = by_score[s].with_split(finer, tally.skip, prefixes)

    return Exact(_curves(settings, *by_score.values()), by_score[item_tally.score])


def _curves(settings: SparsificationSettings, ranked: RankBins, ideal: RankBins) -> sc.Curves:
    """Return the curves of pixels ranked by their uncertainty, and by their error, as one set."""
    kept, errors = sc.values_at_cuts(ranked, settings.cuts)
    kept_by_oracle, oracle = sc.values_at_cuts(ideal, settings.cuts)
    sums = sc.CutSums(kept, errors, kept_by_oracle, oracle)
    if settings.grid == "every-rank" and ranked.total:
        a, b = (sc.area_of_every_rank(SetRankBins.of_one(order)) for order in (ranked, ideal))
        bound = sc.bound_of_area(ranked) + sc.bound_of_area(ideal)
        sums = dataclasses.replace(sums, every_rank=(a, b), bound=np.array([bound]))
    return settings.curves(sums)


def columns(
    settings: SparsificationSettings, ranked: SetRankBins, ideal: SetRankBins
) -> SetColumns:
    """Return AUSE and AURG of pixels `ranked` by their uncertainty; `ideal`: by their error."""
    if not ranked.tiles.spans:
        undefined = np.full(len(ranked.total), np.nan)
        return {("ause",): undefined, ("aurg",): undefined}
    kept, errors = sc.curve_points(ranked, settings.cuts)
    kept_by_oracle, oracle = sc.curve_points(ideal, settings.cuts)
    areas = None
    if settings.grid == "every-rank":
        areas = sc.area_of_every_rank(ranked), sc.area_of_every_rank(ideal)
    curves = settings.curves(sc.CutSums(kept, errors, kept_by_oracle, oracle, areas))
    return {(metric.field,): metric.formula(curves) for metric in sc.METRICS}


def _widest(rank_bins: RankBins) -> list[int]:
    """Return the first bin, and those whose ties widen the bound of the area over every
    rank most.
    """
    width = rank_bins.errors * (rank_bins.pixels / rank_bins.upto) * rank_bins.open
    order = np.argsort(-width, kind="stable")[:WIDEST]
    return [0, *(int(i) for i in order if width[i] > 0)]


def _results(settings: SparsificationSettings, curves: sc.Curves) -> dict[str, Any]:
    """Return the results from the curves of one set."""
    (scores,), (reason,) = sc.scores(curves), curves.reasons
    results = {"uncertainty": settings.uncertainty, "error": settings.error, **scores}
    if settings.grid == "every-rank":
        bound = None if reason else float(curves.bound[0])
        set_value(results, "ause_bound", bound, reason)
    return results | _record(settings, curves)


def _record(settings: SparsificationSettings, curves: sc.Curves) -> dict[str, Any]:
    (reason,), steps = curves.reasons, settings.steps
    at_one = [1.0] if settings.end == "zero" else []
    record: dict[str, Any] = {"fractions": [k / steps for k in range(steps)] + at_one}
    if reason:
        for name in ("curve", "oracle", "error_curve", "normalisation"):
            record |= {name: None, f"{name}_reason": reason}
        return record
    model, oracle = curves.model[0].tolist(), curves.oracle[0].tolist()
    model += [0.0] * len(at_one)
    oracle += [0.0] * len(at_one)
    return record | {
        "curve": model,
        "oracle": oracle,
        "error_curve": [a - b for a, b in zip(model, oracle, strict=True)],
        "normalisation": float(curves.by[0]),
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
