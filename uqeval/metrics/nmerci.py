"""The family `nmerci`: does the predicted uncertainty follow the error?

Percentiles are exact: a first pass counts λ and ε by the high bits of their keys, a second the low
bits where a percentile lies. Where means are trimmed at every α, a third sums what lies up to each.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import Array, State, np
from uqeval.maps.names import TARGET_COUNTS, lambda_of
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._contract import Column, Display, RowTable, ScoreTable
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._driver import run_jointly
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import each_state
from uqeval.metrics._rank_bins import BIN_WIDTH
from uqeval.metrics._warnings import sign_warnings
from uqeval.metrics.nmerci_by_depth import by_depth, of_intervals
from uqeval.metrics.nmerci_records import (
    CURVE,
    columns_of,
    record_of,
    results_of,
    running,
    scores_of,
    sums_of,
    tallies_of,
)
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.item_errors import ItemErrors

DISPLAY = Display(
    tables=(
        ScoreTable(
            "n-MeRCI",
            (Column("alpha", form="g"), "nmerci", "merci", "lambda", "mae", "mae_trimmed",
             "max_alpha", "pixels"),
            "0: the uncertainty equals the error; 1: it is constant. Below 0 is "
            "possible for α < 100.",
        ),
        RowTable(
            "By interval of the target", "by_depth",
            ("pixels", "mae", "mae_trimmed", "nmerci"),
            corner="target",
            row=lambda row: f"{row['lower']:g} – {row['upper']:g}",
            every=True,
            last=("mean", "by_depth_mean"),
        ),
    ),
    figures=("nmerci",),
)  # fmt: skip


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, NmerciSettings]:
    choices = dict(options)
    if "alpha" in choices:  # 85, not 85.0, in the names of variants
        alpha_option = choices["alpha"]
        alphas = list(alpha_option) if isinstance(alpha_option, list | tuple) else [alpha_option]
        choices["alpha"] = [int(a) if float(a).is_integer() else float(a) for a in alphas]
    settings: dict[str, NmerciSettings] = variants(
        "nmerci", NmerciSettings, choices, ("uncertainty", "interpolation")
    )
    for variant in settings.values():
        numbers.check_sigma(variant.uncertainty, info)
    return settings


class Nmerci(Evaluation[NmerciSettings]):
    """The percentiles of the set, n-MeRCI at every α, and the table by depth.

    From saved states the percentiles are read in bins. Errors of pixels chosen by their λ are not
    among the states: scores over the kept pixels alone are left out, and so is the table by depth.
    """

    approximate = frozenset(("nmerci", "merci", "lambda", "mae_trimmed", "max_alpha"))
    bound = BIN_WIDTH

    @property
    def _items(self) -> ItemErrors:
        return tallies_of(self.settings)[0]

    @property
    def _coarse(self) -> ErrorRanks:
        return tallies_of(self.settings)[1]

    def maps(self) -> set[str]:
        settings = self.settings
        names = {"label", "error", TARGET_COUNTS, settings.sigma}
        if settings.depth_step is not None:
            names.add("target")
        if (
            settings.depth_step is not None or settings.over == "kept"
        ):  # else made where it is counted
            names.add(lambda_of(settings.sigma))
        return names

    def exact(self) -> Passes:
        """Return the parts of n-MeRCI by α, and the table by depth or nothing."""
        from uqeval.tallies.error_sums import ErrorSums

        settings, items, coarse = self.settings, self._items, self._coarse
        # The ends of the target are those of the intervals of depth.
        sums = () if settings.depth_step is None else (ErrorSums(settings.sigma),)
        results = yield (items, coarse, *sums)
        total = results[items].total
        steps = [
            _percentiles(settings, sums_of(total), results[coarse].total["coarse"], self.info.where)
        ]
        for tally in sums if total["pixels"][0] else ():
            target = results[tally].total
            steps.append(by_depth(settings, float(target["least"][0]), float(target["most"][0])))
        parts, *depth = yield from run_jointly(*steps)
        return parts, depth[0] if depth else of_intervals([]) if sums else {}

    def tallies(self) -> tuple[Tally, ...]:
        return tallies_of(self.settings)

    def extra_tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.error_sums import TargetCounts

        return (TargetCounts(),)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        if exact is not None:
            results: dict[str, Any] = results_of(exact[0], self.settings)
            return {**results, **exact[1]}
        return scores_of(self.settings, states[self._items], states[self._coarse])

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return columns_of(self.settings, states[self._items], states[self._coarse])

    def check(self, results: Mapping[Tally, TallyResult]) -> None:
        """Raise `DataError` if no target is valid."""
        pixels = int(results[self._items].total["pixels"][0])
        numbers.refuse_nothing(pixels, self.info, self.region)

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        items, settings = self._items, self.settings
        states = each_state(items, results[items].items)
        return [record_of(_item_parts(state, settings), settings) for state in states]

    def numerics(self, run: Run) -> dict[str, int]:
        return numbers.counts_of(run.total(self._items))

    def warnings(self, run: Run) -> list[str]:
        from uqeval.tallies.error_sums import TargetCounts

        return [
            *numbers.void_items(
                self.info.names, [item["pixels"] for item in run.items], self.region
            ),
            *numbers.zero_targets(run.total(TargetCounts()), self.info),
            *([] if self.region else numbers.marked_targets(run, self.info)),
            *_warnings(run.results, self.settings),
        ]


def _percentiles(settings: NmerciSettings, totals: ns.Sums, coarse: Array, where: str) -> Passes:
    """Return the parts of n-MeRCI at the chosen α and at all of the curve, by α.

    `coarse` [(λ, ε), bin]: how many pixels have these high bits of their keys.
    """
    from uqeval.tallies.error_ranks import ErrorRanks
    from uqeval.tallies.error_sums import ErrorsUpto, SumsBelow
    from uqeval.tallies.rank_keys import RequiredPercentiles

    alphas = sorted({settings.alpha, *map(float, CURVE)})
    if not totals.pixels:  # of a region
        return {alpha: ns.Parts(totals, None, None, None) for alpha in alphas}
    ratio, error = (
        RequiredPercentiles(counts, alphas, settings.interpolation) for counts in coarse
    )
    bins = tuple((k, b) for k, ranks in enumerate((ratio, error)) for b in ranks.bins)
    fine = ErrorRanks(settings.sigma, bins, max(ratio.most, error.most) < 1 << 16)
    # With the paper's definition the curve needs no trimmed sums. The trimmed MAE needs no extra
    # pass: values below the bin of max^α are summed while the bin is split.
    every_alpha = settings.over == "kept" or settings.mae == "trimmed"
    lower = None if every_alpha else error.limit(settings.alpha)
    sums = [] if lower is None else [ErrorsUpto(lower, error.bins_of(settings.alpha))]
    results = yield (fine, *sums)
    by_ratio, by_error = np.split(results[fine].total["fine"], [len(ratio.bins)])
    ratios, errors = ratio.values(by_ratio, where), error.values(by_error, where)
    below: dict[float | None, ns.Sums] = {}
    for tally in sums:
        most = errors[settings.alpha]
        assert most is not None
        under = results[tally].total
        count, total = error.between(by_error, under["fine"], settings.alpha, most)
        below[most] = ns.Sums(
            int(under["count"][0]) + count, float(under["sum"][0]) + total, math.nan
        )
    trimmed_by = ratios if settings.over == "kept" else errors
    limits = sorted({v for v in trimmed_by.values() if v is not None and math.isfinite(v)})
    if every_alpha and limits:
        sums_below = SumsBelow(settings.trimmed_by, (tuple(limits),), settings.sigma)
        below |= zip(limits, running((yield (sums_below,))[sums_below].total, 0), strict=False)
    return {
        alpha: ns.Parts(totals, ratios[alpha], errors[alpha], below.get(trimmed_by[alpha]))
        for alpha in alphas
    }


def _item_parts(state: State, settings: NmerciSettings) -> ns.Parts:
    ratio, most = (float(v) if v > -math.inf else None for v in state["own"])
    retained = ns.Sums(
        int(state["count"][0]),
        float(state["sums"][0]),
        float(state["sums"][1]),
        float(state["most"][0]),
    )
    endless = settings.over == "kept" and ratio == math.inf
    return ns.Parts(
        sums_of(state), ratio, most, retained if retained.pixels and not endless else None
    )


def _warnings(results: dict[str, Any], settings: NmerciSettings) -> list[str]:
    messages = []
    if settings.alpha < 1:
        messages.append(
            f"--alpha {settings.alpha:g} is {settings.alpha:g} %; did you mean "
            f"{100 * settings.alpha:g}?"
        )
    if results["nmerci"] is None:
        messages.append(f"n-MeRCI is undefined: {results['nmerci_reason']}.")
    return messages + sign_warnings("nmerci", results)


_ABOUT = """n-MeRCI: does the predicted uncertainty follow the error, at any scale?

n-MeRCI is 0 if the uncertainty equals the error, and 1 if it is constant. Computes MeRCI and
n-MeRCI, the curve over α, and a table by interval of the ground truth.

Example: uqeval nmerci depth.zarr kitti/ --depth-step 5 -o report.json
"""

FAMILY = Family(
    "nmerci",
    ns.METRICS,
    _settings,
    Nmerci,
    NmerciSettings,
    kinds=("regression",),
    about=_ABOUT,
    display=DISPLAY,
    label="n-MeRCI",
    on_subsets=OnSubsets(default=("regression",)),
    words={"alpha": "α", "by_depth": "by interval of the target"},
)
