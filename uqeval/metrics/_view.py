"""An evaluation of a view of the data: the same scores, of tallies that count the view."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from uqeval.arrays import Array, State
from uqeval.keys import Key
from uqeval.maps.contract import WHOLE
from uqeval.maps.regions import Region, Within
from uqeval.metrics._driver import renamed
from uqeval.metrics._evaluation import Evaluation, Passes, Run, Section, TallyResult
from uqeval.metrics._score_kinds import Gaps, OverItems

if TYPE_CHECKING:
    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies._contract import Tally

_T = TypeVar("_T")


def _of_inner(name: str) -> Any:
    """Return a property that has the value of the inner evaluation."""
    return property(lambda self: getattr(self.inner, name))


class InView(Evaluation[Any]):
    """The evaluation `inner` on another view: each of its tallies counts the view instead."""

    view: Region

    def __init__(self, inner: Evaluation[Any], view: Region) -> None:
        super().__init__(inner.settings, inner.info, inner.fitted)
        self.inner, self.view = inner, view
        #: Whose `fit` finds the numbers: of the whole image, or of the region (None).
        self._fits: Evaluation[Any] | None = None

    def fit_as(self, whole: Evaluation[Any]) -> None:
        """Fit on the whole image. Each region does so for itself, so that a run can count many
        regions one after the other; those that it counts together share the counts of the fit."""
        self._fits = whole.unfitted()
        self._fits.fitted = self.fitted

    def unfitted(self) -> InView:
        return InView(self.inner.unfitted(), self.view)

    of_one_run = _of_inner("of_one_run")
    approximate = _of_inner("approximate")
    equal_mass = _of_inner("equal_mass")
    only_of_set = _of_inner("only_of_set")
    slices_at_once = _of_inner("slices_at_once")
    bound = _of_inner("bound")
    flat = _of_inner("flat")
    flat_fields = _of_inner("flat_fields")
    can_score = _of_inner("can_score")

    def use_evaluations(self, evaluations: Mapping[str, Evaluation[Any]]) -> None:
        self.inner.use_evaluations(evaluations)

    def use_items(
        self, key: str, items: Sequence[Mapping[str, Any]], fitted: Mapping[str, Any] | None = None
    ) -> None:
        self.inner.use_items(key, items, fitted)

    def maps(self) -> set[str]:
        return self.view.inputs(self.inner.maps())

    def fit(self) -> Passes:
        if self._fits is not None:
            return (yield from self._fits.fit())
        return (yield from self.inner.fit_region(lambda passes: renamed(passes, self._in_view)))

    def exact(self) -> Passes:
        return (yield from renamed(self.inner.exact(), self._in_view))

    def of_slice(self) -> Passes:
        return (yield from renamed(self.inner.of_slice(), self._in_view))

    def tallies(self) -> tuple[Tally, ...]:
        return tuple(map(self._in_view, self.inner.tallies()))

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        return tuple(map(self._in_view, self.inner.tallies_of(fields)))

    def extra_tallies(self) -> tuple[Tally, ...]:
        return tuple(map(self._in_view, self.inner.extra_tallies()))

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        return self.inner.scores(_of_whole_images(states), exact)

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> Mapping[Place, Array]:
        return self.inner.columns(_of_whole_images(states), fields)

    def over_items(self) -> OverItems:
        inner = self.inner.over_items()
        of_states = {
            name: (self._in_view(tally), function)
            for name, (tally, function) in inner.of_states.items()
        }
        kept_only = frozenset(map(self._in_view, inner.kept_only))
        return replace(inner, of_states=of_states, kept_only=kept_only)

    def gaps(self) -> dict[Place, Gaps]:
        return {place: _gaps(item_gaps) for place, item_gaps in self.inner.gaps().items()}

    def section(self, results: Mapping[Tally, TallyResult], exact: Any) -> Section:
        """Return the section of the view; without pixels, its scores are undefined."""
        return self.inner.section_of(self.inner.run_of(_of_whole_images(results), exact))

    def warnings(self, run: Run) -> list[str]:
        return self.inner.warnings(replace(run, counted=_of_whole_images(run.counted)))

    def section_of(self, run: Run) -> Section:
        return self.inner.section_of(replace(run, counted=_of_whole_images(run.counted)))

    def _in_view(self, tally: Tally) -> Tally:
        inner = tally.view
        return tally.in_view(self.view if inner == WHOLE else Within(self.view, inner))


def shared(evaluations: dict[str, Evaluation[Any]]) -> dict[str, Evaluation[Any]]:
    """Let regions fit on the whole image where their family does; return all evaluations."""
    for key, evaluation in evaluations.items():
        if isinstance(evaluation, InView) and evaluation.inner.shares_fit:
            evaluation.fit_as(evaluations[str(Key.parse(key).of(None))])
    return evaluations


def _of_whole_images(states: Mapping[Tally, _T]) -> dict[Tally, _T]:
    """Return values of tallies of the view, keyed by the tallies of the inner evaluation."""
    return {
        tally.in_view(tally.view.view if isinstance(tally.view, Within) else WHOLE): state
        for tally, state in states.items()
    }


def _gaps(inner: Gaps) -> Gaps:
    return replace(
        inner,
        signed=lambda states: inner.signed(_of_whole_images(states)),
        weights=lambda states: inner.weights(_of_whole_images(states)),
    )
