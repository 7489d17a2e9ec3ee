"""The family `failure`: does the uncertainty find the errors?

Three passes over the maps: which powers of two the uncertainties of each class lie in; pixels and
wrong ones by the high 22 bits of their keys, by class; and all 32 bits where a rank is cut or where
the bounds are widest. The first also counts all classes together by the high 19 bits, of each item:
slices and intervals are computed from these counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics._warnings as float16
import uqeval.metrics.failure_columns as failure_columns
import uqeval.metrics.failure_cuts as failure_cuts
import uqeval.metrics.failure_scores as failure_scores
from uqeval.arrays import Array, State
from uqeval.metrics._columns import SetColumns, SetStates, of_rows, over
from uqeval.metrics._contract import (
    ClassBars,
    Column,
    Display,
    Panel,
    RowTable,
    ScoreTable,
    set_value,
)
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import once_for_equal_states
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics._warnings import sign_warnings
from uqeval.metrics.failure_curve import put_curve
from uqeval.metrics.failure_ranks import rank_pixels
from uqeval.metrics.failure_settings import FailureSettings
from uqeval.metrics.pavpu_settings import check_uncertainty, refuse_unused_base
from uqeval.metrics.threshold_from import with_threshold_from
from uqeval.metrics.thresholds import Rule, check_threshold, fit, undefined_warnings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.ranked_errors import RankedErrors
    from uqeval.tallies.undetected import ItemFailure, Undetected

_SCORES = (
    "auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc",
    "undetected_error_rate",
)  # fmt: skip
_ERRORS = Column("errors", "wrong")

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Failure detection",
            ("uncertainty", *_SCORES),
            "AUROC 0.5: the uncertainty is independent of the errors. undetected: share of all "
            "pixels that are wrong and not above the threshold.",
        ),
        ScoreTable(
            "Risk and coverage",
            (
                _ERRORS,
                Column("risk_at_coverage.*", "risk at {} % coverage"),
                Column("coverage_at_risk.*", "coverage at {} % risk"),
            ),
            "risk: share of wrong pixels among the most certain pixels.",
        ),
        RowTable("By ground-truth class", "per_class", ("pixels", _ERRORS, *_SCORES)),
    ),
    bars=ClassBars(
        "Finding errors",
        (Panel("auroc", "AUROC", (0.5, "chance")), Panel("aurc", "AURC (less is better)")),
    ),
    figures=("failure",),
)


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, FailureSettings]:
    settings: dict[str, FailureSettings] = variants(
        "failure", FailureSettings, options, ("uncertainty",)
    )
    if options.get("threshold_from") is not None:
        settings = with_threshold_from("failure", settings, options, info)
    refuse_unused_base(options, [variant.uncertainty for variant in settings.values()])
    for variant in settings.values():
        check_uncertainty(variant.uncertainty, info)
        if variant.threshold_from is None:
            check_threshold(variant.threshold, variant.ranked(info.classes), info)
    return settings


class Failure(Evaluation[FailureSettings]):
    """Scores by rank of the uncertainty, of the set and of each ground-truth class.

    The exact ranks are `RankBins` of all classes together (None) and of each class. From saved
    states the scores of the set are computed from coarser bins, whose pixels count as a tie. The
    scores of a class that need ranks are left out.
    """

    fits_threshold = True
    approximate = frozenset(failure_scores.BY_FIELD) - {"undetected_error_rate"}
    bound = BIN_WIDTH

    @property
    def _uncertainty(self) -> Uncertainty:
        return self.settings.ranked(self.info.classes)

    @property
    def _ranks(self) -> RankedErrors:
        """Return pixels and wrong ones of all classes by the high 19 bits of their keys."""
        from uqeval.tallies._errors import Error
        from uqeval.tallies.ranked_errors import RankedErrors

        return RankedErrors(self._uncertainty, Error("zero-one"), self.info.classes)

    @property
    def _undetected(self) -> Undetected | None:
        from uqeval.tallies.undetected import Undetected

        if "threshold" not in self.fitted:
            return None
        return Undetected(self._uncertainty, self.info.classes, self.fitted["threshold"])

    @property
    def _items(self) -> ItemFailure:
        from uqeval.tallies.undetected import ItemFailure

        return ItemFailure(self._uncertainty, self.info.classes)

    @property
    def _reason_without_threshold(self) -> str:
        """Return the reason why there is no threshold; "" if there is one."""
        return Rule.parse(self.settings.threshold).undefined if self._threshold is None else ""

    @property
    def _threshold(self) -> float | None:
        return self.fitted["threshold"]

    def maps(self) -> set[str]:
        return {"label", "prediction", self.settings.uncertainty}

    def fit(self) -> Passes:
        from uqeval.tallies.patches import Patches

        rule = Rule.parse(self.settings.threshold)
        if rule.kind == "value":  # counted in this pass
            self.fitted["threshold"] = rule.value
        patches = Patches(self._uncertainty, self.info.classes)
        fitted = yield from fit(self.info, rule, patches, False, region=self.region)
        self.fitted["threshold"] = fitted.threshold[0]

    def exact(self) -> Passes:
        return (yield from rank_pixels(self._uncertainty, self.info.classes))

    def tallies(self) -> tuple[Tally, ...]:
        undetected = self._undetected
        return (self._ranks, *((undetected,) if undetected else ()))

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        return self.tallies() if "undetected_error_rate" in fields else (self._ranks,)

    def extra_tallies(self) -> tuple[Tally, ...]:
        undetected = self._undetected
        is_float16 = undetected is not None and self.settings.uncertainty in self.info.halves
        band = float16.band_of_errors(undetected) if undetected is not None and is_float16 else ()
        return (self._items, *band)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        names, undetected = self.info.class_names, self._undetected
        if exact is None:
            rank_bins = RankBins.from_state(self._ranks, states[self._ranks])
            ranked = failure_scores.scores(rank_bins)
            class_results: list[dict[str, Any]] = [{} for _ in names]
        else:
            rank_bins, empty = exact[None], RankBins.nothing()
            ranked = failure_scores.scores(rank_bins)
            class_results = [failure_scores.scores(exact.get(c, empty)) for c in range(len(names))]
        put_curve(ranked, rank_bins, failure_scores.BY_FIELD["aurc"].undefined)
        if undetected is None:
            counts = {"pixels": rank_bins.total, "errors": int(rank_bins.errors.sum())}
            return {"uncertainty": self.settings.uncertainty} | counts | ranked
        return _results(
            self.settings, undetected.threshold, states[undetected], names, ranked, class_results
        )

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        rank_bins, undetected = (
            failure_columns.SetRankBins(states[self._ranks]),
            self._undetected,
        )
        results = failure_columns.columns(rank_bins, fields)
        if undetected is None:
            return results | {("pixels",): rank_bins.total, ("errors",): rank_bins.wrong}
        counts = states[undetected]["counts"]
        rows = of_rows(_undetected_columns(counts, undetected.threshold), range(self.info.classes))
        totals = _undetected_columns(counts.sum(axis=1), undetected.threshold)
        return results | rows | {(name,): values for name, values in totals.items()}

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        items, undetected = self._items, self._undetected
        assert undetected is not None
        reason = self._reason_without_threshold

        def score(data: bytes, low: bytes) -> dict[str, Any]:
            return _item(items, data, undetected.unpack(low)["counts"].sum(axis=0), reason)

        return once_for_equal_states(score, results[items].items, results[undetected].items)

    def numerics(self, run: Run) -> dict[str, int]:
        return {"ties_at_cuts": failure_cuts.cut_ties(run.exact[None])}

    def warnings(self, run: Run) -> list[str]:
        band = [run.total(tally) for tally in self.extra_tallies()[1:]]
        return [
            *undefined_warnings(Rule.parse(self.settings.threshold), self._threshold),
            *sign_warnings("failure", run.results),
            *float16.warnings_of_errors(self.settings.uncertainty, self._threshold, band),
        ]

    def options(self) -> dict[str, str | None] | None:
        if "threshold" not in self.fitted:
            return None
        return {"threshold": None if self._threshold is None else repr(self._threshold)}


def _undetected_columns(counts: Array, threshold: float | None) -> dict[str, Array]:
    """Return the fields of counts [set, …, 3] of `Undetected`, of many sets."""
    pixels, errors, undetected = (counts[..., i] for i in range(3))
    record = {"pixels": pixels, "errors": errors}
    if threshold is not None:
        record["undetected_error_rate"] = over(undetected, pixels)
    return record


def _results(
    settings: FailureSettings,
    threshold: float | None,
    hidden: State,
    class_names: Sequence[str],
    pooled: Mapping[str, Any],
    class_results: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the results of the set and of each class, from counts of `Undetected` and scores by
    rank.
    """
    counts = hidden["counts"]
    reason = Rule.parse(settings.threshold).undefined if threshold is None else ""
    results: dict[str, Any] = {"uncertainty": settings.uncertainty}
    set_value(results, "uncertainty_threshold", threshold, reason)
    return results | {
        **_record(pooled, counts.sum(axis=0), reason),
        "per_class_by": "label",
        "per_class": [
            {"class": c, "name": name, **_record(ranked, class_counts, reason)}
            for c, (name, class_counts, ranked) in enumerate(
                zip(class_names, counts, class_results, strict=True)
            )
        ],
    }


