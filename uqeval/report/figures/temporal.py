"""Temporal consistency along a video, with the quality of each frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line
from uqeval.report.figures.curves import numbers, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def figures(lines: list[Line]) -> Iterator[Figure]:
    """TC_t and mIoU_t over time, and one against the other."""
    drawn = [line for line in lines if _scores(line)]
    if not drawn:
        return
    said = "; ".join(f"{line.label}: mTC {shown(line.record.get('mtc'))}" for line in drawn)
    yield Figure(
        "temporal",
        "Temporal consistency over time",
        f"TC of each pair of frames, with the mIoU of the frame where there are labels. {said}.",
        "TC needs no labels; dips are where predictions flicker. Vertical lines: a new sequence.",
        (8.2, 3.4),
        lambda canvas: _over_time(canvas, drawn),
        links="the pairs of frames with the lowest TC" if len(drawn) == 1 else "",
    )
    both = [line for line in drawn if _pairs(line)]
    if both:
        found = "; ".join(
            f"{line.label}: r = {shown((line.record.get('correlation') or {}).get('r'))}"
            for line in both
        )
        yield Figure(
            "temporal-correlation",
            "Temporal consistency against mIoU",
            f"TC and mIoU of each pair of frames. {found}.",
            "How far temporal consistency, which needs no labels, stands for quality.",
            (5.0, 4.0),
            lambda canvas: _correlation(canvas, both),
        )


def _scores(line: Line) -> list[dict[str, Any]]:
    found = [item.get(line.key) or {} for item in line.report.items]
    return found if any(score.get("tc") is not None for score in found) else []


def _pairs(line: Line) -> list[tuple[float, float]]:
    return [
        (score["tc"], score["miou"])
        for score in _scores(line)
        if score.get("tc") is not None and score.get("miou") is not None
    ]


def _over_time(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for i, line in enumerate(lines):
        scores = _scores(line)
        x = range(len(scores))
        axes.plot(x, numbers([s.get("tc") for s in scores]), style.dashes(i),
                  color=style.colour(i), linewidth=1.4, label=f"TC, {line.label}")  # fmt: skip
        if _pairs(line):
            axes.plot(x, numbers([s.get("miou") for s in scores]), ":", color=style.colour(i),
                      linewidth=1.4, label=f"mIoU, {line.label}")  # fmt: skip
    names = [score.get("sequence") for score in _scores(lines[0])]
    for n in range(1, len(names)):
        if names[n] != names[n - 1]:
            axes.axvline(n - 0.5, color=style.SOFT, linewidth=0.8)
    axes.set_xlabel("frame")
    axes.set_ylabel("TC, mIoU (fraction)")
    axes.set_ylim(top=min(axes.get_ylim()[1], 1.01))
    style.legend(canvas, axes)


def _correlation(canvas: Canvas, lines: Sequence[Line]) -> None:
    axes = canvas.subplots()
    for i, line in enumerate(lines):
        x, y = zip(*_pairs(line), strict=True)
        axes.plot(x, y, "o", color=style.colour(i), alpha=0.7, markersize=4, label=line.label)
    axes.set_xlabel("TC")
    axes.set_ylabel("mIoU")
    style.legend(canvas, axes)
