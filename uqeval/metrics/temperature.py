"""Temperature scaling, the part `temperature` of calibration: scores at the fitted temperature."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_gaps as calibration_gaps
import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import State, np
from uqeval.metrics._columns import Place, SetColumns, SetStates, scores_of
from uqeval.metrics._contract import set_value
from uqeval.metrics._dataset_info import fit_items
from uqeval.metrics._evaluation import Gaps, Part, Passes, Run, TallyResult
from uqeval.metrics.calibration_results import of_bins
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.temperature_fit import fit, fit_samples, folded

if TYPE_CHECKING:
    from uqeval.tallies import Tally

_ON_ITSELF = (
    "the temperature is fitted on the evaluated items, so the scaled scores are optimistic; "
    "--fit-on FILE names other items to fit it on."
)


class Temperature(Part[CalibrationSettings]):
    """The temperature with the least NLL of all items, or of some, and the scores of all at it.

    Where it is fitted on some items, `held_out` of a run has the scores of the others, before and
    after. `fitted`: β = 1/T, None where there is none, and what the results say of the fit.
    """

    name = "temperature"

    @classmethod
    def is_requested(cls, settings: CalibrationSettings) -> bool:
        return settings.temperature

    @property
    def can_score(self) -> bool:
        return {"beta", "record"} <= self.fitted.keys()

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "label_probability", "mean_probs"}

    def fit(self) -> Passes:
        settings, classes = self.settings, self.info.classes
        items = fit_items(settings.fit_on, self.info)
        if settings.temperature_of == "mean":
            fit_result = yield from fit(classes, items, settings.clip, self._at)
        else:
            fit_result = yield from fit_samples(classes, items, settings.clip)
        value = (
            None
            if fit_result.beta is None
            else cs.BY_FIELD["temperature.value"].formula(fit_result.beta)
        )
        record: dict[str, Any] = {}
        set_value(record, "value", value, fit_result.reason)
        record["fitted_on"] = "all items" if items is None else settings.fit_on
        record["pixels"] = fit_result.pixels
        record["label_probability_zero"] = fit_result.left_out
        self.fitted |= {"beta": fit_result.beta, "record": record}

    def tallies(self) -> tuple[Tally, ...]:
        beta = self.fitted.get("beta")
        return () if beta is None else (self._at(beta),)

    def extra_tallies(self) -> tuple[Tally, ...]:
        """Return the scores before, where some items are held out of the fit."""
        held_out = self.settings.fit_on is not None and self.fitted.get("beta") is not None
        return (self._before,) if held_out else ()

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        record: dict[str, Any] = self.fitted["record"]
        bin_states = [states[tally] for tally in self.tallies()]
        return record | (
            _scores(bin_states[0], self.settings.at_one) if bin_states else _unfitted()
        )

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        if not self.tallies():
            return {}
        own = states[self.tallies()[0]]
        fitted: SetColumns = {
            (name,): np.full(own.sets, float(value))
            for name, value in self.fitted["record"].items() if isinstance(value, int | float)
        }  # fmt: skip
        return fitted | _columns(own, self.settings.at_one)

    def gaps(self) -> dict[Place, Gaps]:
        bin_tallies = self.tallies()
        return calibration_gaps.of_bins(bin_tallies[0], self.settings.at_one) if bin_tallies else {}

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Add the scores of the items that are held out of the fit."""
        run = super().run_of(results, exact)
        fitted_on, tallies = fit_items(self.settings.fit_on, self.info), self.tallies()
        if fitted_on is not None and tallies:
            test_items = sorted(set(range(len(self.info.names))) - set(fitted_on))
            held_out: dict[str, Any] = {"items": len(test_items)}
            for name, tally in (("before", self._before), ("after", tallies[0])):
                state = folded(tally, results[tally], test_items)
                held_out[name] = _scores(state, self.settings.at_one)
            run.results["held_out"] = held_out
        return run

    def warnings(self, run: Run) -> list[str]:
        return [_ON_ITSELF] if self.settings.fit_on is None else []

    @property
    def _before(self) -> Tally:
        from uqeval.tallies import Tempered

        settings, classes = self.settings, self.info.classes
        return Tempered(
            classes, 1.0, settings.binning(), settings.clip, settings.is_positive(classes)
        )

    def _at(self, beta: float) -> Tally:
        """Return what counts at a temperature of the mean or of the samples."""
        from uqeval.tallies import Tempered, TemperedSamples

        settings, classes = self.settings, self.info.classes
        make = Tempered if settings.temperature_of == "mean" else TemperedSamples.of
        return make(classes, beta, settings.binning(), settings.clip, settings.is_positive(classes))


def _unfitted() -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name in ("ece", "mce", "nll"):
        set_value(record, name, None, cs.BY_FIELD[f"temperature.{name}"].undefined)
    return record


def _columns(states: SetStates, at_one: str) -> SetColumns:
    """Return the scores of states of `Tempered`."""
    nll = cs.mean_score(states["nll"][:, 0], states["count"].sum(axis=-1))
    return of_bins(states, at_one) | {("nll",): nll}


def _scores(state: State, at_one: str) -> dict[str, Any]:
    metrics = [cs.BY_FIELD[name] for name in ("ece", "mce", "nll")]
    (record,) = scores_of(metrics, _columns(SetStates.of_one(state), at_one))
    return record
