"""The steps of a family: fit, count, and compute its scores from the counts.

One evaluation is one variant of a family, or a part of its results. All scores come from this
object: those of a run over the data, and those of slices, intervals, merged parts and comparisons,
which read saved states and keep the fit of the run.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from uqeval.arrays import Array, State
from uqeval.metrics._columns import Place, SetStates
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._score_kinds import OverItems

if TYPE_CHECKING:
    from uqeval.metrics._contract import Metric
    from uqeval.metrics._score_kinds import Gaps
    from uqeval.tallies._contract import Tally

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TallyResult:
    """A tally after a pass: the state of all items, and the state of each item as bytes."""

    total: State
    items: Sequence[bytes]

    def of(self, tally: Tally, items: Sequence[int] | None) -> State:
        """Return the state of some items, folded in their order; None: of all."""
        return self.total if items is None else self.of_items(tally, items)

    def of_items(self, tally: Tally, items: Sequence[int]) -> State:
        """Return the state of some items, folded in their order."""
        total = tally.empty()
        for i in items:
            tally.merge(total, tally.unpack(self.items[i]))
        return total

    def only(self, tally: Tally, items: Sequence[int]) -> TallyResult:
        """Return the result of a pass over some of the items."""
        return TallyResult(self.of_items(tally, items), [self.items[i] for i in items])


#: A generator that yields the tallies of its next pass and receives their results.
Passes = Generator["tuple[Tally, ...]", "dict[Tally, TallyResult]", Any]


@dataclass(frozen=True)
class Section:
    """What an evaluation adds to a report.

    `items`: one record for each item; none from a part. `fitted`: the numbers fitted on the whole
    set, as JSON values. `flat`: the results of a part are fields of the results of the whole.
    """

    results: dict[str, Any]
    items: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    numerics: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    fitted: dict[str, Any] = field(default_factory=dict)
    flat: bool = False


@dataclass(frozen=True)
class Run:
    """Outcome of a run over all items: states, the result of `exact`, results, items' records."""

    counted: Mapping[Tally, TallyResult]
    exact: Any
    results: dict[str, Any]
    items: list[dict[str, Any]]

    def total(self, tally: Tally) -> State:
        """Return the state of all items of a tally."""
        return self.counted[tally].total


