"""The gate: judge reports by rules. Its modules do not import NumPy."""

from uqeval.gate.judge import judge
from uqeval.gate.rules import Limits, Rule
from uqeval.gate.verdict import FailedStore, Judgement, NotEvaluated, Status, Verdict
from uqeval.gate.waivers import KINDS, Kind, Waiver, WaiverUse, parse_day
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval, Mover, Resampler, Units

__all__ = [
    "KINDS", "Address", "FailedStore", "Interval", "Judgement", "Kind", "Limits", "Mover",
    "NotEvaluated", "Resampler", "Rule", "Status", "Units", "Verdict", "Waiver", "WaiverUse",
    "judge", "parse_day",
]  # fmt: skip
