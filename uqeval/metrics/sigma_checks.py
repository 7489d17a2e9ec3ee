"""Compare σ with the errors: in bins of σ (Levi et al. 2022), and by one fitted factor.

Parts of the results of `regression`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, Floats, State, np
from uqeval.metrics._columns import Place, SetColumns, SetStates, as_numbers, over, without_rounding
from uqeval.metrics._contract import NO_PIXEL, Metric, set_value
from uqeval.metrics._evaluation import Part, Passes, Run, TallyResult
from uqeval.metrics._fitted_apart import bins_of_sigma, on_items
from uqeval.metrics._fitted_part import FittedPart
from uqeval.metrics._items import exact_sums, score_items
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.calibration_estimators import exact_edges, sets_at_once, upper_ranks
from uqeval.metrics.regression_scores import ZERO_SIGMA
from uqeval.metrics.regression_settings import RegressionSettings
from uqeval.metrics.sigma_advice import SCALE_SIGMA

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.depth_sums import ScaledErrors, SigmaBins

_ZERO_BIN = "no pixel is evaluated, or σ² = 0 in float64 in a whole bin"
_EXACT = "all errors are 0: the best factor is 0, and the likelihood unbounded"


def ence(count: Array, errors: Array, variances: Array) -> Floats:
    """Return the mean of |RMV - RMSE|/RMV [set] over the bins [set, bin] with pixels.

    Levi et al. 2022, eq. 8, of pixels, Σ ε² and Σ σ². NaN where Σ σ² = 0 in a bin.
    """
    is_filled = count > 0
    with np.errstate(all="ignore"):
        quotients = errors / variances
        roots = np.where(
            np.isfinite(quotients), np.sqrt(quotients), np.sqrt(errors) / np.sqrt(variances)
        )
        gaps = np.where(is_filled & (variances > 0), abs(1 - roots), 0.0)
    is_zero = (is_filled & (variances == 0)).any(axis=-1)
    means = over(exact_sums(gaps), is_filled.sum(axis=-1))
    return np.where(is_zero, np.nan, means)


def uce(count: Array, errors: Array, variances: Array) -> Floats:
    """Return Σ n_b/N·|mean ε² - mean σ²| [set] over the bins [set, bin]: pixels, Σ ε², Σ σ²."""
    return over(exact_sums(abs(errors - variances)), count.sum(axis=-1))


def cv(total: Array, deviations: Array, squares: Array, pixels: Array) -> Floats:
    """Return the standard deviation of σ divided by its mean [set] (Levi et al. 2022, eq. 9).

    Of Σ σ, Σ (σ - c) and Σ (σ - c)² with any c. NaN for less than two pixels, and where all σ
    are 0.
    """
    spread = without_rounding(squares - over(deviations * deviations, pixels), squares)
    deviation = np.sqrt(over(spread, np.where(pixels > 1, pixels - 1, 0)))
    return over(deviation * pixels, total)


def scale(squares: float, pixels: int) -> float | None:
    """Return the factor s with the least NLL of N(μ, (s·σ)²): √(Σ (ε/σ)² / N)."""
    return math.sqrt(squares / pixels) if pixels and squares > 0 else None


def likelihood(squares: float, logs: float, pixels: int, factor: float) -> float | None:
    """Return the mean NLL of N(μ, (factor·σ)²) from Σ (ε/σ)² and Σ ln σ; None without pixels, and
    where a factor of other items makes it too large for float64."""
    if not pixels or not factor * factor:
        return None
    constant = 0.5 * math.log(2 * math.pi) + math.log(factor)
    value = constant + logs / pixels + squares / (2 * factor * factor * pixels)
    return value if math.isfinite(value) else None


_LEVI = "Levi et al. 2022"
OF_BINS = (
    Metric("regression", "ence", "fraction", "lower", (0.0, None), f"{_LEVI}, eq. 8", _ZERO_BIN,
           ence, label="ENCE", **SCALE_SIGMA, interval="gaps", fitted_apart=bins_of_sigma,
           meaning="Mean relative difference between predicted and observed error, over bins of "
           "σ."),
    Metric("regression", "uce", "target²", "lower", (0.0, None), "Laves et al. 2020, eq. 8",
           NO_PIXEL, uce, label="UCE", **SCALE_SIGMA, interval="gaps", fitted_apart=bins_of_sigma,
           meaning="Mean difference between predicted variance and squared error, over bins of "
           "σ."),
    Metric("regression", "cv", "fraction", None, (0.0, None), f"{_LEVI}, eq. 9",
           "less than two pixels are evaluated, or all σ are 0", cv, label="CV of σ",
           interval="positive",
           meaning="How much σ varies: 0 is the same σ everywhere, which says nothing about single "
           "pixels."),
)  # fmt: skip
OF_SCALE = (
    Metric("regression", "sigma_scale.value", "factor", None, (0.0, None), f"{_LEVI}, §3.3",
           f"{ZERO_SIGMA}; or {_EXACT}", scale, label="best factor of σ", interval="positive",
           meaning="Factor of σ with the least NLL: the root of the mean (ε/σ)², which a few "
           "large errors can decide."),
    Metric("regression", "sigma_scale.nll_before", "nats", "lower", (None, None),
           f"{_LEVI}, §3.3", ZERO_SIGMA, likelihood, label="NLL before scaling σ",
           **SCALE_SIGMA, interval="draws", meaning="Gaussian NLL with the predicted σ."),
    Metric("regression", "sigma_scale.nll", "nats", "lower", (None, None), f"{_LEVI}, §3.3",
           f"{ZERO_SIGMA}; or {_EXACT}", likelihood, label="NLL with the best factor",
           advice="If it is no better than before, fit the factor on more images (--fit-on).",
           interval="draws", fitted_apart=on_items("factor of σ"),
           meaning="Gaussian NLL with σ times the best factor."),
)  # fmt: skip


class BinsOfSigma(Part[RegressionSettings]):
    """ENCE and UCE in bins of σ with equal numbers of pixels; CV of σ.

    Equal σ lie in one bin. A region has bins of its own, and so has a slice that the run knows.
    """

    name = "ence"
    metrics = OF_BINS
    shares_fit = False
    flat = True
    requested_by = "ence"
    needs_fitted = ("edges",)
    equal_mass = frozenset({"ence", "uce"})

    @property
    def flat_fields(self) -> tuple[str, ...]:
        return (*super().flat_fields, "sigma_bins")

    @property
    def slices_at_once(self) -> int:
        return sets_at_once(self.settings.ence_bins)

    @property
    def _bins(self) -> SigmaBins:
        from uqeval.tallies.depth_sums import SigmaBins

        return SigmaBins(tuple(self.fitted["edges"]), self.settings.sigma)

    def maps(self) -> set[str]:
        return {"label", "error", "target", self.settings.sigma}

    def fit(self) -> Passes:
        from uqeval.tallies._values import Uncertainty
        from uqeval.tallies.ranks import Ranks

        sigma = Uncertainty(self.settings.sigma)
        ranks = Ranks(sigma, 1)
        coarse = (yield (ranks,))[ranks].total["coarse"][0]
        required = {"": upper_ranks(int(coarse.sum()), self.settings.ence_bins)}
        edges = yield from exact_edges(1, coarse, required, sigma)
        self.fitted["edges"] = list(edges[""][0])

    def of_slice(self) -> Passes:
        """Return the bins of the σ of the slice."""
        from uqeval.tallies.depth_sums import PooledSigmaBins

        own = BinsOfSigma(self.settings, self.info)
        yield from own.fit()
        tally = PooledSigmaBins(own._bins.edges, self.settings.sigma)
        return (yield (tally,))[tally].total

    def tallies(self) -> tuple[Tally, ...]:
        return (self._bins,) if self.can_score else ()

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        bins = exact or states[self._bins]
        (record,) = self._records({self._bins: SetStates.of_one(bins)})
        roots = {
            name: as_numbers(np.sqrt(over(bins[field], bins["count"])))
            for name, field in (("rmse", "errors"), ("rmv", "variances"))
        }
        return record | {"sigma_bins": {"pixels": bins["count"].tolist(), **roots}}

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        """Return the scores of each item, in the bins of all items."""
        (tally,) = self.tallies()
        return score_items([tally], results, lambda states: self._records({tally: states}))

    def _records(self, states: Mapping[Tally, SetStates]) -> list[dict[str, Any]]:
        """Return the scores of each set."""
        columns = {place: as_numbers(values) for place, values in self.columns(states, ()).items()}
        records: list[dict[str, Any]] = [{} for _ in range(states[self._bins].sets)]
        for metric in OF_BINS:
            for record, value in zip(records, columns[metric.field,], strict=True):
                set_value(record, metric.field, value, metric.undefined)
        return records

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        bins = states[self._bins]
        of_bins = [bins[name] for name in ("count", "errors", "variances")]
        of_sigma = (*bins["of_sigma"].T, bins["squares"][:, 0], bins["count"].sum(axis=1))
        return {("ence",): ence(*of_bins), ("uce",): uce(*of_bins), ("cv",): cv(*of_sigma)}

    def gaps(self) -> dict[Place, Gaps]:
        """Return squared errors minus variances of each bin.

        |1 - √(e/v)| of a bin is |e - v|/(v + √(e·v)): for the ENCE this is the weight.
        """
        tally = self._bins

        def signed(states: Mapping[Tally, SetStates]) -> Array:
            return states[tally]["errors"] - states[tally]["variances"]

        def of_ence(states: Mapping[Tally, SetStates]) -> Array:
            n, errors, variances = (states[tally][k] for k in ("count", "errors", "variances"))
            bins = (n > 0).sum(axis=1, keepdims=True)
            both = (variances + np.sqrt(errors * variances)) * bins
            return np.where(both > 0, over(np.ones(1), both), 0.0)

        def of_uce(states: Mapping[Tally, SetStates]) -> Array:
            pixels: Array = states[tally]["count"].sum(axis=1, keepdims=True)
            return 1 / np.maximum(pixels, 1)

        if not self.can_score:
            return {}
        return {("ence",): Gaps(signed, of_ence), ("uce",): Gaps(signed, of_uce)}


class ScaleOfSigma(FittedPart[RegressionSettings]):
    """The factor of σ with the least NLL, and the NLL with and without it."""

    name = "sigma_scale"
    noun, optimistic = "factor of σ", "the scaled NLL is"
    metrics = OF_SCALE
    requested_by = "sigma_scale"
    needs_fitted = ("scale",)

    @property
    def _errors(self) -> ScaledErrors:
        from uqeval.tallies.depth_sums import ScaledErrors

        return ScaledErrors(self.settings.sigma)

    def fit(self) -> Passes:
        tally = self._errors
        state = (yield (tally,))[tally].of(tally, self.items)
        pixels, zero = state["count"].tolist()
        self.fitted["fitted_on"] = self.fitted_on
        self.fitted["scale"] = None if zero else scale(float(state["sums"][0]), pixels)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._errors,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        factor = self.fitted["scale"]
        record: dict[str, Any] = {}
        set_value(record, "value", factor, OF_SCALE[0].undefined)
        record |= self.fitted.get("fitted_on", {"fitted_on": self.fit_on or "all items"})
        return record | self._likelihoods(states[self._errors])

    def _likelihoods(self, state: State) -> dict[str, Any]:
        factor, record = self.fitted["scale"], dict[str, Any]()
        pixels, zero = state["count"].tolist()
        squares, logs = state["sums"].tolist()
        for metric, by in ((OF_SCALE[1], 1.0), (OF_SCALE[2], factor)):
            value = None if zero or by is None else likelihood(squares, logs, pixels, by)
            set_value(record, metric.field.rpartition(".")[2], value, metric.undefined)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        factor, state = self.fitted["scale"], states[self._errors]
        (pixels, zero), (squares, logs) = state["count"].T, state["sums"].T
        results: SetColumns = {}
        for name, by in (("nll_before", 1.0), ("nll", factor)):
            if by is not None:
                constant = 0.5 * math.log(2 * math.pi) + math.log(by)
                with np.errstate(all="ignore"):  # a factor of other items
                    values = constant + over(logs + squares / (2 * by * by), pixels)
                is_defined = (zero == 0) & np.isfinite(values)
                results[(name,)] = np.where(is_defined, values, np.nan)
        return results

    def held_out(self, state_of: Callable[[Tally], State]) -> dict[str, Any]:
        return self._likelihoods(state_of(self._errors))

    def warnings(self, run: Run) -> list[str]:
        return [] if self.region else super().warnings(run)