@dataclass
class Evaluation(ABC, Generic[Settings]):
    """One variant of a family on the given data, or one part of its results.

    `fitted`: numbers fitted on the whole set (thresholds, edges of bins, a temperature), as JSON
    can hold them. It is empty before `fit` has run; from saved states it is given.

    A run calls `fit` and `exact`, counts `tallies` and `extra_tallies`, each in the first pass in
    which `fitted` determines it, and reads `section`. From saved states only `tallies`, `scores`
    and `columns` are used.
    """

    settings: Settings
    info: DatasetInfo
    fitted: dict[str, Any] = field(default_factory=dict)

    #: The region of pixels that is evaluated; "" for all.
    region: ClassVar[str] = ""
    #: Whether `refit` can find another threshold from saved states.
    refits: ClassVar[bool] = False
    #: The numbers in `fitted` that all scores from states need.
    needs_fitted: ClassVar[tuple[str, ...]] = ()

    @property
    def fits_threshold(self) -> bool:
        """Return whether `fit` finds an uncertainty threshold, which a user may also give as a
        number."""
        return False

    @property
    def approximate(self) -> frozenset[str]:
        """Return the scores that are averaged inside bins without `exact`; "*": all of them."""
        return frozenset()

    @property
    def equal_mass(self) -> frozenset[str]:
        """Return the scores in bins with equal numbers of pixels, whose edges `fit` finds."""
        return frozenset()

    @property
    def only_of_set(self) -> frozenset[str]:
        """Return the fields that slices do not have, because they are of the whole set."""
        return frozenset()

    @property
    def ranks_slices(self) -> bool:
        """Return whether `of_slice` counts pixels: scores of a slice need ranks of its own."""
        return bool(self.approximate or self.equal_mass)

    @property
    def slices_at_once(self) -> int:
        """Return how many slices may be counted at the same time without much memory."""
        return 1

    @property
    def bound(self) -> float:
        """Return the greatest relative error of approximate scores: the relative width of a bin."""
        return 0.0

    @property
    def shares_fit(self) -> bool:
        """Return whether regions use the fit of the whole image."""
        return True

    def of_region(self, region: str) -> Self:
        """Return this evaluation for a region of pixels.

        Raises `UsageError` for settings that have no regions.
        """
        self.region = region  # type: ignore[misc]
        return self

    def unfitted(self) -> Evaluation[Settings]:
        """Return the same evaluation, of the same region, before `fit`."""
        evaluation = type(self)(self.settings, self.info)
        return evaluation.of_region(self.region) if self.region else evaluation

    @property
    def of_one_run(self) -> frozenset[str]:
        """Return the names of fitted numbers that several runs may share by chance. They are not
        those of all their items together."""
        return frozenset()

    @property
    def flat(self) -> bool:
        """Return whether the results of a part are fields of the results of the whole."""
        return False

    @property
    def flat_fields(self) -> tuple[str, ...]:
        """Return the fields of the results of the whole that a flat part has, scores or not."""
        return ()

    @property
    def can_score(self) -> bool:
        """Return whether `fitted` is enough to compute all scores from states."""
        return self.fitted.keys() >= set(self.needs_fitted)

    def maps(self) -> set[str]:
        """Return the names of the maps that the passes read: by default those of the tallies."""
        return {name for tally in (*self.tallies(), *self.extra_tallies()) for name in tally.inputs}

    def use_evaluations(self, evaluations: Mapping[str, Evaluation[Any]]) -> None:
        """Receive the other evaluations of the run, by key, before the run reads data."""

    def use_items(
        self, key: str, items: Sequence[Mapping[str, Any]], fitted: Mapping[str, Any] | None = None
    ) -> None:
        """Receive the items' records of earlier runs and the key of this evaluation in them, before
        `fit` runs on saved states. `fitted`: the numbers that all these runs fitted alike."""

    def fit(self) -> Passes:
        """Fit on the whole set; put each number into `fitted` once it is known."""
        yield from ()

    def fit_threshold(self) -> Passes:
        """Fit the uncertainty threshold, and what `fit` finds with it."""
        return (yield from self.fit())

    def fit_region(self, in_region: Callable[[Passes], Passes]) -> Passes:
        """Fit for a region that does not share the fit of the whole image.

        `in_region` returns passes that count the pixels of the region only.
        """
        return (yield from in_region(self.fit()))

    def exact(self) -> Passes:
        """Return exact values for `scores`, if the tallies have only bins of ranks."""
        yield from ()

    def of_slice(self) -> Passes:
        """Count the pixels of a slice; return what `scores` reads in addition to the states."""
        return (yield from self.exact())

    @abstractmethod
    def tallies(self) -> tuple[Tally, ...]:
        """Return the tallies that `scores` reads, as far as `fitted` determines them."""

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        """Return the tallies that `columns` needs for these fields, in the same order in all runs.

        By default all; families with options that add tallies leave out those of other fields.
        """
        return self.tallies()

    def extra_tallies(self) -> tuple[Tally, ...]:
        """Return further tallies that the items, numerics and warnings of a run read."""
        return ()

    @abstractmethod
    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        """Return scores, rows and curves of a set of items, as the report has them.

        `states`: the states of `tallies`, added up over the items. Undefined scores are None, with
        their reason. `exact`: the result of `exact` for the whole set, of `of_slice` for a slice
        that the run knew.
        """

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> Mapping[Place, Array]:
        """Return the numbers of `scores` for many sets at once, [set] by place; NaN: undefined.

        `fields` are the first words of the places that are needed; others may be left out.
        `states` has at least those of `tallies_of(fields)`.
        """
        return {}

    def over_items(self) -> OverItems:
        """Return the scores that are means over items."""
        return OverItems()

    def gaps(self) -> Mapping[Place, Gaps]:
        """Return the scores that are sums of absolute gaps, by their place in the results."""
        return {}

    def options(self) -> dict[str, str | None] | None:
        """Return the options that fix the fitted values, as a user writes them.

        A threshold that is undefined is None. Empty: several thresholds, which no option can give.
        None: nothing is fitted, or `fit` has not finished.
        """
        return None

    def refit(self, rule: str) -> Passes:
        """Return `fitted` for the threshold `rule`, as far as saved states allow; if it `refits`.

        Raises `UsageError` for a threshold that the states do not hold.
        """
        raise NotImplementedError

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        """Return the scores of each item."""
        return []

    def numerics(self, run: Run) -> dict[str, int]:
        """Return counts that accompany the scores: ties, clipped and invalid values."""
        return {}

    def warnings(self, run: Run) -> list[str]:
        """Return warnings about the results."""
        return []

    def described(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings as the report has them; none for a part."""
        return dataclasses.asdict(self.settings)  # type: ignore[call-overload]

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Return the results and the items' records of a run over all items."""
        totals = {tally: result.total for tally, result in results.items()}
        return Run(results, exact, self.scores(totals, exact), self.records(results))

    def check(self, results: Mapping[Tally, TallyResult]) -> None:
        """Raise `DataError` if there is nothing to evaluate."""

    def section(self, results: Mapping[Tally, TallyResult], exact: Any) -> Section:
        """Return the part of the report of a run over all items. Raises `DataError`."""
        self.check(results)
        return self.section_of(self.run_of(results, exact))

    def section_of(self, run: Run) -> Section:
        """Return the part of the report that a run adds."""
        return Section(
            run.results, run.items, self.described(run.results), self.numerics(run),
            self.warnings(run), self.fitted, self.flat,
        )  # fmt: skip


class Part(Evaluation[Settings]):
    """A part of the results of a family, with its own tallies, counted in the same passes.

    Its results are a record under its `name`, or with `flat` fields of the family's results.
    `fitted` shows whether states of an older version have the part.
    """

    name: ClassVar[str]
    #: The metrics of the part, which the family lists, too.
    metrics: ClassVar[tuple[Metric, ...]] = ()
    #: The setting that requests the part; "" if it is always there.
    requested_by: ClassVar[str] = ""

    @property
    def flat_fields(self) -> tuple[str, ...]:
        return tuple(metric.field for metric in self.metrics) if self.flat else ()

    @classmethod
    def is_requested(cls, settings: Settings) -> bool:
        """Return whether the settings request this part."""
        return not cls.requested_by or bool(getattr(settings, cls.requested_by))

    def described(self, results: Mapping[str, Any]) -> dict[str, Any]:
        return {}


def put_part(record: dict[str, Any], name: str, results: Mapping[str, Any], flat: bool) -> None:
    """Add the results of a part to those of its family."""
    if flat:
        record |= results
    else:
        record[name] = results
