"""The family `regression`: are the predicted standard deviations as large as the errors?"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
import uqeval.metrics.regression_results as regression_results
import uqeval.metrics.regression_scores as rs
from uqeval.arrays import Floats, State, np
from uqeval.maps.names import TARGET_COUNTS
from uqeval.metrics._columns import Place, SetColumns, SetStates, as_numbers
from uqeval.metrics._contract import Column, Display, Doubt, ScoreTable
from uqeval.metrics._dataset_info import DatasetInfo, read_fit_on
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import each_state, joined_states, score_items
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.depth import DepthScores
from uqeval.metrics.depth import records as depth_records
from uqeval.metrics.regression_settings import RegressionSettings
from uqeval.metrics.sigma_checks import BinsOfSigma, ScaleOfSigma
from uqeval.metrics.standard_distributions import factors, quantiles

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Regression",
            ("pixels", "rmse", "mae", "nmse", "crps", "nll", "sharpness"),
            "nMSE: in units of the target's variance. sharpness: root of the mean σ².",
        ),
        ScoreTable(
            "Calibration of intervals",
            (
                "auce", "auce_over", "auce_under",
                Column("coverage.*", "coverage {} %"),
                Column("interval_score.*", "interval score {} %"),
            ),
            "AUCE: area between nominal and observed coverage; 0 is best, 0.49 is σ = 0 or ∞.",
        ),
        ScoreTable(
            "Depth",
            ("abs_rel", "sq_rel", "rmse_log", "log10", "silog", "a1", "a2", "a3"),
            "a1, a2, a3: share of depths within a factor of 1.25, 1.25², 1.25³.",
        ),
        ScoreTable(
            "Scale of σ",
            (
                "ence", "uce", "cv", Column("sigma_scale.value", "best factor of σ"),
                Column("sigma_scale.nll_before", "NLL before"),
                Column("sigma_scale.nll", "NLL with the factor"),
                Column("sigma_scale.held_out.nll_before", "held out, before"),
                Column("sigma_scale.held_out.nll", "held out, with the factor"),
            ),
            "ENCE and UCE: 0 where errors are as large as σ in every bin of σ. Factor: with it, "
            "the mean of (ε/σ)² is 1; a few large errors can decide it.",
        ),
    ),
    figures=("regression",),
)  # fmt: skip


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, RegressionSettings]:
    settings: dict[str, RegressionSettings] = variants(
        "regression", RegressionSettings, options, ("uncertainty", "distribution", "proportion")
    )
    for variant in settings.values():
        read_fit_on(variant.fit_on, info)
        numbers.check_sigma(variant.uncertainty, info)
        numbers.check_unit(variant.uncertainty, info)
    return settings


class Regression(Evaluation[RegressionSettings]):
    """Sums of errors and scores, and the targets inside intervals (below quantiles)."""

    @property
    def _sums(self) -> Tally:
        return self.tallies()[0]

    def maps(self) -> set[str]:
        names = {"label", "error", "target", TARGET_COUNTS, self.settings.sigma}
        return names | ({"mean"} if self.settings.proportion == "quantile" else set())

    def tallies(self) -> tuple[Tally, ...]:
        """Return the tallies of sums, scores and intervals, and of quantiles if requested."""
        from uqeval.tallies.error_sums import ErrorSums
        from uqeval.tallies.intervals import IntervalCounts, PredictiveScores, QuantileCounts

        settings, sigma, distribution = (
            self.settings,
            self.settings.sigma,
            self.settings.distribution,
        )
        scores = PredictiveScores(
            distribution == "laplace", rs.LEVELS, factors(rs.LEVELS, distribution), sigma
        )
        inside = IntervalCounts(factors(settings.interval_levels, distribution), sigma)
        if settings.proportion != "quantile":
            return (ErrorSums(sigma), scores, inside)
        below = QuantileCounts(quantiles(settings.quantile_levels, distribution), sigma)
        return (ErrorSums(sigma), scores, inside, below)

    def extra_tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.depth_sums import DepthSums
        from uqeval.tallies.error_sums import TargetCounts

        depths = (DepthSums(),) if self.settings.depth else ()
        return (TargetCounts(), *depths)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        """Return the scores; `exact` is Σ (y - ȳ)² from single items, which keeps all digits."""
        of_one = [SetStates.of_one(states[tally]) for tally in self.tallies()]
        spread = None if exact is None else np.array([exact])
        columns = regression_results.columns(self.settings, of_one, spread)
        (record,) = regression_results.records(columns, *of_one[:2])
        (observed,) = regression_results.observed(self.settings, of_one)
        calibration = {"p": list(self.settings.plotted), "observed": as_numbers(observed)}
        return record | {"calibration": calibration}

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return regression_results.columns(self.settings, [states[t] for t in self.tallies()])

    def gaps(self) -> dict[Place, Gaps]:
        """Return the number of targets inside the interval of each plotted level p, minus p·N.

        AUCE and its two parts are sums of these, or the area of the line through them ("crossing").
        """
        settings, tallies = self.settings, self.tallies()
        levels = settings.counted_levels
        p = np.array(settings.plotted)

        def signed(states: Mapping[Tally, SetStates]) -> Floats:
            n = states[tallies[0]]["count"][:, 0]
            observed = regression_results.observed_coverage(states[tallies[-1]], levels, n)
            gaps: Floats = np.stack([observed[level] for level in settings.plotted], 1)
            gaps -= p * n[:, None]
            return gaps

        def weights(states: Mapping[Tally, SetStates]) -> Floats:
            n = np.maximum(states[tallies[0]]["count"][:, :1], 1)
            if settings.area == "crossing":
                return np.ones(p.size) / n
            steps = np.diff(p, prepend=p[0], append=p[-1])
            area: Floats = (steps[:-1] + steps[1:]) / (2 * n)
            equal_weights: Floats = np.ones(p.size) / (p.size * n)
            return area if settings.area == "trapezoid" else equal_weights

        def missing(states: Mapping[Tally, SetStates]) -> Floats:
            return -signed(states)

        def area(part_of_gap: Callable[[Floats], Floats]) -> Callable[[Floats], Floats] | None:
            if settings.area != "crossing":
                return None
            return lambda gaps: rs.area_of_gaps(settings.plotted, gaps, "crossing", part_of_gap)

        positive = area(rs.positive_part)
        return {
            ("auce",): Gaps(signed, weights, area=area(np.abs)),
            ("auce_over",): Gaps(missing, weights, one_sided=True, area=positive),
            ("auce_under",): Gaps(signed, weights, one_sided=True, area=positive),
        }

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        from uqeval.tallies.depth_sums import DepthSums

        tallies, items = self.tallies(), list[dict[str, Any]]()
        for states in joined_states(tallies, [results[tally].items for tally in tallies]):
            of_items = [SetStates(state) for state in states]
            # A single item has one mean: its spread is that within it, or rounding.
            least, most, within = (of_items[0][name][:, 0] for name in ("least", "most", "within"))
            spread = np.where(least == most, 0.0, within)
            columns = regression_results.columns(self.settings, of_items, spread)
            for record in regression_results.records(columns, *of_items[:2]):
                items.append({k: v for k, v in record.items() if not isinstance(v, dict)})
        for tally in results:
            if isinstance(tally, DepthSums):
                depths = score_items([tally], results, depth_records)
                for item, record in zip(items, depths, strict=True):
                    item |= record
        return items

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Raise `DataError` if no target is valid."""
        sums = self._sums
        counts = results[sums]
        numbers.refuse_nothing(int(counts.total["count"][0]), self.info, self.region)
        spread = _target_spread(each_state(sums, counts.items))
        return super().run_of(results, spread)

    def numerics(self, run: Run) -> dict[str, int]:
        sums, _, interval_tallies, *_ = self.tallies()
        return numbers.counts_of(run.total(sums)) | {
            "ties": int(run.total(interval_tallies)["ties"][0])
        }

    def warnings(self, run: Run) -> list[str]:
        from uqeval.tallies.error_sums import TargetCounts

        messages = numbers.void_items(
            self.info.names, [item["pixels"] for item in run.items], self.region
        )
        counts, sums = run.total(TargetCounts()), run.total(self._sums)
        messages += numbers.zero_targets(counts, self.info)
        if not self.region:
            ends, depths = (float(sums["least"][0]), float(sums["most"][0])), self.settings.depth
            negative = numbers.negative_targets(counts, ends, self.info, depths=depths)
            messages += negative
            messages += numbers.marked_targets(run, self.info, skip_smallest=bool(negative))
            doubt = _doubt(run.results)
            messages += [doubt.warning] if doubt else []
        zero = int(sums["zero"][0, 0])
        if zero:
            messages.append(
                f"σ = 0 at {zero} of {run.results['pixels']} evaluated pixels: no likelihood; "
                "intervals of width 0 hold a target only where the prediction is exact."
            )
        far = int(run.total(self.tallies()[1])["far"][0])
        if far:
            messages.append(
                f"|error|/σ is above 1e144 at {far} of {run.results['pixels']} evaluated pixels: "
                "no likelihood. Such a σ is practically 0: bound the predicted (log) variance from "
                "below, or mask these pixels with `valid`."
            )
        return messages


