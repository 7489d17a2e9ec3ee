"""The axis of a video's frames, and lines over it that stop where a sequence does."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import pytest
from family_reports import of_video
from matplotlib.figure import Figure as Canvas

from uqeval.records.report import Report
from uqeval.report.figures import figures_of
from uqeval.report.figures.frames import FrameAxis
from uqeval.report.figures.temporal import _isolated_points


def drawn(*reports: Report) -> Canvas:
    named = {f"r{i}": report for i, report in enumerate(reports)}
    (figure,) = (own for own in figures_of(named)["temporal"] if own.name == "temporal")
    canvas = Canvas()
    figure.draw(canvas)
    return canvas


def axis(**sequences: int) -> FrameAxis:
    names = [f"{name}_{2 * i:05}" for name, count in sequences.items() for i in range(count)]
    return FrameAxis(names, [name for name, count in sequences.items() for _ in range(count)])


def test_a_few_names_less_that_of_the_sequence() -> None:
    assert list(axis(drive=80).ticks.items())[:3] == [(0, "00000"), (10, "00020"), (20, "00040")]
    assert axis(drive=3).ticks == {0: "00000", 1: "00002", 2: "00004"}
    numbered = FrameAxis([str(i) for i in range(1, 9)], [""] * 8)
    assert list(numbered.ticks.values()) == list("12345678")
    assert FrameAxis(["drive"], ["drive"]).ticks == {0: "drive"}


@pytest.mark.parametrize("sizes", [{"a": 40, "b": 3, "c": 57}, {"a": 1, "b": 1}, {"a": 100_000},
                                   {f"s{i}": 2 for i in range(500)}])  # fmt: skip
def test_ticks_never_touch(sizes: dict[str, int]) -> None:
    own = axis(**sizes)
    places, wide = list(own.ticks), max(map(len, own.ticks.values()))
    assert 0 in places
    letters = [84 * place / len(own.names) for place in places]
    assert all(b - a >= wide for a, b in pairwise(letters))
    for _, first, last in own.parts:  # a sequence with room for it says where it begins
        if last - first > len(own.names) / 4:
            assert first in places


def test_sequences_are_named_and_parted() -> None:
    (axes,) = drawn(of_video()).axes
    assert axes.get_xlabel() == "frame"
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
    assert [t.get_text() for t in axes.get_xticklabels()] == [f"{i:03}" for i in range(6)]
    tc, miou, parting = axes.get_lines()
    assert list(parting.get_xdata()) == [2.5, 2.5]
    for line in (tc, miou):
        x, y = (list(map(float, own)) for own in line.get_data())
        assert x == [0, 1, 2, 2.5, 3, 4, 5] and math.isnan(y[3])
    assert [tc.get_xdata()[i] for i in tc.get_markevery()] == [3, 5]  # beside a hole: not unseen


def test_one_sequence_is_named_below() -> None:
    report = of_video()
    items = [
        {"name": f"run_{i:02}", "temporal": item["temporal"] | {"sequence": "run"}
         | ({"previous": f"run_{i - 1 if i != 4 else 1:02}"})}
        for i, item in enumerate(report.items)
    ]  # fmt: skip
    (axes,) = drawn(dataclasses.replace(report, items=items)).axes
    assert axes.get_xlabel() == "frame of run" and not axes.texts
    assert axes.get_xticklabels()[0].get_text() == "00"
    assert 3.5 in axes.get_lines()[0].get_xdata()  # frames are missing before the pair of 4


def test_reports_of_other_frames_have_no_names_in_common() -> None:
    report = of_video()
    (axes,) = drawn(report, report).axes
    assert axes.get_xticklabels()[0].get_text() == "000"
    (axes,) = drawn(report, dataclasses.replace(report, items=report.items[:3])).axes
    assert axes.get_xlabel().startswith("pair of frames") and not axes.texts


def test_values_that_stand_alone() -> None:
    nan = math.nan
    assert _isolated_points([1, nan, 2, 3, nan, 4]) == [0, 5]
    assert (
        _isolated_points([]) == []
        and _isolated_points([nan]) == []
        and _isolated_points([1]) == [0]
    )
