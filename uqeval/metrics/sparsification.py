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

from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics import _numbers as numbers
from uqeval.metrics import sparsification_columns
from uqeval.metrics import sparsification_curves as sc
from uqeval.metrics._contract import set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Counted, Evaluation, OverItems, Passes, Run
from uqeval.metrics._family import Family, variants
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics._signs import sign_warnings
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.pavpu_settings import check_uncertainty
from uqeval.metrics.sparsification_settings import SparsificationSettings
from uqeval.metrics.sparsification_tables import DISPLAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import Error, ItemCurves, RankedErrors, Tally, Uncertainty
    from uqeval.tallies._contract import State

#: Bins split where the area is over every rank: those that widen its bound most.
WIDEST = 128


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, SparsificationSettings]:
    found: dict[str, SparsificationSettings] = variants(
        "sparsification", SparsificationSettings, options, ("uncertainty", "error")
    )
    found = {key: own.for_data(info.kind, info.where) for key, own in found.items()}
    for own in found.values():
        check_uncertainty(own.uncertainty, info)
    return found


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

        own = self.settings
        every = own.grid == "every-rank"
        score, error = Uncertainty(own.uncertainty), Error(own.error)
        return ItemCurves(score, error, self.info.classes, own.cuts, every)

    @property
    def _coarse(self) -> dict[Uncertainty | Error, RankedErrors]:
        return _coarse(self.settings, self.info.classes)

    def maps(self) -> set[str]:
        from uqeval.tallies import Error

        counts = {TARGET_COUNTS} if self.info.kind == "regression" else set()
        return {*Error(self.settings.error).inputs, self.settings.uncertainty, *counts}

    def exact(self) -> Passes:
        if self._of_items:
            return None
        return (yield from _ranked(self.settings, self._items))

    def tallies(self) -> tuple[Tally, ...]:
        return () if self._of_items else tuple(self._coarse.values())

    def beside(self) -> tuple[Tally, ...]:
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
        ladders = [RankBins.of(tally, states[tally]) for tally in self._coarse.values()]
        found = _curves(self.settings, *ladders) if ladders[0].total else sc.VOID
        return _results(self.settings, found)

    def columns(
        self, states: Mapping[Tally, SetStates], wanted: Collection[str]
    ) -> dict[Place, NDArray[Any]]:
        if self._of_items:
            return {}
        ranked, ideal = (SetRankBins.of(states[tally]) for tally in self._coarse.values())
        return sparsification_columns.columns(self.settings, ranked, ideal)

    def found(self, counted: Mapping[Tally, Counted], exact: Any) -> Run:
        """Raise `DataError` where no target is valid."""
        packed = counted[self._items]
        items = _items(self.settings, self._items, packed)
        pixels = [int(self._items.unpack(data)["kept"][0]) for data in packed.items]
        if self.info.kind == "regression":
            numbers.refuse_nothing(sum(pixels), self.info)
        if self._of_items:
            exact = Exact(_mean(self.settings, items))
        exact = dataclasses.replace(exact, items=items, pixels=pixels)
        return Run(counted, exact, self.scores({}, exact), [sc.scores(one) for one in items])

    def numerics(self, run: Run) -> dict[str, int]:
        exact: Exact = run.exact
        found = {"items_undefined": sum(isinstance(one, str) for one in exact.items)}
        if exact.ranked is not None:
            zero = "sigma_zero" if self.settings.uncertainty == "sigma" else "uncertainty_zero"
            found[zero] = int(exact.ranked.pixels[exact.ranked.zeros].sum())
            found["ties_at_cuts"] = sc.cut_ties(exact.ranked, self.settings.cuts)
        if self.info.kind == "regression":
            found["invalid"] = sum(h * w for h, w in self.info.sizes) - sum(exact.pixels)
        return found

    def warnings(self, run: Run) -> list[str]:
        from uqeval.tallies import TargetCounts

        found = []
        if self.info.kind == "regression":
            found += numbers.void_items(self.info.names, run.exact.pixels)
            found += numbers.zero_targets(run.total(TargetCounts()), self.info)
        return found + sign_warnings("sparsification", run.results)


@dataclass(frozen=True)
class Exact:
    """The exact curves of the set, or why there are none.

    `ranked`: the ladder of uncertainties, in which ties at a cut and the zeros are told apart.
    `items`: the curves of each item, or why it has none; `pixels`: how many each evaluates.
    """

    curves: sc.Curves | str
    ranked: RankBins | None = None
    items: Sequence[sc.Curves | str] = ()
    pixels: Sequence[int] = ()


def _coarse(
    settings: SparsificationSettings, classes: int
) -> dict[Uncertainty | Error, RankedErrors]:
    """What sums errors by the high bits of the uncertainty, and by those of the error itself."""
    from uqeval.tallies import Error, RankedErrors, Uncertainty

    score, error = Uncertainty(settings.uncertainty), Error(settings.error)
    return {by: RankedErrors(by, error, classes) for by in (score, error)}


def _ranked(settings: SparsificationSettings, own: ItemCurves) -> Passes:
    """Rank the pixels of the whole set in two passes; return their `Exact` curves."""
    from uqeval.tallies import RankedErrors

    error, cuts, every = own.error, own.cuts, own.every_rank
    coarse = _coarse(settings, own.classes)
    first = yield tuple(coarse.values())
    ladders = {s: RankBins.of(tally, first[tally].total) for s, tally in coarse.items()}
    if not ladders[error].total:
        return Exact(sc.VOID, ladders[own.score])
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
            finer = RankBins.of(tally, counted[tally].total)
            prefixes = [p for _, p in tally.bins]
            ladders[s] = ladders[s].with_split(finer, tally.skip, prefixes)

    return Exact(_curves(settings, *ladders.values()), ladders[own.score])


def _curves(settings: SparsificationSettings, ranked: RankBins, ideal: RankBins) -> sc.Curves | str:
    """The curves of pixels ranked by their uncertainty, and by their error."""
    kept, model = sc.cut_ladder(ranked, settings.cuts)
    by_oracle, oracle = sc.cut_ladder(ideal, settings.cuts)
    more: dict[str, Any] = {"kept_by_oracle": by_oracle}
    if settings.grid == "every-rank":
        (a, a_bound), (b, b_bound) = map(sc.area_of_every_rank, (ranked, ideal))
        more |= {"every": (a, b), "bound": a_bound + b_bound}
    return settings.curves(kept, model, oracle, **more)


def _widest(ladder: RankBins) -> list[int]:
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
        set_value(
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
    Sparsification,
    SparsificationSettings,
    kinds=("classes", "regression"),
    about=_ABOUT,
    display=DISPLAY,
    label="Sparsification",
)
