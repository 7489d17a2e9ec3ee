"""Scores by class, as bars."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.report.figures import style
from uqeval.report.figures.contract import Figure, Line, holding
from uqeval.report.figures.curves import bars, shown, tall

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: More classes than this make no readable figure; the table has them all.
MOST = 60
#: Of each family: panels (field, heading, what a line through the panel stands for and where).
_PANELS: dict[str, tuple[str, list[tuple[str, str, tuple[float, str] | None]]]] = {
    "segmentation": ("Segmentation", [("iou", "IoU", None), ("accuracy", "accuracy", None)]),
    "pavpu": (
        "Patch scores",
        [("pavpu", "PAvPU", None), ("surplus", "Surplus", (0.0, "knows nothing"))],
    ),
    "calibration": ("Class-wise calibration error", [("ece", "ECE of the class", None)]),
    "failure": (
        "Finding errors",
        [("auroc", "AUROC", (0.5, "chance")), ("aurc", "AURC (less is better)", None)],
    ),
    "temporal": ("Temporal consistency", [("iou", "IoU with the frame before", None)]),
}


def makers() -> dict[str, Callable[[list[Line]], Iterator[Figure]]]:
    """For each family that has rows by class, what makes its figure."""
    return {family: _maker(family) for family in _PANELS}


def _maker(family: str) -> Callable[[list[Line]], Iterator[Figure]]:
    title, panels = _PANELS[family]

    def figures(lines: list[Line]) -> Iterator[Figure]:
        drawn = _named_alike(holding(lines, "per_class"))
        names = list(
            dict.fromkeys(str(r["shown"]) for line in drawn for r in line.record["per_class"])
        )
        held = [p for p in panels if any(p[0] in line.record["per_class"][0] for line in drawn)]
        if not held or len(names) > MOST:
            return
        field, heading, _ = held[0]
        ranked = [(r[field], r["shown"]) for r in drawn[0].record["per_class"]
                  if r.get(field) is not None]  # fmt: skip
        said = "".join(
            f" {word}: {name} {shown(value)}."
            for word, (value, name) in zip(
                ("Lowest", "Highest"),
                (min(ranked, key=lambda r: r[0]), max(ranked, key=lambda r: r[0]))
                if ranked
                else (),
                strict=False,
            )
        )
        yield Figure(
            f"{family}-classes",
            f"{title} by class",
            f"{heading} of {len(names)} classes, {drawn[0].label}.{said}",
            "Lines: confidence intervals."
            if any(any(_ends(line, names, f)) for line in drawn for f, _, _ in held)
            else "",
            (8.2, min(tall(len(names), len(drawn)), 16.0)),
            lambda canvas: _draw(canvas, drawn, names, held),
        )

    return figures


def _named_alike(lines: Sequence[Line]) -> list[Line]:
    """The lines, each row with how its class is `shown`: as `uqeval compare` pairs them, by name;
    where a report has no names, by the name that the others have for the id.
    """
    names: dict[str, dict[str, None]] = {}
    for line in lines:
        for row in line.record["per_class"]:
            if str(row["name"]) != str(row["class"]):
                names.setdefault(str(row["class"]), {})[str(row["name"])] = None
    alike = []
    for line in lines:
        held = {str(row["name"]) for row in line.record["per_class"]}
        rows = []
        for row in line.record["per_class"]:
            shown, told = str(row["name"]), list(names.get(str(row["class"]), ()))
            if shown == str(row["class"]) and len(told) == 1 and told[0] not in held:
                shown = told[0]
            rows.append(row | {"shown": shown})
        alike.append(dataclasses.replace(line, record=line.record | {"per_class": rows}))
    return alike


def _draw(canvas: Canvas, lines: Sequence[Line], names: Sequence[str], panels: Any) -> None:
    axes = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (field, heading, mark) in zip(axes, panels, strict=True):
        bars(
            panel, lines, names, lambda line, f=field: _column(line, names, f),
            lambda line, f=field: _ends(line, names, f), heading,
        )  # fmt: skip
        if mark is not None:
            panel.axvline(mark[0], color=style.SOFT, linewidth=1.0)
            panel.annotate(
                mark[1], (mark[0], 1), xycoords=("data", "axes fraction"), xytext=(3, 1),
                textcoords="offset points", fontsize=7, color=style.SOFT,
            )  # fmt: skip
        values = [v for line in lines for v in _column(line, names, field) if v is not None]
        values += [v for line in lines for own in _ends(line, names, field) if own for v in own]
        if values and min(values) >= 0 and 0.25 < max(values) <= 1:
            panel.set_xlim(0, 1)
    style.legend(canvas, axes[0])


def _column(line: Line, names: Sequence[str], field: str) -> list[float | None]:
    by = {str(row["shown"]): row.get(field) for row in line.record["per_class"]}
    return [by.get(name) for name in names]


def _ends(line: Line, names: Sequence[str], field: str) -> list[tuple[float, float] | None]:
    by = {str(row["shown"]): line.class_interval(row, field) for row in line.record["per_class"]}
    return [by.get(name) for name in names]
