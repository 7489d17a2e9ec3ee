"""Check that a saved verdict follows from its numbers, because the file may be edited."""

from __future__ import annotations

from uqeval.gate.verdict import Verdict


def contradiction(verdict: Verdict) -> str | None:
    """Return how a verdict contradicts its own value, interval and limit; None if it does not.

    Numbers may be on the wrong side of the limit by 1e-9, because they are rounded.
    """
    status = verdict.status
    if verdict.waiver is not None and status == "waived":
        if verdict.waiver.outcome != "waived":
            return f"it is waived, and its waiver is {verdict.waiver.outcome!r}"
        status = verdict.waiver.instead_of
    counts = "pass" if verdict.status in ("pass", "waived") else "fail"
    if verdict.status == "inconclusive":
        counts = verdict.counts_as  # the rule decides, and the file does not contain the rule
    if verdict.counts_as != counts:
        return f"it is {verdict.status!r} and counts as {verdict.counts_as!r}"
    measured = verdict.value if verdict.kind in ("min", "max") else verdict.change
    if measured is None or verdict.reason is not None:
        return None
    ends = (measured, measured)
    if verdict.interval is not None:
        ends = (verdict.interval.low, verdict.interval.high)
    margins = sorted(_margin(verdict, end) for end in ends)
    rounding = 1e-9 * max(1.0, abs(verdict.limit))
    wrong = {
        "pass": margins[0] < -rounding,
        "fail": margins[1] > rounding,
        "inconclusive": margins[0] > rounding or margins[1] < -rounding,
        "waived": False,
    }[status]
    if not wrong:
        return None
    numbers = f"the interval [{ends[0]:g}, {ends[1]:g}]" if verdict.interval else f"{measured:g}"
    return f"it is {status!r}, and {numbers} against {verdict.kind} {verdict.limit:g} is not"


def _margin(verdict: Verdict, measured: float) -> float:
    """Return the distance of a number to the limit; positive on the side that passes."""
    if verdict.kind == "min":
        return measured - verdict.limit
    if "drop" in verdict.kind:
        return verdict.limit + measured  # `change` and its interval are rises
    return verdict.limit - measured
