"""Settings of PAvPU, and the presets of published definitions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from uqeval.errors import UsageError, number_in
from uqeval.maps.names import IN_NATS, NO_UNCERTAINTY, UNCERTAINTIES
from uqeval.maps.regions import SHARE
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._family import variants
from uqeval.metrics.threshold_from import with_threshold_from
from uqeval.metrics.thresholds import (
    Rule,
    check_ends,
    check_threshold,
    ends_of,
    ends_text,
    rule_text,
)
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from uqeval.tallies.patches import Patches

#: What each definition in use changes of the defaults, which are Mukhoti & Gal's.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "ma": {"window": 3, "threshold": "median", "accuracy_op": ">="},
    "torch-uncertainty-0.13": {
        "uncertainty": "confidence", "window": 16, "border": "partial", "threshold": "0.5",
    },
    "uncertainty-baselines": {
        "window": 2, "border": "pad", "void": "inaccurate", "threshold": "0.5",
    },
    "a-klass": {"window": 2, "threshold": "0.4", "log_base": 2.0},
}  # fmt: skip

_PATCHES, _THRESHOLDS = "Patches", "Thresholds"


@documented
@dataclass(frozen=True)
class PavpuSettings(Settings):
    """All settings of PAvPU; the defaults are those of Mukhoti & Gal 2018."""

    definitions = DEFINITIONS

    # fmt: off
    uncertainty: str = option(
        "entropy", "Uncertainty map: entropy, mutual_information, expected_entropy, "
        "confidence, variation_ratio, std, or any map of the store. Repeat for variants.",
        metavar="NAME", panel=_PATCHES, common=True)
    window: int = option(
        4, "Side of a patch in pixels. Repeat for variants.",
        metavar="PIXELS", panel=_PATCHES, least=1, common=True)
    stride: int = option(
        0, "Step between patches. 1 gives sliding windows.",
        metavar="PIXELS", panel=_PATCHES, least=1, shown="the window")
    border: str = option(
        "drop", "Incomplete patches: drop them, use the pixels that exist (partial), or pad "
        "with wrong pixels of uncertainty 0.",
        choices=("drop", "partial", "pad"), panel=_PATCHES)
    void: str = option(
        "exclude", "Void pixels: exclude them from the patch, or count them as inaccurate.",
        choices=("exclude", "inaccurate"), panel=_PATCHES)
    top_k: int = option(
        1, "A pixel is correct if its label is among the K likeliest classes.",
        metavar="K", panel=_PATCHES, least=1)
    region_share: float = option(
        SHARE, "A patch belongs to a --region if at least this fraction of its valid pixels does; "
        "of all its pixels with --void inaccurate.",
        metavar="SHARE", panel=_PATCHES, above=0, most=1, several=False)
    log_base: float | str = option(
        math.e, "Base of the entropies. With classes (their number), entropies lie in [0, 1].",
        metavar="e|2|classes", panel=_PATCHES, several=False, shown="e")
    threshold: str | float = option(
        "mean", "Uncertainty threshold: mean of the pixels; median or pNN of the patches; "
        "range:T; max-surplus; or a number.",
        metavar="RULE", panel=_THRESHOLDS, common=True, normal=rule_text)
    threshold_from: str | None = option(
        None, "Use the uncertainty threshold that another report fitted.",
        metavar="REPORT", panel=_THRESHOLDS, several=False, common=True)
    threshold_scope: str = option(
        "set", "Fit the threshold on the whole set, on each class, or on each item. With region, "
        "fit it on the whole set, and again in each --region.",
        choices=("set", "class", "item", "region"), panel=_THRESHOLDS)
    curve_range: str | None = option(
        None, "Ends of the curve over thresholds. Shards can be merged after one pass "
        "if you also give --threshold NUMBER and --no-deciles.",
        metavar="LOW:HIGH", panel=_THRESHOLDS, several=False, normal=ends_text,
        shown="the least and the greatest uncertainty of the set")
    accuracy_threshold: float = option(
        0.5, "A patch is accurate if its fraction of correct pixels is above this value.",
        metavar="A", panel=_THRESHOLDS, least=0, most=1)
    accuracy_op: str = option(
        ">", "A patch exactly on the accuracy threshold is inaccurate (>), or accurate (>=).",
        choices=(">", ">="), panel=_THRESHOLDS)
    uncertainty_op: str = option(
        ">", "A patch exactly on the uncertainty threshold is certain (>), or uncertain (>=).",
        choices=(">", ">="), panel=_THRESHOLDS)
    deciles: bool = option(
        True, "Compute the table of accuracy by decile of uncertainty. Deciles need the whole "
        "set, so a set that grows is read again.", panel=_THRESHOLDS,
        changes_only=("accuracy_by_uncertainty",))
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold_from is not None and self.threshold_scope != "set":
            raise UsageError(
                f"--threshold-from takes one threshold; --threshold-scope {self.threshold_scope} "
                "fits several. Give one of them."
            )
        if self.stride == 0:
            object.__setattr__(self, "stride", self.window)
        if self.log_base != "classes":
            object.__setattr__(self, "log_base", checked_log_base(self.log_base))
        object.__setattr__(self, "threshold", str(self.threshold))
        Rule.parse(self.threshold)
        if self.curve_range is not None and self.threshold_scope != "set":
            raise UsageError(
                f"--curve-range is one range; --threshold-scope {self.threshold_scope} has "
                "several. Leave one out."
            )
        self.ends()

    @classmethod
    def of(cls, **choices: Any) -> Self:
        """Return the settings of a definition, overridden by `choices`."""
        if choices.get("stride") == 0:  # the default: the window
            raise UsageError("--stride 0; expected a whole number of at least 1.")
        return super().of(**choices)

    def unused(self, in_region: bool = True) -> set[str]:
        names = super().unused(in_region) | unused_base(self.uncertainty)
        names |= {"border"} if self.window == 1 else set()
        if not in_region:
            names |= {"region_share"}
            names |= {"threshold_scope"} if self.threshold_scope == "region" else set()
        return names

    def ends(self) -> tuple[float, float] | None:
        """Return the ends of `curve_range`. Raises `UsageError` for an invalid range."""
        return None if self.curve_range is None else ends_of(self.curve_range)

    def patches(self, classes: int) -> Patches:
        """Return the tally of patches with these settings, for images of `classes` classes."""
        from uqeval.tallies._values import Uncertainty
        from uqeval.tallies.patches import Patches

        base = float(classes) if self.log_base == "classes" else float(self.log_base)
        return Patches(
            Uncertainty(self.uncertainty, base), classes,
            self.window, self.stride, self.border, self.void, self.top_k,
        )  # fmt: skip


def checked_log_base(value: float | str, words: str = "e, 2, classes") -> float:
    """Return the base of "e" or a number; `words`: what else the option takes. Raises
    `UsageError` for what cannot be one."""
    try:
        base = math.e if value == "e" else number_in(value)
    except ValueError:
        base = 0.0
    if not (base > 1 and math.isfinite(base)):
        raise UsageError(f"--log-base {value}; expected {words}, or a number above 1.")
    return base


def unused_base(uncertainty: str) -> set[str]:
    """Return the name of the option `log_base` if the uncertainty is no entropy; else none."""
    return set() if uncertainty in IN_NATS else {"log_base"}


def refuse_unused_base(options: Mapping[str, Any], uncertainties: Collection[str]) -> None:
    """Raise `UsageError` for a `log_base` among options if no uncertainty is an entropy."""
    if "log_base" not in options or IN_NATS & set(uncertainties):
        return
    log_base = options["log_base"]
    bases = list(log_base) if isinstance(log_base, list | tuple) else [log_base]
    if any(base not in ("e", math.e) for base in bases):
        raise UsageError(
            f"--log-base {', '.join(map(str, bases))} applies to entropies "
            f"({', '.join(sorted(IN_NATS))}); --uncertainty {', '.join(uncertainties)} is not "
            "one. Leave out --log-base."
        )


def settings_of(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, PavpuSettings]:
    """Return the settings of every variant, checked against the data."""
    settings: dict[str, PavpuSettings] = variants("pavpu", PavpuSettings, options, ("uncertainty",))
    if options.get("threshold_from") is not None:
        settings = with_threshold_from("pavpu", settings, options, info)
    refuse_unused_base(options, [variant.uncertainty for variant in settings.values()])
    if info.classes == 1:
        raise UsageError(
            f"{info.where} has predictions of 1 class, so no pixel can be wrong, and PAvPU is "
            "undefined. Store the predictions of all classes (background is a class)."
        )
    for variant in settings.values():
        check_uncertainty(variant.uncertainty, info)
        _check_thresholds(variant, info)
        if variant.top_k >= info.classes:
            raise UsageError(
                f"--top-k {variant.top_k} of {info.classes} classes: every pixel would be right. "
                "Give a smaller K."
            )
        if variant.window > 1 and info.is_of_single_pixels:
            raise UsageError(
                f"--window {variant.window}: {info.where} holds items of one pixel (image "
                f"classification), and a patch of {variant.window}×{variant.window} pixels needs "
                "neighbours. Give --window 1, or evaluate other families (`uqeval sweep`: "
                "--metric calibration --metric failure)."
            )
        for name, (height, width) in info.names_and_sizes:
            if variant.border == "drop" and variant.window > min(height, width):
                raise UsageError(
                    f"--window {variant.window} is larger than item {name} of {info.where}, which "
                    f"is {height}×{width} (height×width); give a smaller window, or --border "
                    "partial."
                )
    return settings


def _check_thresholds(settings: PavpuSettings, info: DatasetInfo) -> None:
    """Raise `UsageError` for thresholds that divide no patches."""
    uncertainty = settings.patches(info.classes).uncertainty
    if settings.threshold_from is None:
        check_threshold(settings.threshold, uncertainty, info)
    check_ends(settings.curve_range, uncertainty, info)


def check_uncertainty(name: str, info: DatasetInfo) -> None:
    """Raise `UsageError` for a map that is not an uncertainty."""
    if name in NO_UNCERTAINTY:
        raise UsageError(
            f"--uncertainty {name} is not an uncertainty of {info.where}; expected "
            f"{', '.join(UNCERTAINTIES)}, or the name of a map in the store."
        )
