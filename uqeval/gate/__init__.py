"""The gate: reports and rules to verdicts. Pure, and loads nothing heavy."""

from uqeval.gate.addresses import Address
from uqeval.gate.judge import Judgement, Status, Verdict, judge
from uqeval.gate.resampling import Interval, Mover, Resampler
from uqeval.gate.rules import KINDS, Kind, Limits, Rule
from uqeval.gate.unjudged import FailedStore, NotEvaluated

__all__ = [
    "KINDS", "Address", "FailedStore", "Interval", "Judgement", "Kind", "Limits", "Mover",
    "NotEvaluated", "Resampler", "Rule", "Status", "Verdict", "judge",
]  # fmt: skip