#: The nMSE above which predictions are doubtful. That of a constant fitted on other data is near 1.
_WORSE_THAN_CONSTANT = 1.1


def _doubt(record: Mapping[str, Any]) -> Doubt | None:
    """Return a doubt if a constant would have smaller errors than the predictions."""
    nmse, rmse = record.get("nmse"), record.get("rmse")
    if nmse is None or rmse is None or nmse <= _WORSE_THAN_CONSTANT:
        return None
    return Doubt(
        f"the nMSE is {nmse:.4g}: the errors (RMSE {rmse:.4g}) are larger than those of predicting "
        f"the mean of the targets ({rmse / math.sqrt(nmse):.4g})",
        "Predictions and targets may have other units, such as metres and millimetres, or be of "
        "other items; targets may hold a value that means `not measured` (--invalid); or a few "
        "predictions are far off.",
    )


def _target_spread(states: Iterable[State]) -> float:
    """Return Σ (y - ȳ)² over all items: within them, and of their means."""
    nonempty = [s for s in states if s["count"][0]]
    if len({float(end) for s in nonempty for end in (s["least"][0], s["most"][0])}) < 2:
        return 0.0  # the sums of squares of one value are those of its rounding
    counts = [int(s["count"][0]) for s in nonempty]
    means = [float(s["sums"][0, 4]) / n for n, s in zip(counts, nonempty, strict=True)]
    # Differences of means lose no digits; `rest` corrects the rounding of each mean.
    deviations = [
        m - means[0] + float(s["rest"][0]) / n
        for m, n, s in zip(means, counts, nonempty, strict=True)
    ]
    mean = math.fsum(n * d for n, d in zip(counts, deviations, strict=True)) / sum(counts)
    between_items = [n * (d - mean) ** 2 for n, d in zip(counts, deviations, strict=True)]
    return math.fsum([*(float(s["within"][0]) for s in nonempty), *between_items])


_ABOUT = """Regression: are the predicted standard deviations as large as the errors?

Computes RMSE, MAE, AUCE with its over- and under-confident parts, the calibration plot, NLL,
CRPS, sharpness, interval scores and coverage. Options add scores of depths (--depth) and of the
scale of σ (--ence, --sigma-scale).

Example: uqeval regression depth.zarr kitti/ -o report.json
"""

PARTS = (DepthScores, BinsOfSigma, ScaleOfSigma)
FAMILY = Family(
    "regression",
    (*rs.METRICS, *(metric for part in PARTS for metric in part.metrics)),
    _settings,
    Regression,
    RegressionSettings,
    kinds=("regression",),
    parts=PARTS,
    about=_ABOUT,
    display=DISPLAY,
    label="Regression",
    doubt=_doubt,
    on_subsets=OnSubsets(
        default=("regression",),
        fixed={"ence": False, "sigma_scale": False},
        of_one_sample=("pixels", "rmse", "mae", "nmse"),
    ),
)
