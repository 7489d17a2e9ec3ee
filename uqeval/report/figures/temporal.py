"""Temporal consistency along a video, with the quality of each frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import format_number, numbers
from uqeval.report.figures.frames import FrameAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


#: The largest number of pairs of a line that show their values under the pointer.
_MOST_HOVERED = 400


def figures(lines: list[Line]) -> Iterator[Figure]:
    """Yield TC_t and mIoU_t over time, and one against the other."""
    plotted = [line for line in lines if _scores(line)]
    if not plotted:
        return
    summary = "; ".join(
        f"{line.label}: mTC {format_number(line.record.get('mtc'))}" for line in plotted
    )
    yield Figure(
        "temporal",
        "Temporal consistency over time",
        f"TC of each pair of frames, and the mIoU of labelled frames. {summary}.",
        "TC needs no labels. It falls where predictions flicker. Vertical lines: a new sequence. "
        "Gaps: a frame is missing, or no pixel can be compared.",
        (8.2, 3.4),
        lambda canvas: _over_time(canvas, plotted),
        links="the pairs of frames with the lowest TC" if len(plotted) == 1 else "",
    )
    with_miou = [line for line in plotted if _pairs(line)]
    if with_miou:
        occluded_scores = "; ".join(
            f"{line.label}: r = {format_number((line.record.get('correlation') or {}).get('r'))}"
            for line in with_miou
        )
        yield Figure(
            "temporal-correlation",
            "Temporal consistency against mIoU",
            f"TC and mIoU of each pair of frames. {occluded_scores}.",
            "If the two correlate, TC, which needs no labels, can indicate the quality.",
            (5.0, 4.0),
            lambda canvas: _correlation(canvas, with_miou),
        )


def _scores(line: Line) -> list[dict[str, Any]]:
    records = [item.get(line.key) or {} for item in line.report.items]
    return records if any(score.get("tc") is not None for score in records) else []


def _pairs(line: Line) -> list[tuple[float, float]]:
    return [
        (score["tc"], score["miou"])
        for score in _scores(line)
        if score.get("tc") is not None and score.get("miou") is not None
    ]


def _runs(line: Line, field: str) -> tuple[list[float], list[float]]:
    """Return positions and values of a score, with a gap where two pairs do not share a frame."""
    scores = _scores(line)
    names = [item.get("name") for item in line.report.items]
    x, y = [], []
    for i, (score, value) in enumerate(
        zip(scores, numbers([s.get(field) for s in scores]), strict=True)
    ):
        starts_sequence = i and score.get("sequence") != scores[i - 1].get("sequence")
        if starts_sequence or (i and score.get("previous", names[i - 1]) != names[i - 1]):
            x.append(i - 0.5)
            y.append(math.nan)
        x.append(float(i))
        y.append(value)
    return x, y


def _isolated_points(values: Sequence[float]) -> list[int]:
    """Return the positions of values whose neighbours are both undefined."""
    is_defined = [False, *map(math.isfinite, values), False]
    return [i for i in range(len(values)) if is_defined[i : i + 3] == [False, True, False]]


def _over_time(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for line in lines:
        for field, name, dashes in (("tc", "TC", line.dashes), ("miou", "mIoU", ":")):
            if field == "tc" or _pairs(line):
                x, y = _runs(line, field)
                alone = _isolated_points(y)
                axes.plot(
                    x,
                    y,
                    dashes,
                    color=line.colour,
                    linewidth=1.4,
                    markevery=alone,
                    marker="." if alone else "",
                    label=f"{name}, {line.label}",
                )
        if len({id(line.report) for line in lines}) == 1:
            _hover(axes, line)
    over = {
        (
            line.report.item_names,
            tuple(str(score.get("sequence") or "") for score in _scores(line)),
        )
        for line in lines
    }
    if len(over) == 1:
        FrameAxis(*over.pop()).draw(axes)
    else:
        axes.set_xlabel("pair of frames (index in each report)")
    axes.set_ylabel("TC, mIoU (fraction)")
    axes.set_ylim(top=min(axes.get_ylim()[1], 1.01))
    style.legend(canvas, axes)


def _hover(axes: Axes, line: Line) -> None:
    """Show the values of pairs under the pointer, of at most `_MOST_HOVERED` of them."""
    scores = _scores(line)
    step = -(-len(scores) // _MOST_HOVERED)
    for i in range(0, len(scores), step):
        tc, miou = scores[i].get("tc"), scores[i].get("miou")
        if tc is not None:
            text = f"{line.report.items[i].get('name')}, {line.label}: TC {format_number(tc)}"
            text += "" if miou is None else f", mIoU {format_number(miou)}"
            style.hovered(axes, i, tc, text, i)


def _correlation(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for line in lines:
        x, y = zip(*_pairs(line), strict=True)
        axes.plot(x, y, "o", color=line.colour, alpha=0.7, markersize=4, label=line.label)
    axes.set_xlabel("TC")
    axes.set_ylabel("mIoU")
    style.legend(canvas, axes)
