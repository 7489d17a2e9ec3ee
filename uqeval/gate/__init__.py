"""The gate: reports and rules to verdicts. Pure, and loads nothing heavy."""

from uqeval.gate.addresses import Address
from uqeval.gate.judge import judge
from uqeval.gate.kinds import KINDS, Kind
from uqeval.gate.not_evaluated import FailedStore, NotEvaluated
from uqeval.gate.resampling import Interval, Mover, Resampler, Units
from uqeval.gate.rules import Limits, Rule
from uqeval.gate.verdict import Judgement, Status, Verdict
from uqeval.gate.waivers import Waiver, WaiverUse, parse_day

__all__ = [
    "KINDS", "Address", "FailedStore", "Interval", "Judgement", "Kind", "Limits", "Mover",
    "NotEvaluated", "Resampler", "Rule", "Status", "Units", "Verdict", "Waiver", "WaiverUse",
    "judge", "parse_day",
]  # fmt: skip
