"""Why a difference of models has no test: each has a fitted number of its own.

Swaps and draws of the evaluated items keep the threshold, the temperature … of each model. Other
items give other numbers, with which equal models change places (`benchmarks/fitted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BEST = "max-surplus"
#: How the rules pNN begin. The median has its own word.
_PERCENTILE = ("p",)
_OTHER_CHANCE = "whose chance intervals and p-values of the evaluated items do not contain"
_ONE_THRESHOLD = "evaluate all models at one --threshold NUMBER"


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
    """Return the reason of a score that changes little if the threshold moves a little.

    A percentile between two clusters of values moves far; the median (Ma et al.) less.
    """
    if any(model.rule == _BEST for model in models):
        return (
            "the threshold of each model is the best one of the evaluated items (--threshold "
            "max-surplus), and intervals and p-values do not contain the chance of this choice; "
            f"{_ONE_THRESHOLD}"
        )
    return _moved(models, _PERCENTILE) or _of_other_reports(models)


def following_threshold(models: Sequence[FittedModel]) -> str:
    """Return the reason of a score that rises or falls with the threshold. Other items give another
    mean or percentile."""
    return threshold(models) or _moved(models, ("mean", "median"))


def best_surplus(models: Sequence[FittedModel]) -> str:
    """Return the reason of the Surplus. The best threshold for it, chosen on the same patches,
    changes it little: the largest value is flat."""
    best = [model for model in models if model.rule == _BEST]
    at_best = all(m.is_whole and m.settings.get("threshold_scope") == "set" for m in best)
    return _of_other_reports(models) if best and at_best else threshold(models)


def _moved(models: Sequence[FittedModel], starts: tuple[str, ...]) -> str:
    """Return the reason of thresholds that rules take from the evaluated items; empty if all are
    the same number, and without a rule that starts so."""
    rules = [model.rule for model in models if model.rule.startswith(starts)]
    if not rules or _is_one_number(models):
        return ""
    return (
        "the threshold of each model follows the evaluated items (--threshold "
        f"{rules[0]}), and this score follows the threshold; intervals and p-values do not contain "
        f"this; {_ONE_THRESHOLD}"
    )


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