def _record(ranked: Mapping[str, Any], counts: Any, reason: str) -> dict[str, Any]:
    """Return scores by rank with those of counts of `Undetected` [3].

    `reason`: why there is no threshold, "" where there is one.
    """
    pixels, wrong, _ = counts.tolist()
    record = {"pixels": pixels, "errors": wrong, **ranked}
    _put_undetected(record, counts, reason)
    return record


def _put_undetected(record: dict[str, Any], counts: Any, reason: str) -> None:
    metric = failure_scores.BY_FIELD["undetected_error_rate"]
    pixels, _, undetected = counts.tolist()
    value = None if reason else metric.formula(pixels, undetected)
    set_value(record, metric.field, value, reason or metric.undefined)


def _item(tally: ItemFailure, data: bytes, counts: Any, reason: str) -> dict[str, Any]:
    """Return the scores of one item by itself, exact; `counts` and `reason` as of `_record`."""
    state = tally.unpack(data)
    pixels, wrong, flagged = state["counts"].tolist()
    pairs, ordered = state["pairs"].tolist()
    errors, successes, risks = state["sums"].tolist()
    right = pixels - wrong
    best = failure_columns.best_aurc(pixels, wrong) if pixels else 0.0
    values = {
        "auroc": ordered / (2 * pairs) if pairs else None,
        "aupr_error": errors / wrong if wrong else None,
        "aupr_success": successes / right if right else None,
        "fpr95": flagged / right if pairs else None,
        "aurc": risks / pixels if pixels else None,
        "e_aurc": max(risks / pixels - best, 0.0) if pixels else None,  # rounding gives -1e-17
        "augrc": (pairs - ordered / 2 + wrong**2 / 2) / pixels**2 if pixels else None,
    }
    record: dict[str, Any] = {"pixels": pixels, "errors": wrong}
    for field, value in values.items():
        set_value(record, field, value, failure_scores.BY_FIELD[field].undefined)
    _put_undetected(record, counts, reason)
    return record


_ABOUT = """Failure detection: are wrong pixels less certain than correct ones?

Computes AUROC, AUPR, FPR95, AURC, e-AURC, AUGRC, risk at coverage, coverage at risk and
undetected errors, over all pixels and per ground-truth class.

Example: uqeval failure preds.zarr labels/ --uncertainty entropy --uncertainty confidence
"""

FAMILY = Family(
    "failure",
    failure_scores.METRICS,
    _settings,
    Failure,
    FailureSettings,
    about=_ABOUT,
    display=DISPLAY,
    label="Failure detection",
    on_subsets=OnSubsets(own_points=("curve",)),
)
