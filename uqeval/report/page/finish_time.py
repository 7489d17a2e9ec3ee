"""The finish time of reports, in words, for display only."""

from __future__ import annotations

import re
from collections.abc import Iterable

from uqeval.records.report import Report

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ")


def finish_time(reports: Iterable[Report]) -> str:
    """Return `2026-11-21 20:12 UTC`, of the newest of them; empty where none says it: earlier
    versions of uqeval did not.
    """
    said = [_TIME.fullmatch(str(report.timing.get("finished"))) for report in reports]
    return max((f"{found[1]} {found[2]} UTC" for found in said if found), default="")
