"""The TC below which `uqeval observe` raises an alarm, from a report of `uqeval tc`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_videos

import uqeval
from uqeval import StoreError, UsageError
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.usecases.alarm_limit import alarm_from, refuse_other_step


def with_step(step: int | None) -> uqeval.Report:
    results = {"temporal": {"sequences": [{"sequence": "a", "step": step}]}}
    return uqeval.Report(uqeval_version="1", inputs={}, settings={}, results=results, items=[])


@pytest.mark.parametrize(("of_report", "of_frames"), [(1, 1), (33, 34), (None, 2)])
def test_the_distance_of_frames_is_that_of_the_report(
    of_report: int | None, of_frames: int
) -> None:
    """Numbers that are times vary a little. Reports of earlier versions may have no step."""
    assert refuse_other_step(with_step(of_report), of_frames) == ""


@pytest.mark.parametrize(("of_report", "of_frames"), [(1, 2), (3, 2)])
def test_another_distance_of_frames_is_refused(of_report: int, of_frames: int) -> None:
    with pytest.raises(UsageError, match=f"are {of_report} numbers apart.* {of_frames}\\."):
        refuse_other_step(with_step(of_report), of_frames)


def test_an_alarm_is_a_quantile_of_a_report(tmp_path: Path) -> None:
    small_videos.save_folder(tmp_path, small_videos.video(small_videos.numbered(6), 5, (48, 64)))
    report = uqeval.evaluate(None, None, {"tc": {"flow": "dis:fast"}}, video=str(tmp_path))
    values = sorted(item["temporal"]["tc"] for item in report.items)
    settings = TemporalSettings(flow="dis:fast")
    assert alarm_from(report, 0.0, settings) == values[0]
    assert alarm_from(report, 0.5, settings) == values[2]
    report.items[2]["temporal"]["cut"] = True
    assert alarm_from(report, 1.0, settings) == max(
        item["temporal"]["tc"] for item in report.items if not item["temporal"]["cut"]
    )
    for other in (TemporalSettings(flow="dis"), TemporalSettings(flow="dis:fast", flow_scale=0.5)):
        with pytest.raises(UsageError, match="another flow"):
            alarm_from(report, 0.05, other)
    with pytest.raises(UsageError, match="quantile"):
        alarm_from(report, 1.5, settings)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda report: report.items[1].update(temporal="x"), "expected a record"),
        (lambda report: report.items[1]["temporal"].update(tc={}), "`tc` is .*expected a number"),
        (lambda report: report.items[1]["temporal"].update(cut=[]), "`cut` is"),
        (lambda report: report.settings.update(temporal=3), "expected a record"),
        (lambda report: report.settings["temporal"].update(flow_scale="x"), "`flow_scale` is"),
        (
            lambda report: report.settings["temporal"].update(grid="x"),
            "settings.temporal: grid=",
        ),
        (lambda report: report.settings["temporal"].update(flow="x"), "settings.temporal: flow="),
    ],
)
def test_a_report_of_another_form_gives_no_alarm(change: Any, text: str, tmp_path: Path) -> None:
    small_videos.save_folder(tmp_path, small_videos.video(small_videos.numbered(6), 5, (48, 64)))
    report = uqeval.evaluate(None, None, {"tc": {"flow": "dis:fast"}}, video=str(tmp_path))
    change(report)
    with pytest.raises(StoreError, match=f"--alarm-from: .*{text}"):
        alarm_from(report, 0.05, TemporalSettings(flow="dis:fast"))
