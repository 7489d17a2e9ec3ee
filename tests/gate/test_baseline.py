"""Which settings of a report and its baseline make their scores incomparable."""

from __future__ import annotations

from typing import Any

import pytest

from uqeval import Report
from uqeval.gate.baseline import other_setting


def report(key: str, settings: dict[str, Any]) -> Report:
    return Report(
        uqeval_version="1", inputs={}, settings={key: settings}, results={key: {}}, items=[]
    )


@pytest.mark.parametrize("key", ["regression", "regression[window=7]@box:0.5:1,0:1"])
def test_a_setting_that_an_earlier_version_does_not_have(key: str) -> None:
    """At its default the scores are the same; another value makes them incomparable."""
    earlier = report(key, {"distribution": "gaussian"})
    now = report(key, {"distribution": "gaussian", "depth": False, "ence_bins": 15})
    other = report(key, {"distribution": "gaussian", "depth": True})
    assert other_setting(now, earlier, key) is None
    assert other_setting(earlier, now, key) is None
    assert other_setting(other, earlier, key) == ("depth", True, None)
    assert other_setting(now, other, key) == ("depth", False, True)
    laplace = report(key, {"distribution": "laplace"})
    assert other_setting(laplace, earlier, key) == ("distribution", "laplace", "gaussian")
    unknown = report(key, {"distribution": "gaussian", "of_a_later_version": 1})
    assert other_setting(unknown, earlier, key) == ("of_a_later_version", 1, None)
