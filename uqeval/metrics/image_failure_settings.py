"""Settings of failure detection of whole items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uqeval.errors import UsageError, option_name, quoted
from uqeval.metrics._aggregation import (
    COLUMN,
    SPELLINGS,
    Aggregation,
    aggregation_text,
    check_patch,
)
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._family import variants
from uqeval.metrics._numbers import check_sigma, sigma_map
from uqeval.metrics.failure_settings import FailureSettings
from uqeval.metrics.pavpu_settings import check_uncertainty, refuse_unused_base
from uqeval.metrics.threshold_from import with_threshold_from
from uqeval.metrics.thresholds import Rule, check_threshold
from uqeval.settings import definition_of, documented, option, same_option

#: The default risk, confidence and uncertainty by kind of data.
_DEFAULTS = {
    "classes": ("miou", "mean", "entropy"),
    "regression": ("regression.rmse", "mean", "sigma"),
    "video": ("temporal.miou", "temporal.tc", ""),
}
#: The fields that depend on the limit of the risk.
_BY_LIMIT = ("auroc", "failed_items", "other_items", "risk_limit")
DEFINITIONS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "values-image": {"risk": "dice", "confidence": "sum"},
    "values-patch": {"risk": "dice", "confidence": "patch-max", "patch": 10},
    "values-threshold": {"risk": "dice", "confidence": "mean-above"},
}


@documented
@dataclass(frozen=True)
class ImageFailureSettings(FailureSettings):
    """All settings of failure detection of whole items."""

    # fmt: off
    uncertainty: str = same_option(
        FailureSettings, "uncertainty", "", shown="entropy; σ for numbers")
    threshold: str | float = same_option(FailureSettings, "threshold", changes_only=())
    threshold_from: str | None = same_option(FailureSettings, "threshold_from", changes_only=())
    log_base: float | str = same_option(FailureSettings, "log_base", changes_only=())
    risk: str = option(
        "", "With --images: risk of an item: miou, dice or accuracy (1 minus it), a field of the "
        "report's items (regression.rmse, temporal.tc), or column:NAME of --item-table. A field "
        "where higher is better is negated, or subtracted from 1 if its range is 0 to 1. Repeat "
        "for variants.",
        metavar="NAME", common=True, shown="miou; regression.rmse for numbers")
    confidence: str = option(
        "", "With --images: confidence of an item: minus its aggregated uncertainty "
        f"({SPELLINGS}), or a field or column as for --risk. Repeat for variants.",
        metavar="NAME", common=True, shown="mean; temporal.tc for a video",
        normal=aggregation_text)
    patch: int = option(
        4, "With --images: side of the patches of patch-max, in pixels.", metavar="N", least=1)
    risk_limit: str | float = option(
        "median", "With --images: AUROC finds the items with a higher risk than this number, or "
        "than the median or pNN of all risks.", metavar="RISK",
        normal=lambda text: limit_rule(text).text, changes_only=_BY_LIMIT)
    item_table: str | None = option(
        None, "With --images: CSV with a column `name` and columns of numbers for column:NAME.",
        metavar="FILE", several=False, path=True)
    definition: str = definition_of(DEFINITIONS)
    # fmt: on
    definitions = DEFINITIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "risk_limit", str(self.risk_limit))
        limit_rule(self.risk_limit)

    def unused(self, in_region: bool = True) -> set[str]:
        aggregation, names = self.aggregation, super().unused(in_region)
        if aggregation is None:
            names |= {"uncertainty", "log_base"}
        if aggregation is None or not aggregation.needs_threshold:
            names |= {"threshold", "threshold_from"}
        if aggregation is None or aggregation.name != "patch-max":
            names |= {"patch"}
        has_column = COLUMN in self.risk or COLUMN in self.confidence
        return names if has_column else names | {"item_table"}

    def reads(self) -> tuple[tuple[str, str], ...]:
        from uqeval.metrics._item_numbers import OF_COUNTS, Wanted

        numbers = [Wanted(self.risk, True)]
        if self.aggregation is None:
            numbers.append(Wanted(self.confidence, False))
        # Scores of the confusion matrix have no settings.
        addresses = [number.address for number in numbers if number.name not in OF_COUNTS]
        return tuple(dict.fromkeys(filter(None, addresses)))

    @property
    def aggregation(self) -> Aggregation | None:
        """Return how the uncertainty is aggregated; None if the confidence is something else."""
        return Aggregation.find(self.confidence)

    def of_kind(self, kind: str) -> ImageFailureSettings:
        """Return the settings with the defaults of a kind of data."""
        defaults = zip(("risk", "confidence", "uncertainty"), _DEFAULTS[kind], strict=True)
        missing: dict[str, Any] = {n: value for n, value in defaults if not getattr(self, n)}
        return dataclasses.replace(self, **missing)


def limit_rule(text: str | float) -> Rule:
    """Return the rule of a limit of risk: a percentile or a value. Raises `UsageError`."""
    try:
        rule = Rule.parse(text)
    except UsageError:
        rule = Rule("")
    if rule.kind not in ("percentile", "value"):
        raise UsageError(
            f"--risk-limit {quoted(text)} is not valid; expected a number, median or pNN."
        )
    return rule


def settings_of(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, ImageFailureSettings]:
    """Return the settings of every variant, checked against the data."""
    choices = dict(options)
    if choices.get("item_table") is not None:
        choices["item_table"] = str(choices["item_table"])
    settings: dict[str, ImageFailureSettings] = {
        key: variant.of_kind(info.kind)
        for key, variant in variants(
            "image_failure", ImageFailureSettings, choices, ("uncertainty", "risk", "confidence")
        ).items()
    }
    if choices.get("threshold_from") is not None:
        settings = with_threshold_from("image_failure", settings, choices, info)
    if info.kind != "video":
        refuse_unused_base(options, [variant.uncertainty for variant in settings.values()])
    for variant in settings.values():
        _check(variant, info)
        _read_columns(variant, info)
    unused = set.intersection(*(variant.unused() for variant in settings.values()))
    if "uncertainty" not in unused:
        unused.discard("log_base")  # `refuse_unused_base` allows the default
    for name, users in (
        ("uncertainty", SPELLINGS),
        ("log_base", SPELLINGS),
        ("threshold", "share and mean-above"),
        ("threshold_from", "share and mean-above"),
        ("patch", "patch-max"),
        ("item_table", "(or --risk) column:NAME"),
    ):
        if name in choices and name in unused:
            raise UsageError(
                f"{option_name(name)} has no effect: it is for --confidence {users}. Leave it out."
            )
    return settings


def _read_columns(settings: ImageFailureSettings, info: DatasetInfo) -> None:
    """Read the columns of the table of items that the user names. Raises `UqevalError`."""
    from uqeval.metrics._item_numbers import OfColumn, Wanted

    for text in (settings.risk, settings.confidence):
        column = Wanted(text, True).column
        if column is not None and settings.item_table is not None:
            OfColumn.read(column, settings.item_table, info)


def _check(settings: ImageFailureSettings, info: DatasetInfo) -> None:
    """Raise `UsageError` for settings that the data cannot have."""
    for flag, text in (("--risk", settings.risk), ("--confidence", settings.confidence)):
        if COLUMN in text and settings.item_table is None:
            raise UsageError(
                f"{flag} {quoted(text)} needs a table of the items; give --item-table FILE."
            )
    aggregation = settings.aggregation
    if aggregation is None:
        return
    if info.kind == "video":
        raise UsageError(
            f"--confidence {settings.confidence} aggregates a map of uncertainty, which video "
            f"{info.where} does not have. Give a field of its pairs, such as temporal.tc, or "
            "column:NAME."
        )
    if info.kind == "classes":
        check_uncertainty(settings.uncertainty, info)
        if aggregation.needs_threshold and settings.threshold_from is None:
            check_threshold(settings.threshold, settings.ranked(info.classes), info)
    else:
        check_sigma(settings.uncertainty, info)
        rule = Rule.parse(settings.threshold)
        if aggregation.needs_threshold and rule.kind not in ("mean", "range", "value"):
            raise UsageError(
                f"--threshold {settings.threshold} needs patches of classes, and {info.where} "
                "holds predicted numbers. Give mean, range:T or a number."
            )
    check_patch(aggregation, settings.patch, info)


def uncertainty_of(settings: ImageFailureSettings, info: DatasetInfo) -> Any:
    """Return the uncertainty that is aggregated."""
    from uqeval.tallies._values import Uncertainty

    if info.kind == "classes":
        return settings.ranked(info.classes)
    return Uncertainty(sigma_map(settings.uncertainty))
