"""The family `image_failure`: does the confidence of an item rank its risk?

The risk and the confidence of each item are numbers of its record. All scores are computed from
these two, also those of slices, draws and merged parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import uqeval.metrics._item_numbers as item_numbers
import uqeval.metrics.image_failure_scores as scores_of_items
from uqeval.arrays import Array, State, np
from uqeval.errors import UsageError, data_of_kind, quoted
from uqeval.keys import Key, family_of
from uqeval.metrics._contract import Column, Display, ScoreTable, set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import FAMILIES_IN_REPORTS, Family, OnSubsets
from uqeval.metrics._item_numbers import OF_COUNTS, ItemNumber, Known, Wanted
from uqeval.metrics._ranked_items import ItemScore, is_above, without_noise
from uqeval.metrics._ranks_without import WITHOUT, without_each
from uqeval.metrics._score_kinds import OfFields, OverItems
from uqeval.metrics.image_failure_settings import (
    ImageFailureSettings,
    limit_rule,
    settings_of,
    uncertainty_of,
)
from uqeval.metrics.thresholds import Rule, fit, undefined_warnings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: Fields of an item's record.
_FIELDS = ("risk", "confidence")
#: The scores by rank.
_BY_RANK = ("aurc", "e_aurc", "augrc", "spearman", "kendall", "auroc")
#: The numbers of items that the AUROC compares.
_COUNTS = scores_of_items.BY_LIMIT


class ImageFailure(Evaluation[ImageFailureSettings]):
    """Scores of the items' risks and confidences.

    `fitted`: the threshold of the aggregation, if it has one, and the limit of risk for AUROC.
    """

    shares_fit = False
    needs_fitted = ("risk_limit",)

    def __init__(
        self,
        settings: ImageFailureSettings,
        info: DatasetInfo,
        fitted: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(settings, info, {} if fitted is None else fitted)
        self._numbers: list[ItemNumber] | None = None
        #: The evaluations of the run; None until it is planned.
        self._evaluations: Mapping[str, Evaluation[Any]] | None = None

    def use_evaluations(self, evaluations: Mapping[str, Evaluation[Any]]) -> None:
        """Read fields of items from the settings with which the same run computes them."""
        self._evaluations = evaluations

    @property
    def fits_threshold(self) -> bool:
        aggregation = self.settings.aggregation
        return aggregation is not None and aggregation.needs_threshold

    def use_items(
        self, key: str, items: Sequence[Mapping[str, Any]], fitted: Mapping[str, Any] | None = None
    ) -> None:
        """Take numbers that the items' records of an earlier run have, instead of counting, and the
        threshold of these confidences."""
        if "threshold" in (fitted or {}):
            self.fitted["threshold"] = (fitted or {})["threshold"]
        self._numbers = [
            self._known(wanted, key, items) or self._source(wanted) for wanted in self._wanted
        ]

    def maps(self) -> set[str]:
        return set().union(*(number.maps() for number in self._sources))

    def fit(self) -> Passes:
        for number in self._sources:
            yield from number.fit()

    def fit_region(self, in_region: Callable[[Passes], Passes]) -> Passes:
        """Take thresholds from the whole image; the limit of risk is of the region's own risks."""
        for number in self._sources:
            yield from number.fit_region(in_region)

    def tallies(self) -> tuple[Tally, ...]:
        return ()

    def extra_tallies(self) -> tuple[Tally, ...]:
        return tuple(dict.fromkeys(tally for own in self._sources for tally in own.tallies()))

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        """Return the results except scores, which are in `over_items`."""
        settings = self.settings
        record: dict[str, Any] = {"risk": settings.risk, "confidence": settings.confidence}
        if settings.aggregation is not None:
            record["uncertainty"] = settings.uncertainty
        if "threshold" in self.fitted:
            reason = Rule.parse(settings.threshold).undefined
            set_value(record, "uncertainty_threshold", self.fitted["threshold"], reason)
        record["risk_limit"] = self.fitted["risk_limit"]
        return record

    @property
    def only_of_set(self) -> frozenset[str]:
        return frozenset({"curve"})

    def over_items(self) -> OverItems:
        unit, limit = self._unit, self.fitted.get("risk_limit")

        def of_fields_of(name: str) -> OfFields:
            """Return a score by rank, and the same without each item."""
            formula: ItemScore = scores_of_items.BY_FIELD[name].formula

            def of_items(score: ItemScore) -> ItemScore:
                of_risk = partial(_above, score, limit, unit) if name == "auroc" else score
                return partial(_of_confidence, of_risk, unit)

            without = of_items(without_each(formula, WITHOUT[name]))
            return OfFields(_FIELDS, of_items(formula), by_order=by_order, without=without)

        by_order = frozenset({"confidence"})
        of_fields = {name: of_fields_of(name) for name in _BY_RANK}
        for name in _COUNTS:
            count = partial(_count, limit, unit, name)
            of_fields[name] = OfFields(_FIELDS, count, by_order=by_order)
        return OverItems(
            {"mean_risk": "risk"}, of_fields, leaves_out="left_out", kept="items",
            none_kept="none of these items has a risk and a confidence",
            fitted=frozenset({"uncertainty_threshold"}),
        )  # fmt: skip

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Compute all scores from the risks and confidences of the items."""
        values = [number.scale.of(number.values(results)) for number in self._sources]
        reasons = [number.undefined for number in self._sources]
        items = [_item(pair, reasons) for pair in zip(*values, strict=True)]
        kept = [item for item in items if not item["left_out"]]
        risk, confidence = (np.array([item[name] for item in kept], np.float64) for name in _FIELDS)
        self.fitted["risk_limit"] = _limit(self.settings.risk_limit, risk)
        record = self.scores({})
        for name, of_fields in self.over_items().of_fields.items():
            value = of_fields.of_all(risk, confidence)
            if name in _COUNTS:
                record[name] = int(value or 0)
            else:
                set_value(record, name, value, scores_of_items.BY_FIELD[name].undefined)
        metric = scores_of_items.BY_FIELD["mean_risk"]
        set_value(record, "mean_risk", metric.formula(risk.tolist()), metric.undefined)
        record["items"] = len(kept)
        record["curve"] = scores_of_items.curve(risk, without_noise(confidence))
        return Run(results, exact, record, items)

    def numerics(self, run: Run) -> dict[str, int]:
        return {"undefined": sum(item["left_out"] for item in run.items)}

    def warnings(self, run: Run) -> list[str]:
        messages = []
        if count := sum(item["left_out"] for item in run.items):
            messages.append(
                f"{count} of {len(run.items)} items have no risk or no confidence and are left out."
            )
        rule = Rule.parse(self.settings.threshold)
        return messages + undefined_warnings(rule, self.fitted.get("threshold", 0.0))

    @property
    def _wanted(self) -> tuple[Wanted, Wanted]:
        """Return the risks and the confidences that the user requests."""
        return Wanted(self.settings.risk, True), Wanted(self.settings.confidence, False)

    @property
    def _unit(self) -> float:
        """Return 1 for a risk that is 1 minus a number, which has the rounding of 1; else 0."""
        return abs(self._wanted[0].scale.offset)

    @property
    def _sources(self) -> Sequence[ItemNumber]:
        """Return where risk and confidence come from."""
        if self._numbers is None:
            self._numbers = [self._source(wanted) for wanted in self._wanted]
        return self._numbers

    def options(self) -> dict[str, str | None] | None:
        if "threshold" not in self.fitted:
            return None
        threshold = self.fitted["threshold"]
        return {"threshold": None if threshold is None else repr(threshold)}

    def fit_threshold(self) -> Passes:
        from uqeval.tallies.patches import Patches

        rule = Rule.parse(self.settings.threshold)
        uncertainty = uncertainty_of(self.settings, self.info)
        patches = Patches(uncertainty, self.info.classes)
        fitted = yield from fit(self.info, rule, patches, False, region=self.region)
        self.fitted["threshold"] = fitted.threshold[0]

    def _source(self, wanted: Wanted) -> ItemNumber:
        """Return where the number that a user named comes from."""
        settings, info = self.settings, self.info
        if not wanted.is_loss and settings.aggregation is not None:
            return item_numbers.OfUncertainty(
                settings.aggregation, uncertainty_of(settings, info), info.classes,
                settings.patch, self.fit_threshold, self.fitted,
                Rule.parse(settings.threshold).undefined,
            )  # fmt: skip
        if wanted.column is not None:
            assert settings.item_table is not None
            return item_numbers.OfColumn(wanted.column, settings.item_table, info, wanted.scale)
        if wanted.name in OF_COUNTS:
            if info.kind != "classes":
                field = "temporal.miou" if info.kind == "video" else "regression.rmse"
                raise UsageError(
                    f"{quoted(wanted.text)} is of class predictions, and {info.where} holds "
                    f"{data_of_kind(info.kind)}. Give a field of its items, such as {field}."
                )
            return item_numbers.OfCounts(wanted.name, info, wanted.scale)
        key, field = item_numbers.key_and_field(wanted.name)
        if self.region and Key.parse(key).region is not None:
            raise UsageError(
                f"{quoted(wanted.text)} is of one region, and --region ranks images by numbers of "
                "each region. Leave the region out of the name, or leave --region out."
            )
        evaluation = self._evaluation_of(key)
        return item_numbers.OfField(key, field, evaluation, wanted.scale, self.region)

    def _evaluation_of(self, key: str) -> Evaluation[Any]:
        """Return an evaluation that records a field of items, as the same run has it."""
        if self._evaluations is not None and key in self._evaluations:
            return self._evaluations[key].unfitted()
        family = FAMILIES_IN_REPORTS[family_of(key)]
        if family.name == "image_failure" or self.info.kind not in family.kinds:
            raise UsageError(
                f"{key}: {family.name} does not evaluate the items of {self.info.where}, which "
                f"holds {data_of_kind(self.info.kind)}."
            )
        try:
            settings = family.settings({}, self.info)
        except UsageError as error:
            raise UsageError(
                f"{key} has no numbers without options of {family.name}: name {family.name} with "
                "its options beside image_failure in uqeval.yaml, and use uqeval run (in Python, "
                f"in the metrics of uqeval.evaluate). The reason: {error}"
            ) from None
        if key not in settings and self._evaluations is not None:
            raise UsageError(
                f"{key} is not a result of this run, which has {', '.join(self._evaluations)}. "
                "Evaluate the variant in the same run: name it in uqeval.yaml, and use uqeval "
                "run."
            )
        if key not in settings:
            raise UsageError(
                f"{key} is not a result of the report of {self.info.where}, whose items have no "
                "fields of it. Evaluate again with this variant or region."
            )
        evaluation = family.evaluation(settings[key], self.info)
        return evaluation.of_region(self.region) if self.region else evaluation

    def _known(self, wanted: Wanted, key: str, items: Sequence[Mapping[str, Any]]) -> Known | None:
        """Return the numbers that records of items have; None if they have none."""
        name = "risk" if wanted.is_loss else "confidence"
        if any(key in item for item in items):
            records = [item.get(key, {}) for item in items]
            reasons = [record[f"{name}_reason"] for record in records if f"{name}_reason" in record]
            return Known([record.get(name) for record in records], *reasons[:1])
        if (not wanted.is_loss and self.settings.aggregation) or wanted.address is None:
            return None
        field_key, field = wanted.address
        if not any(field_key in item for item in items):
            return None
        records = [item.get(field_key, {}) for item in items]
        numbers = item_numbers.field_of_items(records, field_key, field, self.region)
        return Known(wanted.scale.of(numbers))


def _of_confidence(
    score: ItemScore, unit: float, weights: Array, risk: Array, confidence: Array
) -> Array:
    """Return a score of risks and uncertainties, which are minus the confidences."""
    return score(weights, without_noise(risk, unit), -without_noise(confidence))


def _above(
    score: ItemScore, limit: float | None, unit: float,
    weights: Array, risk: Array, uncertainty: Array,
) -> Array:  # fmt: skip
    """Return a score of which the items with a risk above the limit are the positives."""
    if limit is None:
        return np.full(len(weights), np.nan)
    positive = np.where(np.isfinite(risk), is_above(risk, limit, unit), np.nan)
    return score(weights, positive, uncertainty)


def _count(
    limit: float | None, unit: float, name: str, weights: Array, risk: Array, confidence: Array
) -> Array:
    """Return the number of items with a risk above the limit, or of the others."""
    is_kept = np.isfinite(risk) & np.isfinite(confidence)
    has_failed = is_kept & is_above(risk, np.inf if limit is None else limit, unit)
    return weights @ (has_failed if name == _COUNTS[0] else is_kept & ~has_failed)


def _limit(text: str | float, risk: Array) -> float | None:
    """Return the limit of risk; None without risks."""
    rule = limit_rule(text)
    if rule.kind == "value":
        return rule.value
    return float(np.percentile(risk, rule.value)) if risk.size else None


def _item(pair: tuple[float | None, ...], reasons: Sequence[str]) -> dict[str, Any]:
    """Return the record of an item with this risk and confidence."""
    record: dict[str, Any] = {}
    for name, value, reason in zip(_FIELDS, pair, reasons, strict=True):
        set_value(record, name, value, reason)
    return record | {"left_out": None in pair}


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Failure detection of whole items",
            (
                "risk", "confidence", "uncertainty", "aurc", "e_aurc", "augrc", "auroc",
                "spearman", "kendall", "mean_risk", Column("risk_limit", "risk limit"),
            ),
            "AUROC: of the items with a risk above the limit, by default the median risk. ρ and τ: "
            "of risk and uncertainty.",
        ),
    ),
    figures=("image_failure",),
    ranks_items=False,
)  # fmt: skip

FAMILY = Family(
    "image_failure",
    scores_of_items.METRICS,
    settings_of,
    ImageFailure,
    ImageFailureSettings,
    kinds=("classes", "regression", "video"),
    display=DISPLAY,
    label="Failure detection of whole items",
    on_request=True,
    on_subsets=OnSubsets(own_points=("curve",)),
)
