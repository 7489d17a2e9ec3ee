"""Why a difference of models has no test: each has a fitted number of its own.

Swaps and draws of the evaluated items keep the threshold, the temperature … of each model. Other
items give other numbers, with which equal models change places (`benchmarks/fitted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The rule that chooses a threshold by a score (`thresholds.Rule`).
_BEST = "max-surplus"
_OTHER_CHANCE = "whose chance intervals and p-values of the evaluated items do not contain"
_ONE_THRESHOLD = (
    "evaluate all models at one --threshold NUMBER, or give --threshold-from one of the reports"
)


@dataclass(frozen=True)
class FittedModel:
    """Settings and results of one metric of a model.

    `is_whole`: the score is over all items and pixels on which the model was evaluated.
    """

    settings: Mapping[str, Any]
    results: Mapping[str, Any]
    is_whole: bool = True

    @property
    def threshold(self) -> float | None:
        """Return the uncertainty threshold; None if it has no single one."""
        used: Any = self.results.get("uncertainty_threshold", self.settings.get("threshold"))
        return float(used) if _is_number(used) else None

    @property
    def rule(self) -> str:
        """Return the rule that gave the threshold (`thresholds.Rule`); empty if another report did,
        and if each item has its own, which goes with the item in swaps and draws."""
        is_of_item = self.settings.get("threshold_scope") == "item"
        if is_of_item or self.settings.get("threshold_from"):
            return ""
        return str(self.settings.get("threshold")).strip().lower()


#: Returns why the difference of models has neither interval nor p-value; empty if it may have them.
FittedApart = Callable[[Sequence[FittedModel]], str]


def on_other_items(noun: str) -> FittedApart:
    """Return the reason of a number that is always fitted on other items."""
    reason = (
        f"the {noun} of each model is fitted on other items (--fit-on), {_OTHER_CHANCE}; compare "
        "the values with several lists of --fit-on"
    )
    return lambda models: reason


def on_fit_items(noun: str) -> FittedApart:
    """Return the reason of a number that is fitted on other items if the settings name them."""
    reason = on_other_items(noun)
    return lambda models: reason(models) if any(m.settings.get("fit_on") for m in models) else ""


def threshold(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score at an uncertainty threshold."""
    rules = [model.rule for model in models if model.rule and not _is_number(model.rule)]
    if rules and not _is_one_number(models):
        return (
            f"the threshold of each model follows the evaluated items (--threshold {rules[0]}), "
            f"which intervals and p-values do not contain; {_ONE_THRESHOLD}"
        )
    return _of_other_reports(models)


def best_surplus(models: Sequence[FittedModel]) -> str:
    """Return the reason of the Surplus. The best threshold for it, chosen on the same patches,
    changes it little: the largest value is flat."""
    at_best = all(
        model.is_whole and model.rule == _BEST and model.settings.get("threshold_scope") == "set"
        for model in models
    )  # fmt: skip
    return "" if at_best else threshold(models)


def _of_other_reports(models: Sequence[FittedModel]) -> str:
    """Return the reason of thresholds of other reports; empty if all are the same number."""
    if _is_one_number(models) or not any(m.settings.get("threshold_from") for m in models):
        return ""
    return (
        "the threshold of each model is fitted on the items of another report (--threshold-from), "
        f"{_OTHER_CHANCE}; {_ONE_THRESHOLD}"
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
