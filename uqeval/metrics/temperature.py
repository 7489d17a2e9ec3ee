"""Temperature scaling, the part `temperature` of calibration: scores at the fitted temperature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import State, np
from uqeval.metrics._columns import SetColumns, SetStates, over
from uqeval.metrics._contract import set_value
from uqeval.metrics._evaluation import Passes
from uqeval.metrics._fitted_part import Recalibration
from uqeval.metrics.calibration_results import of_bins
from uqeval.metrics.temperature_fit import Sample, fit, fit_samples

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally


class Temperature(Recalibration):
    """The temperature with the least NLL of all items, or of some, and the scores of all at it.

    `fitted`: β = 1/T, None where there is none, and what the results say of the fit.
    """

    name = noun = "temperature"
    optimistic = "the scaled scores are"
    recomputed = tuple(cs.BY_FIELD[name] for name in ("ece", "mce", "nll"))
    requested_by = "temperature"
    needs_fitted = ("beta", "record")

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "label_probability", "mean_probs"}

    def fit(self) -> Passes:
        settings, classes = self.settings, self.info.classes
        if settings.temperature_of == "mean":
            names = self.info.all_names or self.info.names
            sample = Sample.of(len(names if self.items is None else self.items))
            fit_result = yield from fit(classes, self.items, sample, settings.clip, self._tried)
        else:
            fit_result = yield from fit_samples(classes, self.items, settings.clip)
        value = (
            None
            if fit_result.beta is None
            else cs.BY_FIELD["temperature.value"].formula(fit_result.beta)
        )
        record: dict[str, Any] = {}
        set_value(record, "value", value, fit_result.reason)
        record |= self.fitted_on
        record["pixels"] = fit_result.pixels
        record["label_probability_zero"] = fit_result.left_out
        self.fitted |= {"beta": fit_result.beta, "record": record}

    @property
    def is_found(self) -> bool:
        return self.fitted.get("beta") is not None

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        record = dict(self.fitted["record"])
        if self.is_found:
            return record | self.recomputed_of(states[self.after()])
        for metric in self.recomputed:
            undefined = cs.BY_FIELD[f"temperature.{metric.field}"].undefined
            set_value(record, metric.field, None, undefined)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        if not self.is_found:
            return {}
        own = states[self.after()]
        fitted: SetColumns = {
            (name,): np.full(own.sets, float(value))
            for name, value in self.fitted["record"].items() if isinstance(value, int | float)
        }  # fmt: skip
        return fitted | self.columns_of(own)

    def columns_of(self, *states: SetStates) -> SetColumns:
        (own,) = states
        nll = over(own["nll"][:, 0], own["count"].sum(axis=-1))
        return of_bins(own, self.settings.at_one) | {("nll",): nll}

    def after(self) -> Tally:
        return self._at(self.fitted["beta"])

    @property
    def before(self) -> tuple[Tally]:
        from uqeval.tallies.at_temperature import Tempered

        return (self._tally(Tempered, 1.0),)

    def _tried(self, beta: float) -> Tally:
        """Return what counts at a β that is probably the result, so that regions are counted at it
        in the same pass."""
        self.fitted["beta"] = beta
        return self.after()

    def _at(self, beta: float) -> Tally:
        """Return what counts at a temperature of the mean or of the samples."""
        from uqeval.tallies.at_temperature import Tempered, TemperedSamples

        is_mean = self.settings.temperature_of == "mean"
        return self._tally(Tempered if is_mean else TemperedSamples.of, beta)

    def _tally(self, make: Callable[..., Tally], beta: float) -> Tally:
        settings, classes = self.settings, self.info.classes
        return make(classes, beta, settings.binning(), settings.clip, settings.is_positive(classes))
