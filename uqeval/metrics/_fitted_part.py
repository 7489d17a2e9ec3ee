"""Parts of results that are fitted on the evaluated items, or on those that `--fit-on` names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import State
from uqeval.metrics._columns import Place, SetColumns, SetStates, scores_of
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._dataset_info import fit_items, fitted_on
from uqeval.metrics._evaluation import Part, Run, TallyResult
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.calibration_settings import CalibrationSettings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

Settings = TypeVar("Settings")


class FittedPart(Part[Settings]):
    """Base: `held_out` of a run has the scores of the items that it is not fitted on."""

    #: What is fitted, and the scores that are optimistic if it is fitted on the evaluated items.
    noun: ClassVar[str]
    optimistic: ClassVar[str]

    @property
    def fit_on(self) -> str | None:
        """Return the file with the names of the items; None for all items."""
        return self.settings.fit_on  # type: ignore[attr-defined]

    @property
    def items(self) -> list[int] | None:
        """Return the items to fit on; None for all."""
        return fit_items(self.fit_on, self.info)

    @property
    def fitted_on(self) -> dict[str, str]:
        """Return the record of these items."""
        return fitted_on(self.fit_on, self.info)

    @abstractmethod
    def held_out(self, state_of: Callable[[Tally], State]) -> dict[str, Any]:
        """Return the scores of the items that are held out of the fit, from their states."""

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Add the scores of the items that are held out of the fit."""
        run, items = super().run_of(results, exact), self.items
        if items is None:
            return run
        if not self.tallies():
            set_value(run.results, "held_out", None, f"there is no {self.noun}")
        else:
            others = sorted(set(range(len(self.info.names))) - set(items))
            scores = self.held_out(lambda tally: results[tally].of_items(tally, others))
            run.results["held_out"] = {"items": len(others)} | scores
        return run

    def warnings(self, run: Run) -> list[str]:
        if self.fit_on is not None:
            return []
        return [
            f"the {self.noun} is fitted on the evaluated items, so {self.optimistic} optimistic; "
            "--fit-on FILE names other items to fit it on."
        ]


class Recalibration(FittedPart[CalibrationSettings]):
    """Base of parts of calibration: the scores of all items after a fit, in bins of confidence."""

    #: The scores before and after.
    recomputed: ClassVar[tuple[Metric, ...]]

    @property
    @abstractmethod
    def is_found(self) -> bool:
        """Return whether there is a fit."""

    @abstractmethod
    def after(self) -> Tally:
        """Return the tally of the scores after."""

    @property
    @abstractmethod
    def before(self) -> tuple[Tally, ...]:
        """Return the tallies of the scores before."""

    @abstractmethod
    def columns_of(self, *states: SetStates) -> SetColumns:
        """Return the scores of states of `before`, or of `after`."""

    def tallies(self) -> tuple[Tally, ...]:
        return (self.after(),) if self.is_found else ()

    def extra_tallies(self) -> tuple[Tally, ...]:
        """Return the tallies before, where some items are held out of the fit."""
        return self.before if self.fit_on is not None and self.is_found else ()

    def recomputed_of(self, *states: State) -> dict[str, Any]:
        """Return the scores of one set."""
        columns = self.columns_of(*map(SetStates.of_one, states))
        (record,) = scores_of(self.recomputed, columns)
        return record

    def held_out(self, state_of: Callable[[Tally], State]) -> dict[str, Any]:
        return {
            "before": self.recomputed_of(*map(state_of, self.before)),
            "after": self.recomputed_of(state_of(self.after())),
        }

    def gaps(self) -> dict[Place, Gaps]:
        at_one = self.settings.at_one
        return cs.of_bins(self.after(), at_one) if self.is_found else {}
