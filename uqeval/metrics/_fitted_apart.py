"""Why a difference of models has no test: each has a fitted number of its own.

Swaps and draws of the evaluated items keep the threshold, the temperature … of each model. Other
items give other numbers, with which equal models change places (`benchmarks/fitted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_IGNORED = "which intervals and p-values would ignore"
_ONE_THRESHOLD = (
    "evaluate all models at one --threshold NUMBER, or give --threshold-from one of the reports"
)


@dataclass(frozen=True)
class FittedModel:
    """Settings and results of one metric of a model."""

    settings: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def threshold(self) -> float | None:
        """Return the uncertainty threshold; None if it has no single one."""
        used: Any = self.results.get("uncertainty_threshold", self.settings.get("threshold"))
        return float(used) if _is_number(used) else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the ends of the curve over thresholds; None if there are no single ones."""
        curve: Any = self.results.get("curve")
        thresholds: Any = curve.get("threshold") if isinstance(curve, Mapping) else None
        if not isinstance(thresholds, list) or not thresholds:
            return None
        ends = thresholds[0], thresholds[-1]
        return (float(ends[0]), float(ends[1])) if all(map(_is_number, ends)) else None

    @property
    def is_of_item(self) -> bool:
        """Return whether each item has its own threshold, which goes with it in swaps and draws."""
        return self.settings.get("threshold_scope") == "item"

    @property
    def rule(self) -> str:
        """Return the rule that gave the threshold (`thresholds.Rule`); empty if another report did,
        and if each item has its own."""
        if self.is_of_item or self.settings.get("threshold_from"):
            return ""
        return str(self.settings.get("threshold")).strip().lower()


#: Returns why the difference of models has neither interval nor p-value; empty if it may have them.
FittedApart = Callable[[Sequence[FittedModel]], str]


def on_items(noun: str) -> FittedApart:
    """Return the reason of a number that is fitted on items: those of `fit_on`, or all."""

    def reason(models: Sequence[FittedModel]) -> str:
        of_others = any(model.settings.get("fit_on") for model in models)
        items = "other items (--fit-on)" if of_others else "the evaluated items"
        return (
            f"the {noun} of each model is fitted on {items}, {_IGNORED}; compare the values "
            "with several lists of --fit-on"
        )

    return reason


def threshold(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score at an uncertainty threshold."""
    rules = [model.rule for model in models if model.rule and not _is_number(model.rule)]
    if rules and not _is_one_number(models):
        return (
            f"the threshold of each model follows the evaluated items (--threshold {rules[0]}), "
            f"{_IGNORED}; {_ONE_THRESHOLD}"
        )
    return _of_other_reports(models)


def bins_of_sigma(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score in bins with equal numbers of pixels, by σ."""
    return (
        "the bins of each model have edges at quantiles of its σ of the evaluated items, "
        f"{_IGNORED}; compare the values"
    )


def curve(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score over the thresholds of a curve."""
    ends = {model.ends for model in models if not model.is_of_item}
    if not ends or (len(ends) == 1 and None not in ends):
        return ""
    return (
        "the curve of each model spans its uncertainties of the evaluated items, "
        f"{_IGNORED}; give all models the same --curve-range LOW:HIGH"
    )


def _of_other_reports(models: Sequence[FittedModel]) -> str:
    """Return the reason of thresholds of other reports; empty if all are the same number."""
    if _is_one_number(models) or not any(m.settings.get("threshold_from") for m in models):
        return ""
    return (
        "the threshold of each model is fitted on the items of another report (--threshold-from), "
        f"{_IGNORED}; {_ONE_THRESHOLD}"
    )


def _is_one_number(models: Sequence[FittedModel]) -> bool:
    """Return whether all models have the same single threshold."""
    values = {model.threshold for model in models}
    return len(values) == 1 and None not in values


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
