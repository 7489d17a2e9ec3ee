"""An evaluation of a view of the data: the same scores, of tallies that count the view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.keys import Key
from uqeval.metrics._driver import renamed
from uqeval.metrics._evaluation import Counted, Evaluation, Gaps, OverItems, Passes, Section

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.views import View
    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


class InView(Evaluation[Any]):
    """`inner` for another view; what `inner` calls a tally is here that tally of the view."""

    def __init__(self, inner: Evaluation[Any], view: View) -> None:
        super().__init__(inner.settings, inner.info, inner.fitted)
        self.inner, self.view = inner, view

    def share(self, fitted: dict[str, Any]) -> None:
        """Take what another evaluation fits."""
        self.fitted = self.inner.fitted = fitted

    def unfitted(self) -> InView:
        return InView(self.inner.unfitted(), self.view)

    @property
    def approximate(self) -> frozenset[str]:
        return self.inner.approximate

    @property
    def bound(self) -> float:
        return self.inner.bound

    @property
    def flat(self) -> bool:
        return self.inner.flat

    @property
    def known(self) -> bool:
        return self.inner.known

    def maps(self) -> set[str]:
        return self.view.inputs(self.inner.maps())

    def fit(self) -> Passes:
        return (yield from renamed(self.inner.fit(), self._seen))

    def exact(self) -> Passes:
        return (yield from renamed(self.inner.exact(), self._seen))

    def tallies(self) -> tuple[Tally, ...]:
        return tuple(map(self._seen, self.inner.tallies()))

    def beside(self) -> tuple[Tally, ...]:
        return tuple(map(self._seen, self.inner.beside()))

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        return self.inner.scores({_plain(tally): own for tally, own in states.items()}, exact)

    def columns(
        self, states: Mapping[Tally, SetStates], wanted: Collection[str]
    ) -> Mapping[Place, NDArray[Any]]:
        return self.inner.columns({_plain(tally): own for tally, own in states.items()}, wanted)

    def over_items(self) -> OverItems:
        own = self.inner.over_items()
        return OverItems(
            own.means,
            own.correlations,
            {name: (self._seen(tally), read) for name, (tally, read) in own.of_states.items()},
            own.leaves_out,
            frozenset(map(self._seen, own.kept_only)),
        )

    def gaps(self) -> dict[Place, Gaps]:
        return {place: _gaps(own) for place, own in self.inner.gaps().items()}

    def section(self, counted: Mapping[Tally, Counted], exact: Any) -> Section:
        """A view without pixels has undefined scores, and is no error."""
        own = {_plain(tally): found for tally, found in counted.items()}
        return self.inner.section_of(self.inner.found(own, exact))

    def _seen(self, tally: Tally) -> Tally:
        return tally.seen(self.view)


def shared(evaluations: dict[str, Evaluation[Any]]) -> dict[str, Evaluation[Any]]:
    """Let regions use what is fitted on the whole image, where their family does; return all."""
    for key, own in evaluations.items():
        if isinstance(own, InView) and own.inner.shares_fit:
            own.share(evaluations[str(Key.parse(key).of(None))].fitted)
    return evaluations


def _plain(tally: Tally) -> Tally:
    from uqeval.maps.views import WHOLE

    return tally.seen(WHOLE)


def _gaps(own: Gaps) -> Gaps:
    def plain(states: Mapping[Tally, SetStates]) -> dict[Tally, SetStates]:
        return {_plain(tally): found for tally, found in states.items()}

    return Gaps(
        lambda states: own.signed(plain(states)),
        lambda states: own.weights(plain(states)),
        own.largest,
    )
